"""The fast resizer on a CPU: Pillow's integer arithmetic, compiled by numba (extra ``fast``).

The compiler vectorises the pass along columns, a plain loop, by itself. It cannot vectorise the pass along
rows, because the three channels of neighbouring pixels are interleaved and every output pixel has its own
window. The row pass therefore processes five pixels at a time: 15 bytes and a 16th, widened to sixteen
32-bit lanes, times weights that are repeated three times each and zero in the last lane; at the end the five
lanes of each channel are added. `_weigh_window` is LLVM vector code for this, which runs on every CPU that
numba supports.

Sums fit 32 bits, as in Pillow: weights have 22 bits, which leaves room for 8 bits of pixel and the overshoot
of the widest filter.
"""

from __future__ import annotations

from functools import lru_cache, reduce
from typing import Any, Final, NamedTuple

import numba
import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from fix_resize.spec import ResizeSpec, Step, plan
from fix_resize.windows import HALF, PRECISION_BITS, passes
from wordnet_splits.base.digests import Pixels

LANES: Final = 16
GROUP: Final = 5
"""Pixels per vector: 15 bytes of 16."""

CHANNELS: Final = 3
_BYTE, _WORD = ir.IntType(8), ir.IntType(32)


def _vector(element: ir.IntType, lanes: int) -> ir.VectorType:
    return ir.VectorType(element, lanes)


