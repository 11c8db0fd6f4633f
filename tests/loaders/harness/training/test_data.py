from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from loaders import UnknownDetectionSet
from loaders.harness.backend.transforms import ONES, ZEROS
from loaders.harness.training.data import load_arrays, load_training_data
from wordnet_splits.errors import DataError, UnknownNameError
from wordnet_splits.manifest import load_manifest

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
    assert (data.size, data.grey, data.negatives) == ((8, 8), True, None)
    assert (data.normalise.mean, data.normalise.std) == (ZEROS, ONES)
    manifest = load_manifest("digits")
    used = [p.model_dump() for p in manifest.data.fingerprints.images if p.split in ("train", "val")]
    assert data.benchmark["fingerprint"] == manifest.fingerprint
    assert sorted(p["images"] for p in data.benchmark["parts"]) == sorted(p["images"] for p in used)


class Fake:
    """Batches as `UnknownDetectionSet` gives them."""

    def __init__(self, *batches: torch.Tensor) -> None:
        self.given = batches

    def __len__(self) -> int:
        return sum(len(b) for b in self.given)

    def __repr__(self) -> str:
        return "fake"

    def batches(self, n: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        for images in self.given:
            yield images, torch.zeros(len(images), dtype=torch.int64)


@pytest.mark.parametrize(
    ("batches", "message"),
    [
        ((torch.zeros(2, 3, 8, 8),), "takes uint8 images, not torch.float32"),
        ((torch.zeros(2, 3, 8, 8).byte(), torch.zeros(2, 3, 9, 8).byte()), r"\(3, 9, 8\) and of \(3, 8, 8\)"),
        ((), "there are no images"),
    ],
)
def test_images_that_cannot_be_trained_with(batches: tuple[torch.Tensor, ...], message: str) -> None:
    dataset: Any = Fake(*batches)
    with pytest.raises(DataError, match=message):
        load_arrays(dataset)


def test_a_benchmark_without_external_train_images() -> None:
    with pytest.raises(DataError, match="has none in its train split"):
        load_training_data("digits", negatives=True)


def test_unknown_benchmark() -> None:
    with pytest.raises(UnknownNameError, match="digits"):
        load_training_data("digts")
