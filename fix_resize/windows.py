"""The windows and integer weights that Pillow gives each output pixel, along one axis.

Pillow resizes an image by two passes, one along each axis. In a pass every output pixel is a weighted sum
of a window of input pixels; the weights depend on the two sizes and the filter alone, and are rounded to 22
fractional bits, so that a pass is integer arithmetic and can be repeated anywhere to the last bit.
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
    # Pillow writes 0.54f and 0.46f: the nearest float32, widened.
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
    """What each of ``len(starts)`` output pixels sums along one axis.

    Attributes
    ----------
    starts : (out,) int64, the first input pixel of the window.
    counts : (out,) int64, how many input pixels it holds.
    weights : (out, most) int32, 22 fractional bits; zero beyond ``counts``.
    in_size : input pixels along the axis.
    """

    starts: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]
    weights: npt.NDArray[np.int32]
    in_size: int

    def cut(self, first: int, size: int) -> Windows:
        """Return the windows of ``size`` output pixels from ``first``: a crop before the work."""
        part = slice(first, first + size)
        return Windows(self.starts[part], self.counts[part], self.weights[part], self.in_size)

    @property
    def reach(self) -> tuple[int, int]:
        """The first input pixel that is used, and one past the last."""
        return int(self.starts[0]), int((self.starts + self.counts).max())

    def shifted(self, by: int, in_size: int) -> Windows:
        """Return the same windows over an input that starts ``by`` pixels later."""
        return Windows(self.starts - by, self.counts, self.weights, in_size)


@lru_cache(maxsize=256)
def windows(in_size: int, out_size: int, filter_name: str) -> Windows:
    """Return the windows that take ``in_size`` pixels to ``out_size``.

    Parameters
    ----------
    in_size, out_size : pixels along the axis, 1 to 2**24 (beyond, Pillow's float32 box would round them).
    filter_name : one of `FILTERS`.

    Raises
    ------
    UnknownNameError : the filter does not exist.
    DataError : a size out of range.
    """
    if filter_name not in FILTERS:
        raise unknown("resampling filter", filter_name, FILTERS)
    if not (1 <= in_size <= 1 << 24 and 1 <= out_size <= 1 << 24):
        raise DataError(f"cannot resize {in_size} pixels to {out_size}", hint="sizes run from 1 to 16777216")
    shape = FILTERS[filter_name]
    scale = in_size / out_size
    stretch = max(scale, 1.0)  # an enlarged image is interpolated by the filter at its own width
    support = shape.support * stretch
    centres = (np.arange(out_size) + 0.5) * scale
    starts = np.maximum((centres - support + 0.5).astype(np.int64), 0)  # a C cast: towards zero
    counts = np.minimum((centres + support + 0.5).astype(np.int64), in_size) - starts
    taps = np.arange(int(counts.max()))
    inside = taps < counts[:, None]
    distance = ((taps + starts[:, None]) - centres[:, None] + 0.5) * (1.0 / stretch)
    raw = np.where(inside, shape.weight(distance), 0.0)
    total = np.zeros(out_size)
    for column in raw.T:  # one tap after the other, as the C loop adds: np.sum adds in another order
        total += column
    share = np.divide(raw, total[:, None], out=raw, where=total[:, None] != 0.0)
    scaled = share * (1 << PRECISION_BITS)
    weights = np.where(scaled < 0, scaled - 0.5, scaled + 0.5).astype(np.int32)
    return Windows(starts, counts, np.where(inside, weights, 0), in_size)


class Passes(NamedTuple):
    """The two passes of one step of a plan, over what the crop keeps and no more.

    Attributes
    ----------
    used : the input rows that the kept output needs.
    kept : the input columns that are kept, where ``rows`` is None.
    rows : the windows of the horizontal pass; None where Pillow skips it, the width unchanged.
    columns : the windows of the vertical pass over the rows ``used``, or None likewise.
    """

    used: slice
    kept: slice
    rows: Windows | None
    columns: Windows | None


@lru_cache(maxsize=256)
def passes(step: Step) -> Passes:
    """Return the passes of a step."""
    (top, left), (height, width) = step.corner, step.kept
    (in_height, in_width), (out_height, out_width) = step.in_size, step.out_size
    used, kept = slice(top, top + height), slice(left, left + width)
    rows = columns = None
    if in_width != out_width:
        rows = windows(in_width, out_width, step.stage.filter).cut(left, width)
    if in_height != out_height:
        columns = windows(in_height, out_height, step.stage.filter).cut(top, height)
        used = slice(*columns.reach)
        columns = columns.shifted(used.start, used.stop - used.start)
    return Passes(used, kept, rows, columns)


def first_axis(pillow_version: str, in_size: tuple[int, int], out_size: tuple[int, int]) -> Axis:
    """Return the axis that a version of Pillow resizes first; sizes are (height, width).

    Up to version 12 the horizontal pass always comes first. Version 13 puts the vertical one first when the
    height loses more than twice as many pixels as the width: then the rounding between the passes falls
    elsewhere, in mixed scaling and also when a picture more than twice as tall as wide is scaled down.
    """
    if int(pillow_version.split(".")[0]) < 13:
        return "horizontal"
    lost_rows, lost_columns = in_size[0] - out_size[0], in_size[1] - out_size[1]
    return "vertical" if lost_rows > 0 and lost_rows > 2 * lost_columns else "horizontal"
