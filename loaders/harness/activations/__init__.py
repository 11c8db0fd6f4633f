"""Features and logits of one model, stored once an image."""

from __future__ import annotations

from .activations import Activations, Store, choose_transform, extract

__all__ = ["Activations", "Store", "choose_transform", "extract"]
