"""Correlation of accuracy with OOD detection over networks, as asked by Abdelzad et al., section 4.7."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from scipy.stats import spearmanr

from wordnet_splits.base.errors import DataError
from wordnet_splits.metrics import bootstrap_indices, interval

from ..results.metric_rows import POOLED
from .entries import BenchmarkResults
from .ranking import Scope, require_same_images

MIN_NETWORKS: Final = 3
MIN_UNITS: Final = 5
"""Least number of models (or runs of a single model) whose bootstrap gives an interval."""


class NetworkPoint(NamedTuple):
    """A network: its model, and accuracy and metric as fractions."""

    model: str
    accuracy: float
    value: float


class AccuracyCorrelation(NamedTuple):
    """A detector's rank correlation (Spearman's rho) of accuracy and a metric over networks.

    ``rho`` is NaN if all accuracies or all values are equal. ``lo`` and ``hi`` are the percentile interval of
    a bootstrap over models, each drawn with all of its runs, or over the runs of a single model; None with
    fewer than `MIN_UNITS` of these, or without replicates. ``on`` is a set, or near or far (means over sets).
    """

    detector: str
    on: str
    rho: float
    lo: float | None
    hi: float | None
    points: tuple[NetworkPoint, ...]


def accuracy_correlations(
    draw: BenchmarkResults, metric: str, scopes: Sequence[Scope], *, replicates: int, seed: int = 0
) -> list[AccuracyCorrelation]:
    """Correlate each detector's metric with the accuracy of its predictions, over all networks of a draw.

    The accuracy is the network's, or that of the detector where it changes the predictions. A run without an
    accuracy or a value has no point. Intervals have level 95%.

    Raises
    ------
    DataError : no detector has `MIN_NETWORKS` networks with both values, or the results are on different
        images.
    """
    points: dict[tuple[str, str], list[NetworkPoint]] = {}
    for scope in scopes:
        require_same_images(draw, metric, scope)
        for entry in draw.entries:
            for evaluation, number in entry.runs:
                keys = ("accuracy", POOLED, "id"), (metric, scope.group, scope.role)
                pair = [evaluation.values.get((entry.detector, number, *key), [np.nan])[0] for key in keys]
                if not np.isnan(pair).any():
                    of_detector = points.setdefault((entry.detector, scope.name), [])
                    of_detector.append(NetworkPoint(entry.model, *pair))
    found = {key: networks for key, networks in points.items() if len(networks) >= MIN_NETWORKS}
    if not found:
        message = f"a correlation needs {MIN_NETWORKS} networks with accuracy and {metric}"
        raise DataError(message, where=draw.benchmark, hint="give results of several models or seeds")
    return [_correlation(*key, tuple(networks), replicates, seed) for key, networks in found.items()]


def _correlation(
    detector: str, on: str, points: tuple[NetworkPoint, ...], replicates: int, seed: int
) -> AccuracyCorrelation:
    rho, models = _spearman(points), dict.fromkeys(point.model for point in points)
    units = [[p for p in points if p.model == model] for model in models]
    if len(units) == 1:
        units = [[point] for point in points]
    if len(units) < MIN_UNITS or not replicates or np.isnan(rho):
        return AccuracyCorrelation(detector, on, rho, None, None, points)
    drawn = [
        _spearman([point for n in bootstrap_indices(seed, "models", r, len(units)) for point in units[n]])
        for r in range(replicates)
    ]
    _, lo, hi = interval(rho, np.array(drawn))
    return AccuracyCorrelation(detector, on, rho, lo, hi, points)


def _spearman(points: Sequence[NetworkPoint]) -> float:
    _, accuracy, value = zip(*points, strict=True)
    constant = len({*accuracy}) < 2 or len({*value}) < 2
    return float("nan") if constant else float(spearmanr(accuracy, value).statistic)
