"""Every layout of the table in docs/data.md: a sound tree is read, a bad one refused in one line.

Archives are made to lie; files are replaced by what hangs, never ends or leads out of the root.
"""

from __future__ import annotations

import os
import pickle
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from tests.raising import mentions, raises
from tests.wordnet_splits.datasets.sources.every_layout import (
    ARCHIVES,
    EVERY,
    TREES,
    each,
    page_layouts,
    written,
)
from tests.wordnet_splits.datasets.sources.hostile_archives import KINDS, Ends, kind_of, lies_of
from tests.wordnet_splits.datasets.sources.trees import digests
from wordnet_splits.base.errors import MissingImageError, SplitsError, UnsafeDataError
from wordnet_splits.datasets.sources import Source, open_source, source_class, source_info, source_names

ROOTED = [name for name in source_names() if source_class(name).rooted]
SAME_FILES = {("imagenet21k", "ssb-hard"), ("ssb-hard", "imagenet21k")}
"""One is a selection of the other, under the same names."""
NOT_READ = ("lock.mdb", "test-00000-of-00001.parquet")  # the latter is ImageNet's, without labels


def look(name: str, root: Path) -> tuple[Source, list[str]]:
    """Scan a root, read and decode all of its images; return the source and the ids."""
    source = open_source(name, root)
    ids = [i for batch in source.scan() for i in batch.column("image_id").to_pylist()]
    for image_id, raw in zip(ids, source.read(ids), strict=True):
        source.decode(raw, image_id)
    assert len(set(ids)) == len(ids), "an id is listed twice"
    return source, ids


def refused(name: str, root: Path, error: type[SplitsError] = SplitsError) -> str:
    """The line with which a root is refused, on opening, scanning, reading or decoding; exit code 2."""
    with pytest.raises(error) as caught:
        look(name, root)
    return checked(caught.value, root)


def checked(error: SplitsError, root: Path) -> str:
    """What an error says: one line of letters that a terminal shows, with the root in it."""
    message = str(error)
    assert error.exit_code == 2
    assert message.isprintable(), message
    assert str(root) in message
    return message


def said_or_held(name: str, root: Path) -> tuple[str, list[str]]:
    """The line with which a root is refused, or what may be frozen of it."""
    try:
        source, ids = look(name, root)
    except SplitsError as error:
        return checked(error, root), []
    return "", ids if source.order == "published" else []


def files(folder: Path) -> list[Path]:
    """All files below a folder, sorted."""
    return sorted(path for path in folder.rglob("*") if path.is_file())


def everything(folder: Path) -> dict[str, tuple[int, int]]:
    """Every name below a folder, with its size and time: what must be the same after something hostile."""
    paths = sorted(folder.rglob("*"))
    return {str(path.relative_to(folder)): (path.lstat().st_size, path.lstat().st_mtime_ns) for path in paths}


def is_archive(path: Path) -> bool:
    return path.name not in NOT_READ and kind_of(path) != "image"


def test_the_table_has_every_layout_that_the_readme_promises() -> None:
    promised = {(name, says) for name, says in page_layouts() if source_class(name).rooted}
    assert promised == set(TREES)
    assert set(EVERY) == set(ROOTED)


def test_every_tree_with_archives_is_among_them(tmp_path: Path) -> None:
    roots = {tree: written(*tree, tmp_path / str(number)) for number, tree in enumerate(TREES)}
    assert [tree for tree, root in roots.items() if any(map(is_archive, files(root)))] == ARCHIVES
    kinds = {kind_of(path) for root in roots.values() for path in files(root)}
    assert kinds == {*KINDS, "image"}


@each(TREES)
def test_a_sound_tree_is_read(name: str, says: str, tmp_path: Path) -> None:
    source, ids = look(name, written(name, says, tmp_path))
    # made images cannot have the digests that the shipped inventories hold
    assert ids or any("pixels of no known image" in what for what in source.unexpected)
    for image_id in ("", "x", "val/x", "../x", "/etc/hostname", "test/01", "test/٣", "test/" + "9" * 9999):
        with raises(MissingImageError, where=tmp_path):
            source.read([image_id])
    for image_id in ids[:2]:
        for absent in (f"{image_id}x", f"../{image_id}", f"{image_id}/../{image_id}", f"{image_id} "):
            with pytest.raises(MissingImageError):
                source.read([absent])


