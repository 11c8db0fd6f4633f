"""The processes of one ``torchrun``, or the only process."""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist

from wordnet_splits.base.errors import SplitsError

from ..plugins import user_errors


@dataclass(frozen=True)
class Ranks:
    """This process's place among ``world`` equal ones.

    Attributes
    ----------
    rank : 0..world-1.
    """

    rank: int = 0
    world: int = 1

    @property
    def first(self) -> bool:
        """Whether this is rank 0, which writes what is not shared out."""
        return self.rank == 0

    @contextmanager
    def together(self, what: str) -> Iterator[None]:
        """Run a step on every rank and wait for all; an error on one is raised on each: none hangs.

        Raises
        ------
        SplitsError : the step failed on another rank, or that rank has ended (Ctrl-C, out of memory).
        """
        failed: BaseException | None = None
        try:
            yield
        except Exception as error:
            failed = error
        if self.world > 1:
            errors: list[Any] = [None] * self.world
            try:
                own = None if failed is None else f"{type(failed).__name__}: {failed}"
                dist.all_gather_object(errors, own)
            except RuntimeError as error:  # gloo's and NCCL's word for a peer that is gone
                if failed is None:
                    raise SplitsError(
                        f"{what} ended on another rank, and so on this one",
                        where=f"rank {self.rank}",
                        hint="the same command continues from here",
                    ) from error
            elsewhere = [f"rank {rank}: {text}" for rank, text in enumerate(errors) if text is not None]
            if failed is None and elsewhere:
                raise SplitsError(f"{what} failed on another rank: {elsewhere[0]}")
        if failed is not None:
            raise failed


def current_ranks() -> Ranks:
    """Return this process's place; joins the processes of ``torchrun`` where it was started by that.

    NCCL where there is a GPU, else gloo. Each rank takes the GPU of its local rank.
    """
    if dist.is_available() and not dist.is_initialized() and int(os.environ.get("WORLD_SIZE", "1")) > 1:
        cuda = torch.cuda.is_available()
        if cuda:
            torch.cuda.set_device(choose_device())
        dist.init_process_group("cpu:gloo,cuda:nccl" if cuda else "gloo")
        atexit.register(_leave)
    if dist.is_available() and dist.is_initialized():
        return Ranks(dist.get_rank(), dist.get_world_size())
    return Ranks()


def choose_device(name: Any = None) -> torch.device:
    """Return the device of a name (``cpu``, ``cuda``, ``cuda:1``); by default this process's GPU, or the CPU.

    Raises
    ------
    DataError : no such device here.
    """
    if name is None:
        if not torch.cuda.is_available():
            return torch.device("cpu")
        return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
    with user_errors(f"device {str(name)!r} is not available", where="--device", hint="try --device cpu"):
        device = torch.device(name)
        torch.empty(0, device=device)
    return device


def _leave() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()
