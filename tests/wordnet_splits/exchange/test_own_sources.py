"""Exports of a benchmark of an author's pictures, on a machine that does not know the dataset."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import pytest
from PIL import Image

import wordnet_splits as ws
from tests.raising import mentions
from tests.wordnet_splits import own_pictures as own
from tests.wordnet_splits.command import Command
from wordnet_splits.base.errors import ManifestError

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
    Path("pics/test/zebra/picture 0.png").rename("pics/test/zebra/picture_0.png")
    own.catalog(Path("pics/mypics.tsv"), CLASSES, {"train": 1, "test": 2})
    own.declare(Path("pics"), "mypics", "folders")
    new = ("new", "mine", "--id", "mypics:golden retriever,zebra", "--near", "mypics:teapot")
    for words in (("sources", "inventory", "mypics"), new):
        assert command(*words, *ROOT).code == 0
    assert command("build", "mine.toml", *ROOT).code == 0
    for file in ("pics/dataset.toml", "pics/mypics.tsv", "pics/mypics.inventory.parquet", "mine.toml"):
        Path(file).unlink()
    monkeypatch.setattr("wordnet_splits.datasets.catalog.declarations._REGISTERED", {})
    return command


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


def test_a_declaration_that_was_altered_is_refused(command: Command) -> None:
    assert command("export", "build/mine", "--format", "csv", "--out", "out").code == 0
    file = Path("out/sources/mypics.toml")
    file.write_text(file.read_text("utf-8") + "# more\n", "utf-8")
    assert command("import", "csv", "out").error
    with pytest.raises(ManifestError):
        ws.import_benchmark("csv", "out", "imported")


def test_exports_of_shipped_sources_carry_none(command: Command) -> None:
    assert command("export", "digits", "--format", "csv", "--out", "out").code == 0
    assert not Path("out/sources").exists()


DISK = ("--paths", "disk")


def test_paths_as_they_lie_on_disk_are_files_and_come_back(command: Command) -> None:
    words = ("export", "build/mine", "--format", "openset-imagenet", "--out", "out", *DISK, *ROOT)
    assert command(*words).code == 0
    with Path("out/test.csv").open(encoding="utf-8", newline="") as file:
        paths = [path for path, _ in csv.reader(file)]
    assert "mypics/test/golden retriever/picture 0.png" in paths
    Path("mypics").symlink_to("pics")
    assert len(paths) == 6
    assert all(Path(path).is_file() for path in paths)
    done = command("import", "openset-imagenet", "out", "--json", *ROOT).json["imported"]
    assert sum(group["actual"] for group in done["groups"] if group["split"] == "test") == 6
    assert not done["unmatched"]


def test_a_link_farm_has_a_picture_at_every_path(command: Command) -> None:
    words = ("export", "build/mine", "--format", "openood", "--links", *ROOT)
    assert command(*words, "--out", "disk", *DISK).code == 0
    lines = [line for file in Path("disk").glob("*.txt") for line in file.read_text("utf-8").splitlines()]
    paths = [line.partition(" ")[0] for line in lines]
    assert "mypics/test/zebra/picture_0.png" in paths  # as it lies; blanks alone are encoded
    assert "mypics/test/golden%20retriever/picture%200.png" in paths
    assert all(Path("disk/images", path).is_symlink() for path in paths)
    assert all(Image.open(Path("disk/images", path)).size == (10, 12) for path in paths)
    assert command("import", "openood", "disk", *ROOT).code == 0
    changed = Path("disk/test_known.txt")
    changed.write_text(changed.read_text("utf-8").replace("picture_0.png", "picture_1.png"), "utf-8")
    assert "mypics/test/zebra/picture_1.png" in command("import", "openood", "disk", *ROOT).error
    assert command(*words, "--out", "tree", "--copies").code == 0
    line = Path("tree/test_known.txt").read_text("utf-8").splitlines()[0]
    assert not Path("tree/images", line.partition(" ")[0]).is_symlink()
    assert Path("tree/images", line.partition(" ")[0]).is_file()


@pytest.mark.parametrize("prefix", ["mypics/", ""])
def test_a_list_of_the_authors_files_is_imported_with_their_root(command: Command, prefix: str) -> None:
    Path("lists").mkdir()
    rows = [(f"{prefix}test/{name}/picture 1.png", n) for n, name in enumerate(CLASSES)]
    Path("lists/test.csv").write_text("".join(f"{path},{label}\n" for path, label in rows), "utf-8")
    shutil.copytree("build/mine/sources", "lists/sources")
    words = ("import", "openset-imagenet", "lists", "--name", "files", "--source", "mypics", *ROOT)
    assert command(*words).code == 0
    images = ws.load_manifest(Path("imported/files")).images(group="known")
    assert sorted(images["image_id"].to_pylist()) == [f"test/{name}/picture 1" for name in CLASSES]


def test_generated_pictures_are_written_into_a_link_farm(command: Command) -> None:
    part = ("--format", "openood", "--split", "test", "--group", "gaussian")
    assert command("export", "digits", *part, "--out", "out", "--links", *DISK).code == 0
    path = Path("out/test_gaussian.txt").read_text("utf-8").splitlines()[0].partition(" ")[0]
    assert Image.open(Path("out/images", path)).format == "PNG"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("openood", *DISK, *ROOT), "openood"),
        (("openood", *DISK), ()),
        (("csv", *DISK, *ROOT), "csv"),
        (("imagefolder", "--links", *ROOT), "imagefolder"),
        (("openood", "--paths", "disc"), ("disc", "disk")),
    ],
)
def test_paths_that_cannot_be_written_are_one_line(
    command: Command, words: tuple[str, ...], said: object
) -> None:
    assert mentions(command("export", "build/mine", "--out", "out", "--format", *words).error, said)
    assert not Path("out").exists()
    assert command("export", "digits", "--format", "openood", "--out", "out", *DISK).error
