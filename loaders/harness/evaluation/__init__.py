"""Any models and detectors on any benchmark: results, their tables, and whether they recompute."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wordnet_splits.base.lazy import names_of

if TYPE_CHECKING:
    from .array_evaluation import evaluate_arrays
    from .check import CheckedResults, check_results
    from .model_evaluation import evaluate
    from .recompute import remeasure
    from .results import Results

__all__ = ["CheckedResults", "Results", "check_results", "evaluate", "evaluate_arrays", "remeasure"]

__getattr__ = names_of(
    __name__,
    {
        "check": ("CheckedResults", "check_results"),
        "array_evaluation": ("evaluate_arrays",),
        "model_evaluation": ("evaluate",),
        "recompute": ("remeasure",),
        "results": ("Results",),
    },
)
