"""SVHN: cropped digits in MATLAB files and Parquet, and folders of whole numbers."""

from __future__ import annotations

import hashlib
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image
from scipy.io import savemat

from tests.raising import raises
from tests.wordnet_splits.datasets.sources.trees import png, scan, write_shards
from wordnet_splits.base.errors import MissingImageError, SourceError
from wordnet_splits.datasets.sources import open_source, source_info
from wordnet_splits.datasets.sources.layouts import image_arrays

LABELS = [1, 9, 10, 5, 10, 2]


@pytest.fixture
def pictures() -> Any:
    return np.random.default_rng(0).integers(0, 256, (32, 32, 3, len(LABELS)), dtype=np.uint8)


def write(path: Path, pictures: Any, labels: Any = None, **options: Any) -> None:
    y = np.array(LABELS, np.uint8)[:, None] if labels is None else labels
    savemat(path, {"X": pictures, "y": y}, do_compression=True, **options)


def test_a_mat_file_is_read_by_position(tmp_path: Path, pictures: Any) -> None:
    write(tmp_path / "test_32x32.mat", pictures)
    source = open_source("svhn", tmp_path)
    assert source.layout == "mat"
    assert scan(source) == [(f"test/{i}", str(y % 10), "test") for i, y in enumerate(LABELS)]
    assert source.count() == {"train": 0, "test": 6, "extra": 0}
    raws = source.read(["test/2", "test/0"])
    assert [raw.tolist() for raw in raws if isinstance(raw, np.ndarray)] == [
        pictures[..., 2].tolist(),
        pictures[..., 0].tolist(),
    ]
    height_and_width = (32).to_bytes(4, "little") * 2
    assert source.digest(raws[0]) == hashlib.sha256(height_and_width + pictures[..., 2].tobytes()).digest()


def test_all_three_splits_and_labels_as_other_copies_write_them(tmp_path: Path, pictures: Any) -> None:
    for split in ("train", "test", "extra"):
        folder = tmp_path / "svhn"
        folder.mkdir(exist_ok=True)
        write(folder / f"{split}_32x32.mat", pictures, np.array([0, 1, 2, 3, 4, 9], np.float64)[None])
    source = open_source("svhn", tmp_path)
    assert source.count() == {"train": 6, "test": 6, "extra": 6}
    assert [row[1] for row in scan(source, ["extra"])] == ["0", "1", "2", "3", "4", "9"]


def test_positions_hold_only_for_the_publishers_files(
    tmp_path: Path, pictures: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "test_32x32.mat", pictures)
    assert open_source("svhn", tmp_path).order == "unknown"
    md5 = hashlib.md5((tmp_path / "test_32x32.mat").read_bytes()).hexdigest()
    info = source_info("svhn")
    files = tuple(replace(f, md5=md5) if f.file == "test_32x32.mat" else f for f in info.files)
    monkeypatch.setattr(image_arrays, "source_info", lambda name: replace(info, files=files))
    assert open_source("svhn", tmp_path).order == "published"
    write(tmp_path / "train_32x32.mat", pictures)
    assert open_source("svhn", tmp_path).order == "unknown"


def test_the_published_checksums_are_known_for_every_file() -> None:
    assert {
        item.file: len(item.md5 or "") for item in source_info("svhn").files if item.file[-4:] == ".mat"
    } == {
        "train_32x32.mat": 32,
        "test_32x32.mat": 32,
        "extra_32x32.mat": 32,
    }


def test_hub_parquet_has_no_promised_order(tmp_path: Path, pictures: Any) -> None:
    buffers = [io.BytesIO() for _ in LABELS]
    for i, buffer in enumerate(buffers):
        Image.fromarray(pictures[..., i]).save(buffer, "png")
    images = [{"bytes": buffer.getvalue(), "path": None} for buffer in buffers]
    table = pa.table({"image": images, "label": [label % 10 for label in LABELS]})
    write_shards(tmp_path / "cropped_digits", "test", table, shards=2)
    source = open_source("svhn", tmp_path)
    assert (source.layout, source.order) == ("parquet", "unknown")
    assert scan(source) == [(f"test/{i}", str(y % 10), "test") for i, y in enumerate(LABELS)]
    (raw,) = source.read(["test/4"])
    assert isinstance(raw, np.ndarray)
    assert np.array_equal(raw, pictures[..., 4])