@intrinsic
def _weigh_window(
    typing: Any, line: Any, at: Any, weights: Any, row: Any, groups: Any, out: Any, to: Any
) -> Any:
    """Write one RGB pixel, the weighted, rounded and clipped sum of a window of ``line``.

    Parameters
    ----------
    line : (bytes,) uint8 with at least 16 bytes after the last group of the window, which starts at ``at``.
    weights : (groups, 16) int32; the window has the ``groups`` rows from ``row``.
    out : (bytes,) uint8; three bytes at ``to`` are written, and the next byte is overwritten.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def pointer(argument: int, offset: Any, type_: Any) -> Any:
            array = context.make_array(signature.args[argument])(context, builder, args[argument])
            return builder.bitcast(builder.gep(array.data, [offset]), type_.as_pointer())

        def constant(value: int, lanes: int) -> Any:
            return ir.Constant(_vector(_WORD, lanes), [value] * lanes)

        def pick(vector: Any, lanes: list[int]) -> Any:
            return builder.shuffle_vector(vector, vector, ir.Constant(_vector(_WORD, len(lanes)), lanes))

        def clip(vector: Any, comparison: str, bound: Any) -> Any:
            return builder.select(builder.icmp_signed(comparison, vector, bound), bound, vector)

        sums = cgutils.alloca_once_value(
            builder, ir.Constant(_vector(_WORD, LANES), [HALF] * CHANNELS + [0] * (LANES - CHANNELS))
        )
        with cgutils.for_range(builder, args[4]) as loop:
            step = loop.index.type
            at_ = builder.add(args[1], builder.mul(loop.index, ir.Constant(step, GROUP * CHANNELS)))
            row = builder.mul(builder.add(args[3], loop.index), ir.Constant(step, LANES))
            pixels = builder.load(pointer(0, at_, _vector(_BYTE, LANES)), align=1)
            weight = builder.load(pointer(2, row, _vector(_WORD, LANES)), align=4)
            product = builder.mul(builder.zext(pixels, weight.type), weight)
            builder.store(builder.add(builder.load(sums), product), sums)
        total = builder.load(sums)  # lane 3 p + c holds pixel p of channel c; lane 15 holds zero
        two = builder.add(pick(total, [0, 1, 2, 3, 4, 5, 15, 15]), pick(total, [6, 7, 8, 9, 10, 11, 15, 15]))
        two = builder.add(two, pick(total, [12, 13, 14, 15, 15, 15, 15, 15]))
        pixel = builder.ashr(
            builder.add(pick(two, [0, 1, 2, 6]), pick(two, [3, 4, 5, 6])), constant(PRECISION_BITS, 4)
        )
        pixel = clip(clip(pixel, "<", constant(0, 4)), ">", constant(255, 4))
        four = _vector(_BYTE, 4)
        builder.store(builder.trunc(pixel, four), pointer(5, args[6], four), align=1)
        return context.get_dummy_value()

    index = types.intp
    return types.void(line, index, weights, index, index, out, index), generate


@numba.njit(nogil=True, cache=True)
def _along_rows(source: Any, starts: Any, groups: Any, weights: Any, out: Any) -> None:
    """Resize the rows of (h, 3 w) ``source`` into ``out``, (h 3 out + 1,) with a spare byte at the end."""
    width = source.shape[1]
    line = np.zeros(width + GROUP * CHANNELS + LANES, np.uint8)  # padded for a last group that is not full
    to = 0
    for y in range(source.shape[0]):
        row = source[y]
        for j in range(width):
            line[j] = row[j]
        weight_row = 0
        for x in range(starts.shape[0]):
            _weigh_window(line, starts[x], weights, weight_row, groups[x], out, to)
            weight_row += groups[x]
            to += CHANNELS


@numba.njit(nogil=True, cache=True)
def _down_columns(source: Any, starts: Any, counts: Any, weights: Any, out: Any) -> None:
    """Resize the columns of (h, 3 w) ``source`` into (out, 3 w) ``out``."""
    width = out.shape[1]
    sums = np.empty(width, np.int32)
    for y in range(starts.shape[0]):
        sums[:] = HALF
        for k in range(counts[y]):
            weight = weights[y, k]
            row = source[starts[y] + k]
            for j in range(width):
                sums[j] += weight * np.int32(row[j])
        result = out[y]
        for j in range(width):
            result[j] = min(max(sums[j] >> np.int32(PRECISION_BITS), np.int32(0)), np.int32(255))


class _Grouped(NamedTuple):
    """Windows for `_along_rows`, in bytes and in groups of five pixels."""

    starts: npt.NDArray[np.int64]
    groups: npt.NDArray[np.int64]
    weights: npt.NDArray[np.int32]


@lru_cache(maxsize=256)
def _grouped(step: Step) -> _Grouped | None:
    """Return the horizontal pass of a step, with weights in vectors: each three times, and a zero."""
    horizontal = passes(step).horizontal
    if horizontal is None:
        return None
    groups = -(-horizontal.counts // GROUP)
    max_groups = int(groups.max())
    padded = np.zeros((len(groups), max_groups * GROUP), np.int32)
    padded[:, : horizontal.weights.shape[1]] = horizontal.weights[:, : max_groups * GROUP]
    lanes = np.zeros((len(groups), max_groups, LANES), np.int32)
    lanes[:, :, :-1] = padded.reshape(len(groups), max_groups, GROUP).repeat(CHANNELS, axis=2)
    used = np.arange(max_groups) < groups[:, None]
    return _Grouped(horizontal.starts * CHANNELS, groups, lanes[used])


def resample_step(image: Pixels, step: Step) -> Pixels:
    """Resize and crop a C-contiguous (h, w, 3) image by one step."""
    input_rows, input_columns, _, vertical = passes(step)
    horizontal = _grouped(step)
    image = image[input_rows]
    height = len(image)
    if horizontal is None:
        image = np.ascontiguousarray(image[:, input_columns])
    else:
        width = len(horizontal.starts)
        resized = np.empty(height * width * CHANNELS + 1, np.uint8)
        _along_rows(
            image.reshape(height, -1), horizontal.starts, horizontal.groups, horizontal.weights, resized
        )
        image = resized[:-1].reshape(height, width, CHANNELS)
    if vertical is None:
        return image
    resized = np.empty((len(vertical.starts), image.shape[1] * CHANNELS), np.uint8)
    _down_columns(image.reshape(height, -1), vertical.starts, vertical.counts, vertical.weights, resized)
    return resized.reshape(len(resized), -1, CHANNELS)


def apply_batch(spec: ResizeSpec, images: Pixels) -> Pixels:
    """Resize (n, h, w, 3) images of equal size; returns (n, side, side, 3)."""
    steps = plan(spec, *images.shape[1:3])
    return np.stack([reduce(resample_step, steps, image) for image in np.ascontiguousarray(images)])
