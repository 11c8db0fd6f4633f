"""Replicates of metrics: their values on samples drawn again, over images, classes or subtrees of classes.

The images of the sets are ranked once; a replicate only changes how often each counts (see `draws`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib import import_module
from types import ModuleType
from typing import Final

import numpy as np

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.workers import thread_count
from wordnet_splits.metrics.counts import Array, RankCounts, least_count, ratio
from wordnet_splits.metrics.draws import BLOCK, SetDraws, Weights
from wordnet_splits.metrics.registry import get_metric, list_metrics
from wordnet_splits.metrics.summary import ScoreSet, pool, split_sides

REPLICATES = 1000
LARGE = 1 << 22
"""Fewest images x replicates x entries for which threads, and numba's start, are worth their while."""
PAIR_METRICS: Final = frozenset(["auroc", "fpr95_id_positive", "fpr95_ood_positive"])
"""Metrics with a compiled loop of their own."""
_TOGETHER = 32
"""Least replicates for which that loop is fast: their weights of an image fill a line of the cache."""


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

    For a near or far mean, average the arrays of its sets, then compute the `interval`.

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
    least = 2 if any(part.clusters is not None and not part.is_id for part in entries[0]) else 1
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
    n = len(ranked[0].order)
    is_large = n * replicates * len(entries) >= LARGE
    compiled = numba_loops() if is_large else None
    np.empty(31 << 20, np.uint8)  # glibc now keeps freed memory of up to twice this size for later arrays
    is_pair = compiled is not None and PAIR_METRICS.issuperset(names)
    block = max(_TOGETHER if is_pair else 1, BLOCK // n)
    values = {name: np.empty((len(entries), replicates)) for name in metrics}

    def fill(start: int) -> None:
        rows = slice(start, min(start + block, replicates))
        weights = np.concatenate([d.weights(range(rows.start, rows.stop), compiled) for d in draws], axis=1)
        if compiled is not None and is_pair:
            pairs = _pair_values(ranked, weights, compiled)
            for name in names:
                values[name][:, rows] = pairs[name]
            return
        for number, entry in enumerate(ranked):
            counts = entry.counts(weights, compiled)
            for name, metric in metrics.items():
                values[name][number, rows] = metric.kernel(counts)

    if not is_large or any(metric.origin for metric in metrics.values()):
        for start in range(0, replicates, block):
            fill(start)
        return values
    with ThreadPoolExecutor(thread_count()) as pool:
        try:
            list(pool.map(fill, range(0, replicates, block)))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return values


@cache
def numba_loops() -> ModuleType | None:
    """Return the compiled loops, None without the extra ``fast``."""
    try:
        return import_module("wordnet_splits.metrics._compiled")
    except ImportError:
        return None


@dataclass(frozen=True, eq=False)
class Ranked:
    """The images of ID and OOD sets, ranked once, to be counted with weights.

    Attributes
    ----------
    plain : the counts of every image once, over m distinct scores.
    order : (n,) images, of ID sets first, from the highest to the lowest confidence.
    kinds : (n,) in that order, 0 for ID images classified wrongly (or if correctness is unknown), 1 for
        correct ones, 2 for OOD images.
    ends : (n,) in that order, whether the next image has a lower confidence.
    """

    plain: RankCounts
    order: Array
    kinds: Array
    ends: Array

    @classmethod
    def from_sets(cls, sets: Sequence[ScoreSet], *, full_spectrum: bool) -> Ranked:
        """Rank the images of sets."""
        plain = pool(sets, full_spectrum=full_spectrum)
        inside, outside = split_sides(sets, full_spectrum=full_spectrum)
        kinds = [np.full(len(part.confidence), 2 if part in outside else 0) for part in inside + outside]
        if plain.cum_correct is not None:
            kinds[: len(inside)] = [part.correct for part in inside if part.correct is not None]
        confidence = np.concatenate([part.confidence for part in inside + outside])
        order = np.argsort(-confidence, kind="stable")
        ends = np.zeros(len(order), dtype=np.bool_)
        ends[plain.cum_all - 1] = True
        return cls(plain, order.astype(np.int32), np.concatenate(kinds).astype(np.uint8)[order], ends)

    def counts(self, weights: Weights, compiled: ModuleType | None = None) -> RankCounts:
        """Return the counts of replicates, given how often each image counts, (replicates, n)."""
        table = np.empty((3, len(weights), len(self.plain.thresholds)), dtype=np.int64)
        for out, (images, upto) in zip(table, self._kinds_apart, strict=True):
            sums = np.zeros((len(weights), len(images) + 1), dtype=np.int64)
            np.cumsum(weights.take(images, axis=1), axis=1, out=sums[:, 1:])
            sums.take(upto, axis=1, out=out, mode="clip")  # which writes without a buffer
        wrong, correct, outer = table
        if self.plain.cum_correct is None:
            return RankCounts(self.plain.thresholds, wrong, outer, loops=compiled)
        wrong += correct
        return RankCounts(self.plain.thresholds, wrong, outer, correct, loops=compiled)

    @cached_property
    def _kinds_apart(self) -> list[tuple[Array, Array]]:
        """The images of each kind, and how many of them are at or above each threshold."""
        images = [self.order[self.kinds == kind] for kind in range(3)]
        known = self.plain.cum_correct
        right = np.zeros_like(self.plain.cum_id) if known is None else known
        return list(zip(images, (self.plain.cum_id - right, right, self.plain.cum_ood), strict=True))


def _pair_values(ranked: Sequence[Ranked], weights: Weights, compiled: ModuleType) -> dict[str, Array]:
    """Return `PAIR_METRICS` -> (entries, replicates), as their kernels do, without counts at each score."""
    first_ood = int(ranked[0].plain.n_id)
    sides = np.split(weights, [first_ood], axis=1)
    n_id, n_ood = (side.sum(axis=1, dtype=np.int64) for side in sides)
    by_image = np.ascontiguousarray(weights.T)
    sums = np.zeros((len(ranked), 3, len(weights)), dtype=np.int64)
    for entry, of_entry in zip(ranked, sums, strict=True):
        needed = least_count(0.95, n_id), least_count(0.95, n_ood)
        compiled.add_pairs(entry.order, entry.kinds, entry.ends, by_image, n_ood, *needed, of_entry)
    wins, accepted, rejected = np.moveaxis(sums, 1, 0)
    return {
        "auroc": ratio(wins, 2 * n_id * n_ood),
        "fpr95_id_positive": ratio(accepted, n_ood),
        "fpr95_ood_positive": ratio(rejected, n_id),
    }
