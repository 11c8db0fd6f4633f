"""A user's model: where it comes from, its head, its classes."""

from __future__ import annotations

from .model import Model, load_model

__all__ = ["Model", "load_model"]
