"""SVHN's whole numbers: folders of numbered pictures, and what is none of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.raising import raises
from wordnet_splits.base.errors import MissingImageError, SourceError, UnsafeDataError
from wordnet_splits.datasets.sources import open_source

from .cifar_copies import png, scan


def picture(number: int) -> bytes:
    size = (20 + number % 7, 40 + number % 5, 3)
    return png(np.random.default_rng(number).integers(0, 256, size, dtype=np.uint8))


def write(root: Path, split: str, numbers: range) -> None:
    (root / split).mkdir(parents=True)
    for number in numbers:
        (root / split / f"{number}.png").write_bytes(picture(number))
    (root / split / "digitStruct.mat").write_bytes(b"MATLAB 7.3 MAT-file")
    (root / split / "see_bboxes.m").touch()


@pytest.mark.parametrize("below", ["", "svhn-full", "svhn", "SVHN"])
def test_folders_are_read_by_number(tmp_path: Path, below: str) -> None:
    write(tmp_path / below, "train", range(1, 12))
    write(tmp_path / below, "test", range(1, 4))
    source = open_source("svhn-full", tmp_path)
    assert scan(source, ["test"]) == [(f"test/{n}", "all", "test") for n in (1, 2, 3)]
    assert source.count() == {"train": 11, "test": 3, "extra": 0}
    assert source.read(["train/10", "test/2"]) == [picture(10), picture(2)]
    assert source.decode(picture(3)).size == (43, 23)


def test_what_is_no_picture_of_it(tmp_path: Path) -> None:
    write(tmp_path, "test", range(1, 3))
    for name in ("01.png", "13069.png", "a.png", "-1.png"):  # the publisher has 13,068
        (tmp_path / "test" / name).write_bytes(picture(1))
    source = open_source("svhn-full", tmp_path)
    assert [row[0] for row in scan(source)] == ["test/1", "test/2"]
    assert {"01.png", "13069.png", "a.png", "-1.png"} <= set(source.unexpected)
    for image_id in ("test/3", "test/01", "test/13069", "train/1", "val/1", "test/../1", "test/"):
        with raises(MissingImageError, where=tmp_path, naming="svhn-full"):
            source.read([image_id])


def test_a_truncated_picture_is_named(tmp_path: Path) -> None:
    write(tmp_path, "test", range(1, 3))
    (tmp_path / "test" / "2.png").write_bytes(picture(2)[:200])
    source = open_source("svhn-full", tmp_path)
    raw = source.read(["test/2"])[0]
    assert source.check_image(raw)
    with raises(SourceError, naming="svhn-full:test/2"):
        source.decode(raw, "test/2")


def test_other_roots_are_refused(tmp_path: Path) -> None:
    with raises(SourceError, where=tmp_path):
        open_source("svhn-full", tmp_path)
    (tmp_path / "train.tar.gz").write_bytes(b"\x1f\x8b")
    with raises(SourceError, where=tmp_path, naming="train/1.png"):
        open_source("svhn-full", tmp_path)
    write(tmp_path / "numbers", "train", range(1, 3))
    with raises(SourceError, where="numbers", naming=("dtd", "svhn-full")):
        open_source("dtd", tmp_path / "numbers")


def test_links_out_of_the_root_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "elsewhere", "test", range(1, 3))
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "test").symlink_to(tmp_path / "elsewhere" / "test")
    with raises(UnsafeDataError, where="test"):
        open_source("svhn-full", tmp_path / "root")
