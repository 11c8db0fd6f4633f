"""A user's model: where it comes from, its head, its classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wordnet_splits.base.lazy import names_of

if TYPE_CHECKING:
    from .loading import load_model, open_models
    from .model import Model

__all__ = ["Model", "load_model", "open_models"]

__getattr__ = names_of(__name__, {"loading": ("load_model", "open_models"), "model": ("Model",)})
