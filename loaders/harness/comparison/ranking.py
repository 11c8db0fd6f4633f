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
from scipy.stats import rankdata

from wordnet_splits.base.errors import DataError, UnknownNameError, unknown
from wordnet_splits.metrics import (
    ScoreSet,
    bootstrap_replicates,
    get_metric,
    interval,
    pool,
    spread,
)

from ..data.arrays import Array
from ..results.metric_rows import FULL_SPECTRUM, MEAN, POOLED, UNKNOWN_ROLES
from ..results.tables import ResultSets
from .entries import BenchmarkResults, Entry


@dataclass(frozen=True)
class Scope:
    """The sets that a row of results covers.

    Attributes
    ----------
    name : ``pooled``, ``id``, ``near``, ``far`` (means over sets), or a set.
    group, role : of the rows.
    pools : OOD sets of each averaged value; every value also covers the ID sets.
    """

    name: str
    group: str
    role: str
    pools: tuple[tuple[str, ...], ...]


def scope_named(name: str, sets: ResultSets) -> Scope:
    """Return the scope called ``name``; raise UnknownNameError if results with these sets have none."""
    scopes = {scope.name: scope for scope in list_scopes(sets)}
    if name not in scopes:
        raise unknown("set or mean", name, scopes, where="--on")
    return scopes[name]


def list_scopes(sets: ResultSets) -> list[Scope]:
    """Return every scope of results with these sets."""
    unknown_sets = tuple(group for group, role in sets.roles.items() if role in UNKNOWN_ROLES)
    scopes = [Scope("id", POOLED, "id", ((),))]
    if unknown_sets:
        scopes.append(Scope("pooled", POOLED, sets.pooled_role, (unknown_sets,)))
    for role in UNKNOWN_ROLES:
        if of_role := [group for group in unknown_sets if sets.roles[group] == role]:
            scopes.append(Scope(role, MEAN, role, tuple((group,) for group in of_role)))
    return scopes + [Scope(group, group, role, ((group,),)) for group, role in sets.roles.items()]


def entry_replicates(entry: Entry, metric: str, scope: Scope, *, replicates: int, seed: int) -> Array | None:
    """Return (replicates,) values of a metric, means over the entry's runs.

    Return None if ``replicates`` is 0, for values other than metrics, and for a user's metric that is not
    installed.

    The images of replicate r are the same for every entry that was scored on the same images.
    """
    standard = metric.removesuffix(FULL_SPECTRUM)
    try:
        definition = get_metric(standard)
    except UnknownNameError:
        return None
    if not replicates:
        return None
    id_roles = _id_roles(metric)
    values = []
    observed = []
    for run in entry.scored():
        id_sets = [score_set for score_set in run.values() if score_set.role in id_roles]
        for groups in scope.pools:
            sets: Sequence[ScoreSet] = [*id_sets, *(run[group] for group in groups)]
            if definition.origin:
                observed.append(definition.kernel(pool(sets, full_spectrum=standard != metric)))
            values.append(
                bootstrap_replicates(
                    sets,
                    [standard],
                    replicates=replicates,
                    seed=seed,
                    full_spectrum=standard != metric,
                    paired=True,
                )[standard]
            )
    stored = entry.values(metric, scope.group, scope.role)
    if observed and not np.isclose(np.mean(observed), np.mean(stored), equal_nan=True):
        raise DataError(
            f"{standard} had another definition when these results were computed: {np.mean(stored):.6g}, "
            f"now {np.mean(observed):.6g}",
            where=" ".join(entry.label),
            hint="evaluate again, or `recompute` the results",
        )
    return np.asarray(np.mean(values, axis=0))


def _id_roles(metric: str) -> tuple[str, ...]:
    return ("id", "csid") if metric.endswith(FULL_SPECTRUM) else ("id",)


@dataclass(frozen=True)
class Ranked:
    """One entry of a ranking; values are fractions.

    Attributes
    ----------
    n, mean, sd : over runs.
    lo, hi : over images; None without bootstrap.
    rank : 1 is best, equal means share the mean of their ranks.
    rank_lo, rank_hi : its interval.
    behind : difference to the best entry.
    p : of being as good as the best, two-sided.
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
    """Entries of a draw, best first, and the differences between all pairs.

    Attributes
    ----------
    replicates : (entries, replicates) values in that order; None without bootstrap.
    shifted : the covariate-shifted sets that the metric counts as ID, none unless it is full-spectrum.
    """

    benchmark: str
    metric: str
    on: str
    higher_is_better: bool
    entries: tuple[Ranked, ...]
    pairs: tuple[Pair, ...]
    replicates: Array | None
    shifted: tuple[str, ...] = ()


def higher_is_better(metric: str, draw: BenchmarkResults) -> bool:
    """Return whether higher values of a metric are better; the results record this of users' metrics."""
    directions = {evaluation.results.about.higher_is_better(metric) for evaluation in draw.results}
    if len(directions) > 1:
        raise DataError(f"higher is better of {metric!r} in some of the results, and lower in others")
    return directions.pop()


def rank_entries(
    draw: BenchmarkResults, metric: str, scope: Scope, *, replicates: int, seed: int = 0, level: float = 0.95
) -> Ranking:
    """Rank the entries of a draw by a metric."""
    higher = higher_is_better(metric, draw)
    sign = 1 if higher else -1
    values = [_values(entry, metric, scope) for entry in draw.entries]
    require_same_images(draw, metric, scope)
    by_entry = [
        entry_replicates(entry, metric, scope, replicates=replicates, seed=seed) for entry in draw.entries
    ]
    drawn = [entry for entry in by_entry if entry is not None]
    table = sign * np.array(drawn) if len(drawn) == len(by_entry) else None
    means = np.array([np.mean(of_runs) for of_runs in values])
    ranks = rankdata(-sign * means)
    order = sorted(range(len(means)), key=lambda n: (ranks[n], n))
    rank_table = None if table is None else rankdata(-np.nan_to_num(table, nan=-np.inf), axis=0)
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
    return Ranking(
        draw.benchmark,
        metric,
        scope.name,
        higher,
        tuple(ranked),
        tuple(pairs),
        ordered,
        _shifted(draw, metric),
    )


def require_same_images(draw: BenchmarkResults, metric: str, scope: Scope) -> None:
    """Raise DataError unless a metric of every entry is of the same ID images and images of a scope."""
    id_roles, first = _id_roles(metric), draw.entries[0]
    id_groups = [group for run, _ in first.runs for group, role in run.roles.items() if role in id_roles]
    pooled = (group for pool in scope.pools for group in pool)
    draw.require_same_images(dict.fromkeys([*id_groups, *_shifted(draw, metric), *pooled]))


def _shifted(draw: BenchmarkResults, metric: str) -> tuple[str, ...]:
    """Return the covariate-shifted sets that a metric counts as ID."""
    return draw.shifted_sets if metric.endswith(FULL_SPECTRUM) else ()


def two_sided_p(differences: Array) -> float:
    """Return the two-sided p of no difference: twice the smaller share of replicates on either side of 0.

    A replicate at 0 counts on both sides. The observed sample is an additional replicate, so p is never 0.
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
