"""Model sources: one file per kind, one registry."""

from __future__ import annotations

from .registry import SOURCES, LoadedModel, ModelRequest

__all__ = ["SOURCES", "LoadedModel", "ModelRequest"]
