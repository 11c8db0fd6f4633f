"""Folders behind links are replaced, and locks exclude other processes."""

from __future__ import annotations

import multiprocessing
import sys
from pathlib import Path

import pytest

from wordnet_splits.base import files
from wordnet_splits.base.files import replacing_folder

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no links without rights")


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
