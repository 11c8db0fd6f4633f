"""Versions of a benchmark of one's own: the earlier one stays, is named, listed, compared and built again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.raising import mentions
from tests.wordnet_splits import own_pictures as own
from tests.wordnet_splits.command import Command, Finished
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.datasets.catalog import declarations

pytestmark = pytest.mark.extensions("wordnet_splits.authoring")

CLASSES = ["golden retriever", "teapot", "zebra", "acoustic guitar"]
SENTENCE = ("--id", "mypics:golden retriever,teapot", "--near", "mypics", "--far", "digits:0,1")
ABOUT = '\n[about]\nlicence = "CC0-1.0"\nauthors = [{ name = "Ada Lovelace" }]\n'


class Fresh(Command):
    """Runs commands that know nothing of each other, as processes of their own do."""

    def __call__(self, *arguments: object) -> Finished:
        """Run one command."""
        declarations._REGISTERED.clear()
        return super().__call__(*arguments)


@pytest.fixture
def author(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """An author with a frozen version 1, whose pictures lie in ``pics-v1``, and a version 2 of ``pics``."""
    monkeypatch.setattr("wordnet_splits.datasets.catalog.declarations._REGISTERED", {})
    command = Fresh(capsys, monkeypatch, tmp_path)
    own.class_folders(Path("pics"), CLASSES, {"train": 1, "test": 3})
    own.catalog(Path("pics/mypics.tsv"), CLASSES, {"train": 1, "test": 3})
    own.declare(Path("pics"), "mypics", "folders")
    _build(command, make_recipe=True)
    assert command("freeze", "mine", "--manifests", "frozen", "-m", "The first\none").code == 0
    shutil.copytree("pics/train", "pics-v1/train")
    shutil.copytree("pics/test", "pics-v1/test")
    return command


def _build(command: Command, *, make_recipe: bool = False) -> None:
    """Build ``mine`` as the pictures are now."""
    assert command("sources", "inventory", "mypics", "--root", "mypics=pics").code == 0
    if make_recipe:
        assert command("new", "mine", *SENTENCE, "--root", "mypics=pics").code == 0
        Path("mine.toml").write_text(Path("mine.toml").read_text("utf-8") + ABOUT, "utf-8")
    done = command("build", "mine.toml", "--root", "mypics=pics")
    assert done.code == 0, done


def _second_version(command: Command) -> None:
    """Rename a class, remove a picture of another one, add two of a third; build."""
    catalog, recipe = Path("pics/mypics.tsv"), Path("mine.toml")
    for split in ("train", "test"):
        Path("pics", split, "acoustic guitar").rename(Path("pics", split, "guitar"))
    text = catalog.read_text("utf-8").replace("acoustic guitar", "guitar")
    lines = [
        line.replace("\t1\t3\t", "\t1\t5\t") if line.startswith("teapot") else line
        for line in text.splitlines()
    ]
    catalog.write_text("\n".join(lines) + "\n", "utf-8")
    for number in (100, 101):
        own.picture(number).save(Path("pics/test/teapot") / f"new {number}.png")
    Path("pics/mypics.inventory.parquet").unlink()
    text = recipe.read_text("utf-8")
    assert "version = 1" in text or "version" not in text
    text = text.replace("version = 1\n", "")
    recipe.write_text(text.replace('name = "mine"', 'name = "mine"\nversion = 2', 1), "utf-8")
    _build(command)


def test_the_earlier_version_stays_and_is_named_wherever_a_benchmark_is(author: Command) -> None:
    pytest.importorskip("yaml", reason="publishing asks for the extra hub")
    first = load_manifest(Path("frozen/mine"))
    _second_version(author)
    frozen = author("freeze", "mine", "--manifests", "frozen", "-m", "Two more teapots")
    assert frozen.code == 0, frozen
    where = ("--manifests", "frozen")
    rows = author("list", *where, "--json").json["benchmarks"]
    assert [(r["name"], r["version"]) for r in rows if r["name"].startswith("mine")] == [
        ("mine", 2),
        ("mine@v1", 1),
    ]
    assert load_manifest("mine@v1", Path("frozen")).fingerprint == first.fingerprint
    assert load_manifest("mine@v2", Path("frozen")).version == 2
    assert "role       near" in author("explain", "mine@v1", "acoustic guitar", *where).out
    assert mentions(author("explain", "mine@v3", "zebra", *where).error, "mine@v1")
    assert author("verify", "mine@v1", *where, "--root", "mypics=pics-v1").code == 0
    assert author("verify", *where).out.count("mine@v") == 0, "without names the latest versions are verified"

    done = author("diff", "frozen/mine@v1", "frozen/mine")
    assert done.code == 1
    assert "class acoustic guitar renamed guitar, 3 images\n" in done.out
    assert "2 images added to class teapot (test)\n" in done.out

    changes = Path("frozen/mine/CHANGELOG.md").read_text("utf-8")
    assert changes == "# Changes of mine\n\n- version 1: The first one\n- version 2: Two more teapots\n"
    for message in ("Two more teapots", "Nothing new"):
        done = author("freeze", "build/mine", *where, "-m", message)
        assert "frozen mine in frozen/mine, unchanged\n  its CHANGELOG.md has a line" in done.err
    assert Path("frozen/mine/CHANGELOG.md").read_text("utf-8") == changes
    assert author("hub", "publish", "frozen", "--out", "published").code == 0
    card = Path("published/README.md").read_text("utf-8")
    assert "- version 2: Two more teapots" in card
    assert not Path("published/mine@v1").exists()
    assert author("hub", "pull", "./published", "--out", "pulled").code == 0
    assert Path("pulled/mine/CHANGELOG.md").read_text("utf-8") == changes
    assert author("verify", "pulled/mine").code == 0


def test_the_first_version_builds_again_while_the_second_lies_beside(
    author: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = load_manifest(Path("frozen/mine")).fingerprint
    _second_version(author)
    assert author("freeze", "mine", "--manifests", "frozen").code == 0
    build = ("build", "frozen/mine@v1", "--out", "again")
    monkeypatch.setenv("WORDNET_SPLITS_ROOT_MYPICS", str(Path("pics").absolute()))
    assert author(*build, "--root", "mypics=pics-v1").code == 0
    assert load_manifest(Path("again/mine")).fingerprint == first
    refused = author(*build, "--root", "mypics=pics").error
    assert "its catalog differs" in refused
    assert mentions(refused, "dataset.toml")
    Path("pics/dataset.toml").rename("dataset.toml")
    missing = author(*build, "--root", "mypics=pics")
    assert missing.code != 0
    assert "acoustic guitar" in missing.err


def test_an_earlier_version_is_never_frozen_over_a_later_one(author: Command) -> None:
    shutil.copytree("build", "build-v1")
    _second_version(author)
    assert author("freeze", "mine", "--manifests", "frozen").code == 0
    refused = author("freeze", "mine", "--built", "build-v1", "--manifests", "frozen").error
    assert mentions(refused, "2", "frozen")
    assert author("freeze", "mine", "--manifests", "frozen", "-m", " ").error
    assert load_manifest(Path("frozen/mine")).version == 2


def test_another_benchmark_where_the_earlier_version_is_kept_is_not_replaced(author: Command) -> None:
    shutil.copytree("frozen/mine", "frozen/mine@v1")
    data = Path("frozen/mine@v1/manifest.json")
    text = data.read_text("utf-8")
    digest = load_manifest(Path("frozen/mine")).data.fingerprints.classes
    data.write_text(text.replace(digest, "0" * 64), "utf-8")
    _second_version(author)
    assert author("freeze", "mine", "--manifests", "frozen").error
    assert load_manifest(Path("frozen/mine")).version == 1
