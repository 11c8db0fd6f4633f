"""Features and logits of one model, stored once per image."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wordnet_splits.base.lazy import names_of

if TYPE_CHECKING:
    from .activations import Activations, choose_transform, extract
    from .store import Store

__all__ = ["Activations", "Store", "choose_transform", "extract"]

__getattr__ = names_of(
    __name__, {"activations": ("Activations", "choose_transform", "extract"), "store": ("Store",)}
)
