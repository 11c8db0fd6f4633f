"""Exports of a benchmark of an author's pictures, on a machine that does not know the dataset."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import wordnet_splits as ws
from tests.wordnet_splits import own_pictures as own
from tests.wordnet_splits.command import Command
from wordnet_splits.base.errors import SplitsError
from wordnet_splits.exchange.formats.registry import format_names

CLASSES = ["golden retriever", "teapot", "zebra"]
ROOT = ("--root", "mypics=pics")


@pytest.fixture
def command(
    own_datasets_forgotten: None,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> Command:
    """A benchmark in build/mine, and pictures in pics; nothing else knows the dataset any more."""
    command = Command(capsys, monkeypatch, tmp_path)
    own.class_folders(Path("pics"), CLASSES, {"train": 1, "test": 2})
    own.catalog(Path("pics/mypics.tsv"), CLASSES, {"train": 1, "test": 2})
    own.declare(Path("pics"), "mypics", "folders")
    known = "mypics:golden retriever,zebra"
    for words in (("inventory", "make", "mypics"), ("new", "mine", "--id", known, "--near", "mypics:teapot")):
        assert command(*words, *ROOT).code == 0
    assert command("build", "mine.toml", *ROOT).code == 0
    for file in ("pics/dataset.toml", "pics/mypics.tsv", "pics/mypics.inventory.parquet", "mine.toml"):
        Path(file).unlink()
    monkeypatch.setattr("wordnet_splits.catalog.declarations._REGISTERED", {})
    return command


@pytest.mark.parametrize("format_name", format_names())
def test_every_export_carries_the_declaration_and_is_restored(command: Command, format_name: str) -> None:
    assert command("export", "build/mine", "--format", format_name, "--out", "out", *ROOT).code == 0
    shutil.rmtree("build/mine/sources")
    done = command("import", format_name, "out", "--json").json["imported"]
    assert done["same"], done["differences"]
    restored = ws.load_manifest(Path(done["out"]))
    assert restored.own["mypics"].catalog_file.is_file()
    assert command("verify", done["out"], *ROOT).code == 0


def test_a_part_becomes_lists_and_a_recipe_that_builds_elsewhere(command: Command) -> None:
    part = ("--group", "known", "--group", "near-mypics", "--split", "test")
    assert command("export", "build/mine", "--format", "openood", "--out", "out", *part).code == 0
    shutil.rmtree("build")
    words = ("import", "openood", "out", "--name", "theirs", "--source", "mypics", "--out", "imported")
    done = command(*words, "--json").json["imported"]
    shutil.rmtree("out")
    Path("imported").rename("elsewhere")
    assert Path("elsewhere/lists/theirs/sources/mypics.toml").is_file()
    built = command("build", "elsewhere/theirs.toml", "--out", "again", "--json").json["built"]
    assert ws.load_manifest(Path("again/theirs")).fingerprint == done["fingerprint"], built


def test_lists_without_an_id_group_have_the_declaration_beside_them(command: Command) -> None:
    part = ("--group", "near-mypics", "--split", "test")
    assert command("export", "build/mine", "--format", "openood", "--out", "out", *part).code == 0
    done = command("import", "openood", "out", "--name", "far", "--source", "mypics", "--json")
    assert done.json["imported"]["lists"] == ["far/test_near-mypics"]
    assert Path("imported/lists/far/sources/mypics.tsv").is_file()


@pytest.mark.parametrize(
    ("name", "said"),
    [("mypics.tsv", "mypics.tsv: the file gives"), ("mypics.toml", "is not the declaration of mypics")],
)
def test_a_declaration_that_was_altered_is_refused(command: Command, name: str, said: str) -> None:
    assert command("export", "build/mine", "--format", "csv", "--out", "out").code == 0
    file = Path("out/sources", name)
    file.write_text(file.read_text("utf-8") + "# more\n", "utf-8")
    assert said in command("import", "csv", "out").error
    with pytest.raises(SplitsError, match=said):
        ws.import_benchmark("csv", "out", "imported")


def test_exports_of_shipped_sources_carry_none(command: Command) -> None:
    assert command("export", "digits", "--format", "csv", "--out", "out").code == 0
    assert not Path("out/sources").exists()
    assert "sources" not in json.loads(Path("out/wordnet-splits.json").read_text("utf-8"))
