"""Abdelzad's robustness score: a metric's mean and variance over training runs, mixed over components.

Components are optimizers for a fixed detector, or OOD sets for a fixed optimizer; each has several runs
(initialisations). **Metrics are in percent** (0 to 100), as in the paper: because of eps in the weights the
score depends on the unit.

Reference
---------
Abdelzad, Czarnecki and Salay, The Effect of Optimization Methods on the Robustness of Out-of-Distribution
Detection Approaches, 2020, eq. 1-9.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import numpy as np

from wordnet_splits.base.errors import DataError, unknown
from wordnet_splits.base.untrusted import import_object, user_errors
from wordnet_splits.metrics.counts import Array, Scores, to_numpy

EPSILON = 1e-3

# Eq. 5 prints c / sum c. The published tables 3, 7 and 14 come out only with eps in this denominator too
# (table 3: 8.634; as printed 8.637), which leaves the weights summing to slightly less than 1.
WEIGHTS: dict[str, Callable[[Array, float], Array]] = {
    "tables": lambda confidence, eps: confidence / (confidence.sum() + eps),
    "eq5": lambda confidence, eps: confidence / confidence.sum(),
}


Formula = Callable[[float, float, bool], float]
"""(mean, variance, higher_is_better) of a metric in percent -> score, of which lower is more robust."""


def coefficient_of_variation(mean: float, variance: float, higher_is_better: bool) -> float:
    """Return eq. 8: sd/mean where higher is better, sd x mean where lower is better."""
    sd = math.sqrt(variance)
    if higher_is_better and mean == 0:
        raise DataError("the mean is 0, so sd/mean is undefined", hint="metrics are in percent, 0 to 100")
    return sd / mean if higher_is_better else sd * mean


def shortfall(mean: float, variance: float, higher_is_better: bool) -> float:
    """Return the distance of the mean from the best value, 100% or 0%, plus one standard deviation."""
    return (100 - mean if higher_is_better else mean) + math.sqrt(variance)


CV = "cv"
FORMULAS: dict[str, Formula] = {CV: coefficient_of_variation, "shortfall": shortfall}
"""Formulas by name. Section 4.7: where mean or variance matters more, another formula may replace eq. 8."""


def get_formula(formula: Formula | str) -> Formula:
    """Return a formula given as a function, by its name in `FORMULAS`, or as ``MODULE:NAME``."""
    if isinstance(formula, str) and ":" in formula:
        formula = cast(Formula, import_object(formula, where="formula"))
    if not isinstance(formula, str):
        return formula
    if formula not in FORMULAS:
        raise unknown("robustness formula", formula, FORMULAS)
    return FORMULAS[formula]


@dataclass(frozen=True)
class Robustness:
    """Mean and variance of the mixture (eq. 6 and 7, percent and squared percent) and its score (eq. 8)."""

    mean: float
    variance: float
    score: float


def run_moments(values: Scores, *, name: str | None = None) -> tuple[float, float]:
    """Return mean and population variance over runs (eq. 2 and 3; divided by N, not N - 1).

    Parameters
    ----------
    values : (n_runs,) one metric in percent, one value per initialisation.
    """
    runs = np.sort(_finite(values, "runs", name))
    mean = float(np.mean(runs))
    return mean, float(np.mean((runs - mean) ** 2))


def mixture_moments(
    means: Scores,
    variances: Scores,
    *,
    variant: str = "tables",
    eps: float = EPSILON,
    name: str | None = None,
) -> tuple[float, float]:
    """Return mean and variance of the mixture over components (eq. 6 and 7).

    Each component is weighted by its confidence c = 1/(sd + eps) (eq. 4).

    Parameters
    ----------
    means, variances : (n_components,) from `run_moments`, in percent and squared percent.
    variant : "tables" (default), w = c/(sum c + eps), which reproduces the paper's tables; or "eq5" as
        printed, w = c/sum c.
    """
    mu, var = _finite(means, "means", name), _finite(variances, "variances", name)
    if mu.shape != var.shape:
        raise DataError(f"{len(mu)} means but {len(var)} variances", where=name)
    if (var < 0).any():
        raise DataError("found a variance below zero", where=name)
    if variant not in WEIGHTS:
        raise unknown("robustness variant", variant, WEIGHTS)
    order = np.lexsort((var, mu))  # sums do not depend on the order of components
    mu, var = mu[order], var[order]
    weights = WEIGHTS[variant](1 / (np.sqrt(var) + eps), eps)
    mean = float(np.sum(weights * mu))
    return mean, float(np.sum(weights * (var + (mean - mu) ** 2)))


def robustness_score(
    mean: float, variance: float, *, higher_is_better: bool, formula: Formula | str = CV
) -> float:
    """Return the score of a mean and a variance; lower is better, for metrics of either direction.

    Parameters
    ----------
    formula : a function (mean, variance, higher_is_better) -> score of which lower is more robust, a name of
        `FORMULAS`, or ``MODULE:NAME``. By default the coefficient of variation of eq. 8: sd/mean for metrics
        where higher is better, sd x mean where lower is better, as in the captions of tables 5 and 9.

    Raises
    ------
    DataError : the values or the score are not finite, or the formula fails. UnknownNameError : no such name.
    """
    mean, variance = _finite([mean, variance], "mean and variance", None).tolist()
    if variance < 0:
        raise DataError("found a variance below zero", where="mean and variance")
    function = get_formula(formula)
    with user_errors("the formula raises", where="formula"):
        score = function(mean, variance, higher_is_better)
    return float(_finite([score], "score of the formula", None)[0])


def robustness(
    runs: Scores,
    *,
    higher_is_better: bool,
    variant: str = "tables",
    eps: float = EPSILON,
    formula: Formula | str = CV,
    name: str | None = None,
) -> Robustness:
    """Return the robustness of a metric over components and their runs; a lower score is more robust.

    Parameters
    ----------
    runs : (n_components, n_runs) metric in **percent**: optimizers (for a detector's score) or OOD sets (for
        an optimizer's score) by initialisations.
    higher_is_better : direction of the metric.
    variant, eps : see `mixture_moments`.
    formula : see `robustness_score`.

    Example
    -------
    >>> runs = [[90, 92], [80, 88]]
    >>> round(robustness(runs, higher_is_better=True).score, 4)
    0.0384
    >>> round(robustness(runs, higher_is_better=True, formula="shortfall").score, 2)
    13.91
    """
    table = to_numpy(runs, where=name)
    if table.ndim != 2 or not table.size:
        raise DataError(f"shape (n_components, n_runs) expected, found {table.shape}", where=name)
    moments = [run_moments(row, name=name) for row in table]
    means, variances = zip(*moments, strict=True)
    mean, variance = mixture_moments(means, variances, variant=variant, eps=eps, name=name)
    score = robustness_score(mean, variance, higher_is_better=higher_is_better, formula=formula)
    return Robustness(mean, variance, score)


def _finite(values: Scores, side: str, name: str | None) -> Array:
    """Return ``values`` as a non-empty (n,) float64 array of finite numbers; DataError if it is not one."""
    where = f"{name}: {side}" if name else side
    raw = to_numpy(values, where=where)
    if raw.ndim != 1 or not raw.size or raw.dtype.kind not in "fiub":
        found = f"an array of shape {raw.shape} and type {raw.dtype}"
        raise DataError(f"a list of numbers expected, found {found}", where=where)
    array = raw.astype(np.float64)
    if not np.isfinite(array).all():
        raise DataError("found NaN or infinity", where=where, hint="leave out runs that failed")
    return array
