"""Mean and spread over runs, ranks with their intervals, and paired bootstrap significance.

Intervals are over the test images, or over OOD classes or their subtrees: each replicate draws the same for
every entry, and values are averaged over an entry's runs. The networks are fixed; how much another training
run would change is the spread over runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.stats import rankdata

from wordnet_splits.base.errors import DataError, UnknownNameError, unknown
from wordnet_splits.benchmark.clusters import Level
from wordnet_splits.metrics import (
    ClusterDesign,
    get_metric,
    interval,
    paired_replicates,
    pool,
    spread,
)
from wordnet_splits.metrics.uncertainty import scarce_units

from ..data.arrays import Array
from ..results.clusters import ImageClusters
from ..results.metric_rows import FULL_SPECTRUM, MEAN, POOLED, UNKNOWN_ROLES
from ..results.tables import ResultSets
from .entries import BenchmarkResults, Entry
from .significance import pair_tests


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


def entry_replicates(
    entries: Sequence[Entry], metric: str, scope: Scope, *, replicates: int, seed: int
) -> tuple[Array, ClusterDesign | None] | None:
    """Return (entries, replicates) values of a metric, means over each entry's runs, and what was drawn.

    A replicate draws the same images for every entry, or classes or subtrees if the images have clusters;
    without clusters, the design is None.

    Return None if ``replicates`` is 0, for values other than metrics, and for a user's metric that is not
    installed.
    """
    standard = metric.removesuffix(FULL_SPECTRUM)
    try:
        definition = get_metric(standard)
    except UnknownNameError:
        return None
    if not replicates:
        return None
    id_roles, full_spectrum = _id_roles(metric), standard != metric
    runs = [(number, run) for number, entry in enumerate(entries) for run in entry.scored()]
    owners = np.array([number for number, _ in runs])
    values = np.zeros((len(entries), replicates))
    observed = np.zeros(len(entries))
    pools = []
    for groups in scope.pools:
        sets = [
            [*(part for part in run.values() if part.role in id_roles), *(run[group] for group in groups)]
            for _, run in runs
        ]
        drawn = paired_replicates(
            sets, standard, replicates=replicates, seed=seed, full_spectrum=full_spectrum
        )
        pools.append([part for part in sets[0] if not part.is_id])
        for number in range(len(entries)):
            values[number] += drawn[owners == number].mean(axis=0) / len(scope.pools)
        if definition.origin:
            of_runs = [float(definition.kernel(pool(part, full_spectrum=full_spectrum))) for part in sets]
            for number in range(len(entries)):
                observed[number] += np.mean(np.array(of_runs)[owners == number]) / len(scope.pools)
    if definition.origin:
        _require_same_definition(entries, metric, scope, observed)
    return values, ClusterDesign.from_pools(pools)


def _require_same_definition(entries: Sequence[Entry], metric: str, scope: Scope, observed: Array) -> None:
    """Raise DataError if the stored values of a user's metric differ from those ``observed`` now."""
    for entry, now in zip(entries, observed, strict=True):
        stored = np.mean(entry.values(metric, scope.group, scope.role))
        if not np.isclose(now, stored, equal_nan=True):
            raise DataError(
                f"{metric} had another definition when these results were computed: {stored:.6g}, "
                f"now {now:.6g}",
                where=" ".join(entry.label),
                hint="evaluate again, or `recompute` the results",
            )


def _id_roles(metric: str) -> tuple[str, ...]:
    return ("id", "csid") if metric.endswith(FULL_SPECTRUM) else ("id",)


@dataclass(frozen=True)
class Ranked:
    """One entry of a ranking; values are fractions.

    Attributes
    ----------
    n, mean, sd : over runs.
    lo, hi : over images, classes or subtrees; None without bootstrap.
    rank : 1 is best, equal means share the mean of their ranks.
    rank_lo, rank_hi : its interval, simultaneous for all entries. The best may be any entry with rank_lo 1.
    behind : difference to the best entry.
    p, p_adjusted : of being as good as the best, two-sided; corrected for all pairs. None if unknown.
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
    p_adjusted: float | None

    @property
    def name(self) -> str:
        """Model and detector, as in pairs."""
        return f"{self.model} {self.detector}"


@dataclass(frozen=True)
class Pair:
    """Two entries: how much better the first is, and the tests of that (`significance.PairTests`)."""

    a: str
    b: str
    better: float
    lo: float | None
    hi: float | None
    p: float | None
    p_adjusted: float | None
    above: float | None
    above_lo: float | None
    above_hi: float | None


@dataclass(frozen=True)
class Ranking:
    """Entries of a draw, best first, and the differences between all pairs.

    Attributes
    ----------
    replicates : (entries, replicates) values in that order; None without bootstrap.
    shifted : the covariate-shifted sets that the metric counts as ID, none unless it is full-spectrum.
    level : of the intervals; pairs differ if their adjusted p is at most 1 - level.
    groups : the OOD sets.
    clusters, design : the classes or subtrees that were drawn, None for images.
    scarce : units that are so few that intervals may miss their level (`scarce_units`), None if enough.
    undefined : replicates that pairs leave out, since an entry has no value in them.
    """

    benchmark: str
    metric: str
    on: str
    higher_is_better: bool
    entries: tuple[Ranked, ...]
    pairs: tuple[Pair, ...]
    replicates: Array | None
    shifted: tuple[str, ...] = ()
    level: float = 0.95
    groups: tuple[str, ...] = ()
    clusters: ImageClusters | None = None
    design: ClusterDesign | None = None
    scarce: Literal["images", "clusters"] | None = None
    undefined: int = 0

    @property
    def over(self) -> Level:
        """What was drawn: images, classes or subtrees."""
        return "images" if self.clusters is None else self.clusters.over


def higher_is_better(metric: str, draw: BenchmarkResults) -> bool:
    """Return whether higher values of a metric are better; the results record this of users' metrics."""
    directions = {evaluation.results.about.higher_is_better(metric) for evaluation in draw.results}
    if len(directions) > 1:
        raise DataError(f"higher is better of {metric!r} in some of the results, and lower in others")
    return directions.pop()


