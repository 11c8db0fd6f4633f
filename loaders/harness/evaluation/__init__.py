"""Any models and detectors on any benchmark: results, their tables, and whether they recompute."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wordnet_splits.base.lazy import names_of

if TYPE_CHECKING:
    from .check import CheckedResults, check_results
    from .of_arrays import evaluate_arrays
    from .of_models import evaluate
    from .recompute import remeasure
    from .results import Results

__all__ = ["CheckedResults", "Results", "check_results", "evaluate", "evaluate_arrays", "remeasure"]

__getattr__ = names_of(
    __name__,
    {
        "check": ("CheckedResults", "check_results"),
        "of_arrays": ("evaluate_arrays",),
        "of_models": ("evaluate",),
        "recompute": ("remeasure",),
        "results": ("Results",),
    },
)
