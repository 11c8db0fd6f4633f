"""Evaluation transforms that recipes name: torchvision's geometry, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from loaders.harness.backend.transforms import evaluation_transform
from tests.imported import Imported

transforms = Imported("torchvision.transforms")


@pytest.mark.parametrize("size", [(28, 28), (32, 32), (64, 64), (300, 200), (47, 33), (200, 333)])
@pytest.mark.parametrize(("short", "side"), [(32, 32), (256, 224)])
def test_a_resize_and_a_crop_are_torchvisions(short: int, side: int, size: tuple[int, int]) -> None:
    pixels = np.random.default_rng(sum(size)).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    image = Image.fromarray(pixels)
    steps = [transforms.Resize(short), transforms.CenterCrop(side), transforms.ToTensor()]
    made = evaluation_transform(f"resize-{short}-crop-{side}")(image)
    np.testing.assert_array_equal(made.numpy(), transforms.Compose(steps)(image).numpy())