@pytest.fixture(scope="module", params=["fork", "spawn"])
def pool(request: pytest.FixtureRequest) -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(1, mp_context=get_context(request.param)) as executor:
        yield executor


def work(job: tuple[Source, list[str]]) -> tuple[list[bytes], int]:
    return digests(*job), id(job[0])


@each(ARCHIVES)
def test_workers_read_what_the_parent_reads(
    name: str, says: str, pool: ProcessPoolExecutor, tmp_path: Path
) -> None:
    source, ids = look(name, written(name, says, tmp_path))
    here = digests(source, ids)  # opens the files before a worker gets the source
    results = list(pool.map(work, [(source, ids[::2]), (source, ids[1::2])]))
    assert [found for found, _ in results] == [here[::2], here[1::2]]
    assert results[0][1] == results[1][1]  # one object in the worker, so one index and one open file
    assert digests(source, ids) == here  # what the worker closed is open here
    assert len(pickle.dumps(source)) < 2000


@pytest.mark.parametrize("name", ROOTED)
def test_a_root_that_is_missing_or_empty(name: str, tmp_path: Path) -> None:
    for root, said in ((tmp_path / "nowhere", "does not exist"), (tmp_path, "is empty")):
        message = refused(name, root)
        assert mentions(message, name, said)
        assert source_info(name).how in message


@pytest.mark.sampled("fuzz", one_in=4)
@each(TREES)
def test_a_tree_without_its_files(name: str, says: str, tmp_path: Path) -> None:
    (written(name, says, tmp_path) / "README.txt").touch()
    for path in files(tmp_path):
        if path.name != "README.txt":
            path.unlink()
    assert said_or_held(name, tmp_path)[1] == []


SPOILT: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "cut in half": lambda data: data[: len(data) // 2],
    "zeros": lambda data: bytes(len(data)),
    "another thing": lambda data: b"<html>404 Not Found</html>\n" * 40,
}


@pytest.mark.sampled("fuzz", one_in=4)
@each(TREES)
@pytest.mark.parametrize("how", SPOILT)
def test_a_tree_whose_files_are_spoilt(name: str, says: str, how: str, tmp_path: Path) -> None:
    for path in files(written(name, says, tmp_path)):
        path.write_bytes(SPOILT[how](path.read_bytes()))
    if how == "zeros" and all(path.suffix == ".tar" for path in files(tmp_path)):
        assert look(name, tmp_path)[1] == []  # which is an archive of nothing
    else:
        refused(name, tmp_path)


@pytest.mark.sampled("fuzz", one_in=6)
@each(TREES)
def test_a_tree_is_no_other_dataset(name: str, says: str, tmp_path: Path) -> None:
    """Asked for any other dataset it is refused by name, or nothing in it has an id of that one.

    Where ids are positions, and no digest is known, nothing that is read is frozen.
    """
    written(name, says, tmp_path)
    others = [asked for asked in ROOTED if asked != name and (name, asked) not in SAME_FILES]
    found = {asked: said_or_held(asked, tmp_path) for asked in others}
    assert [asked for asked, (said, _) in found.items() if said and f"this is not {asked}" not in said] == []
    assert {asked: ids for asked, (_, ids) in found.items() if ids} == {}


@pytest.mark.sampled("fuzz", one_in=2)
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


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 41)


PLACES: dict[str, Callable[[Path], None]] = {
    "a pipe": os.mkfifo,
    "a link to /dev/zero": lambda path: path.symlink_to("/dev/zero"),
    "two sparse TiB": sparse,
    "a link out of the root": lambda path: path.symlink_to(
        path.parents[len(path.parts) - 2] / "etc" / "hostname"
    ),
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


@each(TREES)
def test_links_to_sound_files_outside_of_the_root_are_refused(name: str, says: str, tmp_path: Path) -> None:
    outside = written(name, says, tmp_path / "outside")
    for path in files(outside):
        link = tmp_path / "root" / path.relative_to(outside)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(path)
    refused(name, tmp_path / "root", UnsafeDataError)