def test_labels_of_no_digit_are_counted(tmp_path: Path, pictures: Any) -> None:
    write(tmp_path / "test_32x32.mat", pictures, np.array([[1], [2], [11], [200], [3], [4]], np.uint8))
    source = open_source("svhn", tmp_path)
    assert [row[0] for row in scan(source)] == ["test/0", "test/1", "test/4", "test/5"]
    assert source.unexpected == {"test: label of no class": 2}


def test_a_bomb_is_refused_by_its_header(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pictures: Any
) -> None:
    write(tmp_path / "test_32x32.mat", pictures)
    monkeypatch.setattr(image_arrays, "LARGEST_MAT_SPLIT", 5)
    with raises(SourceError, where="test_32x32.mat"):
        scan(open_source("svhn", tmp_path))
    monkeypatch.setattr(image_arrays, "LARGEST_MAT", 100)
    with raises(SourceError, where="test_32x32.mat", naming="100"):
        scan(open_source("svhn", tmp_path))


def number_png(number: int) -> bytes:
    size = (20 + number % 7, 40 + number % 5, 3)
    return png(np.random.default_rng(number).integers(0, 256, size, dtype=np.uint8))


def write_numbers(root: Path, split: str, numbers: range) -> None:
    (root / split).mkdir(parents=True)
    for number in numbers:
        (root / split / f"{number}.png").write_bytes(number_png(number))
    (root / split / "digitStruct.mat").write_bytes(b"MATLAB 7.3 MAT-file")
    (root / split / "see_bboxes.m").touch()


@pytest.mark.parametrize("below", ["", "svhn-full", "svhn", "SVHN"])
def test_folders_of_whole_numbers_are_read_by_number(tmp_path: Path, below: str) -> None:
    write_numbers(tmp_path / below, "train", range(1, 12))
    write_numbers(tmp_path / below, "test", range(1, 4))
    source = open_source("svhn-full", tmp_path)
    assert scan(source, ["test"]) == [(f"test/{n}", "all", "test") for n in (1, 2, 3)]
    assert source.count() == {"train": 11, "test": 3, "extra": 0}
    assert source.read(["train/10", "test/2"]) == [number_png(10), number_png(2)]
    assert source.decode(number_png(3)).size == (43, 23)


def test_what_is_no_whole_number(tmp_path: Path) -> None:
    write_numbers(tmp_path, "test", range(1, 3))
    for name in ("01.png", "13069.png", "a.png", "-1.png"):  # the publisher has 13,068
        (tmp_path / "test" / name).write_bytes(number_png(1))
    source = open_source("svhn-full", tmp_path)
    assert [row[0] for row in scan(source)] == ["test/1", "test/2"]
    assert {"01.png", "13069.png", "a.png", "-1.png"} <= set(source.unexpected)
    for image_id in ("test/3", "test/01", "test/13069", "train/1", "val/1", "test/../1", "test/"):
        with raises(MissingImageError, where=tmp_path, naming="svhn-full"):
            source.read([image_id])


def test_roots_without_whole_numbers_are_refused(tmp_path: Path) -> None:
    with raises(SourceError, where=tmp_path):
        open_source("svhn-full", tmp_path)
    (tmp_path / "train.tar.gz").write_bytes(b"\x1f\x8b")
    with raises(SourceError, where=tmp_path, naming="train/1.png"):
        open_source("svhn-full", tmp_path)
    write_numbers(tmp_path / "numbers", "train", range(1, 3))
    with raises(SourceError, where="numbers", naming=("dtd", "svhn-full")):
        open_source("dtd", tmp_path / "numbers")
