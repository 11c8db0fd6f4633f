"""MNIST and Fashion-MNIST: idx files and Parquet, by position or by digest, and every bad file."""

from __future__ import annotations

import gzip
import hashlib
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.raising import raises
from tests.wordnet_splits.datasets.sources.trees import (
    FASHION,
    IDX,
    IDX_LABELS,
    Grey,
    grey,
    header,
    idx_bytes,
    png,
    scan,
    write_idx,
    write_shards,
)
from wordnet_splits.base.digests import digest_pixels
from wordnet_splits.base.errors import MissingImageError, SourceError
from wordnet_splits.datasets.catalog import load_catalog
from wordnet_splits.datasets.catalog.inventory import INVENTORY_SCHEMA
from wordnet_splits.datasets.sources import open_source, source_info
from wordnet_splits.datasets.sources.layouts import image_arrays, matched_images
from wordnet_splits.datasets.sources.layouts.image_arrays import read_idx


def with_dots(name: str) -> str:
    return name.replace("-idx", ".idx")


@pytest.mark.parametrize("below", ["", "raw", "FashionMNIST/raw", "fashion-mnist", "a/b"])
@pytest.mark.parametrize("ending", ["", ".gz"])
@pytest.mark.parametrize("name", [str, with_dots])
def test_idx_files_are_read_by_position(
    tmp_path: Path, below: str, ending: str, name: Callable[[str], str]
) -> None:
    write_idx(tmp_path / below, ending=ending, name=name)
    source = open_source("fashion-mnist", tmp_path)
    assert (source.layout, source.order) == ("idx", "unknown")
    assert scan(source) == [(f"test/{i}", c, "test") for i, c in enumerate(FASHION)]
    assert source.count() == {"train": 0, "test": 5}
    raws = source.read(["test/3", "test/1"])
    assert [np.array_equal(raw, grey()[i]) for raw, i in zip(raws, (3, 1), strict=True)] == [True, True]
    assert source.digest(raws[0]) == digest_pixels(np.dstack([grey()[3]] * 3))
    assert source.decode(raws[0]).getpixel((4, 2)) == (grey()[3][2, 4],) * 3


def test_positions_hold_for_files_packed_anew_but_for_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_idx(tmp_path, ending=".gz")
    said = {
        n: hashlib.md5(d).hexdigest() for n, d in zip(IDX["test"], idx_bytes(grey(), IDX_LABELS), strict=True)
    }
    info = source_info("fashion-mnist")
    files = (replace(f, unpacked_md5=said.get(f.file.removesuffix(".gz"), "")) for f in info.files)
    ours = replace(info, files=tuple(files))
    monkeypatch.setattr(image_arrays, "source_info", lambda name: ours)
    assert open_source("fashion-mnist", tmp_path).order == "published"
    write_idx(tmp_path, "train")
    assert open_source("fashion-mnist", tmp_path).order == "unknown"


@pytest.fixture
def inventory(monkeypatch: pytest.MonkeyPatch) -> Grey:
    """An inventory of five train and five test images; two test images are equal."""
    pictures = grey(10)
    pictures[9] = pictures[6]
    tables = {}
    for split, start in (("train", 0), ("test", 5)):
        digests = [digest_pixels(np.dstack([g] * 3)) for g in pictures[start : start + 5]]
        columns: list[Any] = [
            [f"{split}/{i}" for i in range(5)],
            list(map(str, IDX_LABELS)),
            [split] * 5,
            digests,
        ]
        tables[split] = pa.table(columns, schema=INVENTORY_SCHEMA)
    monkeypatch.setattr(matched_images, "load_inventory", lambda source, split: tables[split])
    return pictures


def test_a_copy_of_another_order_is_matched_by_its_pixels(tmp_path: Path, inventory: Grey) -> None:
    shuffled, order = inventory[5:], [4, 2, 0, 3, 1]
    write_idx(tmp_path, "test", shuffled[order], [IDX_LABELS[i] for i in order])
    source = open_source("mnist", tmp_path)
    assert source.order == "published"
    assert scan(source, ["test"]) == [(f"test/{i}", str(label), "test") for i, label in enumerate(IDX_LABELS)]
    for index in range(5):  # test/1 and test/4 are one image, so either copy may stand for either
        assert np.array_equal(source.read([f"test/{index}"])[0], shuffled[index])
    assert source.unexpected == {}


