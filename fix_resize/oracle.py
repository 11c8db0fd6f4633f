"""A readable reference: Pillow's integer arithmetic in a few lines of NumPy, bit for bit.

Slow; `fix_resize.kernel` and `fix_resize.backend_torch` compute the same sums fast.
"""

from __future__ import annotations

from functools import reduce
from typing import Final

import numpy as np

from fix_resize.spec import ResizeSpec, Size, Step, plan
from fix_resize.windows import HALF, PRECISION_BITS, Axis, Windows, windows
from wordnet_splits.base.digests import Pixels

AXES: Final[dict[Axis, tuple[int, int]]] = {"vertical": (0, 1), "horizontal": (1, 0)}
"""Axes of the passes, in order, by the name of the first."""


def resize_axis(pixels: Pixels, axis_windows: Windows, axis: int) -> Pixels:
    """Resize one axis: each output pixel is the weighted sum of its window, rounded and clipped to 0..255."""
    source = np.moveaxis(pixels, axis, 0).astype(np.int32, order="C")  # as wide as Pillow's sums
    out = np.empty((len(axis_windows.starts), *source.shape[1:]), np.uint8)
    columns = zip(axis_windows.starts, axis_windows.counts, axis_windows.weights, strict=True)
    for i, (start, count, weights) in enumerate(columns):
        total = np.einsum("k,k...->...", weights[:count], source[start : start + count])
        out[i] = ((total + HALF) >> PRECISION_BITS).clip(0, 255)
    return np.moveaxis(out, 0, axis)


def resample(pixels: Pixels, size: Size, filter_name: str, start_axis: Axis = "horizontal") -> Pixels:
    """Return pixels (h, w, channels) uint8 at ``size`` (h, w), as Pillow's ``Image.resize``."""
    for axis in AXES[start_axis]:
        if pixels.shape[axis] != size[axis]:
            pixels = resize_axis(pixels, windows(pixels.shape[axis], size[axis], filter_name), axis)
    return pixels


def resample_step(pixels: Pixels, step: Step) -> Pixels:
    """Resize and crop ``pixels`` by one step."""
    (top, left), (height, width) = step.corner, step.crop_size
    resized = resample(pixels, step.out_size, step.stage.filter)
    return np.ascontiguousarray(resized[top : top + height, left : left + width])


def apply_batch(spec: ResizeSpec, images: Pixels) -> Pixels:
    """Resize (n, h, w, 3) images of equal size; returns (n, side, side, 3)."""
    steps = plan(spec, *images.shape[1:3])
    return np.stack([reduce(resample_step, steps, image) for image in images])
