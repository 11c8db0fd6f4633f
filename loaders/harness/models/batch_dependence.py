"""Check whether a model's logits for an image depend on the other images of its batch, or on chance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from wordnet_splits.base.errors import DataError

from ..array_checks import nearly_equal
from ..arrays import Array, array_of

if TYPE_CHECKING:
    from .model import Model

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
