"""The reference to read: Pillow's integer arithmetic in a few lines of NumPy, bit for bit.

Slow, and written to be checked by eye; `fix_resize.kernel` and `fix_resize.backend_torch` do the same sums.
"""

from __future__ import annotations

from functools import reduce
from typing import Final

import numpy as np

from fix_resize.spec import ResizeSpec, Size, Step, plan
from fix_resize.windows import HALF, PRECISION_BITS, Axis, Windows, windows
from wordnet_splits.base.digests import Pixels

AXES: Final[dict[Axis, int]] = {"vertical": 0, "horizontal": 1}
OTHER: Final[dict[Axis, Axis]] = {"vertical": "horizontal", "horizontal": "vertical"}


def one_pass(pixels: Pixels, along: Windows, axis: int) -> Pixels:
    """Resize one axis: each output pixel is the weighted sum of its window, rounded and clipped to 0..255."""
    source = np.moveaxis(pixels, axis, 0).astype(np.int32, order="C")  # as wide as Pillow's sums
    out = np.empty((len(along.starts), *source.shape[1:]), np.uint8)
    for i, (start, count, weights) in enumerate(zip(along.starts, along.counts, along.weights, strict=True)):
        total = np.einsum("k,k...->...", weights[:count], source[start : start + count])
        out[i] = ((total + HALF) >> PRECISION_BITS).clip(0, 255)
    return np.moveaxis(out, 0, axis)


def resample(pixels: Pixels, size: Size, filter_name: str, first: Axis = "horizontal") -> Pixels:
    """Return ``pixels`` at ``size``, as Pillow's ``Image.resize`` does.

    Parameters
    ----------
    pixels : (h, w, channels) uint8.
    size : (height, width) wanted.
    filter_name : one of `fix_resize.windows.FILTERS`.
    first : the axis of the first pass (`fix_resize.windows.first_axis` says which a Pillow version takes).
    """
    for axis in (AXES[first], AXES[OTHER[first]]):
        if pixels.shape[axis] != size[axis]:
            pixels = one_pass(pixels, windows(pixels.shape[axis], size[axis], filter_name), axis)
    return pixels


def resample_step(pixels: Pixels, step: Step) -> Pixels:
    """Return ``pixels`` after one step of a plan: resized, then cropped."""
    (top, left), (height, width) = step.corner, step.kept
    resized = resample(pixels, step.out_size, step.stage.filter)
    return np.ascontiguousarray(resized[top : top + height, left : left + width])


def apply_batch(spec: ResizeSpec, pictures: Pixels) -> Pixels:
    """Take (n, h, w, 3) pictures of one size through a spec; returns (n, side, side, 3)."""
    steps = plan(spec, *pictures.shape[1:3])
    return np.stack([reduce(resample_step, steps, picture) for picture in pictures])
