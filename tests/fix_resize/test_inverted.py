"""The view of Omniglot: light on dark, and Pillow's antialiased bilinear from 105 to 28."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image, ImageOps

from fix_resize.resize import apply, apply_many
from fix_resize.spec import get_spec


@pytest.mark.parametrize("backend", ["pillow", "numpy", "numba", "torch"])
def test_every_backend_gives_what_pillow_gives_of_the_inverted_drawing(backend: str) -> None:
    if backend in ("numba", "torch"):
        pytest.importorskip(backend)
    drawings = np.random.default_rng(0).integers(0, 2, (3, 105, 105, 1), dtype=np.uint8) * np.uint8(255)
    pixels = np.repeat(drawings, 3, axis=3)
    made = apply_many(get_spec("inverted-28"), pixels, backend)
    images = [ImageOps.invert(Image.fromarray(one)) for one in pixels]
    wanted = [np.asarray(image.resize((28, 28), Image.Resampling.BILINEAR)) for image in images]
    assert np.array_equal(made, np.stack(wanted))
    assert np.array_equal(made[0], apply(get_spec("inverted-28"), Image.fromarray(pixels[0])))


def test_white_paper_becomes_black() -> None:
    paper = Image.new("RGB", (105, 105), "white")
    assert not apply(get_spec("inverted-28"), paper).any()
