"""Measure what vision models do not know: `evaluate` runs models on a benchmark, detector by detector.

>>> from loaders.harness import list_detectors
>>> list_detectors("max*")
('mcp', 'mls')

Names are imported when first used; those that need torch say so where it is missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wordnet_splits.base.lazy import names_of

if TYPE_CHECKING:
    from .comparison import compare, nearness
    from .detectors import list_detectors, register
    from .evaluation import Results, check_results, evaluate, evaluate_arrays, remeasure
    from .leaderboard import submit
    from .model import Model, load_model
    from .plots import plot
    from .reporting import report
    from .training import train

__all__ = [
    "Model",
    "Results",
    "check_results",
    "compare",
    "evaluate",
    "evaluate_arrays",
    "list_detectors",
    "load_model",
    "nearness",
    "plot",
    "register",
    "remeasure",
    "report",
    "submit",
    "train",
]

__getattr__ = names_of(
    __name__,
    {
        "comparison": ("compare", "nearness"),
        "detectors": ("list_detectors", "register"),
        "evaluation": ("Results", "check_results", "evaluate", "evaluate_arrays", "remeasure"),
        "leaderboard": ("submit",),
        "model": ("Model", "load_model"),
        "plots": ("plot",),
        "reporting": ("report",),
        "training": ("train",),
    },
)
