"""The fast resizer on a CPU: Pillow's integer arithmetic, compiled by numba (extra ``fast``).

A pass down the columns is a plain loop that the compiler turns into vector code by itself. A pass along the
rows is not, because the three channels of neighbouring pixels lie interleaved and every output pixel has a
window of its own. So the row pass takes five pixels at a time: fifteen bytes and one more, widened to
sixteen 32-bit lanes, times weights that stand there three times each and zero in the last lane. In the end
the five lanes of each channel are added. `_weigh_window` writes that as LLVM vector code, which every CPU
that numba knows can run.

Sums fit 32 bits, as in Pillow: the weights are rounded to 22 bits, so that 8 bits of pixel and the
overshoot of the widest filter remain.
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
"""Pixels that one vector holds: 15 bytes of 16."""

CHANNELS: Final = 3
_BYTE, _WORD = ir.IntType(8), ir.IntType(32)


def _vector(element: ir.IntType, lanes: int) -> ir.VectorType:
    return ir.VectorType(element, lanes)


@intrinsic
def _weigh_window(
    typing: Any, line: Any, at: Any, weights: Any, first: Any, groups: Any, out: Any, to: Any
) -> Any:
    """Write one RGB pixel: the weighted, rounded and clipped sum of a window of ``line``.

    Parameters
    ----------
    line : (bytes,) uint8 with at least 16 bytes after the window's last group; ``at`` is its first byte.
    weights : (groups, 16) int32; the window's are ``groups`` rows from ``first``.
    out : (bytes,) uint8; three bytes at ``to`` are written, and the one after them is overwritten.
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
    """Resize the rows of (h, 3 w) ``source`` into ``out``, (h 3 out + 1,) with a byte to spare at the end."""
    width = source.shape[1]
    line = np.zeros(width + GROUP * CHANNELS + LANES, np.uint8)  # room to read a last group that is not full
    to = 0
    for y in range(source.shape[0]):
        row = source[y]
        for j in range(width):
            line[j] = row[j]
        first = 0
        for x in range(starts.shape[0]):
            _weigh_window(line, starts[x], weights, first, groups[x], out, to)
            first += groups[x]
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
    """Windows laid out for `_along_rows`: in bytes, and in groups of five pixels."""

    starts: npt.NDArray[np.int64]
    groups: npt.NDArray[np.int64]
    weights: npt.NDArray[np.int32]


@lru_cache(maxsize=256)
def _grouped(step: Step) -> _Grouped | None:
    """Return the row pass of a step, its weights in vectors: each three times, and a zero."""
    along = passes(step).rows
    if along is None:
        return None
    groups = -(-along.counts // GROUP)
    most = int(groups.max())
    padded = np.zeros((len(groups), most * GROUP), np.int32)
    padded[:, : along.weights.shape[1]] = along.weights[:, : most * GROUP]
    lanes = np.zeros((len(groups), most, LANES), np.int32)
    lanes[:, :, :-1] = padded.reshape(len(groups), most, GROUP).repeat(CHANNELS, axis=2)
    used = np.arange(most) < groups[:, None]
    return _Grouped(along.starts * CHANNELS, groups, lanes[used])


def resample_step(picture: Pixels, step: Step) -> Pixels:
    """Return a C-contiguous (h, w, 3) picture after one step of a plan: resized and cropped."""
    used, kept, _, down = passes(step)
    along = _grouped(step)
    picture = picture[used]
    height = len(picture)
    if along is None:
        picture = np.ascontiguousarray(picture[:, kept])
    else:
        width = len(along.starts)
        narrow = np.empty(height * width * CHANNELS + 1, np.uint8)
        _along_rows(picture.reshape(height, -1), along.starts, along.groups, along.weights, narrow)
        picture = narrow[:-1].reshape(height, width, CHANNELS)
    if down is None:
        return picture
    low = np.empty((len(down.starts), picture.shape[1] * CHANNELS), np.uint8)
    _down_columns(picture.reshape(height, -1), down.starts, down.counts, down.weights, low)
    return low.reshape(len(low), -1, CHANNELS)


def apply_batch(spec: ResizeSpec, pictures: Pixels) -> Pixels:
    """Take (n, h, w, 3) pictures of one size through a spec; returns (n, side, side, 3)."""
    steps = plan(spec, *pictures.shape[1:3])
    return np.stack([reduce(resample_step, steps, picture) for picture in np.ascontiguousarray(pictures)])
