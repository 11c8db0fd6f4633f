"""Intervals of metrics over images, over classes and over subtrees of classes.

Over images the interval is that of the percentiles of the replicates. Over clusters of OOD images (classes or
subtrees) percentile intervals are too short if these are few. It is value +- t x standard error, of the
arcsine of the root of metrics in [0, 1], whose errors are more symmetric. A set with k clusters and share a
of the value counts with k - 1 degrees of freedom; over several sets (a mean, a pool) Satterthwaite's number
is taken, given equal variance between the clusters of each set. Clusters of unequal sizes count as Kish's
effective number of them.

References
----------
Satterthwaite, An Approximate Distribution of Estimates of Variance Components, Biometrics 1946. Anscombe, The
Transformation of Poisson, Binomial and Negative-Binomial Data, Biometrika 1948 (arcsine).
Kish, Survey Sampling, 1965 (effective number).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from wordnet_splits.base.errors import DataError
from wordnet_splits.metrics.counts import Array
from wordnet_splits.metrics.registry import get_metric
from wordnet_splits.metrics.resampling import REPLICATES, bootstrap_replicates
from wordnet_splits.metrics.summary import ScoreSet, pool, split_sides

FEW_CLUSTERS = 10
"""Fewest degrees of freedom + 1 with which 95% intervals of AUROC and FPR95 (ID positive) cover 93 to 97%.

From the simulations of docs/reference/power.md, "Coverage".
"""
FEW_AT_OOD_QUANTILE = 100
"""The same for metrics whose threshold is a quantile of OOD scores: 10 to 60 clusters cover 90 to 94%."""
FEW_IN_TAIL = 20
"""Fewest OOD images beyond such a threshold: intervals over images cover 90 to 93% with 5, 43% with .5."""


class Interval(NamedTuple):
    """A metric's value on all samples and the interval from its replicates."""

    value: float
    lo: float
    hi: float


def bootstrap(
    sets: Iterable[ScoreSet],
    metrics: Iterable[str] | None = None,
    *,
    replicates: int = REPLICATES,
    seed: int = 0,
    level: float = 0.95,
    full_spectrum: bool = False,
) -> dict[str, Interval]:
    """Return value and bootstrap interval of metrics of the pooled ``sets``.

    Parameters
    ----------
    sets : ID and OOD sets, pooled by side (see `summary.pool`); each is resampled independently. If OOD sets
        have clusters, intervals of metrics of ID against OOD are over these.
    metrics : names of metrics; by default all that the sets allow.
    level : share of replicates inside the interval, or its confidence over clusters.
    """
    sets = list(sets)
    counts = pool(sets, full_spectrum=full_spectrum)
    by_name = bootstrap_replicates(
        sets, metrics, replicates=replicates, seed=seed, full_spectrum=full_spectrum
    )
    design = ClusterDesign.from_pools([split_sides(sets)[1]])
    intervals = {}
    for name, values in by_name.items():
        metric = get_metric(name)
        drawn = design if "ood" in metric.needs else None
        value = float(metric.kernel(counts))
        intervals[name] = interval(value, values, drawn, level=level, clip=metric.is_share)
    return intervals


def effective_number(sizes: Array) -> float:
    """Return the number of equal clusters, at least 2, that several clusters of these sizes (k,) count as."""
    return max(2.0, float(sizes.sum() ** 2 / np.sum(sizes**2)))


