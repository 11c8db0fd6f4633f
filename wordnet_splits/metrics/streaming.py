"""AUROC, average precision and FPR95 of many scores, without counts at every threshold in memory.

`RankCounts` hold about 20 bytes for each distinct score, and computing them takes several times as much.
`evaluate_scores` sorts a copy of each side (4 bytes a score, for float32) and walks through both in blocks of
thresholds. It returns the same bits as `evaluate`: counts are integers, and sums of floats are split as numpy
splits them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from wordnet_splits.base.errors import DataError, unknown
from wordnet_splits.metrics.counts import Array, Scores, as_score_pair, least_count

STREAMED = ("auroc", "aupr_in", "aupr_out", "fpr95_id_positive", "fpr95_ood_positive")
"""Metrics that `evaluate_scores` computes."""
BLOCK = 1 << 15
"""Largest number of scores of each side in a block; more only where they are tied."""
LEAF = 1 << 16
"""Largest number of terms that are left to one call of ``np.sum``."""


def evaluate_scores(
    id_scores: Scores,
    ood_scores: Scores,
    names: Iterable[str] = ("auroc", "aupr_in", "fpr95_id_positive"),
    *,
    name: str | None = None,
) -> dict[str, float]:
    """Compute metrics of a score pair in little memory: name -> value, as `evaluate` gives them.

    Parameters
    ----------
    id_scores, ood_scores : (n_id,), (n_ood,) confidence, higher = more in-distribution. float32 takes 5
        further bytes a score, float64 9.
    names : of `STREAMED`.
    name : detector and set, for error messages.

    Raises
    ------
    UnknownNameError : a metric is not among `STREAMED`.
    DataError : a side is empty, not one-dimensional, not numeric or not finite.

    Example
    -------
    >>> evaluate_scores([0.9, 0.8, 0.3], [0.3, 0.1])
    {'auroc': 0.9166666666666666, 'aupr_in': 0.9166666666666666, 'fpr95_id_positive': 0.5}
    """
    names = list(names)
    for metric in names:
        if metric not in STREAMED:
            raise unknown("metric of evaluate_scores", metric, STREAMED)
    sides = as_score_pair(id_scores, ood_scores, name=name)  # copies
    inside, outside = (scores.astype(np.result_type(*sides), copy=False) for scores in sides)
    del sides
    for side, scores in (("ID", inside), ("OOD", outside)):
        if not len(scores):
            raise DataError(f"there are no {side} scores, so these metrics are undefined", where=name)
        scores.sort()
    values = {
        "fpr95_id_positive": _share_accepted(inside, outside),
        "fpr95_ood_positive": _share_rejected(inside, outside),
    }
    if set(names) - values.keys():
        values |= _areas(inside, outside, average_precision="aupr_in" in names, of_ood="aupr_out" in names)
    return {metric: values[metric] for metric in names}


def _share_accepted(inside: Array, outside: Array) -> float:
    """Return the share of OOD at or above the highest threshold that accepts 95% of ID; both ascending."""
    threshold = inside[len(inside) - int(least_count(0.95, np.asarray(len(inside))))]
    return float((len(outside) - np.searchsorted(outside, threshold)) / len(outside))


def _share_rejected(inside: Array, outside: Array) -> float:
    """Return the share of ID at or below the lowest threshold that rejects 95% of OOD; both ascending."""
    threshold = outside[int(least_count(0.95, np.asarray(len(outside)))) - 1]
    return float(np.searchsorted(inside, threshold, side="right") / len(inside))


def _areas(inside: Array, outside: Array, *, average_precision: bool, of_ood: bool) -> dict[str, float]:
    """Return AUROC and, if requested, the average precision of either side; both sides ascending."""
    n_id, n_ood = len(inside), len(outside)
    total = sum(map(len, _thresholds(inside, outside))) if average_precision or of_ood else 0
    precision_in, precision_out = _PairwiseSum(total), _PairwiseSum(total, backwards=True)
    twice_wins = 0
    for block in _blocks(inside, outside):
        below = n_ood - block.cum_ood
        twice_wins += int(np.sum(block.id_steps * (2 * below + block.ood_steps)))
        if average_precision:
            precision_in.add(block.id_steps * (block.cum_id / (block.cum_id + block.cum_ood)))
        if of_ood:
            ood_at_most, id_at_most = below + block.ood_steps, n_id - block.cum_id + block.id_steps
            precision_out.add(block.ood_steps * (ood_at_most / (ood_at_most + id_at_most)))
    return {
        "auroc": float(twice_wins) / float(2 * n_id * n_ood),
        "aupr_in": precision_in.total() / n_id,
        "aupr_out": precision_out.total() / n_ood,
    }


class _Block(NamedTuple):
    """Counts at consecutive thresholds, highest first: samples at each, and at or above each."""

    id_steps: Array
    ood_steps: Array
    cum_id: Array
    cum_ood: Array


def _blocks(inside: Array, outside: Array) -> Iterator[_Block]:
    """Yield the counts of ascending scores, block by block."""
    above_id = above_ood = 0
    id_stop, ood_stop = len(inside), len(outside)
    for thresholds in _thresholds(inside, outside):
        id_start, ood_start = (np.searchsorted(side, thresholds[-1]) for side in (inside, outside))
        cum_id, cum_ood = (
            len(side) - start - np.searchsorted(side[start:stop], thresholds[::-1])[::-1]
            for side, start, stop in ((inside, id_start, id_stop), (outside, ood_start, ood_stop))
        )
        id_steps, ood_steps = np.diff(cum_id, prepend=above_id), np.diff(cum_ood, prepend=above_ood)
        yield _Block(id_steps, ood_steps, cum_id, cum_ood)
        above_id, above_ood, id_stop, ood_stop = cum_id[-1], cum_ood[-1], id_start, ood_start


def _thresholds(inside: Array, outside: Array) -> Iterator[Array]:
    """Yield the distinct scores of both ascending sides, highest first, in parts of up to 2 `BLOCK`."""
    stops = [len(inside), len(outside)]
    while any(stops):
        parts = [
            side[max(stop - BLOCK, 0) : stop] for side, stop in zip((inside, outside), stops, strict=True)
        ]
        # below the highest score that begins a part, scores of the other side may be missing
        unread = [part[0] for part, stop in zip(parts, stops, strict=True) if stop > BLOCK]
        scores = np.sort(np.concatenate(parts))
        if unread:
            scores = scores[np.searchsorted(scores, max(unread)) :]
        yield scores[np.append(True, scores[1:] != scores[:-1])][::-1]
        stops = [
            int(np.searchsorted(side[:stop], scores[0]))
            for side, stop in zip((inside, outside), stops, strict=True)
        ]


class _PairwiseSum:
    """The sum of float64 terms that come in parts, equal bit by bit to ``np.sum`` of all at once.

    ``np.sum`` adds the sums of two halves, split at a multiple of 8, and so on down to short runs.

    Parameters
    ----------
    n : number of terms.
    backwards : whether the terms come from the last to the first.
    """

    def __init__(self, n: int, *, backwards: bool = False) -> None:
        self.n, self.backwards = n, backwards
        self.sizes = _leaf_sizes(n)[:: -1 if backwards else 1]
        self.sums: list[float] = []
        self.terms = np.empty(min(n, LEAF))
        self.count = 0

    def add(self, terms: Array) -> None:
        """Add the next terms."""
        while len(terms):
            size = self.sizes[len(self.sums)]
            added = terms[: size - self.count]
            leaf = self.terms[:size][:: -1 if self.backwards else 1]
            leaf[self.count : self.count + len(added)] = added
            self.count += len(added)
            if self.count == size:
                self.sums.append(float(np.sum(self.terms[:size])))
                self.count = 0
            terms = terms[len(added) :]

    def total(self) -> float:
        """Return the sum."""
        sums = iter(self.sums[:: -1 if self.backwards else 1])

        def added(n: int) -> float:
            if n <= LEAF:
                return next(sums, 0.0)
            half = _half(n)
            return added(half) + added(n - half)

        return added(self.n)


def _half(n: int) -> int:
    """Return where numpy splits a sum of ``n`` terms."""
    return n // 2 - n // 2 % 8


def _leaf_sizes(n: int) -> list[int]:
    """Return the numbers of terms of the leaves, first to last."""
    if n <= LEAF:
        return [n]
    return [*_leaf_sizes(_half(n)), *_leaf_sizes(n - _half(n))]
