"""Identity of a model and its outputs: the key of its weights, and independence of batch and chance."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from wordnet_splits.base.errors import DataError

from ..data.array_checks import nearly_equal
from ..data.arrays import Array, array_of

if TYPE_CHECKING:
    from .model import Model


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
    """Return, and note, whether logits (n, K) of a few images differ from those in a larger batch.

    Parameters
    ----------
    x : images for a second forward pass, which shows whether the difference is due to chance.
    """
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
