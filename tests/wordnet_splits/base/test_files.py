"""The rights of what is written: those of the umask, never more than it, never everybody's to write."""

from __future__ import annotations

import multiprocessing
import os
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.raising import raises
from wordnet_splits.base import files
from wordnet_splits.base.errors import OutputError
from wordnet_splits.base.files import replacing_folder, write_text, writing
from wordnet_splits.cli.main import main

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no umask")


@pytest.fixture
def umask() -> Iterator[Callable[[int], int]]:
    """`os.umask`, put back at the end."""
    before = os.umask(0o022)
    os.umask(before)
    yield os.umask
    os.umask(before)


def rights(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(("mask", "expected"), [(0o000, 0o664), (0o022, 0o644), (0o027, 0o640)])
def test_files_have_the_rights_of_the_umask_but_everybodys_to_write(
    tmp_path: Path, umask: Callable[[int], int], mask: int, expected: int
) -> None:
    umask(mask)
    write_text(tmp_path / "file", "text")
    assert rights(tmp_path / "file") == expected


def test_programs_open_no_folder_to_everybody(
    tmp_path: Path, umask: Callable[[int], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    umask(0)
    monkeypatch.setattr(sys, "argv", ["wordnet-splits", "wordnet", "compare", "dog", "cat", "--json"])
    with pytest.raises(SystemExit):
        main()
    with replacing_folder(tmp_path / "folder") as folder:
        (folder / "below").mkdir()
    assert [rights(tmp_path / name) for name in ("folder", "folder/below")] == [0o775, 0o775]


def test_a_umask_that_takes_ones_own_rights_is_named(tmp_path: Path, umask: Callable[[int], int]) -> None:
    umask(0o777)
    with (
        raises(OutputError, where="x", naming="777"),
        writing(tmp_path / "x"),
    ):
        raise PermissionError(13, "Permission denied")
    umask(0o022)
    with raises(OutputError, where="x"), writing(tmp_path / "x"):
        raise PermissionError(13, "Permission denied")


@pytest.mark.parametrize("exchange", [True, False])
def test_a_link_to_a_folder_stays_and_leads_to_each_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchange: bool
) -> None:
    if not exchange:
        monkeypatch.setattr(files, "_exchanged", lambda a, b: False)
    place, link = tmp_path / "disk" / "folder", tmp_path / "link"
    place.mkdir(parents=True)
    link.symlink_to(place)
    for content in ("first", "second", "third"):
        with replacing_folder(link) as folder:
            (folder / "file").write_text(content)
        assert link.is_symlink()
        assert (place / "file").read_text() == content
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["disk", "file", "folder", "link"]
    place.rename(place.with_name(".folder.old"))  # as a kill between two renames leaves it
    files.restore(link)
    assert (place / "file").read_text() == "third"


def _count_up(counter: Path, times: int) -> None:
    for _ in range(times):
        with files.locked(counter, busy="busy", wait=True):
            counter.write_text(str(int(counter.read_text()) + 1))


def test_one_process_at_a_time_has_the_lock_and_its_file_is_removed(tmp_path: Path) -> None:
    counter = tmp_path / "counter"
    counter.write_text("0")
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_count_up, args=(counter, 20)) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert counter.read_text() == "80"
    assert [path.name for path in tmp_path.iterdir()] == ["counter"]