def rank_entries(
    draw: BenchmarkResults, metric: str, scope: Scope, *, replicates: int, seed: int = 0, level: float = 0.95
) -> Ranking:
    """Rank the entries of a draw by a metric, over images or the clusters that the draw has.

    Raises
    ------
    DataError : the entries lack the metric or are on different images; over clusters, the metric has no
        replicates, or the scope has no OOD set.
    """
    higher = higher_is_better(metric, draw)
    sign = 1 if higher else -1
    values = [_values(entry, metric, scope) for entry in draw.entries]
    require_same_images(draw, metric, scope)
    clusters = draw.results[0].clusters
    groups = tuple(dict.fromkeys(group for pool in scope.pools for group in pool))
    if clusters is not None and not {*groups} & clusters.sets.keys():
        hint = f"give --on another set, or --over images instead of {clusters.over}"
        raise DataError(f"no OOD classes are part of {metric} on {scope.name}", where="--over", hint=hint)
    found = entry_replicates(draw.entries, metric, scope, replicates=replicates, seed=seed)
    if found is None and clusters is not None and replicates:
        raise DataError(f"{metric} has no intervals over {clusters.over}", where="--over")
    drawn, design = found or (None, None)
    if design is not None and not design.clusters:
        drawn = None
    means = np.array([np.mean(of_runs) for of_runs in values])
    ranks = rankdata(-sign * means)
    order = sorted(range(len(means)), key=lambda n: (ranks[n], n))
    labels = [" ".join(draw.entries[n].label) for n in order]
    drawn = None if drawn is None else drawn[order]
    pairs, bounds, undefined = _pairs(labels, sign * means[order], drawn, sign, design, level)
    behind_best = {pair.b: pair for pair in pairs if pair.a == labels[0]}
    is_share, scarce = False, None
    if drawn is not None:
        standard, parts = metric.removesuffix(FULL_SPECTRUM), draw.entries[0].scored()[0]
        is_share = get_metric(standard).is_share
        n_ood = min(sum(len(parts[group].confidence) for group in pool) for pool in scope.pools)
        scarce = scarce_units(standard, n_ood, design)
    ranked = []
    for place, n in enumerate(order):
        label, (mean, sd, count) = draw.entries[n].label, spread(values[n])
        lo = hi = rank_lo = rank_hi = None
        if drawn is not None:
            lo, hi = interval_over(float(means[n]), drawn[place], design, level=level, clip=is_share)
            rank_lo, rank_hi = map(float, bounds[place])
        rank, behind = float(ranks[n]), float(sign * (means[order[0]] - means[n]))
        to_best = behind_best.get(labels[place])
        p, adjusted = (None, None) if to_best is None else (to_best.p, to_best.p_adjusted)
        ranked.append(Ranked(*label, count, mean, sd, lo, hi, rank, rank_lo, rank_hi, behind, p, adjusted))
    return Ranking(
        draw.benchmark,
        metric,
        scope.name,
        higher,
        tuple(ranked),
        tuple(pairs),
        drawn,
        _shifted(draw, metric),
        level,
        groups,
        clusters,
        design,
        scarce,
        undefined,
    )


def interval_over(
    value: float, replicates: Array, design: ClusterDesign | None, *, level: float, clip: bool = False
) -> tuple[float | None, float | None]:
    """Return the bounds of `interval`, None for unknown ones."""
    _, lo, hi = interval(value, replicates, design, level=level, clip=clip)
    return _known(lo), _known(hi)


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def require_same_images(draw: BenchmarkResults, metric: str, scope: Scope) -> None:
    """Raise DataError unless a metric of every entry is of the same ID images and images of a scope."""
    id_roles, first = _id_roles(metric), draw.entries[0]
    id_groups = [group for run, _ in first.runs for group, role in run.roles.items() if role in id_roles]
    pooled = (group for pool in scope.pools for group in pool)
    draw.require_same_images(dict.fromkeys([*id_groups, *_shifted(draw, metric), *pooled]))


def _shifted(draw: BenchmarkResults, metric: str) -> tuple[str, ...]:
    """Return the covariate-shifted sets that a metric counts as ID."""
    return draw.shifted_sets if metric.endswith(FULL_SPECTRUM) else ()


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
    names: Sequence[str],
    values: Array,
    replicates: Array | None,
    sign: int,
    design: ClusterDesign | None,
    level: float,
) -> tuple[list[Pair], Array, int]:
    """Return all pairs of entries, their bounds of ranks, and the number of undefined replicates.

    Parameters
    ----------
    values : (entries,), best first; higher is better, as of ``sign`` times the ``replicates``.
    """
    if replicates is None:
        return [], np.empty((len(names), 2)), 0
    table = sign * replicates
    tests = pair_tests(values, table, design, level=level)
    pairs = []
    columns = (tests.p, tests.p_adjusted, tests.above, tests.above_lo, tests.above_hi)
    for n, (a, b) in enumerate(tests.pairs):
        better = float(values[a] - values[b])
        lo, hi = interval_over(better, table[a] - table[b], design, level=level)
        pairs.append(Pair(names[a], names[b], better, lo, hi, *(_known(column[n]) for column in columns)))
    return pairs, tests.rank_bounds(values, 1 - level), tests.undefined
