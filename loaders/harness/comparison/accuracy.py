"""Correlation of accuracy with OOD detection over networks, as asked by Abdelzad et al., section 4.7."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.stats import spearmanr

from wordnet_splits.base.errors import DataError
from wordnet_splits.metrics import bootstrap_indices, interval

from ..data.arrays import Array
from ..results.metric_rows import POOLED
from .entries import BenchmarkResults, Entry
from .ranking import Scope, require_same_images

MIN_NETWORKS: Final = 3
MIN_UNITS: Final = 5
"""Least number of models (or runs of a single model) whose bootstrap gives an interval."""


@dataclass(frozen=True)
class NetworkPoint:
    """A network: its model, and accuracy and metric as fractions."""

    model: str
    accuracy: float
    value: float


@dataclass(frozen=True)
class AccuracyCorrelation:
    """A detector's correlation of accuracy and a metric over networks.

    Attributes
    ----------
    on : the set, or ``near`` or ``far`` for means over sets.
    rho : Spearman's rank correlation, range [-1, 1]; NaN if all accuracies or all values are equal.
    lo, hi : percentile interval of the bootstrap over models, each drawn with all of its runs (over runs if
        there is a single model); None with fewer than `MIN_UNITS` of these, or without replicates.
    points : the networks.
    """

    detector: str
    metric: str
    on: str
    rho: float
    lo: float | None
    hi: float | None
    points: tuple[NetworkPoint, ...]


def accuracy_correlations(
    draw: BenchmarkResults,
    metric: str,
    scopes: Sequence[Scope],
    *,
    replicates: int,
    seed: int = 0,
    level: float = 0.95,
) -> list[AccuracyCorrelation]:
    """Correlate each detector's metric with the accuracy of its predictions, over all networks of a draw.

    The accuracy is the network's, or that of the detector where it changes the predictions. A run without an
    accuracy or a value has no point.

    Raises
    ------
    DataError : no detector has `MIN_NETWORKS` networks with both values, or the results are on different
        images.
    """
    for scope in scopes:
        require_same_images(draw, metric, scope)
    by_detector: dict[str, list[Entry]] = {}
    for entry in draw.entries:
        by_detector.setdefault(entry.detector, []).append(entry)
    found = []
    for detector, entries in by_detector.items():
        for scope in scopes:
            points = [point for entry in entries for point in _points(entry, metric, scope)]
            if len(points) >= MIN_NETWORKS:
                rho = _spearman(points)
                lo, hi = _bounds(points, rho, replicates=replicates, seed=seed, level=level)
                found.append(AccuracyCorrelation(detector, metric, scope.name, rho, lo, hi, tuple(points)))
    if not found:
        raise DataError(
            f"a correlation needs {MIN_NETWORKS} networks with accuracy and {metric}",
            where=draw.benchmark,
            hint="give results of several models or seeds",
        )
    return found


def _points(entry: Entry, metric: str, scope: Scope) -> Iterator[NetworkPoint]:
    for evaluation, number in entry.runs:
        accuracy, value = (
            evaluation.values.get((entry.detector, number, *key), [np.nan])[0]
            for key in (("accuracy", POOLED, "id"), (metric, scope.group, scope.role))
        )
        if not np.isnan([accuracy, value]).any():
            yield NetworkPoint(entry.model, accuracy, value)


def _spearman(points: Sequence[NetworkPoint]) -> float:
    accuracy, value = ([getattr(p, name) for p in points] for name in ("accuracy", "value"))
    if len({*accuracy}) < 2 or len({*value}) < 2:
        return float("nan")
    return float(spearmanr(accuracy, value).statistic)


def _bounds(
    points: Sequence[NetworkPoint], rho: float, *, replicates: int, seed: int, level: float
) -> tuple[float | None, float | None]:
    models = dict.fromkeys(point.model for point in points)
    units = [[p for p in points if p.model == model] for model in models]
    if len(units) == 1:
        units = [[point] for point in points]
    if len(units) < MIN_UNITS or not replicates or np.isnan(rho):
        return None, None
    drawn: Array = np.array(
        [
            _spearman([point for n in bootstrap_indices(seed, "models", r, len(units)) for point in units[n]])
            for r in range(replicates)
        ]
    )
    _, lo, hi = interval(rho, drawn, level=level)
    return lo, hi
