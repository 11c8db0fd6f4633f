"""Replicates of metrics: their values on samples drawn again, over images, classes or subtrees of classes.

The images of the sets are ranked once; a replicate only changes how often each counts (see `draws`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from wordnet_splits.base.errors import DataError
from wordnet_splits.metrics.counts import Array, RankCounts
from wordnet_splits.metrics.draws import BLOCK, SetDraws, Weights
from wordnet_splits.metrics.registry import get_metric, list_metrics
from wordnet_splits.metrics.summary import ScoreSet, pool, split_sides

REPLICATES = 1000


def bootstrap_replicates(
    sets: Iterable[ScoreSet],
    metrics: Iterable[str] | None = None,
    *,
    replicates: int = REPLICATES,
    seed: int = 0,
    full_spectrum: bool = False,
    paired: bool = False,
) -> dict[str, Array]:
    """Return metric -> (replicates,) values of the pooled ``sets``; NaN where the metric is undefined.

    For a near or far mean, average the arrays of its sets, then compute the `interval` or, with clusters, the
    `cluster_interval`.

    Parameters
    ----------
    sets : clusters of OOD sets that have them are drawn, otherwise images (see `draws`).
    paired : draw rows in their own order instead of the canonical one (wrong before correct, then by score,
        highest first). Replicates of two detectors with the same images in the same order then consist of
        the same images, as a paired bootstrap requires; but values depend on the order of the rows.

    Raises
    ------
    DataError : two sets have the same name, a metric requires a side that the sets lack, or there is no
        replicate (over clusters: fewer than two).
    """
    sets = list(sets)
    counts = pool(sets, full_spectrum=full_spectrum)
    names = (
        [name for name in list_metrics() if get_metric(name).computable(counts)]
        if metrics is None
        else list(metrics)
    )
    ordered = sets if paired else [_in_canonical_order(part) for part in sets]
    values = _replicates([ordered], names, replicates, seed, full_spectrum)
    return {name: of_entries[0] for name, of_entries in values.items()}


def paired_replicates(
    entries: Sequence[Sequence[ScoreSet]],
    metric: str,
    *,
    replicates: int = REPLICATES,
    seed: int = 0,
    full_spectrum: bool = False,
) -> Array:
    """Return (entries, replicates) values of a metric; a replicate has the same images for every entry.

    Values are those of `bootstrap_replicates` with ``paired``, entry by entry.

    Parameters
    ----------
    entries : the sets of each detector, with the same names, images, order of images and clusters.

    Raises
    ------
    DataError : there are no entries, or their sets differ; see `bootstrap_replicates`.
    """
    if not entries:
        raise DataError("there are no entries to compare")
    for sets in entries[1:]:
        if [_key(part) for part in sets] != [_key(part) for part in entries[0]] or not all(
            np.array_equal(a.clusters, b.clusters)
            for a, b in zip(sets, entries[0], strict=True)
            if a.clusters is not None and b.clusters is not None
        ):
            raise DataError("the entries have different sets, images or clusters")
    return _replicates(entries, [metric], replicates, seed, full_spectrum)[metric]


def has_clusters(sets: Iterable[ScoreSet]) -> bool:
    """Return whether replicates are over clusters: whether an OOD set has them."""
    return any(part.clusters is not None and not part.is_id for part in sets)


def _key(part: ScoreSet) -> tuple[str, str, int, bool]:
    return part.name, part.role, len(part.confidence), part.clusters is None


def _in_canonical_order(part: ScoreSet) -> ScoreSet:
    """Return a set with its rows sorted: wrong before correct, then by score, highest first."""
    keys = [-part.confidence] + ([] if part.correct is None else [part.correct])
    order = np.lexsort(keys)
    correct, clusters = (None if c is None else c[order] for c in (part.correct, part.clusters))
    return replace(part, confidence=part.confidence[order], correct=correct, clusters=clusters)


def _replicates(
    entries: Sequence[Sequence[ScoreSet]],
    names: Sequence[str],
    replicates: int,
    seed: int,
    full_spectrum: bool,
) -> dict[str, Array]:
    """Return metric -> (entries, replicates) values; every entry has the draws of the first."""
    least = 2 if has_clusters(entries[0]) else 1
    if replicates < least:
        raise DataError(f"the number of bootstrap replicates must be at least {least}, not {replicates}")
    metrics = {name: get_metric(name) for name in names}
    ranked = [Ranked.from_sets(sets, full_spectrum=full_spectrum) for sets in entries]
    for entry in ranked:
        for metric in metrics.values():
            entry.plain.require(*metric.needs)
    parts = [part for side in split_sides(entries[0], full_spectrum=full_spectrum) for part in side]
    if len({part.name for part in parts}) < len(parts):
        raise DataError("two sets have the same name", hint="draws depend on the name of the set")
    draws = [SetDraws.from_set(part, replicates, seed) for part in parts]
    values = {name: np.empty((len(entries), replicates)) for name in metrics}
    block = max(1, BLOCK // len(ranked[0].order))
    for start in range(0, replicates, block):
        rows = range(start, min(start + block, replicates))
        weights = np.concatenate([of_set.weights(rows) for of_set in draws])
        for number, entry in enumerate(ranked):
            counts = entry.counts(weights)
            for name, metric in metrics.items():
                values[name][number, rows.start : rows.stop] = metric.kernel(counts)
    return values


@dataclass(frozen=True, eq=False)
class Ranked:
    """The images of ID and OOD sets, ranked once, to be counted with weights.

    Attributes
    ----------
    plain : the counts of every image once, over m distinct scores.
    order : (n,) images, of ID sets first, from the highest to the lowest confidence.
    is_ood, is_correct : (n,) in that order; ``is_correct`` is None if correctness is unknown.
    last : (m,) places in the order at which each distinct score ends.
    """

    plain: RankCounts
    order: Array
    is_ood: Array
    is_correct: Array | None
    last: Array

    @classmethod
    def from_sets(cls, sets: Sequence[ScoreSet], *, full_spectrum: bool) -> Ranked:
        """Rank the images of sets."""
        plain = pool(sets, full_spectrum=full_spectrum)
        inside, outside = split_sides(sets, full_spectrum=full_spectrum)
        confidence = np.concatenate([part.confidence for part in inside + outside])
        order = np.argsort(-confidence, kind="stable").astype(np.int32)
        is_ood = order >= plain.n_id
        is_correct = None
        if plain.cum_correct is not None:
            flags = [part.correct for part in inside if part.correct is not None]
            is_correct = np.concatenate([*flags, np.zeros(int(plain.n_ood), dtype=bool)])[order]
        return cls(plain, order, is_ood, is_correct, plain.cum_id + plain.cum_ood - 1)

    def counts(self, weights: Weights) -> RankCounts:
        """Return the counts of replicates, given how often each image counts, (n, replicates)."""
        ranked = weights[self.order]

        def cumulative(of: Array) -> Array:
            chosen = np.where(of[:, None], ranked, 0)
            return np.ascontiguousarray(np.cumsum(chosen, axis=0, dtype=np.int64)[self.last].T)

        correct = None if self.is_correct is None else cumulative(self.is_correct)
        return RankCounts(self.plain.thresholds, cumulative(~self.is_ood), cumulative(self.is_ood), correct)
