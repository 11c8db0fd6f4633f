"""From the confidences of a benchmark's sets to rows of results: each set, near and far means, pooled.

Rows name what they are over in ``group`` and ``role``: a set by its own name and role, the unweighted mean
over sets as ``(mean)``, samples pooled as ``(pooled)`` with the roles that went in, as ``near+far``. In rows
whose metric ends in ``[full-spectrum]`` covariate-shifted ID counts as ID. Nothing but confidences and
correctness goes in, so rows are recomputed exactly from stored columns of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from wordnet_splits.metrics import (
    RankCounts,
    ScoreSet,
    aurc_unknown,
    bootstrap_replicates,
    evaluate,
    get_metric,
    interval,
    list_metrics,
    pool,
    role_means,
)

MEAN, POOLED = "(mean)", "(pooled)"
FULL_SPECTRUM = "[full-spectrum]"
UNKNOWN_ROLES = ("near", "far")  # pooled by `aurc_unknown`; external sets are no part of a test
ON_ID = list_metrics(("id", "correct"))
ON_BOTH = tuple(name for name in list_metrics() if "ood" in get_metric(name).needs)
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Options:
    """What is computed beside the metrics themselves.

    Attributes
    ----------
    replicates : bootstrap replicates behind ``lo`` and ``hi``; 0 for none.
    seed, level : of the bootstrap.
    prevalences : shares of OOD at which `aurc_unknown` is computed too.
    bins : equal bins of the similarity to the nearest ID class.
    """

    replicates: int = 0
    seed: int = 0
    level: float = 0.95
    prevalences: tuple[float, ...] = (0.5,)
    bins: int = 10

    def as_dict(self) -> dict[str, Any]:
        """Return the options as they are stored with results."""
        return asdict(self) | {"prevalences": list(self.prevalences)}


class Row(NamedTuple):
    """One value; ``lo`` and ``hi`` are None without bootstrap."""

    group: str
    role: str
    metric: str
    value: float
    lo: float | None
    hi: float | None
    n_id: int
    n_ood: int


def measure(sets: Sequence[ScoreSet], options: Options) -> Iterator[Row]:
    """Yield every row of one detector on the sets of one benchmark.

    Parameters
    ----------
    sets : confidences of the test split; the ID sets, and any number of near, far, external and csid sets.
    """
    yield from _on_id(sets, options)
    yield from _against_ood(sets, options, full_spectrum=False)
    if any(part.role == "csid" for part in sets):
        yield from _against_ood(sets, options, full_spectrum=True)


def _on_id(sets: Sequence[ScoreSet], options: Options) -> Iterator[Row]:
    """Accuracy and misclassification detection: ID pooled, then each set where there are several."""
    known = [part for part in sets if part.is_id and part.correct is not None]
    inside = [part for part in known if part.role == "id"]
    shifted = [part for part in known if part.role == "csid"]
    if inside:
        yield from _rows(inside, POOLED, "id", ON_ID, options)
    if inside and shifted:
        yield from _rows(inside + shifted, POOLED, "id", ON_ID, options, full_spectrum=True)
    for part in shifted + (inside if len(inside) > 1 else []):
        yield from _rows([replace(part, role="id")], part.name, part.role, ON_ID, options)


def _against_ood(sets: Sequence[ScoreSet], options: Options, *, full_spectrum: bool) -> Iterator[Row]:
    """ID against each OOD set, the means of near and of far sets, and all near and far sets pooled."""
    inside = [part for part in sets if part.is_id]
    outside = [part for part in sets if not part.is_id]
    table: dict[str, dict[str, Row]] = {}
    drawn: dict[str, dict[str, Array]] = {}
    for part in outside:
        rows, drawn[part.name] = _computed(
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
        yield from _rows(everything, POOLED, role, ON_BOTH, options, full_spectrum=full_spectrum)
        yield from _at_prevalences(everything, role, options, full_spectrum)


def _rows(
    sets: Sequence[ScoreSet],
    group: str,
    role: str,
    names: Sequence[str],
    options: Options,
    *,
    full_spectrum: bool = False,
) -> list[Row]:
    return _computed(sets, group, role, names, options, full_spectrum=full_spectrum)[0]


def _computed(
    sets: Sequence[ScoreSet],
    group: str,
    role: str,
    names: Sequence[str],
    options: Options,
    *,
    full_spectrum: bool,
) -> tuple[list[Row], dict[str, Array]]:
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
        Row(
            group, role, name + suffix, value, *_bounds(value, drawn.get(name + suffix), options), n_id, n_ood
        )
        for name, value in values.items()
    ]
    return rows, drawn


def _bounds(value: float, drawn: Array | None, options: Options) -> tuple[float | None, float | None]:
    if drawn is None:
        return None, None
    found = interval(value, drawn, level=options.level)
    return found.lo, found.hi


def _means(
    table: Mapping[str, Mapping[str, Row]],
    drawn: Mapping[str, Mapping[str, Array]],
    roles: Mapping[str, str],
    options: Options,
) -> Iterator[Row]:
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
            yield Row(MEAN, role, metric, value, *_bounds(value, mean, options), rows[0].n_id, n_ood)


def _at_prevalences(
    sets: Sequence[ScoreSet], role: str, options: Options, full_spectrum: bool
) -> Iterator[Row]:
    """`aurc_unknown` as it would be if a stated share of samples were OOD."""
    counts: RankCounts = pool(sets, full_spectrum=full_spectrum)
    if not get_metric("aurc_unknown").computable(counts):
        return
    suffix = FULL_SPECTRUM if full_spectrum else ""
    for share in options.prevalences:
        value = aurc_unknown(counts, prevalence=share)
        name = f"aurc_unknown[prevalence={share:g}]{suffix}"
        yield Row(POOLED, role, name, value, None, None, int(counts.n_id), int(counts.n_ood))
