"""Reproducible outputs: devices, ranks, deterministic kernels, keys of models, independence of the batch."""

from __future__ import annotations

import atexit
import hashlib
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import Tensor

from wordnet_splits.base.errors import DataError, SplitsError
from wordnet_splits.base.untrusted import user_errors

from ..data.array_checks import nearly_equal
from ..data.arrays import Array, array_of

if TYPE_CHECKING:
    from .model import Model


@dataclass(frozen=True)
class Ranks:
    """The rank of this process, 0..world-1, among ``world`` processes."""

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
    """Return a device by name (``cpu``, ``cuda``, ``cuda:1``); by default this process's GPU, or the CPU."""
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
    """Use deterministic kernels inside the block, and no TF32 with ``full_float32``.

    Kernels without a deterministic form warn once, and run. Memory is not filled before use, as torch would
    do in this mode: that takes an eighth of the time on a CPU.
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


def model_key(tensors: Mapping[str, Any], architecture: str) -> str:
    """Return the key of a model: every state-dict tensor (name, type, shape, bytes) and the architecture.

    Parameters
    ----------
    tensors : the state dict, torch tensors on any device; the order of names does not matter.
    architecture : how the tensors are connected, e.g. ``repr(module)``: it includes parts without tensors
        (strides, activations, dropout), so that different networks of equal weights do not collide.
    """
    digest = hashlib.sha256(architecture.encode())
    for name in sorted(tensors):
        digest.update(f"\x1e{name}\x1f".encode())
        for value in _parts(tensors[name]):
            if not isinstance(value, torch.Tensor):  # extra state of a module
                digest.update(repr(value).encode())
                continue
            digest.update(f"{value.dtype}\x1f{tuple(value.shape)}\x1f".encode())
            plain = value.dequantize() if value.is_quantized else value
            flat = plain.detach().cpu().contiguous().reshape(-1)
            digest.update(memoryview(flat.view(torch.uint8).numpy()))
    return digest.hexdigest()


def content_stamp(tensors: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Return a stamp of the floating tensors of a state dict; it costs a tenth of a key.

    Torch counts changes of a tensor in place, unless they are made through ``.data``, which change the sum.
    """
    stamps: list[tuple[Any, ...]] = []
    for name, value in tensors.items():
        if isinstance(value, torch.Tensor) and value.is_floating_point():
            wide = value.detach() if value.element_size() >= 4 else value.detach().float()
            version = None if value.is_inference() else value._version
            stamps.append((name, value.data_ptr(), tuple(value.shape), version, repr(float(wide.sum()))))
    return stamps


def is_quantised(value: Any) -> bool:
    """Return whether a value of a state dict holds weights of 8 bits or fewer."""
    small = (torch.int8, torch.float8_e4m3fn, torch.float8_e5m2)
    tensors = (part for part in _parts(value) if isinstance(part, torch.Tensor))
    return any(part.is_quantized or part.dtype in small for part in tensors)


def _parts(value: Any) -> Iterator[Any]:
    """Yield a value of a state dict, or the parts of a tuple: the packed weights of a quantised layer."""
    if isinstance(value, tuple):
        for part in value:
            yield from _parts(part)
    else:
        yield value


BATCH_ERROR = {torch.float32: 1e-3, torch.float64: 1e-3}
HALF_ERROR = 3e-2
"""Largest difference of an image's logits between batches, relative to the greatest; in half precision."""
BATCH_STATISTICS = (
    "its logits for an image depend on the other images of the batch, or on chance (BatchNorm without "
    "running statistics?): these figures hold for this batch size and order only"
)
RANDOM = (
    "it is not deterministic: two forward passes of the same images give different outputs (dropout left "
    "on?), so another run gives different figures"
)
NOT_COMPARED = (
    "it accepts batches of one size only, so dependence of its logits on the other images was not checked"
)
OTHER_BATCH = 8
"""Largest size of the second batch that shows whether logits depend on the batch."""


def logits_in_other_batch(model: Model, x: Tensor) -> Tensor | None:
    """Return logits of the first images of a batch, computed in a batch of another size.

    None, and a note, where the model accepts no other size (an exported program). For one or two images the
    other batch has one more, a darker copy of the first, which changes batch statistics.
    """
    batch = x[: min(OTHER_BATCH, max(2, len(x) // 2))] if len(x) > 2 else torch.cat([x, x[:1] / 2])
    try:
        return model.prepare(batch)[: len(x)]
    except DataError:
        model.prepare(x)
        model.note(NOT_COMPARED)
        return None


def depends_on_batch(model: Model, logits: Array, batch_logits: Array, x: Tensor | None = None) -> bool:
    """Return, and note, whether logits (n, K) of a few images differ from those in a larger batch."""
    if not _alike(model, logits, batch_logits):
        model.note(BATCH_STATISTICS if x is None or is_deterministic(model, x) else RANDOM)
    return not {BATCH_STATISTICS, RANDOM}.isdisjoint(model.notes)


def is_deterministic(model: Model, x: Tensor) -> bool:
    """Return whether two forward passes of the same images give the same features and logits."""
    with torch.no_grad():
        first, second = (
            [array_of(output) for output in model.forward(x) if output is not None] for _ in range(2)
        )
    return all(_alike(model, *pair) for pair in zip(first, second, strict=True))


def _alike(model: Model, values: Array, others: Array) -> bool:
    return nearly_equal(values, others, BATCH_ERROR.get(model.dtype, HALF_ERROR))