def test_what_is_no_image_of_it_is_counted_and_never_read(tmp_path: Path, inventory: Grey) -> None:
    altered = inventory[5:].copy()
    altered[3, 0, 0] ^= 1
    write_idx(tmp_path, "test", altered, [*IDX_LABELS[:2], 3, *IDX_LABELS[3:]])  # test/2 has another label
    source = open_source("mnist", tmp_path)
    assert [row[0] for row in scan(source)] == ["test/0", "test/1", "test/4"]
    assert source.unexpected == {"test: pixels of no known image": 2}
    for image_id in ("test/2", "test/3", "test/5", "train/0", "test/x", "val/0", "test/01", "test/"):
        with raises(MissingImageError, where=tmp_path, naming="mnist"):
            source.read([image_id])


@pytest.mark.parametrize(
    ("name", "folder", "names"),
    [
        ("mnist", "mnist", [str(d) for d in range(10)]),
        (
            "fashion-mnist",
            "fashion_mnist",
            ["T - shirt / top", *load_catalog("fashion-mnist").column("name")[1:]],
        ),
    ],
)
def test_hub_parquet(tmp_path: Path, inventory: Grey, name: str, folder: str, names: list[str]) -> None:
    images = [{"bytes": png(g), "path": None} for g in inventory[5:]]
    table = pa.table({"image": images, "label": IDX_LABELS})
    about = f'{{"info": {{"features": {{"label": {{"names": {names!r}}}}}}}}}'.replace("'", '"')
    write_shards(tmp_path / folder, "test", table.replace_schema_metadata({"huggingface": about}), shards=2)
    source = open_source(name, tmp_path)
    assert (source.layout, source.order) == ("parquet", "published" if name == "mnist" else "unknown")
    classes = load_catalog(name).column("class_id")
    assert scan(source) == [(f"test/{i}", classes[label], "test") for i, label in enumerate(IDX_LABELS)]
    raw = source.read(["test/2"])[0]
    assert source.digest(raw) == digest_pixels(np.dstack([inventory[7]] * 3))


def test_labels_of_no_class_are_counted(tmp_path: Path) -> None:
    write_idx(tmp_path, labels=[0, 10, 255, 9, 1])
    source = open_source("fashion-mnist", tmp_path)
    assert [row[0] for row in scan(source)] == ["test/0", "test/3", "test/4"]
    assert source.unexpected == {"test: label of no class": 2}


def test_one_is_not_taken_for_the_other(tmp_path: Path) -> None:
    """Both have files of the same names; how often each label occurs tells them apart."""
    for name, other in (("mnist", "fashion-mnist"), ("fashion-mnist", "mnist")):
        labels = [c.index for c in load_catalog(name) for _ in range(c.counts["test"] or 0)]
        write_idx(
            tmp_path / name, pictures=np.zeros((len(labels), 28, 28), np.uint8), labels=labels, ending=".gz"
        )
        with raises(SourceError, naming=(other, name)):
            open_source(other, tmp_path / name)
        assert open_source(name, tmp_path / name).layout == "idx"


@pytest.mark.parametrize("split", ["train", "test"])
def test_a_part_of_the_digits_is_not_taken_for_clothes(split: str, real_data: Path, tmp_path: Path) -> None:
    """The labels of a part are of either; the shipped digests know its images."""
    pictures, labels = (
        gzip.decompress((real_data / "mnist" / f"{name}.gz").read_bytes()) for name in IDX[split]
    )
    images = np.frombuffer(pictures, np.uint8, offset=16).reshape(-1, 28, 28)[300:500]
    write_idx(tmp_path, split, images, list(labels[308:508]), ending=".gz")
    with raises(SourceError, where=tmp_path, naming="fashion-mnist"):
        open_source("fashion-mnist", tmp_path)
    assert open_source("mnist", tmp_path).count()[split] == 200