@dataclass(frozen=True)
class ClusterDesign:
    """The clusters behind a value: how far its replicates understate the variance, and t's freedom.

    Attributes
    ----------
    shares : share of each OOD set in the value: 1 alone, 1/G in a mean, n_g/n in a pool.
    clusters : `effective_number` of the clusters of each.
    """

    shares: tuple[float, ...]
    clusters: tuple[float, ...]

    @classmethod
    def from_pools(cls, pools: Sequence[Sequence[ScoreSet]]) -> ClusterDesign | None:
        """Return the design of the mean over pools of OOD sets, None if no set has clusters.

        Sets with a single cluster are left out.

        Parameters
        ----------
        pools : the OOD sets of each averaged value.
        """
        if all(part.clusters is None for sets in pools for part in sets):
            return None
        shares, clusters = [], []
        for sets in pools:
            total = sum(len(part.confidence) for part in sets)
            for part in sets:
                if part.clusters is None:
                    continue
                sizes = np.unique(part.clusters, return_counts=True)[1]
                if len(sizes) > 1:
                    shares.append(len(part.confidence) / total / len(pools))
                    clusters.append(effective_number(sizes))
        return cls(tuple(shares), tuple(clusters))

    @property
    def df(self) -> float:
        """Degrees of freedom of t: k - 1 for a single set; 0 if no set has several clusters."""
        parts = [(a**2 / (k - 1), k) for a, k in zip(self.shares, self.clusters, strict=True)]
        return sum(v for v, _ in parts) ** 2 / sum(v**2 / (k - 1) for v, k in parts) if parts else 0.0

    @property
    def factor(self) -> float:
        """Ratio of the standard error to the standard deviation of replicates: sqrt(k/(k - 1))."""
        pairs = list(zip(self.shares, self.clusters, strict=True))
        of_replicates = sum(a**2 / k for a, k in pairs)
        return math.sqrt(sum(a**2 / (k - 1) for a, k in pairs) / of_replicates) if pairs else math.nan


def scarce_units(
    metric: str, n_ood: int, design: ClusterDesign | None
) -> Literal["images", "clusters"] | None:
    """Return the units that are so few that intervals of a metric may miss their level; None if enough.

    Parameters
    ----------
    metric : its name in `METRICS`.
    n_ood : number of OOD images; in a mean, of the smallest set.
    design : the clusters that are drawn, None if images are.
    """
    tail = get_metric(metric).ood_tail
    if tail is not None and n_ood * tail < FEW_IN_TAIL:
        return "images"
    least = FEW_CLUSTERS if tail is None else FEW_AT_OOD_QUANTILE
    return "clusters" if design is not None and design.df < least - 1 else None


def interval(
    value: float,
    replicates: Array,
    design: ClusterDesign | None = None,
    *,
    level: float = 0.95,
    clip: bool = False,
) -> Interval:
    """Return ``value`` with the interval of its bootstrap ``replicates`` that are not NaN.

    NaN bounds if too few replicates are finite (1; over clusters 2), or no set has several clusters.

    Parameters
    ----------
    design : the clusters that were drawn, for value +- t(df) x factor x standard deviation of replicates;
        None if images were, for their percentiles.
    clip : whether the values lie in [0, 1]: over clusters the interval is then that of arcsin(sqrt(value)),
        with the standard deviation divided by 2 sqrt(value (1 - value)).
    """
    if not 0 < level < 1:
        raise DataError(f"level must be between 0 and 1, not {level}", hint="0.95 is usual")
    valid = replicates[~np.isnan(replicates)]
    if len(valid) < (1 if design is None else 2) or (design is not None and not design.clusters):
        return Interval(value, math.nan, math.nan)
    if design is None:
        lo, hi = (float(np.quantile(valid, share)) for share in ((1 - level) / 2, (1 + level) / 2))
        return Interval(value, lo, hi)
    from scipy.stats import t  # takes a while to import

    half = float(t.ppf((1 + level) / 2, design.df)) * design.factor * float(np.std(valid, ddof=1))
    if not clip:
        return Interval(value, value - half, value + half)
    if not 0 < value < 1:
        return Interval(value, max(value - half, 0.0), min(value + half, 1.0))
    angle, half = math.asin(math.sqrt(value)), half / (2 * math.sqrt(value * (1 - value)))
    lo, hi = max(angle - half, 0.0), min(angle + half, math.pi / 2)
    return Interval(value, math.sin(lo) ** 2, math.sin(hi) ** 2)
