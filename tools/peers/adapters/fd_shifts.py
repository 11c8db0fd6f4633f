"""``fd_shifts.analysis.metrics``: failure detection on confidences and whether each prediction is correct."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from types import ModuleType
from typing import Any

import numpy as np

from tools.peers.statements import Outside, adapted
from wordnet_splits import metrics
from wordnet_splits.base.errors import SplitsError

PER_MILLE = 1000
"""fd-shifts prints areas under risk and coverage times this."""


@dataclass
class StatsCache:
    """The arrays that fd-shifts' functions take."""

    confids: Any
    correct: Any
    n_bins: int
    labels: Any = None


def _of(function: Callable[..., float], scale: float = 1) -> Callable[[StatsCache], float]:
    @wraps(function)
    def computed(cache: StatsCache) -> float:
        try:
            return scale * function(cache.confids, correct=cache.correct)
        except SplitsError:
            return np.nan  # as fd-shifts, which logs scikit-learn's errors

    return adapted(computed)


def _failures(function: Callable[..., float]) -> Callable[..., float]:
    @wraps(function)
    def computed(confidence: Any, correct: Any) -> float:
        return function(metrics.rank_counts(confidence, correct=correct).failures)

    return computed


ADAPTED: dict[str, Any] = {
    "failauc": _of(metrics.auroc_failure),
    "fpr_at_95_tpr": _of(_failures(metrics.fpr95_id_positive)),
    "failap_suc": _of(_failures(metrics.aupr_in)),
    "failap_err": _of(_failures(metrics.aupr_out)),
    "aurc": _of(metrics.aurc, PER_MILLE),
    "eaurc": _of(metrics.e_aurc_geifman, PER_MILLE),
}
OUTSIDE = {
    "baurc": "the class-balanced AURC",
    "maximum_calibration_error": "calibration of confidences",
    "expected_calibration_error": "calibration of confidences",
    "failnll": "likelihood of confidences",
}


def install() -> None:
    """Offer ``fd_shifts.analysis.metrics``; the package itself need not be installed."""
    package, analysis, module = (
        ModuleType(name) for name in ("fd_shifts", "fd_shifts.analysis", "fd_shifts.analysis.metrics")
    )
    vars(module).update(ADAPTED, StatsCache=StatsCache)
    vars(module).update({name: Outside(reason) for name, reason in OUTSIDE.items()})
    analysis.metrics, package.analysis = module, analysis  # type: ignore[attr-defined]
    for each in (package, analysis, module):
        sys.modules[each.__name__] = each
