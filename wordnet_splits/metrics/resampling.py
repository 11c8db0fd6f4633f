"""Bootstrap over clusters of OOD images (classes or subtrees), for conclusions about other unknown classes.

A replicate draws, from each OOD set with k clusters, k clusters with replacement, each with all its images,
and the images of each ID class within that class (the classes of a classifier are not random). Over all
replicates, each cluster is drawn equally often (balanced): the draws of a set are its clusters, repeated for
every replicate, in the order of the outputs of SplitMix64 seeded with SHA-256 of "clusters", seed and set.
Images of a drawn cluster are not drawn again: their variance is part of the variance between clusters.

With few clusters percentile intervals are too short. A set with k clusters and share a of the value counts
with k - 1 degrees of freedom; over several sets (a mean, a pool) Satterthwaite's number is taken, given
equal variance between the clusters of each set.

References
----------
Davison and Hinkley, Bootstrap Methods and their Application, 1997, sections 3.8 (hierarchical data) and 9.2.1
(balanced). Satterthwaite, An Approximate Distribution of Estimates of Variance Components, Biometrics 1946.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from wordnet_splits.base.errors import DataError
from wordnet_splits.metrics.counts import Array, RankCounts
from wordnet_splits.metrics.registry import get_metric
from wordnet_splits.metrics.summary import ScoreSet, pool, split_sides
from wordnet_splits.metrics.uncertainty import (
    Interval,
    bootstrap_replicates,
    random_words,
)

FEW_CLUSTERS = 5
"""Fewest degrees of freedom + 1 whose intervals hold their level in simulations; fewer are flagged."""
_BLOCK = 1 << 22
"""Images per block of replicates."""


@dataclass(frozen=True)
class ClusterDesign:
    """The clusters behind a value: how far its replicates understate the variance, and t's freedom.

    Attributes
    ----------
    shares : share of each OOD set in the value: 1 alone, 1/G in a mean, n_g/n in a pool.
    clusters : number of clusters of each.
    """

    shares: tuple[float, ...]
    clusters: tuple[int, ...]

    @classmethod
    def from_pools(cls, pools: Sequence[Sequence[ScoreSet]]) -> ClusterDesign:
        """Return the design of the mean over pools of OOD sets; sets without two clusters are left out.

        Parameters
        ----------
        pools : the OOD sets of each averaged value.
        """
        shares, clusters = [], []
        for sets in pools:
            total = sum(len(part.confidence) for part in sets)
            for part in sets:
                if part.clusters is not None and (k := len(np.unique(part.clusters))) > 1:
                    shares.append(len(part.confidence) / total / len(pools))
                    clusters.append(k)
        return cls(tuple(shares), tuple(clusters))

    @property
    def df(self) -> float:
        """Degrees of freedom of t: k - 1 for a single set; 0 if no set has several clusters."""
        variances = [a**2 / (k - 1) for a, k in zip(self.shares, self.clusters, strict=True)]
        if not variances:
            return 0.0
        return sum(variances) ** 2 / sum(
            v**2 / (k - 1) for v, k in zip(variances, self.clusters, strict=True)
        )

    @property
    def factor(self) -> float:
        """Ratio of the standard error to the standard deviation of replicates: sqrt(k/(k - 1))."""
        pairs = list(zip(self.shares, self.clusters, strict=True))
        if not pairs:
            return math.nan
        return math.sqrt(sum(a**2 / (k - 1) for a, k in pairs) / sum(a**2 / k for a, k in pairs))

    @property
    def is_few(self) -> bool:
        """Whether the clusters are so few that intervals may miss their level."""
        return self.df < FEW_CLUSTERS - 1


def cluster_interval(
    value: float, replicates: Array, design: ClusterDesign, *, level: float = 0.95, clip: bool = False
) -> Interval:
    """Return ``value`` with the interval value +- t(df) x factor x standard deviation of ``replicates``.

    NaN bounds if no set has several clusters, or fewer than two replicates are finite.

    Parameters
    ----------
    clip : whether to keep the interval within [0, 1], for metrics with that range.
    """
    if not 0 < level < 1:
        raise DataError(f"level must be between 0 and 1, not {level}", hint="0.95 is usual")
    valid = replicates[~np.isnan(replicates)]
    if not design.clusters or len(valid) < 2:
        return Interval(value, math.nan, math.nan)
    from scipy.stats import t

    half = float(t.ppf((1 + level) / 2, design.df)) * design.factor * float(np.std(valid, ddof=1))
    lo, hi = value - half, value + half
    return Interval(value, max(lo, 0.0), min(hi, 1.0)) if clip else Interval(value, lo, hi)


def paired_replicates(
    entries: Sequence[Sequence[ScoreSet]],
    metric: str,
    *,
    replicates: int,
    seed: int = 0,
    full_spectrum: bool = False,
) -> Array:
    """Return (entries, replicates) values of a metric; a replicate has the same images for every entry.

    Parameters
    ----------
    entries : the sets of each detector, with the same names, images, order of images and clusters. Without
        clusters, images are drawn (`bootstrap_replicates`).

    Raises
    ------
    DataError : the sets of entries differ, or there are fewer replicates than 1.
    """
    first = entries[0]
    for sets in entries[1:]:
        if [(s.name, s.role, len(s.confidence)) for s in sets] != [
            (s.name, s.role, len(s.confidence)) for s in first
        ] or any(not np.array_equal(a.clusters, b.clusters) for a, b in zip(first, sets, strict=True)):  # type: ignore[arg-type]  # None equals None
            raise DataError("the entries have different sets, images or clusters")
    if all(part.clusters is None for part in first):
        return np.array(
            [
                bootstrap_replicates(
                    sets, [metric], replicates=replicates, seed=seed, full_spectrum=full_spectrum, paired=True
                )[metric]
                for sets in entries
            ]
        )
    if replicates < 1:
        raise DataError(f"the number of bootstrap replicates must be at least 1, not {replicates}")
    kernel, values = get_metric(metric).kernel, np.empty((len(entries), replicates))
    ranked = [Ranked.from_sets(sets, full_spectrum=full_spectrum) for sets in entries]
    for rows, weights in weight_blocks(first, replicates, seed, full_spectrum=full_spectrum):
        for number, entry in enumerate(ranked):
            values[number, rows] = kernel(entry.counts(weights))
    return values


@dataclass(frozen=True, eq=False)
class Ranked:
    """The images of ID and OOD sets, ranked once, to be counted with weights.

    Attributes
    ----------
    order : (n,) images from the highest to the lowest confidence.
    is_ood, is_correct : (n,) in that order; ``is_correct`` is None if correctness is unknown.
    last : (m,) places in the order at which each of m distinct scores ends.
    """

    thresholds: Array
    order: Array
    is_ood: Array
    is_correct: Array | None
    last: Array

    @classmethod
    def from_sets(cls, sets: Sequence[ScoreSet], *, full_spectrum: bool) -> Ranked:
        """Rank the images of sets, ID first, as `weight_blocks` orders them."""
        plain = pool(sets, full_spectrum=full_spectrum)
        inside, outside = split_sides(sets, full_spectrum=full_spectrum)
        confidence = np.concatenate([part.confidence for part in inside + outside])
        order = np.argsort(-confidence, kind="stable")
        is_ood = order >= sum(len(part.confidence) for part in inside)
        is_correct = None
        if plain.cum_correct is not None:
            flags = [part.correct for part in inside if part.correct is not None]
            is_correct = np.concatenate([*flags, np.zeros(int(plain.n_ood), dtype=bool)])[order]
        return cls(plain.thresholds, order, is_ood, is_correct, plain.cum_id + plain.cum_ood - 1)

    def counts(self, weights: Array) -> RankCounts:
        """Return the counts of replicates, given how often each image counts, (replicates, n)."""
        ranked = weights[:, self.order]

        def cumulative(of: Array) -> Array:
            return np.asarray(np.cumsum(np.where(of, ranked, 0), axis=1, dtype=np.int64)[:, self.last])

        correct = None if self.is_correct is None else cumulative(self.is_correct)
        return RankCounts(self.thresholds, cumulative(~self.is_ood), cumulative(self.is_ood), correct)


def weight_blocks(
    sets: Sequence[ScoreSet], replicates: int, seed: int, *, full_spectrum: bool = False
) -> Iterator[tuple[slice, npt.NDArray[np.int32]]]:
    """Yield blocks of replicates and how often each image counts in them, (block, n), ID sets first.

    The images of ID classes, and of OOD sets without several clusters, are drawn; of other OOD sets, the
    clusters.
    """
    inside, outside = split_sides(sets, full_spectrum=full_spectrum)
    parts = inside + outside
    drawn = {
        part.name: cluster_draws(seed, part.name, replicates, k)
        for part in outside
        if part.clusters is not None and (k := len(np.unique(part.clusters))) > 1
    }
    block = max(1, _BLOCK // sum(len(part.confidence) for part in parts))
    for start in range(0, replicates, block):
        rows = range(start, min(start + block, replicates))
        weights = []
        for part in parts:
            if part.name in drawn:
                codes = np.unique(np.asarray(part.clusters), return_inverse=True)[1]
                weights.append(drawn[part.name][rows.start : rows.stop][:, codes])
            else:
                weights.append(_within_strata(part, rows, seed))
        yield slice(rows.start, rows.stop), np.concatenate(weights, axis=1)


def cluster_draws(seed: int, name: str, replicates: int, clusters: int) -> npt.NDArray[np.int32]:
    """Return how often each cluster of a set is drawn, (replicates, clusters): each ``replicates`` times."""
    words = random_words("clusters", seed, name, [None], replicates * clusters)[0]
    places = np.argsort(words, kind="stable").reshape(replicates, clusters) % clusters
    places += clusters * np.arange(replicates)[:, None]
    counts = np.bincount(places.ravel(), minlength=replicates * clusters)
    return np.asarray(counts.reshape(replicates, clusters), dtype=np.int32)


def _within_strata(part: ScoreSet, replicates: range, seed: int) -> npt.NDArray[np.int32]:
    """Return how often each image is drawn, (replicates, n), from the images of its class."""
    n = len(part.confidence)
    strata = np.zeros(n, dtype=np.int64) if part.clusters is None else part.clusters
    order = np.argsort(strata, kind="stable")
    _, starts, sizes = np.unique(strata[order], return_index=True, return_counts=True)
    words = random_words("images", seed, part.name, replicates, n)
    ranks = (words * np.repeat(sizes, sizes).astype(np.uint64) >> np.uint64(32)).view(np.int64)
    ranks += np.repeat(starts, sizes)
    images = order[ranks] + n * np.arange(len(replicates))[:, None]
    counts = np.bincount(images.ravel(), minlength=n * len(replicates))
    return np.asarray(counts.reshape(len(replicates), n), dtype=np.int32)
