"""From the confidences of a benchmark's sets to rows of results: each set, near and far means, pooled.

Rows name what they are over in ``group`` and ``role``: a set by its own name and role, the unweighted mean
over sets as ``(mean)``, samples pooled as ``(pooled)`` with the roles that went in, as ``near+far``. In rows
whose metric ends in ``[full-spectrum]`` covariate-shifted ID counts as ID. Nothing but confidences and
correctness goes in, so rows are recomputed exactly from stored columns of them.

Further rows are by OOD class and by bin of similarity to the nearest ID class: is detection harder nearby?
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from wordnet_splits.metrics import (
    ClassAuroc,
    RankCounts,
    ScoreSet,
    aurc_unknown,
    auroc_by_nearness,
    auroc_per_class,
    bootstrap_replicates,
    evaluate,
    get_metric,
    interval,
    list_metrics,
    nearness_trend,
    pool,
    role_means,
)

from ..arrays import Array
from .schema import MetricOptions

MEAN, POOLED = "(mean)", "(pooled)"
FULL_SPECTRUM = "[full-spectrum]"
UNKNOWN_ROLES = ("near", "far")  # pooled by `aurc_unknown`; external sets are not part of a test
ON_ID = list_metrics(("id", "correct"))
ON_BOTH = tuple(name for name in list_metrics() if "ood" in get_metric(name).needs)


class MetricRow(NamedTuple):
    """One value; ``lo`` and ``hi`` are None without bootstrap, and where `has_interval` says no."""

    group: str
    role: str
    metric: str
    value: float
    lo: float | None
    hi: float | None
    n_id: int
    n_ood: int


def has_interval(metric: str) -> bool:
    """Say whether a bootstrap over images gives a metric an interval.

    It gives none to the gammas, which are no metrics of confidences, to `nearness_trend`, whose units are
    classes, and to `aurc_unknown` at another prevalence than the data's.
    """
    return not metric.startswith(("gamma", "nearness_trend", "aurc_unknown[prevalence="))


def measure(sets: Sequence[ScoreSet], options: MetricOptions) -> Iterator[MetricRow]:
    """Yield every row of one detector on the sets of one benchmark.

    Parameters
    ----------
    sets : confidences of the test split; the ID sets, and any number of near, far, external and csid sets.
    """
    yield from _on_id(sets, options)
    yield from _against_ood(sets, options, full_spectrum=False)
    if any(part.role == "csid" for part in sets):
        yield from _against_ood(sets, options, full_spectrum=True)


def _on_id(sets: Sequence[ScoreSet], options: MetricOptions) -> Iterator[MetricRow]:
    """Accuracy and misclassification detection: ID pooled, then each set where there are several."""
    known = [part for part in sets if part.is_id and part.correct is not None]
    inside = [part for part in known if part.role == "id"]
    shifted = [part for part in known if part.role == "csid"]
    if inside:
        yield from _rows(inside, POOLED, "id", ON_ID, options)[0]
    if inside and shifted:
        yield from _rows(inside + shifted, POOLED, "id", ON_ID, options, full_spectrum=True)[0]
    for part in shifted + (inside if len(inside) > 1 else []):
        yield from _rows([replace(part, role="id")], part.name, part.role, ON_ID, options)[0]


def _against_ood(
    sets: Sequence[ScoreSet], options: MetricOptions, *, full_spectrum: bool
) -> Iterator[MetricRow]:
    """ID against each OOD set, the means of near and of far sets, and all near and far sets pooled."""
    inside = [part for part in sets if part.is_id]
    outside = [part for part in sets if not part.is_id]
    table: dict[str, dict[str, MetricRow]] = {}
    drawn: dict[str, dict[str, Array]] = {}
    for part in outside:
        rows, drawn[part.name] = _rows(
            [*inside, part], part.name, part.role, ON_BOTH, options, full_spectrum=full_spectrum
        )
        table[part.name] = {row.metric: row for row in rows}
        yield from rows
    roles = {part.name: part.role for part in outside if part.role in UNKNOWN_ROLES}
    yield from _means(table, drawn, roles, options)
    pooled = [part for part in outside if part.name in roles]
    if pooled:
        role = "+".join(r for r in UNKNOWN_ROLES if r in roles.values())
        everything = [*inside, *pooled]
        yield from _rows(everything, POOLED, role, ON_BOTH, options, full_spectrum=full_spectrum)[0]
        yield from _at_prevalences(everything, role, options, full_spectrum)


def _rows(
    sets: Sequence[ScoreSet],
    group: str,
    role: str,
    names: Sequence[str],
    options: MetricOptions,
    *,
    full_spectrum: bool = False,
) -> tuple[list[MetricRow], dict[str, Array]]:
    """Rows of the pool of ``sets``, and the bootstrap replicates of each metric."""
    counts = pool(sets, full_spectrum=full_spectrum)
    chosen = [name for name in names if get_metric(name).computable(counts)]
    values = evaluate(counts, chosen)
    suffix = FULL_SPECTRUM if full_spectrum else ""
    drawn: dict[str, Array] = {}
    if options.replicates:
        found = bootstrap_replicates(
            sets, chosen, replicates=options.replicates, seed=options.seed, full_spectrum=full_spectrum
        )
        drawn = {name + suffix: found[name] for name in chosen}
    n_id, n_ood = int(counts.n_id), int(counts.n_ood)
    rows = [
        MetricRow(
            group, role, name + suffix, value, *_bounds(value, drawn.get(name + suffix), options), n_id, n_ood
        )
        for name, value in values.items()
    ]
    return rows, drawn


def _bounds(value: float, drawn: Array | None, options: MetricOptions) -> tuple[float | None, float | None]:
    if drawn is None:
        return None, None
    found = interval(value, drawn, level=options.level)
    return found.lo, found.hi


def _means(
    table: Mapping[str, Mapping[str, MetricRow]],
    drawn: Mapping[str, Mapping[str, Array]],
    roles: Mapping[str, str],
    options: MetricOptions,
) -> Iterator[MetricRow]:
    """Unweighted means over the near and over the far sets; replicates are averaged before their interval."""
    metrics = list(table[next(iter(roles))]) if roles else []
    for role in UNKNOWN_ROLES:
        names = [name for name in roles if roles[name] == role]
        if not names:
            continue
        for metric in metrics:
            rows = [table[name][metric] for name in names]
            value = role_means({row.group: row.value for row in rows}, roles)[role]
            mean = np.mean([drawn[name][metric] for name in names], axis=0) if options.replicates else None
            n_ood = sum(row.n_ood for row in rows)
            yield MetricRow(MEAN, role, metric, value, *_bounds(value, mean, options), rows[0].n_id, n_ood)


def _at_prevalences(
    sets: Sequence[ScoreSet], role: str, options: MetricOptions, full_spectrum: bool
) -> Iterator[MetricRow]:
    """`aurc_unknown` as it would be if a stated share of samples were OOD."""
    counts: RankCounts = pool(sets, full_spectrum=full_spectrum)
    if not get_metric("aurc_unknown").computable(counts):
        return
    suffix = FULL_SPECTRUM if full_spectrum else ""
    for share in options.prevalences:
        value = aurc_unknown(counts, prevalence=share)
        name = f"aurc_unknown[prevalence={share:g}]{suffix}"
        yield MetricRow(POOLED, role, name, value, None, None, int(counts.n_id), int(counts.n_ood))


class ClassRow(NamedTuple):
    """AUROC of all ID samples against one OOD class, and how near that class is to the nearest ID class."""

    group: str
    role: str
    source: str
    class_id: str
    similarity: float | None
    n_ood: int
    auroc: float


class BinRow(NamedTuple):
    """AUROC of all ID against OOD with low <= similarity < high; None where there is no such sample."""

    low: float
    high: float
    n_ood: int
    auroc: float | None


@dataclass(frozen=True, eq=False)
class Members:
    """The classes of one OOD set.

    Attributes
    ----------
    source : the set's source. class_ids : (n,) class of each sample.
    similarity : class -> similarity (class table's `mean`) to its nearest ID class, None without synset.
    """

    source: str
    class_ids: Array
    similarity: Mapping[str, float | None]


def by_nearness(
    sets: Sequence[ScoreSet], members: Mapping[str, Members], options: MetricOptions
) -> tuple[list[ClassRow], list[BinRow], list[MetricRow]]:
    """Return AUROC by OOD class, by bin of similarity to the nearest ID class, and whether it falls.

    Parameters
    ----------
    sets : as for `measure`. members : set -> classes of its samples; near and far sets are taken.
    """
    inside = np.concatenate([part.confidence for part in sets if part.role == "id"])
    outside = [part for part in sets if part.role in UNKNOWN_ROLES]
    classes: list[ClassRow] = []
    for part in outside:
        about = members[part.name]
        for found in auroc_per_class(inside, part.confidence, about.class_ids.tolist(), name=part.name):
            near = about.similarity[found.ood_class]
            classes.append(
                ClassRow(part.name, part.role, about.source, found.ood_class, near, found.n_ood, found.auroc)
            )
    if not outside:
        return classes, [], []
    confidence = np.concatenate([part.confidence for part in outside])
    similarity = _similarities(outside, members)
    mapped = ~np.isnan(similarity)
    bins = auroc_by_nearness(inside, confidence[mapped], similarity[mapped], bins=options.bins)
    rows = [BinRow(b.low, b.high, b.n_ood, b.auroc if b.n_ood else None) for b in bins]
    return classes, rows, [_trend(classes, len(inside))] if classes else []


def _similarities(outside: Sequence[ScoreSet], members: Mapping[str, Members]) -> Array:
    """Similarity of each sample's class to its nearest ID class, NaN where the class has no synset."""
    parts = []
    for part in outside:
        about = members[part.name]
        ids, which = np.unique(about.class_ids, return_inverse=True)
        values = [about.similarity[str(i)] for i in ids]
        parts.append(np.array([np.nan if v is None else v for v in values])[which])
    return np.concatenate(parts)


def _trend(classes: Sequence[ClassRow], n_id: int) -> MetricRow:
    """Rank correlation of similarity and AUROC over classes; negative: nearer classes are harder."""
    named = [(f"{row.group}/{row.class_id}", row) for row in classes]
    value = nearness_trend(
        [ClassAuroc(name, row.n_ood, row.auroc) for name, row in named],
        {name: row.similarity for name, row in named if row.similarity is not None},
    )
    role = "+".join(r for r in UNKNOWN_ROLES if any(row.role == r for row in classes))
    n_ood = sum(row.n_ood for row in classes)
    return MetricRow(POOLED, role, "nearness_trend", value, None, None, n_id, n_ood)
