"""PNG files that any reader reads back to the same pixels."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from PIL import Image

from fix_resize.output import decode_png
from fix_resize.pipeline.writing import encode_png

SIDES = array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=40)


@given(
    SIDES.flatmap(lambda size: arrays(np.uint8, (*size, 3), elements=st.sampled_from([0, 1, 127, 254, 255])))
)
def test_any_picture_is_read_back(pixels: np.ndarray) -> None:
    data = encode_png(pixels, "0123456789ab")
    with Image.open(io.BytesIO(data)) as image:
        image.load()
        assert (image.format, image.mode, image.info["resize-spec"]) == ("PNG", "RGB", "0123456789ab")
        np.testing.assert_array_equal(np.asarray(image), pixels)
    np.testing.assert_array_equal(decode_png(data, "here"), pixels)


def test_opencv_reads_it_too() -> None:
    cv2 = pytest.importorskip("cv2")
    pixels = np.random.default_rng(5).integers(0, 256, (33, 20, 3), dtype=np.uint8)
    read = cv2.imdecode(np.frombuffer(encode_png(pixels, "x"), np.uint8), cv2.IMREAD_COLOR)
    np.testing.assert_array_equal(read[:, :, ::-1], pixels)


def test_a_smooth_picture_is_small() -> None:
    ramp = np.add.outer(np.arange(32), np.arange(32)).astype(np.uint8)
    assert len(encode_png(np.stack([ramp] * 3, axis=2), "0123456789ab")) < 32 * 32 * 3 / 5
