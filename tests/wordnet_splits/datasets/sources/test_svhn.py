from __future__ import annotations

import hashlib
import io
import pickle
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image
from scipy.io import savemat

from tests.raising import raises
from wordnet_splits.base.errors import MissingImageError, SourceError, UnsafeDataError
from wordnet_splits.datasets.sources import Source, open_source, source_info
from wordnet_splits.datasets.sources.layouts import image_arrays

from .cifar_copies import digests, scan, write_shards

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


def test_absent_images_are_named(tmp_path: Path, pictures: Any) -> None:
    write(tmp_path / "test_32x32.mat", pictures)
    source = open_source("svhn", tmp_path)
    for image_id in (
        "test/6",
        "test/-1",
        "test/01",
        "test/٣",
        "train/0",
        "val/0",
        "test/",
        "test/" + "9" * 9999,
    ):
        with raises(MissingImageError, where=tmp_path):
            source.read([image_id])


def mat_bytes(pictures: Any) -> bytes:
    buffer = io.BytesIO()
    savemat(buffer, {"X": pictures, "y": np.array(LABELS)[:, None]}, do_compression=True)
    return buffer.getvalue()


def test_truncated_and_corrupt_files(tmp_path: Path, pictures: Any) -> None:
    whole = mat_bytes(pictures)
    path = tmp_path / "test_32x32.mat"
    for data in (
        b"",
        whole[:100],
        whole[: len(whole) // 2],
        whole[:-20],
        b"MATLAB 7.3 MAT-file" + bytes(600),
    ):
        path.write_bytes(data)
        source = open_source("svhn", tmp_path)
        with raises(SourceError, where="test_32x32.mat") as caught:
            scan(source)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("shape", "labels", "named"),
    [
        ((28, 28, 3, 6), LABELS, "2"),
        ((32, 32, 6), LABELS, "2"),
        ((32, 32, 3, 6), LABELS[:5], "2"),
        ((32, 32, 3, 6), [1.5, 1, 1, 1, 1, 1], ()),
        ((32, 32, 3, 6), ["1", "2", "3", "4", "5", "6"], ()),
    ],
)
def test_arrays_of_another_dataset(tmp_path: Path, shape: Sequence[int], labels: Any, named: object) -> None:
    write(tmp_path / "test_32x32.mat", np.zeros(shape, np.uint8), np.array(labels)[:, None])
    with raises(SourceError, where="test_32x32.mat", naming=named):
        scan(open_source("svhn", tmp_path))


def test_arrays_of_other_types(tmp_path: Path, pictures: Any) -> None:
    write(tmp_path / "test_32x32.mat", pictures.astype(np.float32))
    with raises(SourceError, where="test_32x32.mat"):
        scan(open_source("svhn", tmp_path))
    savemat(tmp_path / "test_32x32.mat", {"Y": pictures})
    with raises(SourceError, where="test_32x32.mat", naming="2"):
        scan(open_source("svhn", tmp_path))


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


def test_links_out_of_the_root_are_refused(tmp_path: Path, pictures: Any) -> None:
    write(tmp_path / "elsewhere.mat", pictures)
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "test_32x32.mat").symlink_to(tmp_path / "elsewhere.mat")
    with raises(UnsafeDataError, where="test_32x32.mat"):
        open_source("svhn", tmp_path / "root")


def worker(job: tuple[Source, list[str]]) -> list[bytes]:
    return digests(*job)


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_workers_read_the_same(tmp_path: Path, pictures: Any, start: str) -> None:
    write(tmp_path / "test_32x32.mat", pictures)
    source = open_source("svhn", tmp_path)
    ids = [row[0] for row in scan(source)]
    with ProcessPoolExecutor(1, mp_context=get_context(start)) as pool:
        assert list(pool.map(worker, [(source, ids)])) == [digests(source, ids)]
    assert len(pickle.dumps(source)) < 1000
