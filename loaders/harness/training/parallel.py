"""Several processes of ``torchrun``: each takes a share of every batch, and gradients are averaged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from wordnet_splits.base.errors import SplitsError

from ..models.devices import Ranks


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
            "training ended on another rank, and so on this one",
            where=f"rank {ranks.rank}",
            hint="the same command continues from here",
        ) from error
