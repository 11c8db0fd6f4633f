"""The windows and integer weights that Pillow gives each output pixel, along one axis.

Pillow resizes an image in two passes, one along each axis. In a pass every output pixel is a weighted sum of
a window of input pixels; the weights depend only on the two sizes and the filter, and are rounded to 22
fractional bits, so that a pass is integer arithmetic and can be reproduced exactly anywhere.
Source: ``src/libImaging/Resample.c`` of Pillow 11 to 13, functions ``precompute_coeffs`` and
``normalize_coeffs_8bpc``, which are the same in all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from fix_resize.spec import Step
from wordnet_splits.base.errors import DataError, unknown

Axis = Literal["horizontal", "vertical"]
Floats = npt.NDArray[np.float64]

PRECISION_BITS: Final = 22
"""Fractional bits of a weight: 32 less 8 for the pixel and 2 for filters that overshoot."""

HALF: Final = 1 << (PRECISION_BITS - 1)
"""Added to every sum before the shift, so that it rounds to nearest, halves up."""


class Filter(NamedTuple):
    """A resampling filter: its weight at a distance, and half its width in output pixels."""

    weight: Callable[[Floats], Floats]
    support: float


def _box(x: Floats) -> Floats:
    return np.where((x > -0.5) & (x <= 0.5), 1.0, 0.0)


def _bilinear(x: Floats) -> Floats:
    return np.where(np.abs(x) < 1.0, 1.0 - np.abs(x), 0.0)


def _sine_over(x: Floats) -> Floats:
    """Return sin(pi x) / (pi x), and 1 at zero."""
    angle = x * math.pi
    return np.divide(_libm(math.sin, angle), angle, out=np.ones_like(x), where=x != 0.0)


def _hamming(x: Floats) -> Floats:
    x = np.abs(x)
    # 0.54f and 0.46f in Pillow: the nearest float32, widened
    window = float(np.float32(0.54)) + float(np.float32(0.46)) * _libm(math.cos, x * math.pi)
    return np.where(x == 0.0, 1.0, np.where(x < 1.0, _sine_over(x) * window, 0.0))


def _bicubic(x: Floats) -> Floats:
    a = -0.5
    x = np.abs(x)
    near = ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
    far = (((x - 5.0) * x + 8.0) * x - 4.0) * a
    return np.where(x < 1.0, near, np.where(x < 2.0, far, 0.0))


def _lanczos(x: Floats) -> Floats:
    return np.where((x >= -3.0) & (x < 3.0), _sine_over(x) * _sine_over(x / 3.0), 0.0)


def _libm(function: Callable[[float], float], x: Floats) -> Floats:
    """Apply a function of the C library: NumPy's own vector sine differs from it in the last bit."""
    return np.fromiter(map(function, x.ravel().tolist()), np.float64, x.size).reshape(x.shape)


FILTERS: Final[dict[str, Filter]] = {
    "box": Filter(_box, 0.5),
    "bilinear": Filter(_bilinear, 1.0),
    "hamming": Filter(_hamming, 1.0),
    "bicubic": Filter(_bicubic, 2.0),
    "lanczos": Filter(_lanczos, 3.0),
}


@dataclass(frozen=True, eq=False)
class Windows:
    """The windows of input pixels, along one axis, whose weighted sums are the output pixels.

    Attributes
    ----------
    starts : (out,) int64, the first input pixel of each window.
    counts : (out,) int64, the number of input pixels of each window.
    weights : (out, max count) int32, 22 fractional bits; zero beyond ``counts``.
    in_size : number of input pixels along the axis.
    """

    starts: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]
    weights: npt.NDArray[np.int32]
    in_size: int

    def cropped(self, start: int, size: int) -> Windows:
        """Return the windows of ``size`` output pixels from ``start``."""
        part = slice(start, start + size)
        return Windows(self.starts[part], self.counts[part], self.weights[part], self.in_size)

    @property
    def input_range(self) -> slice:
        """The input pixels that are in some window."""
        return slice(int(self.starts[0]), int((self.starts + self.counts).max()))

    def over(self, inputs: slice) -> Windows:
        """Return the same windows over a part of the input."""
        return Windows(self.starts - inputs.start, self.counts, self.weights, inputs.stop - inputs.start)


