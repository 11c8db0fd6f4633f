"""Benchmarks as torch datasets. This package imports its own modules relatively, and torch on request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .dataset import UnknownDetectionSet
    from .harness import evaluate, evaluate_arrays

__all__ = ["UnknownDetectionSet", "evaluate", "evaluate_arrays"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name.startswith("evaluate"):
        from . import harness

        return getattr(harness, name)
    from wordnet_splits.lazy import need

    need("torch", "torch", where=f"loaders.{name}")
    from . import dataset

    return getattr(dataset, name)
