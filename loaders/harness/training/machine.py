"""The machine of a run: its device and precision, and the processes of ``torchrun``.

Each process takes a share of every batch, and gradients are averaged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
import torch.distributed as dist
from torch import Tensor, nn

from wordnet_splits.base.errors import DataError, SplitsError, unknown

from ..models.reproducibility import Ranks, current_ranks, deterministic_kernels, get_device

Precision = Literal["float32", "bf16", "fp16"]


@dataclass(frozen=True)
class Machine:
    """Device and precision of a run; equal machines give equal bytes."""

    device: Any
    precision: Precision
    ranks: Ranks = field(default_factory=Ranks)

    def as_dict(self) -> dict[str, Any]:
        """Return the record for the checkpoint."""
        cuda = self.device.type == "cuda"
        processes = {"ranks": self.ranks.world} if self.ranks.world > 1 else {}
        return {
            **processes,
            "device": torch.cuda.get_device_name(self.device) if cuda else "cpu",
            "precision": self.precision,
            "threads": None if cuda else torch.get_num_threads(),
            "torch": str(torch.__version__),
        }


@contextmanager
def reproducible(device: Any) -> Iterator[None]:
    """Use deterministic kernels, and restore torch's settings and random state afterwards."""
    with (
        torch.random.fork_rng(devices=[device] if device.type == "cuda" else []),
        deterministic_kernels(),
    ):
        yield


def choose_machine(device: str | None = None, precision: str = "auto") -> Machine:
    """Return the device (by default CUDA, if available) and the precision.

    ``auto`` is float32 on the CPU; on CUDA it is bf16 if the GPU supports bf16, else fp16.
    """
    ranks, torch_device = current_ranks(), get_device(device)
    cuda = torch_device.type == "cuda"
    precisions: dict[str, Precision] = {"float32": "float32", "bf16": "bf16", "fp16": "fp16"}
    precisions["auto"] = ("bf16" if torch.cuda.is_bf16_supported() else "fp16") if cuda else "float32"
    if precision not in precisions:
        raise unknown("precision", precision, precisions)
    if precision == "fp16" and not cuda:
        raise DataError("fp16 trains on CUDA only", hint="on a CPU take --precision bf16 or float32")
    return Machine(torch_device, precisions[precision], ranks)


def share_of(rows: Tensor, n_known: int, ranks: Ranks) -> tuple[Tensor, float]:
    """Return this rank's share of the ID images and of the outliers of a batch, and the weight of their mean.

    The mean over the ranks of weight x mean is the mean over the batch. For a part of the loss that uses only
    ID images or only outliers, this is approximate if that kind is not divided in the batch's proportions. If
    a kind has fewer images than there are ranks, some images are repeated.
    """
    if ranks.world == 1:
        return rows, 1.0
    kinds = [kind for kind in (rows[rows < n_known], rows[rows >= n_known]) if len(kind)]
    sizes = [max(len(kind), ranks.world) for kind in kinds]
    share = torch.cat(
        [
            kind[torch.arange(ranks.rank, size, ranks.world) % len(kind)]
            for kind, size in zip(kinds, sizes, strict=True)
        ]
    )
    return share, len(share) * ranks.world / sum(sizes)


def average_gradients(parameters: Sequence[nn.Parameter], ranks: Ranks) -> None:
    """Replace gradients by their mean over the ranks; parameters without one on any rank stay without."""
    if ranks.world > 1:
        present = torch.tensor([parameter.grad is not None for parameter in parameters], dtype=torch.int32)
        for parameter, count in zip(parameters, summed(present, ranks).tolist(), strict=True):
            if count == 0:
                continue
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            summed(parameter.grad, ranks).div_(ranks.world)


def average_buffers(buffers: Iterable[Tensor], ranks: Ranks) -> None:
    """Replace float buffers by their mean over the ranks, and all other buffers by rank 0's."""
    if ranks.world > 1:
        for buffer in buffers:
            if buffer.is_floating_point():
                summed(buffer, ranks).div_(ranks.world)
            else:
                with _peers(ranks):
                    dist.broadcast(buffer, 0)


def summed(total: Tensor, ranks: Ranks) -> Tensor:
    """Return a tensor, changed in place to its sum over the ranks."""
    if ranks.world > 1:
        with _peers(ranks):
            dist.all_reduce(total)
    return total


def gathered(value: Any, ranks: Ranks) -> list[Any]:
    """Return the values of all ranks, in their order."""
    if ranks.world == 1:
        return [value]
    values: list[Any] = [None] * ranks.world
    with _peers(ranks):
        dist.all_gather_object(values, value)
    return values


@contextmanager
def _peers(ranks: Ranks) -> Iterator[None]:
    """Raise SplitsError if another rank has ended."""
    try:
        yield
    except RuntimeError as error:  # raised by gloo and NCCL where a peer has ended
        raise SplitsError(
            "training ended on another rank",
            where=f"rank {ranks.rank}",
            hint="the same command continues from here",
        ) from error