def test_a_part_of_the_clothes_has_no_digit(real_data: Path, tmp_path: Path) -> None:
    pictures, labels = (
        gzip.decompress((real_data / "fashion-mnist" / f"{name}.gz").read_bytes()) for name in IDX["test"]
    )
    images = np.frombuffer(pictures, np.uint8, offset=16).reshape(-1, 28, 28)[:200]
    write_idx(tmp_path, "test", images, list(labels[8:208]))
    source = open_source("mnist", tmp_path)
    assert source.count() == {"train": 0, "test": 0}
    assert source.unexpected == {"test: pixels of no known image": 200}


def test_a_root_without_a_whole_split(tmp_path: Path) -> None:
    write_idx(tmp_path)
    (tmp_path / IDX["test"][1]).unlink()
    with raises(SourceError, where=tmp_path, naming="mnist"):
        open_source("mnist", tmp_path)


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_memory_follows_the_file_not_its_header(tmp_path: Path, ending: str) -> None:
    data = header(100_000, 28, 28) + bytes(5000)
    (tmp_path / f"f{ending}").write_bytes(gzip.compress(data) if ending else data)
    tracemalloc.start()
    try:
        with raises(SourceError, naming=("78,400,000", "5,000")):
            read_idx(tmp_path / f"f{ending}", 3)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 << 20


@pytest.mark.parametrize(
    ("name", "reader", "order"),
    [("mnist", "MNIST", "published"), ("fashion-mnist", "FashionMNIST", "unknown")],
)
def test_the_real_files_are_read_as_torchvision_reads_them(
    name: str, reader: str, order: str, real_data: Path, tmp_path: Path
) -> None:
    datasets = pytest.importorskip("torchvision.datasets")
    raw = tmp_path / reader / "raw"  # torchvision's own layout, unpacked
    raw.mkdir(parents=True)
    for path in (real_data / name).glob("*.gz"):
        (raw / path.stem).write_bytes(gzip.decompress(path.read_bytes()))
    packed, unpacked = open_source(name, real_data / name), open_source(name, tmp_path)
    assert (packed.order, unpacked.order) == (order, order)
    for split in ("train", "test"):
        theirs = getattr(datasets, reader)(str(tmp_path), train=split == "train")
        classes = load_catalog(name).column("class_id")
        wanted = {f"{split}/{i}": classes[label] for i, label in enumerate(theirs.targets.tolist())}
        for source in (packed, unpacked):
            assert {row[0]: row[1] for row in scan(source, [split])} == wanted
            raws = source.read(list(wanted)[::7])
            assert np.array_equal(np.stack([np.asarray(raw) for raw in raws]), theirs.data.numpy()[::7])
        image, _ = theirs[17]
        assert packed.decode(packed.read([f"{split}/17"])[0]).tobytes() == image.convert("RGB").tobytes()
    assert packed.unexpected == {}


def test_real_digits_in_another_order_have_the_same_ids(real_data: Path, tmp_path: Path) -> None:
    """The shipped digests name every one of the 10,000 test images of a copy sorted by label."""
    pictures, labels = (
        gzip.decompress((real_data / "mnist" / f"{name}.gz").read_bytes()) for name in IDX["test"]
    )
    images = np.frombuffer(pictures, np.uint8, offset=16).reshape(-1, 28, 28)
    order = np.argsort(np.frombuffer(labels, np.uint8, offset=8), kind="stable")
    write_idx(tmp_path, "test", images[order], [labels[8 + i] for i in order])
    source = open_source("mnist", tmp_path)
    assert source.order == "published"
    held = {row[0]: row[1] for row in scan(source)}
    assert held == {f"test/{i}": str(label) for i, label in enumerate(labels[8:])}
    ids = [f"test/{i}" for i in range(0, 10_000, 7)]
    assert np.array_equal(np.stack([np.asarray(raw) for raw in source.read(ids)]), images[::7])
