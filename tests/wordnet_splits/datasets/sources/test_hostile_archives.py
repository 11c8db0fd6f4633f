"""Every layout that is an archive, made to lie; every layout with what hangs, never ends or leads out."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.wordnet_splits.datasets.sources.every_layout import ARCHIVES, TREES, each, written
from tests.wordnet_splits.datasets.sources.hostile_archives import KINDS, Ends, kind_of, lies_of
from tests.wordnet_splits.datasets.sources.looking import everything, files, look, refused, said_or_held

NOT_READ = ("lock.mdb", "test-00000-of-00001.parquet")  # the latter is ImageNet's, without labels


def is_archive(path: Path) -> bool:
    return path.name not in NOT_READ and kind_of(path) != "picture"


def test_every_tree_with_archives_is_among_them(tmp_path: Path) -> None:
    roots = {tree: written(*tree, tmp_path / str(number)) for number, tree in enumerate(TREES)}
    assert [tree for tree, root in roots.items() if any(map(is_archive, files(root)))] == ARCHIVES
    kinds = {kind_of(path) for root in roots.values() for path in files(root)}
    assert kinds == {*KINDS, "picture"}


@pytest.mark.sampled("fuzz", one_in=4)
@each(ARCHIVES)
def test_an_archive_that_lies(name: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sound = written(name, says, tmp_path / "sound")
    monkeypatch.chdir(tmp_path)
    wrong = {}
    for path in filter(is_archive, files(sound)):
        for how, (change, ends) in lies_of(path).items():
            root = tmp_path / "root"
            shutil.copytree(sound, root)
            (root / path.relative_to(sound)).write_bytes(change(path.read_bytes()))
            before = everything(tmp_path)
            if error := judged(name, root, sound, ends):
                wrong[f"{path.name}: {how}"] = error
            assert everything(tmp_path) == before
            shutil.rmtree(root)
    assert wrong == {}


def judged(name: str, root: Path, sound: Path, ends: Ends) -> str:
    """What is wrong with how a root is read; empty where nothing is."""
    try:
        if ends is Ends.REFUSED:
            refused(name, root)
            return ""
        source, ids = look(name, root)
        was, had = look(name, sound)
    except (AssertionError, pytest.fail.Exception) as error:
        return repr(error)
    named = len(source.unexpected) > len(was.unexpected)
    return (
        "" if sorted(ids) == sorted(had) and named == (ends is Ends.NAMED) else f"{ids}, {source.unexpected}"
    )


def pipe(path: Path) -> None:
    os.mkfifo(path)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 41)


def outside(path: Path) -> None:
    path.symlink_to(path.parents[len(path.parts) - 2] / "etc" / "hostname")


PLACES: dict[str, Callable[[Path], None]] = {
    "a pipe": pipe,
    "a link to /dev/zero": endless,
    "two sparse TiB": sparse,
    "a link out of the root": outside,
}


@pytest.mark.sampled("fuzz", one_in=4)
@each(TREES)
@pytest.mark.parametrize("what", PLACES)
def test_what_stands_in_the_place_of_every_file(name: str, says: str, what: str, tmp_path: Path) -> None:
    for path in files(written(name, says, tmp_path)):
        path.unlink()
        PLACES[what](path)
    before = everything(tmp_path)
    assert said_or_held(name, tmp_path)[1] == []
    assert everything(tmp_path) == before
