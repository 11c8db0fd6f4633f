"""A detector's rows of results: metrics of each set, of near and far means, and of pooled sets.

``group`` and ``role`` of a row name its sets: a set by its name and role, the unweighted mean over sets as
``(mean)``, pooled samples as ``(pooled)`` with their roles, as ``near+far``. In rows whose metric ends in
``[full-spectrum]`` covariate-shifted ID counts as ID. Rows depend on confidences and correctness alone, so
they are recomputed exactly from the stored columns.

Further rows are by OOD class and by bin of similarity to the nearest ID class.
Tables head each metric by its label (`LABELS`), whose key is an equal name for it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np

from wordnet_splits.metrics import (
    ClassAuroc,
    ClusterDesign,
    RankCounts,
    ScoreSet,
    aurc_unknown,
    auroc_by_nearness,
    auroc_per_class,
    bootstrap_replicates,
    evaluate,
    get_metric,
    interval,
    nearness_trend,
    pool,
)
from wordnet_splits.metrics.registry import GAMMAS, METRICS, Metric, available_inputs

from ..data.arrays import Array
from .metadata import MetricOptions

LABELS: Final = {
    "accuracy": "ACC",
    "aupr_in": "AUPR-In",
    "aupr_in_trapezoid": "AUPR-In (trapezoid)",
    "aupr_out": "AUPR-Out",
    "aupr_out_trapezoid": "AUPR-Out (trapezoid)",
    "aurc": "AURC",
    "aurc_unknown": "AURC+OOD",
    "auroc": "AUROC",
    "auroc_failure": "AUROC (correct vs wrong)",
    "ccr_at_fpr_0.001": "CCR at 1e-3",
    "ccr_at_fpr_0.001_nearest": "CCR at 1e-3 (nearest)",
    "ccr_at_fpr_0.01": "CCR at 1e-2",
    "ccr_at_fpr_0.01_nearest": "CCR at 1e-2 (nearest)",
    "ccr_at_fpr_0.1": "CCR at 1e-1",
    "ccr_at_fpr_0.1_nearest": "CCR at 1e-1 (nearest)",
    "ccr_at_fpr_1": "CCR at 1",
    "ccr_at_fpr_1_nearest": "CCR at 1 (nearest)",
    "detection_error": "det. error (ID positive)",
    "detection_error_failure": "det. error (correct vs wrong)",
    "detection_error_ood_positive": "det. error (OOD positive)",
    "fpr95_failure": "FPR95 (correct vs wrong)",
    "fpr95_id_positive": "FPR95 (ID positive)",
    "fpr95_ood_positive": "FPR95 (OOD positive)",
    "fpr95_ood_positive_interpolated": "FPR95 (OOD positive, interpolated)",
    "gamma": "gamma",
    "gamma_minus": "gamma-",
    "gamma_plus": "gamma+",
    "oscr": "OSCR",
}
"""Key of a metric -> its heading; other metrics are headed by their keys."""
_KEYS: Final = {name.casefold(): key for key, label in LABELS.items() for name in (key, label)}


def label_of(metric: str) -> str:
    """Return the heading of a metric, given as in results.

    >>> label_of("auroc[full-spectrum]")
    'AUROC [full-spectrum]'
    """
    key, bracket, variant = metric.partition("[")
    return LABELS.get(key, key) + (f" [{variant}" if bracket else "")


def key_of_label(name: str) -> str:
    """Return the key of a metric as in results, given its key or its heading, in any case.

    >>> key_of_label("Auroc [full-spectrum]")
    'auroc[full-spectrum]'
    """
    label, bracket, variant = name.partition("[")
    label = label.strip() if bracket else label
    return _KEYS.get(label.casefold(), label) + (f"[{variant}" if bracket else "")


def factor_of(metric: str) -> tuple[float, str]:
    """Return the factor that a metric is printed with, and its text for titles."""
    return (1000, " x 1000") if "aurc" in metric or "augrc" in metric else (100, ", in %")


MEAN, POOLED = "(mean)", "(pooled)"
FULL_SPECTRUM = "[full-spectrum]"
UNKNOWN_ROLES = ("near", "far")  # pooled by `aurc_unknown`; external sets are not part of a test
NO_INTERVAL = frozenset({*GAMMAS, "nearness_trend"})


class MetricRow(NamedTuple):
    """A metric's value; ``lo`` and ``hi`` are None without bootstrap, if `has_interval` is false, and at the
    levels of classes and subtrees if no set of the row has several of these."""

    group: str
    role: str
    metric: str
    value: float
    lo: float | None
    hi: float | None
    n_id: int
    n_ood: int


def has_interval(metric: str) -> bool:
    """Return whether a bootstrap gives a metric an interval.

    Exceptions are the gammas, which are not metrics of confidences, `nearness_trend`, whose units are
    classes, and `aurc_unknown` with a prevalence that differs from the data's.
    """
    return metric not in NO_INTERVAL and not metric.startswith("aurc_unknown[prevalence=")


def metric_rows(
    sets: Sequence[ScoreSet], options: MetricOptions, *, left_out: Collection[str] = ()
) -> list[MetricRow]:
    """Return every row of a detector on the sets of a benchmark.

    Parameters
    ----------
    sets : confidences of the test split; the ID sets, and any number of near, far, external and csid sets.
        At levels other than ``images`` they have clusters, over which rows with OOD sets have intervals.
    left_out : names of metrics that are not computed.
    """
    metrics = [metric for name, metric in METRICS.entries().items() if name not in left_out]
    on_id = [metric for metric in metrics if "ood" not in metric.needs]
    with_ood = [metric for metric in metrics if "ood" in metric.needs]
    rows = [*_id_rows(sets, on_id, options), *_ood_rows(sets, with_ood, options, full_spectrum=False)]
    if any(score_set.role == "csid" for score_set in sets):
        rows += _ood_rows(sets, with_ood, options, full_spectrum=True)
    return rows


def _id_rows(
    sets: Sequence[ScoreSet], metrics: Sequence[Metric], options: MetricOptions
) -> Iterator[MetricRow]:
    """Yield accuracy and misclassification detection: ID pooled, then each ID set if there are several.

    Their intervals are over images at every level: the classes of a classifier are not random.
    """
    labelled = [
        replace(score_set, clusters=None)
        for score_set in sets
        if score_set.is_id and score_set.correct is not None
    ]
    standard = [score_set for score_set in labelled if score_set.role == "id"]
    shifted = [score_set for score_set in labelled if score_set.role == "csid"]
    if standard:
        yield from _pooled_rows(standard, POOLED, "id", metrics, options)[0]
    if standard and shifted:
        yield from _pooled_rows(standard + shifted, POOLED, "id", metrics, options, full_spectrum=True)[0]
    for score_set in shifted + (standard if len(standard) > 1 else []):
        yield from _pooled_rows(
            [replace(score_set, role="id")], score_set.name, score_set.role, metrics, options
        )[0]


def _ood_rows(
    sets: Sequence[ScoreSet], metrics: Sequence[Metric], options: MetricOptions, *, full_spectrum: bool
) -> Iterator[MetricRow]:
    """Yield ID against each OOD set, the means of near and of far sets, and near and far sets pooled."""
    id_sets = [score_set for score_set in sets if score_set.is_id]
    ood_sets = {score_set.name: score_set for score_set in sets if not score_set.is_id}
    table: dict[str, dict[str, MetricRow]] = {}
    replicates: dict[str, dict[str, Array]] = {}
    for score_set in ood_sets.values():
        rows, replicates[score_set.name] = _pooled_rows(
            [*id_sets, score_set],
            score_set.name,
            score_set.role,
            metrics,
            options,
            full_spectrum=full_spectrum,
        )
        table[score_set.name] = {row.metric: row for row in rows}
        yield from rows
    unknown = {name: score_set for name, score_set in ood_sets.items() if score_set.role in UNKNOWN_ROLES}
    yield from _mean_rows(table, replicates, unknown, options)
    if unknown:
        roles = {score_set.role for score_set in unknown.values()}
        role = "+".join(r for r in UNKNOWN_ROLES if r in roles)
        pooled = [*id_sets, *unknown.values()]
        yield from _pooled_rows(pooled, POOLED, role, metrics, options, full_spectrum=full_spectrum)[0]
        yield from _prevalence_rows(pooled, role, options, full_spectrum)


def _pooled_rows(
    sets: Sequence[ScoreSet],
    group: str,
    role: str,
    metrics: Sequence[Metric],
    options: MetricOptions,
    *,
    full_spectrum: bool = False,
) -> tuple[list[MetricRow], dict[str, Array]]:
    """Return rows of the pool of ``sets``, and the bootstrap replicates of each metric."""
    counts = pool(sets, full_spectrum=full_spectrum)
    available = available_inputs(counts)
    computable = [metric for metric in metrics if not {*metric.needs}.difference(available)]
    suffix = FULL_SPECTRUM if full_spectrum else ""
    replicates: dict[str, Array] = {}
    design = None
    if options.replicates:
        design = ClusterDesign.from_pools([[score_set for score_set in sets if not score_set.is_id]])
        names = [metric.name for metric in computable]
        by_name = bootstrap_replicates(
            sets, names, replicates=options.replicates, seed=options.seed, full_spectrum=full_spectrum
        )
        replicates = {name + suffix: by_name[name] for name in names}
    sizes = int(counts.n_id), int(counts.n_ood)
    rows = []
    for name, value in evaluate(counts, computable).items():
        bounds = _bounds(name, value, replicates.get(name + suffix), design, options)
        rows.append(MetricRow(group, role, name + suffix, value, *bounds, *sizes))
    return rows, replicates


def _bounds(
    metric: str, value: float, replicates: Array | None, design: ClusterDesign | None, options: MetricOptions
) -> tuple[float | None, float | None]:
    if replicates is None or (design is not None and not design.clusters):
        return None, None
    clip = get_metric(metric.removesuffix(FULL_SPECTRUM)).is_share
    _, lo, hi = interval(value, replicates, design, level=options.level, clip=clip)
    return lo, hi


def _mean_rows(
    table: Mapping[str, Mapping[str, MetricRow]],
    replicates: Mapping[str, Mapping[str, Array]],
    sets: Mapping[str, ScoreSet],
    options: MetricOptions,
) -> Iterator[MetricRow]:
    """Yield unweighted means over the near and over the far sets, their intervals from mean replicates."""
    metrics = list(table[next(iter(sets))]) if sets else []
    for role in UNKNOWN_ROLES:
        groups = [group for group in sets if sets[group].role == role]
        if not groups:
            continue
        pools = [[sets[group]] for group in groups]
        design = ClusterDesign.from_pools(pools) if options.replicates else None
        for metric in metrics:
            rows = [table[group][metric] for group in groups]
            value = float(np.mean([row.value for row in sorted(rows)]))
            mean = None
            if options.replicates:
                mean = np.mean([replicates[group][metric] for group in groups], axis=0)
            n_ood = sum(row.n_ood for row in rows)
            bounds = _bounds(metric, value, mean, design, options)
            yield MetricRow(MEAN, role, metric, value, *bounds, rows[0].n_id, n_ood)


def _prevalence_rows(
    sets: Sequence[ScoreSet], role: str, options: MetricOptions, full_spectrum: bool
) -> Iterator[MetricRow]:
    """Yield `aurc_unknown` as it would be if a stated share of samples were OOD."""
    counts: RankCounts = pool(sets, full_spectrum=full_spectrum)
    if not get_metric("aurc_unknown").computable(counts):
        return
    suffix = FULL_SPECTRUM if full_spectrum else ""
    for share in options.prevalences:
        value = aurc_unknown(counts, prevalence=share)
        name = f"aurc_unknown[prevalence={share:g}]{suffix}"
        yield MetricRow(POOLED, role, name, value, None, None, int(counts.n_id), int(counts.n_ood))


class ClassRow(NamedTuple):
    """AUROC of all ID samples against one OOD class, and its similarity to the nearest ID class."""

    group: str
    role: str
    source: str
    class_id: str
    similarity: float | None
    n_ood: int
    auroc: float


class BinRow(NamedTuple):
    """AUROC of all ID against OOD with low <= similarity < high; None without such samples."""

    low: float
    high: float
    n_ood: int
    auroc: float | None


@dataclass(frozen=True, eq=False)
class Members:
    """The classes of an OOD set.

    Attributes
    ----------
    source : the set's source.
    class_ids : (n,) class of each sample.
    similarity : class -> similarity (class table's `mean`) to its nearest ID class, None without synset.
    """

    source: str
    class_ids: Array
    similarity: Mapping[str, float | None]


def nearness_rows(
    sets: Sequence[ScoreSet], members: Mapping[str, Members], options: MetricOptions
) -> tuple[list[ClassRow], list[BinRow], list[MetricRow]]:
    """Return AUROC by OOD class, by bin of similarity to the nearest ID class, and their rank correlation.

    Parameters
    ----------
    sets : as for `metric_rows`; near and far sets are used.
    members : set -> classes of its samples.
    """
    id_scores = np.concatenate([score_set.confidence for score_set in sets if score_set.role == "id"])
    ood_sets = [score_set for score_set in sets if score_set.role in UNKNOWN_ROLES]
    classes: list[ClassRow] = []
    for score_set in ood_sets:
        of_set = members[score_set.name]
        by_class = auroc_per_class(
            id_scores, score_set.confidence, of_set.class_ids.tolist(), name=score_set.name
        )
        for name, n_ood, auroc in by_class:
            similarity = of_set.similarity[name]
            classes.append(
                ClassRow(score_set.name, score_set.role, of_set.source, name, similarity, n_ood, auroc)
            )
    if not ood_sets:
        return classes, [], []
    confidence = np.concatenate([score_set.confidence for score_set in ood_sets])
    similarities = np.concatenate(
        [
            [np.nan if (value := of_set.similarity[str(i)]) is None else value for i in of_set.class_ids]
            for of_set in (members[score_set.name] for score_set in ood_sets)
        ]
    )
    mapped = ~np.isnan(similarities)
    bins = auroc_by_nearness(id_scores, confidence[mapped], similarities[mapped], bins=options.bins)
    rows = [BinRow(b.low, b.high, b.n_ood, b.auroc if b.n_ood else None) for b in bins]
    return classes, rows, [_trend_row(classes, len(id_scores))] if classes else []


def _trend_row(classes: Sequence[ClassRow], n_id: int) -> MetricRow:
    """Return the rank correlation of similarity and AUROC over classes; negative: nearer ones are harder."""
    by_name = {f"{row.group}/{row.class_id}": row for row in classes}
    value = nearness_trend(
        [ClassAuroc(name, row.n_ood, row.auroc) for name, row in by_name.items()],
        {name: row.similarity for name, row in by_name.items() if row.similarity is not None},
    )
    role = "+".join(r for r in UNKNOWN_ROLES if any(row.role == r for row in classes))
    n_ood = sum(row.n_ood for row in classes)
    return MetricRow(POOLED, role, "nearness_trend", value, None, None, n_id, n_ood)
