"""Results side by side: ranks, significance, robustness, improvement, and whether another draw agrees."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wordnet_splits.lazy import names_of

if TYPE_CHECKING:
    from .run import Comparison, compare

__all__ = ["Comparison", "compare"]

__getattr__ = names_of(__name__, {"run": ("Comparison", "compare")})
