"""The sets of an evaluation, and all rows of results computed from their scores and predictions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wordnet_splits.base.errors import DataError, unknown
from wordnet_splits.base.progress import Progress, Silent, choose_progress
from wordnet_splits.benchmark.manifest import GroupRow, Manifest
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.metrics import composition, gamma, gamma_minus, gamma_plus, interval
from wordnet_splits.metrics.calibration import Outputs, calibration_replicates, calibration_values
from wordnet_splits.metrics.resampling import REPLICATES
from wordnet_splits.metrics.summary import ID_ROLES

from .clusters import clusters_of_intervals
from .metadata import (
    DISJOINT,
    NOT_CHOSEN,
    ClusterCount,
    MetricFacts,
    MetricOptions,
    MissingSet,
    ResultsMetadata,
    RunFacts,
    metric_options,
    user_metrics,
)
from .metric_rows import FULL_SPECTRUM, POOLED, UNKNOWN_ROLES, MetricRow, metric_rows, nearness_rows
from .results import Results
from .scores import (
    BY_CLASS,
    BY_NEARNESS,
    MODEL,
    RESULTS,
    ClassKey,
    DetectorRun,
    ImagesBySet,
    ScoredImages,
    confidences_of,
    predicted_keys,
    scored_keys,
    table_of,
)

ADDED: Final[Mapping[str, str]] = {
    "detection_error_failure": "auroc_failure",
    "fpr95_failure": "auroc_failure",
}
"""Metric that is newer than the committed results -> an older metric that needs the same inputs."""
ORDER = ("id", "csid", "near", "far", "external")
"""Roles, in the order that sets are scored and printed."""


@dataclass(frozen=True, eq=False)
class ComputedRows:
    """Rows by detector and run, in the order of the scores."""

    results: list[tuple[DetectorRun, MetricRow]]
    by_class: pa.Table
    by_nearness: pa.Table
    composition: Mapping[str, Any]
    clusters: dict[str, ClusterCount | str]

    def result_table(self, models: Mapping[int, str]) -> pa.Table:
        """Return `scores.RESULTS`, given the model of each run."""
        return table_of([(models[run], run, name, *row) for (name, run), row in self.results], RESULTS)


def compute_rows(
    scores: pa.Table,
    predictions: pa.Table,
    similarity: Mapping[ClassKey, float | None],
    options: MetricOptions,
    runs: Sequence[RunFacts],
    *,
    manifest: Manifest | None = None,
    with_intervals: Collection[DetectorRun] | None = None,
    left_out: Collection[str] = (),
    progress: Progress | None = None,
) -> ComputedRows:
    """Compute every row of results from a score table (`scores.check_scores`).

    Parameters
    ----------
    similarity : of each class to its nearest ID class.
    runs : the networks that were scored.
    manifest : the benchmark, for subtrees of its classes.
    with_intervals : the detectors and runs whose intervals are computed, if the options enable intervals; by
        default all.
    left_out : names of metrics that are not computed.
    """
    rows: list[tuple[DetectorRun, MetricRow]] = []
    class_rows: list[tuple[Any, ...]] = []
    bin_rows: list[tuple[Any, ...]] = []
    pooled: dict[str, Any] = {}
    without_intervals = options.model_copy(update={"replicates": 0})

    def options_of(key: DetectorRun) -> MetricOptions:
        return options if with_intervals is None or key in with_intervals else without_intervals

    codes, clusters = None, dict[str, ClusterCount | str]()
    if options.over != "images":
        codes, clusters = clusters_of_intervals(scores, options.over, options.cut, manifest)
    images, keys = ImagesBySet(scores, codes), scored_keys(scores)
    facts = {run.run: run for run in runs}
    for key in predicted_keys(predictions):
        if key[0] != MODEL:
            continue
        scored = ScoredImages(images, predictions, key)
        rows.extend((key, row) for row in _gammas(scored, facts[key[1]]))
        rows.extend((key, row) for row in _calibration(scored, options_of(key)))
    members = {group: images.members(group, similarity) for group in images.roles}
    with (progress or Silent()).task("detectors measured", len(keys)) as task:
        for key in keys:
            scored, confidence = ScoredImages(images, predictions, key), confidences_of(scores, key)
            sets = [scored.score_set(group, confidence) for group in images.roles]
            classes, bins, trend = nearness_rows(sets, members, options)
            of_scores = metric_rows(sets, options_of(key), left_out=left_out)
            rows.extend((key, row) for row in [*of_scores, *trend])
            class_rows.extend((*key, *row) for row in classes)
            bin_rows.extend((*key, *row) for row in bins)
            in_pool = [score_set for score_set in sets if score_set.role in ("id", *UNKNOWN_ROLES)]
            pooled = pooled or composition(in_pool)._asdict()
            task.advance()
    tables = table_of(class_rows, BY_CLASS), table_of(bin_rows, BY_NEARNESS)
    return ComputedRows(rows, *tables, pooled, clusters)


def similarities(by_class: pa.Table) -> dict[ClassKey, float | None]:
    """Return the similarity of each class to its nearest ID class, from `scores.BY_CLASS`."""
    rows = by_class.select(["source", "class_id", "similarity"]).to_pylist()
    return {(row["source"], row["class_id"]): row["similarity"] for row in rows}


def _calibration(images: ScoredImages, options: MetricOptions) -> Iterator[MetricRow]:
    """Yield calibration errors, Brier score and NLL: ID pooled, then each ID set if there are several."""
    outputs = {group: images.outputs(group) for group in images.roles if images.roles[group] in ID_ROLES}
    known = {group: part for group, part in outputs.items() if part is not None}
    standard = [group for group in known if images.roles[group] == "id"]
    shifted = [group for group in known if images.roles[group] == "csid"]
    if len(standard) < sum(images.roles[group] == "id" for group in outputs):
        return  # a pool needs all of its sets
    pools = [(POOLED, "id", standard, "")] if standard else []
    if standard and shifted and len(known) == len(outputs):
        pools.append((POOLED, "id", standard + shifted, FULL_SPECTRUM))
    single = shifted + (standard if len(standard) > 1 else [])
    pools += [(group, images.roles[group], [group], "") for group in single]
    for name, role, groups, suffix in pools:
        sets = {group: known[group] for group in groups}
        replicates = {}
        if options.replicates:
            replicates = calibration_replicates(sets, replicates=options.replicates, seed=options.seed)
        n = sum(map(len, sets.values()))
        for metric, value in calibration_values(Outputs.concat(list(sets.values()))).items():
            lo = hi = None
            if metric in replicates:
                _, lo, hi = interval(value, replicates[metric], level=options.level)
            yield MetricRow(name, role, metric + suffix, value, lo, hi, n, 0)


def _gammas(images: ScoredImages, run: RunFacts) -> Iterator[MetricRow]:
    """Yield Palechor's validation confidences: of ID, of each OOD set, and their mean."""
    id_groups = [group for group in images.roles if images.roles[group] == "id"]
    ood_groups = [group for group in images.roles if images.roles[group] not in ("id", "csid")]
    targets = [images.probabilities(group, "target_probability") for group in id_groups]
    target = np.concatenate(targets or [np.empty(0)])
    if not len(target) or np.isnan(target).any():
        return
    n = len(target)
    yield MetricRow(POOLED, "id", "gamma_plus", gamma_plus(target), None, None, n, 0)
    for group in ood_groups:
        greatest = images.probabilities(group, "max_probability")
        if not len(greatest):
            continue
        role, n_ood = images.roles[group], len(greatest)
        options: dict[str, Any] = {"classes": run.known_classes, "background": run.other_columns}
        minus, mean = gamma_minus(greatest, **options), gamma(target, greatest, **options)
        yield MetricRow(group, role, "gamma_minus", minus, None, None, 0, n_ood)
        yield MetricRow(group, role, "gamma", mean, None, None, n, n_ood)


