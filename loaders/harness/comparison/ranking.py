"""Mean and spread over runs, ranks with their intervals, and paired bootstrap significance.

Intervals are over the test images: each replicate draws the same images for every entry, values are averaged
over an entry's runs, and the entries of a replicate are ranked. The networks are fixed; how much another
training run would change is the spread over runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from wordnet_splits.base.errors import DataError
from wordnet_splits.metrics import interval, mean_ranks, spread

from ..arrays import Array
from .entries import Draw, Entry
from .scopes import Scope, entry_replicates, groups_behind


@dataclass(frozen=True)
class Ranked:
    """One entry of a ranking; values are fractions.

    Attributes
    ----------
    n, mean, sd : over runs. lo, hi : over images; None without bootstrap.
    rank : 1 is best, equal means share the mean of their ranks. rank_lo, rank_hi : its interval.
    behind : difference to the best entry. p : of being as good as the best, two-sided.
    """

    model: str
    detector: str
    n: int
    mean: float
    sd: float
    lo: float | None
    hi: float | None
    rank: float
    rank_lo: float | None
    rank_hi: float | None
    behind: float
    p: float | None


@dataclass(frozen=True)
class Pair:
    """Two entries: how much better the first is, its interval, p, and p corrected for all pairs (Holm)."""

    a: str
    b: str
    better: float
    lo: float
    hi: float
    p: float
    p_holm: float


@dataclass(frozen=True)
class Ranking:
    """The entries of one draw, best first, and the differences of all pairs.

    Attributes
    ----------
    replicates : (entries, replicates) values in that order; None without bootstrap.
    """

    benchmark: str
    metric: str
    on: str
    higher_is_better: bool
    entries: tuple[Ranked, ...]
    pairs: tuple[Pair, ...]
    replicates: Array | None


def higher_is_better(metric: str, draw: Draw) -> bool:
    """Return whether higher values of a metric of the results are better; the results record users' metrics.

    Raises
    ------
    UnknownNameError : no such metric. DataError : the results record both directions of it.
    """
    directions = {evaluation.results.about.higher_is_better(metric) for evaluation in draw.results}
    if len(directions) > 1:
        raise DataError(f"higher is better of {metric!r} in some of the results, and lower in others")
    return directions.pop()


def rank_entries(
    draw: Draw, metric: str, scope: Scope, *, replicates: int, seed: int = 0, level: float = 0.95
) -> Ranking:
    """Rank the entries of one draw by a metric.

    Raises
    ------
    DataError : an entry has no value, or the entries were scored on different images.
    """
    higher = higher_is_better(metric, draw)
    sign = 1 if higher else -1
    values = [_values(entry, metric, scope) for entry in draw.entries]
    draw.require_same_images(groups_behind(draw.entries[0], metric, scope))
    by_entry = [
        entry_replicates(entry, metric, scope, replicates=replicates, seed=seed) for entry in draw.entries
    ]
    drawn = [entry for entry in by_entry if entry is not None]
    table = sign * np.array(drawn) if len(drawn) == len(by_entry) else None
    means = np.array([np.mean(of_runs) for of_runs in values])
    ranks = mean_ranks(-sign * means)
    order = sorted(range(len(means)), key=lambda n: (ranks[n], n))
    rank_table = None if table is None else _ranks_of(table)
    best = order[0]
    ranked = []
    for n in order:
        runs = spread(values[n])
        lo = hi = rank_lo = rank_hi = p = None
        if table is not None and rank_table is not None:
            _, lo, hi = interval(float(means[n]), sign * table[n], level=level)
            _, rank_lo, rank_hi = interval(ranks[n], rank_table[n], level=level)
            p = None if n == best else two_sided_p(table[best] - table[n])
        behind = float(sign * (means[best] - means[n]))
        label = draw.entries[n].label
        ranked.append(
            Ranked(*label, runs.n, runs.mean, runs.sd, lo, hi, float(ranks[n]), rank_lo, rank_hi, behind, p)
        )
    pairs = [] if table is None else _pairs(draw.entries, sign * means, table, order, level)
    ordered = None if table is None else np.asarray(sign * table[order])
    return Ranking(draw.benchmark, metric, scope.name, higher, tuple(ranked), tuple(pairs), ordered)


def two_sided_p(differences: Array) -> float:
    """Return the two-sided p of no difference: twice the smaller share of replicates on either side of 0.

    A replicate at 0 counts on both sides, and the observed sample as one more replicate, so p is never 0.
    """
    finite = differences[~np.isnan(differences)]
    smaller = min(np.count_nonzero(finite <= 0), np.count_nonzero(finite >= 0))
    return float(min(1.0, 2 * (smaller + 1) / (len(finite) + 1)))


def holm(values: Sequence[float]) -> list[float]:
    """Return p values corrected for their number (Holm 1979), in the order given."""
    adjusted = [0.0] * len(values)
    highest = 0.0
    for rank, n in enumerate(sorted(range(len(values)), key=lambda n: values[n])):
        highest = max(highest, min(1.0, (len(values) - rank) * values[n]))
        adjusted[n] = highest
    return adjusted


def _values(entry: Entry, metric: str, scope: Scope) -> list[float]:
    values = entry.values(metric, scope.group, scope.role)
    if len(values) != len(entry.runs) or np.isnan(values).any():
        raise DataError(
            f"{' '.join(entry.label)} has no {metric} on {scope.name}",
            where=entry.runs[0][0].name,
            hint="leave it out with --detectors, or compare another metric or set",
        )
    return values


def _ranks_of(table: Array) -> Array:
    """Return the ranks of the entries in every replicate, shape as the table; the greatest is rank 1."""
    return np.stack([mean_ranks(-column) for column in np.nan_to_num(table, nan=-np.inf).T], axis=1)


def _pairs(
    entries: Sequence[Entry], means: Array, table: Array, order: Sequence[int], level: float
) -> list[Pair]:
    pairs = []
    for a, b in combinations(order, 2):
        difference = table[a] - table[b]
        better = interval(float(means[a] - means[b]), difference, level=level)
        p = two_sided_p(difference)
        first, second = (" ".join(entries[n].label) for n in (a, b))
        pairs.append(Pair(first, second, better.value, better.lo, better.hi, p, p))
    corrected = holm([pair.p for pair in pairs])
    return [replace(pair, p_holm=p) for pair, p in zip(pairs, corrected, strict=True)]
