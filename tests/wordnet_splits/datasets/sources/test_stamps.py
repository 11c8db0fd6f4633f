"""Stamps tell which images of a root may have changed since they were read."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from wordnet_splits.datasets.sources.image_set import stamps


def test_an_image_hangs_on_its_file_or_on_every_file_that_is_no_image(tmp_path: Path) -> None:
    ids = pa.array(["a/1", "b/2", "c/3.png"])
    files = ("x/1.jpg", "2.JPEG", "deep/er/3.png", "0.tar", "1.mdb", "other.jpg", ".hidden.tar")
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    before = stamps(tmp_path, ids)
    moved = {"x/1.jpg": [0], "2.JPEG": [1], "deep/er/3.png": [2], "0.tar": [0, 1, 2], "1.mdb": [0, 1, 2]}
    for name in files:
        (tmp_path / name).write_bytes(b"yy")
        after = stamps(tmp_path, ids)
        assert (after != before).nonzero()[0].tolist() == moved.get(name, []), name
        before = after
