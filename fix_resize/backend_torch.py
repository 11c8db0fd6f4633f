"""The resizer on a GPU: Pillow's integer arithmetic on batches of tensors, bit for bit.

The only module of this package that imports torch, and imported on request. Two methods give equal bytes:

``matrix``
    A pass is a product with the dense float64 matrix of its weights. Every partial sum is a multiple of
    2**-22 below 2**9, so 31 of the 53 bits of a float64 represent it exactly, in any order of summation and
    with or without fused multiplication (the 24 bits of float32 would not suffice). The arithmetic is 13
    MFLOP per image from 256 to 32, so memory traffic bounds it on a GPU with fast float64.
``gather``
    A pass adds up its windows tap by tap in int32, as Pillow does: for devices without float64 (MPS), and for
    CPUs, where the zeros of a dense matrix cost more than they save.
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
"""Bytes of widened pixels at a time, so that a large batch does not exhaust the device."""


def default_device() -> torch.device:
    """Return the first CUDA device, else the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def apply_batch(spec: ResizeSpec, images: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Resize (n, h, w, 3) images of equal size; returns (n, side, side, 3)."""
    batch = torch.from_numpy(np.ascontiguousarray(images)).to(default_device())
    out: npt.NDArray[np.uint8] = resize_batch(spec, batch).cpu().numpy()
    return out


def resize_batch(spec: ResizeSpec, images: torch.Tensor, method: ResizeMethod | None = None) -> torch.Tensor:
    """Resize images on their device.

    Parameters
    ----------
    images : (n, h, w, 3) uint8, on any device.
    method : by default ``matrix`` on CUDA and ``gather`` elsewhere.

    Returns
    -------
    (n, side, side, 3) uint8 on the same device, equal to Pillow's output.
    """
    if images.dtype != torch.uint8 or images.ndim != 4 or images.shape[3] != 3:
        raise DataError(f"a batch must be uint8 (n, h, w, 3), not {images.dtype} {tuple(images.shape)}")
    height, width = images.shape[1:3]
    method = method or ("matrix" if images.is_cuda else "gather")
    steps = [_on_device(step, images.device, method) for step in plan(spec, height, width)]
    block = max(1, BLOCK_BYTES // (height * width * 3 * 8))
    out = [reduce(_resize_planes, steps, part.permute(0, 3, 1, 2)) for part in images.split(block)]
    return torch.cat(out).permute(0, 2, 3, 1).contiguous()


class _DeviceStep(NamedTuple):
    input_rows: slice
    input_columns: slice
    horizontal: Pass | None
    vertical: Pass | None


@lru_cache(maxsize=64)
def _on_device(step: Step, device: torch.device, method: ResizeMethod) -> _DeviceStep:
    """Return a step with its weights on the device."""
    input_rows, input_columns, *windows = passes(step)
    make_pass = METHODS[method]
    horizontal, vertical = (None if axis is None else make_pass(axis, device) for axis in windows)
    return _DeviceStep(input_rows, input_columns, horizontal, vertical)


def _resize_planes(planes: torch.Tensor, step: _DeviceStep) -> torch.Tensor:
    """Resize planes (n, 3, h, w) by one step."""
    planes = planes[:, :, step.input_rows]
    planes = step.horizontal(planes) if step.horizontal else planes[..., step.input_columns]
    return step.vertical(planes.transpose(2, 3)).transpose(2, 3) if step.vertical else planes


def _matrix_pass(windows: Windows, device: torch.device) -> Pass:
    dense = np.zeros((windows.in_size, len(windows.starts)))
    for column, (start, count, weights) in enumerate(
        zip(windows.starts, windows.counts, windows.weights, strict=True)
    ):
        dense[start : start + count, column] = weights[:count]
    matrix = torch.from_numpy(dense / (1 << PRECISION_BITS)).to(device)

    def resize_pass(planes: torch.Tensor) -> torch.Tensor:
        sums = planes.to(torch.float64, memory_format=torch.contiguous_format) @ matrix
        return sums.add_(0.5).floor_().clamp_(0, 255).to(torch.uint8)

    return resize_pass


def _gather_pass(windows: Windows, device: torch.device) -> Pass:
    taps = windows.starts + np.arange(windows.weights.shape[1])[:, None]
    # beyond a window the weight is zero, so the pixel does not matter
    indices = torch.from_numpy(np.minimum(taps, windows.in_size - 1)).to(device)
    weights = torch.from_numpy(np.ascontiguousarray(windows.weights.T)).to(device)

    def resize_pass(planes: torch.Tensor) -> torch.Tensor:
        sums = torch.full((*planes.shape[:3], indices.shape[1]), HALF, dtype=torch.int32, device=device)
        for index, weight in zip(indices, weights, strict=True):
            sums += planes.index_select(3, index).to(torch.int32).mul_(weight)
        return (sums >> PRECISION_BITS).clamp_(0, 255).to(torch.uint8)

    return resize_pass


METHODS: Final[dict[ResizeMethod, Callable[[Windows, torch.device], Pass]]] = {
    "matrix": _matrix_pass,
    "gather": _gather_pass,
}
