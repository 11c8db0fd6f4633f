"""Mean and spread over runs, ranks with their intervals, and paired bootstrap significance.

Intervals are over the test images: each replicate draws the same images for every entry, values are averaged
over an entry's runs, and the entries of a replicate are ranked. The networks are taken as they are; what
another training run would change is the spread over runs beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from wordnet_splits.base.errors import DataError
from wordnet_splits.metrics import get_metric, interval, mean_ranks, spread

from ..arrays import Array
from ..evaluation.metric_rows import FULL_SPECTRUM
from .entries import Draw, Entry
from .scopes import Place, needed_groups, replicates_of

DIRECTIONS: Mapping[str, bool] = {
    "gamma": True,
    "gamma_plus": True,
    "gamma_minus": True,
    "nearness_trend": True,
}
"""Whether higher is better, of what is in results and is no metric of scores."""


@dataclass(frozen=True)
class Ranked:
    """One entry of a ranking; values are fractions.

    Attributes
    ----------
    n, mean, sd : over runs. lo, hi : over images; None without bootstrap.
    rank : 1 is best, equal means share the mean of their ranks. rank_lo, rank_hi : its interval.
    behind : how much worse than the best. p : of being as good as the best, two-sided.
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
    """The entries of one draw, best first, and their differences.

    Attributes
    ----------
    replicates : (entries, replicates) of them, in that order; None without bootstrap.
    """

    benchmark: str
    metric: str
    on: str
    higher_is_better: bool
    entries: tuple[Ranked, ...]
    pairs: tuple[Pair, ...]
    replicates: Array | None


def direction(metric: str) -> bool:
    """Return whether higher values of a metric of the results are better.

    Raises
    ------
    UnknownNameError : no such metric.
    """
    plain = metric.removesuffix(FULL_SPECTRUM).partition("[")[0]
    return DIRECTIONS[plain] if plain in DIRECTIONS else get_metric(plain).higher_is_better


def rank_entries(
    draw: Draw, metric: str, place: Place, *, replicates: int, seed: int = 0, level: float = 0.95
) -> Ranking:
    """Rank the entries of one draw by a metric at a place.

    Raises
    ------
    DataError : an entry has no value there, or the entries were scored on different images.
    """
    higher = direction(metric)
    sign = 1 if higher else -1
    values = [_values(entry, metric, place) for entry in draw.entries]
    draw.require_same_images(needed_groups(draw.entries[0], metric, place))
    drawn = [replicates_of(entry, metric, place, replicates=replicates, seed=seed) for entry in draw.entries]
    held = [one for one in drawn if one is not None]
    table = sign * np.array(held) if len(held) == len(drawn) else None
    means = np.array([np.mean(one) for one in values])
    ranks = mean_ranks(-sign * means)
    order = sorted(range(len(means)), key=lambda n: (ranks[n], n))
    rank_table = None if table is None else _ranks_of(table)
    best = order[0]
    ranked = []
    for n in order:
        entry, runs = draw.entries[n], spread(values[n])
        known = None if table is None else interval(float(means[n]), sign * table[n], level=level)
        place_of_it = None if rank_table is None else interval(ranks[n], rank_table[n], level=level)
        ranked.append(
            Ranked(
                *entry.label,
                runs.n,
                runs.mean,
                runs.sd,
                known and known.lo,
                known and known.hi,
                float(ranks[n]),
                place_of_it and place_of_it.lo,
                place_of_it and place_of_it.hi,
                float(sign * (means[best] - means[n])),
                None if table is None or n == best else two_sided(table[best] - table[n]),
            )
        )
    pairs = [] if table is None else _pairs(draw.entries, sign * means, table, order, level)
    return Ranking(
        draw.benchmark,
        metric,
        place.name,
        higher,
        tuple(ranked),
        tuple(pairs),
        None if table is None else np.asarray(sign * table[order]),
    )


def two_sided(differences: Array) -> float:
    """Return the two-sided p of no difference: twice the smaller share of replicates on either side of 0.

    A replicate at 0 counts on both sides, and the observed sample as one more replicate, so p is never 0.
    """
    held = differences[~np.isnan(differences)]
    least = min(np.count_nonzero(held <= 0), np.count_nonzero(held >= 0))
    return float(min(1.0, 2 * (least + 1) / (len(held) + 1)))


def holm(values: Sequence[float]) -> list[float]:
    """Return p values corrected for their number (Holm 1979), in the order given."""
    adjusted = [0.0] * len(values)
    highest = 0.0
    for rank, n in enumerate(sorted(range(len(values)), key=lambda n: values[n])):
        highest = max(highest, min(1.0, (len(values) - rank) * values[n]))
        adjusted[n] = highest
    return adjusted


def _values(entry: Entry, metric: str, place: Place) -> list[float]:
    values = entry.values(metric, place.group, place.role)
    if len(values) != len(entry.runs) or np.isnan(values).any():
        raise DataError(
            f"{' '.join(entry.label)} has no {metric} on {place.name}",
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
    found = []
    for a, b in combinations(order, 2):
        difference = table[a] - table[b]
        known = interval(float(means[a] - means[b]), difference, level=level)
        p = two_sided(difference)
        first, second = (" ".join(entries[n].label) for n in (a, b))
        found.append(Pair(first, second, known.value, known.lo, known.hi, p, p))
    corrected = holm([pair.p for pair in found])
    return [replace(pair, p_holm=p) for pair, p in zip(found, corrected, strict=True)]
