from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
import torch

from loaders import UnknownDetectionSet
from loaders.harness.models.transforms import ONES, ZEROS
from loaders.harness.training.data import (
    draw_rows,
    load_arrays,
    load_training_data,
    load_validation_data,
)
from loaders.harness.training.recipe import Resizing
from tests.raising import raises
from wordnet_splits.base.digests import sampling_key
from wordnet_splits.base.errors import DataError, SourceError, UnknownNameError
from wordnet_splits.base.progress import Silent
from wordnet_splits.benchmark.resolve import load_manifest

CLASSES = ("zero", "one", "two", "three", "four", "five")


def test_load_arrays_gives_the_dataset_s_own_pixels_and_labels_in_order() -> None:
    dataset = UnknownDetectionSet("digits", role="id", split="train")
    pixels, labels = load_arrays(dataset)
    assert (pixels.shape, pixels.dtype, labels.dtype) == ((603, 3, 8, 8), torch.uint8, torch.int64)
    for row in (0, 300, 602):
        image, label = dataset[row]
        assert np.array_equal(np.asarray(image).transpose(2, 0, 1), pixels[row].numpy())
        assert label == int(labels[row])


def test_training_data_of_a_benchmark() -> None:
    data = load_training_data("digits")
    assert data.val is not None
    assert (len(data.train), len(data.val), data.classes) == (603, 120, CLASSES)
    record = data.describe_network("tiny-cnn", background=True)
    assert (record["size"], record["channels"], record["outputs"], record["background"]) == ([8, 8], 1, 7, 6)
    assert data.negatives is None
    assert (data.normalise.mean, data.normalise.std) == (ZEROS, ONES)
    manifest = load_manifest("digits")
    used = [p.model_dump() for p in manifest.data.fingerprints.images if p.split in ("train", "val")]
    assert data.benchmark["fingerprint"] == manifest.fingerprint
    assert sorted(p["images"] for p in data.benchmark["parts"]) == sorted(p["images"] for p in used)


def test_a_recipe_s_geometry_replaces_the_benchmark_s() -> None:
    resize = Resizing(short=12, side=8)
    data, plain = (
        load_training_data("digits", resize=resize, margin=2),
        load_training_data("digits", resize=resize),
    )
    assert data.val is not None
    assert plain.val is not None
    assert (data.train.pixels.shape[2:], data.val.pixels.shape[2:], data.size) == ((12, 12), (8, 8), (8, 8))
    assert torch.equal(data.centre(data.train.pixels), plain.train.pixels)
    assert torch.equal(data.val.pixels, plain.val.pixels)


def test_some_of_the_train_images_equally_many_of_each_class() -> None:
    manifest = load_manifest("digits")
    table = UnknownDetectionSet("digits", role="id", split="train").table.to_pylist()
    keyed = {
        row["image_id"]: sampling_key(
            "digits", manifest.data.seed, "digits", row["class_id"], row["image_id"]
        )
        for row in table
    }
    of_class = {c: [r for r in table if r["class_id"] == c] for c in sorted({r["class_id"] for r in table})}
    expected = {
        r["image_id"]
        for rows in of_class.values()
        for r in sorted(rows, key=lambda r: keyed[r["image_id"]])[:20]
    }
    whole, some = load_training_data("digits"), load_training_data("digits", images=120)
    assert torch.bincount(some.train.labels).tolist() == [20] * 6
    rows = [n for n, r in enumerate(table) if r["image_id"] in expected]
    assert torch.equal(some.train.pixels, whole.train.pixels[rows])
    assert torch.equal(some.train.labels, whole.train.labels[rows])
    assert some.val is not None
    assert whole.val is not None
    assert torch.equal(some.val.pixels, whole.val.pixels)
    assert some.benchmark == whole.benchmark


def drawn(images: int, table: pa.Table | None = None) -> set[int]:
    if table is None:
        table = UnknownDetectionSet("digits", role="id", split="train").table
    return set(draw_rows(table, load_manifest("digits"), images).tolist())


def test_a_smaller_draw_is_within_a_larger_and_no_row_s_place_matters() -> None:
    table = UnknownDetectionSet("digits", role="id", split="train").table
    assert drawn(31) < drawn(60) < drawn(582)
    labels = table["label"].to_numpy()
    assert sorted(np.bincount(labels[list(drawn(31))]).tolist()) == [5, 5, 5, 5, 5, 6]
    order = np.random.default_rng(0).permutation(len(table))
    shuffled = table.take(pa.array(order))
    assert {int(order[row]) for row in drawn(31, shuffled)} == drawn(31)


def test_images_without_a_label_are_not_drawn() -> None:
    table = UnknownDetectionSet("digits", role="id", split="train").table
    label = pc.if_else(pc.equal(table["label"], 2), -1, table["label"]).cast(table["label"].type)
    at = table.schema.get_field_index("label")
    rows = drawn(50, table.set_column(at, table.schema.field(at), label))
    assert np.bincount(table["label"].to_numpy()[list(rows)]).tolist() == [10, 10, 0, 10, 10, 10]


@pytest.mark.parametrize("images", [5, 603])
def test_draws_that_cannot_be_made(images: int) -> None:
    with raises(DataError, where="digits", naming=str(images)):
        drawn(images)


def test_classes_of_several_sources_are_not_drawn_from() -> None:
    table = UnknownDetectionSet("digits", role="id", split="train").table
    at = table.schema.get_field_index("source")
    other = table.set_column(at, table.schema.field(at), pa.array(["other"] * len(table), pa.string()))
    with raises(DataError, where="digits", naming="source"):
        drawn(60, pa.concat_tables([table, other]))


class Fake:
    """Batches as `UnknownDetectionSet` gives them."""

    def __init__(self, *batches: torch.Tensor) -> None:
        self.given = batches

    def __len__(self) -> int:
        return sum(len(b) for b in self.given)

    def __repr__(self) -> str:
        return "fake"

    def batches(self, n: int, *, rows: None = None) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        for images in self.given:
            yield images, torch.zeros(len(images), dtype=torch.int64)


@pytest.mark.parametrize(
    ("batches", "named"),
    [
        ((torch.zeros(2, 3, 8, 8),), "torch.float32"),
        ((torch.zeros(2, 3, 8, 8).byte(), torch.zeros(2, 3, 9, 8).byte()), ("3", "9", "8")),
        ((), ()),
    ],
)
def test_images_that_cannot_be_trained_with(batches: tuple[torch.Tensor, ...], named: object) -> None:
    dataset: Any = Fake(*batches)
    with raises(DataError, where="fake", naming=named):
        load_arrays(dataset)


def test_a_benchmark_without_external_train_images() -> None:
    with raises(DataError, where="digits"):
        load_training_data("digits", negatives=True)


def test_unknown_benchmark() -> None:
    with raises(UnknownNameError, near="digits"):
        load_training_data("digts")


@pytest.mark.parametrize(
    ("benchmark", "named"),
    [("openood-cifar100", ("tin597", 1, "cifar100")), ("openood-cifar10", ("tin597", 9, "cifar10"))],
)
def test_outliers_of_id_classes_are_refused(benchmark: str, named: object) -> None:
    with raises(DataError, naming=named):
        load_training_data(benchmark, negatives=True)
    with pytest.raises(SourceError):  # the images are looked for
        load_training_data(benchmark, negatives=True, allow_leaks=True)
    with raises(DataError, naming=named):
        load_validation_data(benchmark, progress=Silent())
