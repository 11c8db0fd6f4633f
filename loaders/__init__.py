"""Benchmarks as torch datasets, and `evaluate`; names are imported when first used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .dataset import UnknownDetectionSet

EVALUATION = ("evaluate", "evaluate_arrays")

__all__ = ["UnknownDetectionSet", "evaluate", "evaluate_arrays"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from wordnet_splits.base.lazy import names_of, need

    if name in EVALUATION:
        return names_of(__name__, {"harness": EVALUATION})(name)
    need("torch", "torch", where=f"loaders.{name}")
    from . import dataset

    return getattr(dataset, name)
