"""Copies from a folder: the class they are of, their share, and folders that lack a class."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from loaders.harness.training.methods import Batch, get_method
from loaders.harness.training.methods.copies import read_copies
from loaders.harness.training.methods.interface import Data
from tests.raising import raises
from wordnet_splits.base.errors import DataError

from .stand_ins import FixedOutputs, new_state

CLASSES = ("dark", "light")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, values in zip(CLASSES, ((10, 20), (200, 210, 220)), strict=True):
        (tmp_path / name).mkdir()
        for value in values:
            Image.new("RGB", (4, 4), (value,) * 3).save(tmp_path / name / f"{value}.png")
    (tmp_path / "dark" / "notes.txt").write_text("not a picture")
    return tmp_path


def data_of(classes: tuple[str, ...] = CLASSES) -> Data:
    return Data(torch.tensor([0, 1]), 0, classes, lambda: None)  # type: ignore[arg-type, return-value]


def images_of(method: Any, labels: torch.Tensor) -> torch.Tensor:
    seen = []

    class Watching(FixedOutputs):
        def logits(self, images: torch.Tensor) -> torch.Tensor:
            seen.append(images)
            return self.values

    network: Any = Watching(method, torch.zeros(len(labels), 2))
    network.facts = method.facts(data_of())
    images = torch.full((len(labels), 3, 4, 4), 0.5)
    method.step(network, Batch((images,), labels, labels), new_state())
    return (255 * seen[0][:, 0, 0, 0]).round()


def test_a_copy_is_of_the_class_of_the_image_that_it_replaces(folder: Path) -> None:
    labels = torch.arange(400) % 2
    values = images_of(get_method("augmented-copies", {"folder": str(folder), "share": 0.75}), labels)
    assert set(values[labels == 0].tolist()) == {10, 20, 128}
    assert set(values[labels == 1].tolist()) == {200, 210, 220, 128}
    assert float((values != 128).double().mean()) == pytest.approx(0.75, abs=0.06)


def test_pictures_of_another_size_are_resized(folder: Path) -> None:
    pixels, counts = read_copies(str(folder), CLASSES, 6, 8)
    assert pixels.shape == (5, 3, 6, 8)
    assert counts.tolist() == [2, 3]
    assert np.unique(pixels).tolist() == [10, 20, 200, 210, 220]


@pytest.mark.parametrize("spec", ["augmented-copies", "augmented-copies[folder=nowhere]"])
def test_a_missing_folder_is_refused_with_the_command(spec: str) -> None:
    with raises(DataError, where="'augmented-copies'") as error:
        get_method(spec).facts(data_of())
    assert "stylize.py --content-dir" in str(error.value.hint)


def test_a_class_without_pictures_is_refused(folder: Path) -> None:
    method = get_method("augmented-copies", {"folder": str(folder)})
    with raises(DataError, where="'augmented-copies'", naming="grey"):
        method.facts(data_of((*CLASSES, "grey")))
