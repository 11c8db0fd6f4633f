"""Evaluation transforms that recipes name: torchvision's geometry, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image

from loaders.harness.models.transforms import Normalise, evaluation_transform
from tests.imported import Imported
from wordnet_splits.base.errors import DataError, SplitsError

transforms = Imported("torchvision.transforms")


@pytest.mark.parametrize("size", [(28, 28), (32, 32), (64, 64), (300, 200), (47, 33), (200, 333)])
@pytest.mark.parametrize(("short", "side"), [(32, 32), (256, 224)])
def test_a_resize_and_a_crop_are_torchvisions(short: int, side: int, size: tuple[int, int]) -> None:
    pixels = np.random.default_rng(sum(size)).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    image = Image.fromarray(pixels)
    steps = [transforms.Resize(short), transforms.CenterCrop(side), transforms.ToTensor()]
    made = evaluation_transform(f"resize-{short}-crop-{side}")(image)
    np.testing.assert_array_equal(made.numpy(), transforms.Compose(steps)(image).numpy())


@pytest.mark.parametrize("name", ["mean", "std"])
@pytest.mark.parametrize(
    "value", ["abc", "", "1,2", "nan", None, [], [1, 2], ["a"] * 3, [[1], [2, 3]], 1j, [1j] * 3]
)
def test_what_are_no_three_numbers_is_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(DataError) as caught:
        evaluation_transform("none", **{name: value})  # type: ignore[arg-type]
    assert caught.value.where == name


def test_text_of_one_number_or_three_is_a_normalisation() -> None:
    assert evaluation_transform("none", "0.5", "1,2,4").batch == Normalise((0.5,) * 3, (1.0, 2.0, 4.0))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", [3, None, ["none"], "resize", "resize-0", "resize-9-crop-10"])
def test_what_names_no_geometry_is_refused(name: object) -> None:
    with pytest.raises(SplitsError):
        evaluation_transform(name)  # type: ignore[arg-type]


def test_a_tensor_is_neither_scaled_twice_nor_changed() -> None:
    pixels = torch.rand(3, 4, 4)
    kept = pixels.clone()
    with pytest.raises(DataError) as caught:
        evaluation_transform("none", "0.5", "0.5")(pixels)  # type: ignore[arg-type]
    assert caught.value.where == "transform"
    Normalise()(pixels)
    assert torch.equal(pixels, kept)