def metrics_to_leave_out(about: ResultsMetadata) -> tuple[list[str], list[MetricFacts]]:
    """Return the names of registered users' metrics that results lack, and their metrics not registered."""
    stored = {facts.name for facts in about.metrics}
    registered = {facts.name for facts in user_metrics()}
    return sorted(registered - stored), [facts for facts in about.metrics if facts.name not in registered]


def newer_metrics(results: Results) -> list[str]:
    """Return the metrics of `ADDED` that results lack although they have the older metric of each."""
    stored = {*results.results["metric"].unique().to_pylist()}
    return [name for name, older in ADDED.items() if older in stored and name not in stored]


def without_metrics(results: Results, names: Sequence[str]) -> Results:
    """Return the results without the rows of some metrics."""
    if not names:
        return results
    rows = pa.array([*names, *(name + FULL_SPECTRUM for name in names)])
    table = results.results
    return replace(results, results=table.filter(pc.invert(pc.is_in(table["metric"], value_set=rows))))


def remeasure(
    folder: str | Path,
    *,
    bootstrap: int = REPLICATES,
    seed_boot: int = 0,
    over: str = "images",
    cut: int | None = None,
    progress: Progress | bool | None = None,
) -> Results:
    """Return stored results with every metric recomputed from their scores, with intervals.

    Scores, predictions and sweeps do not change. Metrics that are newer than the results are added; a user's
    metric that is not installed is left out, with a note.

    Parameters
    ----------
    folder : written by `Results.write`.
    bootstrap : replicates behind the intervals, 0 for none.
    seed_boot : of the bootstrap.
    over, cut, progress : as of `evaluate`.

    Raises
    ------
    DataError : the results are damaged or were altered, or the number of replicates or the seed is out of
        range; or see `clusters_of_intervals`.
    """
    stored = Results.read(folder)
    stored.require_scores("recomputing")
    before = stored.about.options
    options = metric_options(bootstrap, seed_boot, before.prevalences, over, cut)
    options = options.model_copy(update={"level": before.level, "bins": before.bins})
    manifest = None
    if options.over == "subtrees" and not stored.about.custom_sets:
        manifest = load_manifest(stored.about.benchmark)
        if manifest.version != stored.about.version:
            message = f"the results are of version {stored.about.version}, not {manifest.version}"
            raise DataError(message, where=manifest.name)
    computed = compute_rows(
        stored.scores,
        stored.predictions,
        similarities(stored.by_class),
        options,
        stored.about.runs,
        manifest=manifest,
        progress=choose_progress(progress),
    )
    _, not_installed = metrics_to_leave_out(stored.about)
    notes = (
        f"not installed, so left out when the metrics were recomputed: {facts.name} ({facts.origin})"
        for facts in not_installed
    )
    update = {
        "options": options,
        "clusters": computed.clusters,
        "metrics": user_metrics(),
        "notes": tuple(dict.fromkeys([*stored.about.notes, *notes])),
    }
    return replace(
        stored,
        results=computed.result_table({facts.run: facts.model for facts in stored.about.runs}),
        by_class=computed.by_class,
        by_nearness=computed.by_nearness,
        about=stored.about.model_copy(update=update),
    )


