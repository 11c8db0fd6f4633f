"""Devices, the processes of ``torchrun``, and deterministic kernels."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist

from wordnet_splits.base.errors import SplitsError
from wordnet_splits.base.user_code import user_errors


@dataclass(frozen=True)
class Ranks:
    """The rank of this process among ``world`` processes.

    Attributes
    ----------
    rank : 0..world-1.
    """

    rank: int = 0
    world: int = 1

    @property
    def first(self) -> bool:
        """Whether this is rank 0, which writes all files that ranks do not share."""
        return self.rank == 0

    def of_first(self, value: Any) -> Any:
        """Return the value of rank 0 on every rank."""
        if self.world == 1:
            return value
        values: list[Any] = [None] * self.world
        dist.all_gather_object(values, value if self.first else None)
        return values[0]

    @contextmanager
    def all_ranks(self, step: str) -> Iterator[None]:
        """Run a step on every rank and wait for all; an error on one rank is raised on each.

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
                message = None if failed is None else f"{type(failed).__name__}: {failed}"
                dist.all_gather_object(errors, message)
            except RuntimeError as error:  # gloo and NCCL raise it if a peer has ended
                if failed is None:
                    raise SplitsError(
                        f"{step} ended on another rank, and so on this one",
                        where=f"rank {self.rank}",
                        hint="the same command continues from here",
                    ) from error
            failures = [f"rank {rank}: {text}" for rank, text in enumerate(errors) if text is not None]
            if failed is None and failures:
                raise SplitsError(f"{step} failed on another rank: {failures[0]}")
        if failed is not None:
            raise failed


def current_ranks() -> Ranks:
    """Return the rank of this process, which joins the other ranks if ``torchrun`` started it.

    NCCL where there is a GPU, else gloo. Each rank takes the GPU of its local rank.
    """
    if dist.is_available() and not dist.is_initialized() and int(os.environ.get("WORLD_SIZE", "1")) > 1:
        cuda = torch.cuda.is_available()
        if cuda:
            torch.cuda.set_device(get_device())
        dist.init_process_group("cpu:gloo,cuda:nccl" if cuda else "gloo")
        atexit.register(_leave)
    if dist.is_available() and dist.is_initialized():
        return Ranks(dist.get_rank(), dist.get_world_size())
    return Ranks()


def get_device(name: Any = None) -> torch.device:
    """Return a device by name (``cpu``, ``cuda``, ``cuda:1``); by default this process's GPU, or the CPU.

    Raises
    ------
    DataError : the device is not available.
    """
    if name is None:
        if not torch.cuda.is_available():
            return torch.device("cpu")
        return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
    with user_errors(f"device {str(name)!r} is not available", where="--device", hint="try --device cpu"):
        device = torch.device(name)
        torch.empty(0, device=device)
    return device


@contextmanager
def deterministic_kernels(*, full_float32: bool = False) -> Iterator[None]:
    """Use deterministic kernels inside the block; torch's settings are restored after it.

    Kernels without a deterministic form warn once, and run. Memory is not filled before use, as torch would
    do in this mode: that takes an eighth of the time on a CPU.

    Parameters
    ----------
    full_float32 : whether products of float32 have full precision (no TF32).
    """
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    cudnn, matmul, utils = torch.backends.cudnn, torch.backends.cuda.matmul, torch.utils.deterministic
    enabled = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    flags = cudnn.deterministic, cudnn.benchmark, cudnn.allow_tf32, matmul.allow_tf32
    filled = utils.fill_uninitialized_memory
    try:
        _set_deterministic(True, warn_only=True)
        cudnn.deterministic, cudnn.benchmark, utils.fill_uninitialized_memory = True, False, False
        if full_float32:
            cudnn.allow_tf32 = matmul.allow_tf32 = False
        yield
    finally:
        _set_deterministic(enabled, warn_only=warn_only)
        cudnn.deterministic, cudnn.benchmark, cudnn.allow_tf32, matmul.allow_tf32 = flags
        utils.fill_uninitialized_memory = filled


def _set_deterministic(enabled: bool, *, warn_only: bool) -> None:
    if "torch._dynamo" in sys.modules:  # networks may be compiled; this also configures the compiler
        torch.use_deterministic_algorithms(enabled, warn_only=warn_only)
    else:  # avoids importing the compiler (two seconds and 170 MB)
        torch.set_deterministic_debug_mode((1 if warn_only else 2) if enabled else 0)


def _leave() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()
