"""The resizer on a GPU: Pillow's integer arithmetic on batches of tensors, bit for bit.

The only file of this package that imports torch, and itself imported on request. Two methods, equal bytes:

``matrix``
    A pass is a product with the dense matrix of its weights, in float64. Every partial sum is a multiple of
    2**-22 below 2**9, so 31 of the 53 bits of a float64 hold it exactly, in any order of summation and with
    or without fused multiplication; so does the rounding. (float32 has 24 bits and would not do.) The
    arithmetic is 13 MFLOP an image from 256 to 32, so memory traffic bounds it on a GPU with fast float64.
``gather``
    A pass adds up its windows tap by tap in int32, as Pillow does: for devices without float64 (MPS), and
    for a CPU, where the zeros of a dense matrix cost more than they save.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, reduce
from typing import Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from fix_resize.spec import ResizeSpec, Step, plan
from fix_resize.windows import HALF, PRECISION_BITS, Windows, passes
from wordnet_splits.base.errors import DataError

ResizeMethod = Literal["matrix", "gather"]
Pass = Callable[[torch.Tensor], torch.Tensor]
"""Resizes the last axis of planes (n, 3, other axis, axis)."""

BLOCK_BYTES: Final = 256 << 20
"""Of widened pixels at a time, so that a large batch does not exhaust the device."""


def default_device() -> torch.device:
    """Return the first CUDA device, or the CPU where there is none."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def apply_batch(spec: ResizeSpec, pictures: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Take (n, h, w, 3) pictures of one size through a spec; returns (n, side, side, 3)."""
    batch = torch.from_numpy(np.ascontiguousarray(pictures)).to(default_device())
    out: npt.NDArray[np.uint8] = resize_batch(spec, batch).cpu().numpy()
    return out


def resize_batch(
    spec: ResizeSpec, pictures: torch.Tensor, method: ResizeMethod | None = None
) -> torch.Tensor:
    """Resize pictures where they are.

    Parameters
    ----------
    pictures : (n, h, w, 3) uint8, on any device.
    method : ``matrix`` on CUDA and ``gather`` elsewhere, unless given.

    Returns
    -------
    (n, side, side, 3) uint8 on the same device: the bytes that Pillow gives.

    Raises
    ------
    DataError : not uint8, or not (n, h, w, 3).
    """
    if pictures.dtype != torch.uint8 or pictures.ndim != 4 or pictures.shape[3] != 3:
        raise DataError(f"a batch must be uint8 (n, h, w, 3), not {pictures.dtype} {tuple(pictures.shape)}")
    height, width = pictures.shape[1:3]
    chosen = method or ("matrix" if pictures.is_cuda else "gather")
    steps = [_on_device(step, pictures.device, chosen) for step in plan(spec, height, width)]
    block = max(1, BLOCK_BYTES // (height * width * 3 * 8))
    out = [reduce(_step, steps, part.permute(0, 3, 1, 2)) for part in pictures.split(block)]
    return torch.cat(out).permute(0, 2, 3, 1).contiguous()


class _Step(NamedTuple):
    used: slice
    kept: slice
    rows: Pass | None
    columns: Pass | None


@lru_cache(maxsize=64)
def _on_device(step: Step, device: torch.device, method: ResizeMethod) -> _Step:
    """Return a step with its weights on the device."""
    used, kept, rows, columns = passes(step)
    make = METHODS[method]
    return _Step(
        used,
        kept,
        None if rows is None else make(rows, device),
        None if columns is None else make(columns, device),
    )


def _step(planes: torch.Tensor, step: _Step) -> torch.Tensor:
    """Take planes (n, 3, h, w) through one step."""
    planes = planes[:, :, step.used]
    planes = step.rows(planes) if step.rows else planes[..., step.kept]
    return step.columns(planes.transpose(2, 3)).transpose(2, 3) if step.columns else planes


def _matrix(along: Windows, device: torch.device) -> Pass:
    dense = np.zeros((along.in_size, len(along.starts)))
    for column, (start, count, weights) in enumerate(
        zip(along.starts, along.counts, along.weights, strict=True)
    ):
        dense[start : start + count, column] = weights[:count]
    matrix = torch.from_numpy(dense / (1 << PRECISION_BITS)).to(device)

    def one_pass(planes: torch.Tensor) -> torch.Tensor:
        sums = planes.to(torch.float64, memory_format=torch.contiguous_format) @ matrix
        return sums.add_(0.5).floor_().clamp_(0, 255).to(torch.uint8)

    return one_pass


def _gather(along: Windows, device: torch.device) -> Pass:
    taps = along.starts + np.arange(along.weights.shape[1])[:, None]
    # Beyond a window the weight is zero and any pixel will do.
    indices = torch.from_numpy(np.minimum(taps, along.in_size - 1)).to(device)
    weights = torch.from_numpy(np.ascontiguousarray(along.weights.T)).to(device)

    def one_pass(planes: torch.Tensor) -> torch.Tensor:
        sums = torch.full((*planes.shape[:3], indices.shape[1]), HALF, dtype=torch.int32, device=device)
        for index, weight in zip(indices, weights, strict=True):
            sums += planes.index_select(3, index).to(torch.int32).mul_(weight)
        return (sums >> PRECISION_BITS).clamp_(0, 255).to(torch.uint8)

    return one_pass


METHODS: Final[dict[str, Callable[[Windows, torch.device], Pass]]] = {"matrix": _matrix, "gather": _gather}