@dataclass(frozen=True, eq=False)
class EvaluatedSets:
    """The sets of an evaluation.

    Attributes
    ----------
    test : group -> role of the test sets, in the order of `ORDER`, then of the recipe.
    not_chosen : groups that the user did not choose.
    """

    manifest: Manifest
    test: Mapping[str, str]
    not_chosen: frozenset[str] = frozenset()

    @classmethod
    def from_manifest(
        cls, manifest: Manifest, groups: Sequence[str] | None = None, *, without: Sequence[str] = ()
    ) -> EvaluatedSets:
        """Select the ID sets and, of the OOD sets, ``groups`` (all by default).

        Parameters
        ----------
        without : groups without images, left out.
        """
        rows = sorted(_rows(manifest, "test"), key=lambda row: ORDER.index(row.role))
        names = [row.group for row in rows]
        for name in groups or ():
            if name not in names:
                raise unknown("test group", name, names, where=manifest.name)
        roles = {row.group: row.role for row in rows if ("test", row.group) in manifest.parts}
        not_chosen = {
            group for group, role in roles.items() if not (groups is None or role == "id" or group in groups)
        }
        left_out = not_chosen.union(without)
        test = {group: role for group, role in roles.items() if group not in left_out}
        if "id" not in test.values():
            raise DataError("has no ID test images", where=manifest.name, hint="build it again")
        return cls(manifest, test, frozenset(not_chosen))

    def of_role(self, split: str, *roles: str) -> list[str]:
        """Return the groups of some roles that have images in a split, in the recipe's order."""
        rows = _rows(self.manifest, split)
        return [row.group for row in rows if row.role in roles and (split, row.group) in self.manifest.parts]

    def missing(self, scored: Mapping[str, int]) -> list[MissingSet]:
        """Return the ID, near and far sets that were not scored whole: `aurc_unknown` depends on each."""
        return [
            MissingSet(
                group=row.group,
                role=row.role,
                scored=scored.get(row.group, 0),
                expected=row.expected,
                status=NOT_CHOSEN if row.group in self.not_chosen else row.status,
            )
            for row in _rows(self.manifest, "test")
            if row.role in ("id", *UNKNOWN_ROLES) and scored.get(row.group, 0) != row.expected
        ]

    def similarity(self) -> dict[tuple[str, str], float | None]:
        """Return (source, class_id) -> similarity of the class to its nearest ID class."""
        columns = (self.manifest.classes[name].to_pylist() for name in ("source", "class_id", "mean"))
        return {(source, class_id): mean for source, class_id, mean in zip(*columns, strict=True)}


def _rows(manifest: Manifest, split: str) -> list[GroupRow]:
    return [row for row in manifest.groups if row.split == split]


def validation_groups(sets: EvaluatedSets) -> tuple[list[str], list[str]]:
    """Return the ID and the OOD validation groups; the OOD groups are the external ones, if there are any."""
    ood = sets.of_role("val", "external") or sets.of_role("val", "near", "far")
    return sets.of_role("val", "id"), ood


def sweep_criterion(id_groups: Sequence[str], ood_groups: Sequence[str], *, disjoint: bool = False) -> str:
    """Return the words for the criterion of a sweep on ID and OOD validation groups."""
    id_sets, ood_sets = (" + ".join(f"{group}/val" for group in side) for side in (id_groups, ood_groups))
    return f"auroc of {id_sets} against {ood_sets}" + (f" in {DISJOINT}" if disjoint else "")
