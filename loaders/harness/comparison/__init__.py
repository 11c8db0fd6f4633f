"""Results side by side: ranks, significance, robustness, improvement, and whether another draw agrees."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wordnet_splits.base.lazy import names_of

if TYPE_CHECKING:
    from .class_nearness import Nearness, nearness
    from .side_by_side import Comparison, compare

__all__ = ["Comparison", "Nearness", "compare", "nearness"]

__getattr__ = names_of(
    __name__, {"class_nearness": ("Nearness", "nearness"), "side_by_side": ("Comparison", "compare")}
)
