"""Every layout of the table in docs/data.md: a sound tree is read, a bad one refused in one line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.raising import mentions
from tests.wordnet_splits.datasets.sources.every_layout import EVERY, TREES, each, page_layouts, written
from tests.wordnet_splits.datasets.sources.looking import files, look, refused, said_or_held
from wordnet_splits.datasets.sources import source_class, source_info, source_names

ROOTED = [name for name in source_names() if source_class(name).rooted]
SAME_FILES = {("imagenet21k", "ssb-hard"), ("ssb-hard", "imagenet21k")}
"""One is a selection of the other, under the same names."""


def test_the_table_has_every_layout_that_the_readme_promises() -> None:
    promised = {(name, says) for name, says in page_layouts() if source_class(name).rooted}
    assert promised == set(TREES)
    assert set(EVERY) == set(ROOTED)


@each(TREES)
def test_a_sound_tree_is_read(name: str, says: str, tmp_path: Path) -> None:
    source, ids = look(name, written(name, says, tmp_path))
    # made pictures cannot have the digests that the shipped inventories hold
    assert ids or any("pixels of no known image" in what for what in source.unexpected)


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