@lru_cache(maxsize=256)
def windows(in_size: int, out_size: int, filter_name: str) -> Windows:
    """Return the windows that resize ``in_size`` pixels to ``out_size``.

    Parameters
    ----------
    in_size, out_size : pixels along the axis, 1 to 2**24 (larger sizes are rounded in Pillow's float32 box).
    filter_name : a key of `FILTERS`.
    """
    if filter_name not in FILTERS:
        raise unknown("resampling filter", filter_name, FILTERS)
    if not (1 <= in_size <= 1 << 24 and 1 <= out_size <= 1 << 24):
        raise DataError(f"sizes must be from 1 to 16777216 pixels, not {in_size} and {out_size}")
    shape = FILTERS[filter_name]
    scale = in_size / out_size
    stretch = max(scale, 1.0)  # an enlargement interpolates with the filter at its original width
    support = shape.support * stretch
    centres = (np.arange(out_size) + 0.5) * scale
    starts = np.maximum((centres - support + 0.5).astype(np.int64), 0)  # a C cast: towards zero
    counts = np.minimum((centres + support + 0.5).astype(np.int64), in_size) - starts
    taps = np.arange(int(counts.max()))
    inside = taps < counts[:, None]
    distance = ((taps + starts[:, None]) - centres[:, None] + 0.5) * (1.0 / stretch)
    raw = np.where(inside, shape.weight(distance), 0.0)
    total = np.zeros(out_size)
    for column in raw.T:  # tap by tap, as the C loop: np.sum adds in another order
        total += column
    share = np.divide(raw, total[:, None], out=raw, where=total[:, None] != 0.0)
    scaled = share * (1 << PRECISION_BITS)
    weights = np.where(scaled < 0, scaled - 0.5, scaled + 0.5).astype(np.int32)
    return Windows(starts, counts, np.where(inside, weights, 0), in_size)


class Passes(NamedTuple):
    """The two passes of a step, restricted to the pixels of its crop.

    Attributes
    ----------
    input_rows : the input rows on which the crop depends.
    input_columns : the columns of the crop in the input, if there is no horizontal pass.
    horizontal : windows of the horizontal pass; None if the width does not change.
    vertical : windows of the vertical pass over ``input_rows``; None if the height does not change.
    """

    input_rows: slice
    input_columns: slice
    horizontal: Windows | None
    vertical: Windows | None


@lru_cache(maxsize=256)
def passes(step: Step) -> Passes:
    """Return the passes of a step."""
    (top, left), (height, width) = step.corner, step.crop_size
    (in_height, in_width), (out_height, out_width) = step.in_size, step.out_size
    input_rows, input_columns = slice(top, top + height), slice(left, left + width)
    horizontal = vertical = None
    if in_width != out_width:
        horizontal = windows(in_width, out_width, step.stage.filter).cropped(left, width)
    if in_height != out_height:
        vertical = windows(in_height, out_height, step.stage.filter).cropped(top, height)
        input_rows = vertical.input_range
        vertical = vertical.over(input_rows)
    return Passes(input_rows, input_columns, horizontal, vertical)


def first_axis(pillow_version: str, in_size: tuple[int, int], out_size: tuple[int, int]) -> Axis:
    """Return the axis that a version of Pillow resizes first; sizes are (height, width).

    Up to version 12 the horizontal pass always comes first. In version 13 the vertical pass comes first if
    the height loses more than twice as many pixels as the width, which changes the rounding between passes.
    """
    if int(pillow_version.split(".")[0]) < 13:
        return "horizontal"
    lost_rows, lost_columns = in_size[0] - out_size[0], in_size[1] - out_size[1]
    return "vertical" if lost_rows > 0 and lost_rows > 2 * lost_columns else "horizontal"
