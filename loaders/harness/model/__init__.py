"""A user's model: where it comes from, its head, its classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wordnet_splits.lazy import names_of

if TYPE_CHECKING:
    from .model import Model, load_model

__all__ = ["Model", "load_model"]

__getattr__ = names_of(__name__, {"model": ("Model", "load_model")})
