"""Class names that a spreadsheet, a Markdown page or a file system takes for something else."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from PIL import Image

from tests.wordnet_splits import own_pictures as own
from tests.wordnet_splits.command import Command
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.exchange.paths import decoded, encoded

KNOWN = ["=1+1", "-1", "a|b", "CON", "zebra", "Dog", "dog", "dog."]
FAR = ["+x", "@y", "<b>c", "teapot"]
ROOT = ("--root", "mypics=pics")
RECIPE = f"""schema = 1
name = "mine"
version = 1
seed = 0
title = "Mine <img src=x>"
[[group]]
name = "known"
role = "id"
source = "mypics"
view = "raw"
classes = {{ listed = {KNOWN} }}
images = {{ test = {{ from = "test", all = true }} }}
note = "a <i>note</i>"
[[group]]
name = "far"
role = "far"
source = "mypics"
view = "raw"
classes = {{ listed = {FAR} }}
images = {{ test = {{ from = "test", all = true }} }}
"""

pytestmark = pytest.mark.usefixtures("own_datasets_forgotten")


@pytest.fixture
def command(capsys, monkeypatch, tmp_path) -> Command:
    """Commands in a folder with the built benchmark; its pictures are PNG files, some under wrong names."""
    command = Command(capsys, monkeypatch, tmp_path)
    classes = [*KNOWN, *FAR]
    own.class_folders(Path("pics"), classes, {"train": 1, "test": 2})
    for class_id in ("Dog", "dog"):
        for old, new in (("picture 0", "A"), ("picture 1", "a")):
            Path(f"pics/test/{class_id}/{old}.png").rename(f"pics/test/{class_id}/{new}.png")
    Path("pics/test/zebra/picture 0.png").rename("pics/test/zebra/picture 0.jpeg")
    own.catalog(Path("pics/mypics.tsv"), classes, {"train": 1, "test": 2})
    own.declare(Path("pics"), "mypics", "folders", 'licence = "CC|BY <script>x</script>"\n')
    Path("mine.toml").write_text(RECIPE)
    own.attribute(Path("mine.toml"))
    for words in (("sources", "inventory", "mypics"), ("build", "mine.toml")):
        done = command(*words, *ROOT)
        assert done.code == 0, done.err
    return command


def test_spreadsheets_run_nothing_and_csv_comes_back(command: Command) -> None:
    assert command("export", "build/mine", "--format", "csv", "--out", "csv").code == 0
    tables = [Path("csv/classes.csv").read_text(), Path("csv/images.csv").read_text()]
    tables.append(command("explain", "build/mine", "--all", "--format", "csv").out)
    for text in tables:
        cells = {cell for row in csv.reader(io.StringIO(text)) for cell in row}
        assert {"'=1+1", "'+x", "'@y", "-1", "zebra"} <= cells
        assert {cell for cell in cells if cell[:1] in ("=", "+", "-", "@")} == {"-1"}
    assert command("import", "csv", "csv", "--out", "lists", *ROOT).code == 0


def test_pages_hold_no_html_of_others(command: Command) -> None:
    pytest.importorskip("yaml")
    table = command("explain", "build/mine", "--all").out
    assert len({line.replace("\\|", "").count("|") for line in table.splitlines()}) == 1
    card = command("hub", "publish", "org/mine", "build/mine", "--card-only", *ROOT).out
    assert "| mypics | own dataset, layout folders | CC\\|BY &lt;script&gt;x&lt;/script&gt; |  |" in card
    for text in (table, card):
        assert "&lt;b&gt;c" in text
        assert not any(tag in text for tag in ("<b>", "<i>", "<img", "<script"))


def test_trees_for_any_file_system_come_back(command: Command) -> None:
    assert command("export", "build/mine", "--format", "imagefolder", "--out", "tree", *ROOT).code == 0
    files = [path.relative_to("tree") for path in Path("tree").rglob("*") if not path.is_dir()]
    pictures = [path for path in files if path.parts[0] != "sources"]
    assert len(pictures) == 24
    assert {path.suffix for path in pictures} == {".png"}
    assert all(Image.open(Path("tree") / path).format == "PNG" for path in pictures)
    assert len({str(path).lower() for path in pictures}) == 24
    folders = {path.parts[2] for path in pictures}
    assert {"%43ON", "dog%2E", "%44og", "dog", "zebra"} <= folders
    fingerprint = load_manifest(Path("build/mine")).fingerprint
    words = ("--source", "mypics", "--role", "known=id", "--json", *ROOT)
    assert command("import", "imagefolder", "tree", *words).json["imported"]["fingerprint"] == fingerprint
    assert command("export", "build/mine", "--format", "openood", "--out", "lists", *ROOT).code == 0
    lines = [line for file in Path("lists").glob("*.txt") for line in file.read_text().splitlines()]
    assert {line.rpartition(" ")[0] for line in lines} == {str(path) for path in pictures}
    done = command("import", "openood", "lists", "--out", "of-lists", *words)
    assert done.json["imported"]["fingerprint"] == fingerprint
    assert command("export", "build/mine", "--format", "openood", "--out", "alone").code == 0
    assert ".png" not in Path("alone/test_far.txt").read_text()


@pytest.mark.parametrize("name", ["CON", "con", "Aux", "nul.x", "COM1", "lpt9", "dog.", "...", "x..", ".con"])
def test_what_windows_cannot_hold_is_escaped(name: str) -> None:
    file = encoded(name)
    assert file[0] == "%" or file.endswith("%2E")
    assert not file.endswith(".")
    assert decoded(file) == name


def test_names_of_older_trees_are_read() -> None:
    assert [decoded(name) for name in ("CON", "dog.", "Dog", "%44og")] == ["CON", "dog.", "Dog", "Dog"]
