"""Benchmarks as torch datasets, and `evaluate`; names are imported when first used."""

from __future__ import annotations

from typing import Any

from wordnet_splits.base.lazy import attach_stub, need

_find, __dir__, __all__ = attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    if name == "UnknownDetectionSet":
        need("torch", "torch", where=f"loaders.{name}")
    return _find(name)
