"""Any set of images opens by its name, with the same ids and pixels, or is refused in one line."""

from __future__ import annotations

import io
import os
import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from fix_resize import apply, build, get_spec
from tests.fix_resize.made_images import photo, save
from wordnet_splits.base.errors import SourceError, SplitsError, UnknownNameError
from wordnet_splits.benchmark.image_sets import open_images
from wordnet_splits.benchmark.images.pack import pack
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.datasets.sources.image_set import ImageSet

IMAGES = {f"c{n % 2}/{n}": photo(n, 40, 50) for n in range(6)}


def check(images: ImageSet, expected: dict[str, np.ndarray]) -> None:
    assert set(images.ids) == set(expected)
    assert set(images.in_order(expected)) == set(expected)
    images = pickle.loads(pickle.dumps(images))
    for image_id, pixels in expected.items():
        np.testing.assert_array_equal(np.asarray(images.image(image_id)), pixels)


def encoded(pixels: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


def write_rows(path: Path, rows: list[tuple[bytes, str | None]], column: str = "image") -> None:
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.Table.from_pylist([{column: {"bytes": b, "path": p}} for b, p in rows]), path)


def test_files_at_any_depth(tmp_path: Path) -> None:
    folder = save(tmp_path / "a:b", IMAGES)
    (folder / "notes.txt").write_text("x")
    images = open_images(str(folder))
    check(images, IMAGES)
    assert (images.other_files, images.root) == (1, folder)
    assert tuple(images.row(0).values()) == ("a:b", "", "c0", "c0/0", "c0/0")


@pytest.mark.parametrize("column", ["image", "img"])
def test_parquet_as_datasets_writes_it(column: str, tmp_path: Path) -> None:
    for shard in range(2):
        part = list(IMAGES.items())[shard * 3 : shard * 3 + 3]
        rows = [(encoded(pixels), f"{name}.png") for name, pixels in part]
        write_rows(tmp_path / "data" / f"train-{shard}.parquet", rows, column)
    pq.write_table(pa.table({"image_id": ["x"]}), tmp_path / "images.parquet")
    check(open_images(str(tmp_path)), IMAGES)


def test_rows_without_a_name_of_their_own(tmp_path: Path) -> None:
    names = ["x.png", "x.png", None, "a" * 2000]
    write_rows(
        tmp_path / "p" / "b.parquet", [(encoded(photo(n, 4, 4)), name) for n, name in enumerate(names)]
    )
    expected = dict(zip(("x", "p/b/1", "p/b/2", "p/b/3"), (photo(n, 4, 4) for n in range(4)), strict=True))
    check(open_images(str(tmp_path / "p")), expected)


def test_an_image_that_a_dictionary_repeats(tmp_path: Path) -> None:
    write_rows(tmp_path / "p" / "x.parquet", [(encoded(photo(1, 4, 4)), f"{n}.png") for n in range(600)])
    assert len(open_images(str(tmp_path / "p"))) == 600


@pytest.mark.parametrize("file_format", ["png", "parquet"])
def test_an_output_of_fix_resize(file_format: str, tmp_path: Path) -> None:
    originals = save(tmp_path / "in", IMAGES)
    build("folder", tmp_path / "out", roots=originals, file_format=file_format)
    fixed = {name: apply(get_spec("fix"), Image.fromarray(pixels)) for name, pixels in IMAGES.items()}
    for name in ("out", "out:folder", "out:folder:images"):
        check(open_images(str(tmp_path / name)), fixed)
    with pytest.raises(UnknownNameError):
        open_images(str(tmp_path / "out:folder:test"))


def test_benchmarks_datasets_and_packed_stores(tmp_path: Path) -> None:
    known = open_images("digits:digits-0-5")
    assert {row["split"] for row in map(known.row, range(len(known)))} == {"train", "val", "test"}
    test = open_images("digits:digits-0-5:test")
    pixels = {image_id: np.asarray(test.image(image_id)) for image_id in test.ids}
    pack(load_manifest("digits"), tmp_path / "packed", groups=["digits-0-5"], splits=["test"])
    for name in ("packed", "packed:digits-0-5", "packed:digits-0-5:test"):
        check(open_images(str(tmp_path / name)), pixels)
    dataset = open_images("digits")  # the dataset of this name, not the benchmark
    assert (len(dataset), len(open_images("digits:all"))) == (1797, 1797)
    assert set(known.ids) < set(dataset.ids)


@pytest.mark.parametrize(
    ("name", "error"),
    [
        (":x", SourceError),
        ("{here}/none", SourceError),
        ("{here}/file.txt", SourceError),
        ("{here}/empty", SourceError),
        ("{here}/texts", SourceError),
        ("{here}/damaged", SourceError),
        ("{here}/pipe", SourceError),
        ("{here}/images:group", SourceError),
        ("digits:digits-0-5:test:x", SourceError),
        ("unknown-cifar:lsun", SourceError),
        ("unknown-cifar:svhn", SourceError),
        ("cifar100", SourceError),
        ("cifar100:train:x", SourceError),
        ("digits:none", UnknownNameError),
        ("digits:digits-0-5:none", UnknownNameError),
        ("unknown-cifr", UnknownNameError),
    ],
)
def test_a_set_that_does_not_exist_is_refused(
    name: str, error: type[SplitsError], tmp_path: Path, no_roots_of_this_machine: None
) -> None:
    for folder in ("empty", "texts", "damaged", "pipe"):
        (tmp_path / folder).mkdir()
    (tmp_path / "file.txt").write_text("x")
    (tmp_path / "texts" / "file.txt").write_text("x")
    (tmp_path / "damaged" / "bad.parquet").write_bytes(b"PAR1 and no more")
    os.mkfifo(tmp_path / "pipe" / "images.parquet")
    save(tmp_path / "images", {"a": photo(1, 4, 4)})
    with pytest.raises(error):
        open_images(name.format(here=tmp_path))
