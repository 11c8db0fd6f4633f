"""Check results: recompute every row of a folder from its stored confidences."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from wordnet_splits.base.errors import DataError, UnknownNameError
from wordnet_splits.base.progress import Progress, choose_progress
from wordnet_splits.base.tabular import Tabular
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.benchmark.manifest.loading import shipped_data
from wordnet_splits.benchmark.resolve import load_manifest

from .metadata import DISJOINT, NOT_CHOSEN, ResultsMetadata, fingerprints_of
from .metric_rows import has_interval
from .results import Results, read_folder
from .rows_from_scores import (
    EvaluatedSets,
    compute_rows,
    metrics_to_leave_out,
    newer_metrics,
    similarities,
    sweep_criterion,
    validation_groups,
    without_metrics,
)
from .scores import IMAGES, ClassKey, DetectorRun, ResultTables, scored_keys
from .sentences import best_of, params_of, sweeps_of
from .tables import ResultSets

TOLERANCE = 1e-12
"""Relative and absolute tolerance: processors may add in another order, which changes the last digit."""
MAX_DRAWS, MAX_DETECTOR_DRAWS = 10_000_000, 200_000_000
"""Images times replicates: of results whose intervals are all recomputed, and of a detector in a sample."""
ROW_KEY = ("detector", "run", "group", "role", "metric")
CLASS_KEY = ("detector", "run", "group", "role", "source", "class_id")
BIN_KEY = ("detector", "run", "low", "high")


@dataclass(frozen=True)
class Difference:
    """A value that differs; ``column`` is empty for a row that is missing on one side."""

    table: str
    row: str
    column: str
    stored: Any
    recomputed: Any


@dataclass(frozen=True)
class CheckedIntervals:
    """The numbers of stored and recomputed bootstrap intervals, and the detectors and runs of the latter."""

    stored: int
    recomputed: int
    of: tuple[str, ...]


@dataclass(frozen=True)
class CheckedResults(Tabular):
    """The outcome of `check_results`.

    Attributes
    ----------
    compared : number of rows.
    values, exact : number of their values, and of those equal to the last bit.
    intervals : counts of intervals.
    benchmark : the benchmark that images were compared with, or why not.
    differences : every value that differs.
    not_installed : users' metrics whose rows cannot be recomputed, with the origin of each.
    newer : metrics that are newer than the results, which have no row of them; `remeasure` adds them.
    """

    folder: str
    compared: int
    values: int
    exact: int
    intervals: CheckedIntervals
    benchmark: str
    differences: tuple[Difference, ...]
    not_installed: tuple[str, ...] = ()
    newer: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing differs."""
        return not self.differences

    def rows(self) -> list[dict[str, Any]]:
        """Return the differences."""
        return [asdict(difference) for difference in self.differences]

    def as_dict(self) -> dict[str, Any]:
        """Return the outcome as ``recompute --check --json`` prints it."""
        return {
            "ok": self.ok,
            "folder": self.folder,
            "rows": self.compared,
            "values": self.values,
            "exact": self.exact,
            "intervals": asdict(self.intervals),
            "benchmark": self.benchmark,
            "not_installed": list(self.not_installed),
            "newer": list(self.newer),
            "problems": self.rows(),
        }


def check_results(
    folder: str | Path,
    benchmark: Manifest | str | Path | None = None,
    *,
    all_intervals: bool = False,
    progress: Progress | bool | None = None,
) -> CheckedResults:
    """Recompute every row of a folder that `Results.write` wrote, and compare.

    Checksums are compared with ``about.json``; rows are recomputed from the scores; images, labels, roles,
    similarities and missing sets are compared with the benchmark. The values chosen by a sweep must be the
    best values tried. Two kinds of rows cannot be recomputed, and only their checksum is checked: AUROC on
    validation images, and rows of a user's metric that is not installed, which the outcome names.

    Bootstrap intervals of many scores take minutes: above `MAX_DRAWS` draws they are recomputed for a single
    detector and run, chosen by a hash; for all others only the order of the ends is checked.

    Parameters
    ----------
    benchmark : its manifest, name or folder; by default the benchmark named by the results, if available.
    all_intervals : recompute every interval.
    progress : as of `evaluate`.

    Raises
    ------
    DataError : a file is absent, damaged, or not as ``about.json`` describes it.
    """
    stored, altered = read_folder(Path(folder))
    about, comparison = stored.about, _Comparison()
    for name in altered:
        comparison.differences.append(Difference("files", name, "sha256", "of other content", "as written"))
    comparison.differences += _sweep_differences(stored)
    if not stored.has_scores:
        note = "nothing recomputed: the scores of images were left out; its commands compute them again"
        differences = tuple(comparison.differences)
        return CheckedResults(str(folder), 0, 0, 0, CheckedIntervals(0, 0, ()), note, differences)
    (left_out, not_installed), newer = metrics_to_leave_out(about), newer_metrics(stored)
    unscored = pa.array(about.unscored_runs, pa.int32())
    tables = {name: getattr(stored, name) for name in ("results", "by_class", "by_nearness")}
    of_scored = {n: t.filter(pc.invert(pc.is_in(t["run"], value_set=unscored))) for n, t in tables.items()}
    scored = without_metrics(replace(stored, **of_scored), [facts.name for facts in not_installed])
    similarity, sample = similarities(scored.by_class), None
    if not all_intervals:
        sample = sampled(scored_keys(stored.scores), stored.scores.num_rows * about.options.replicates)
    manifest, note = _benchmark_of(about, benchmark, comparison)
    options = about.options
    has_hierarchy = manifest is not None or options.over != "subtrees" or bool(about.custom_sets)
    if not has_hierarchy:
        options = options.model_copy(update={"over": "images"})
        sample, note = (), f"{note}; nor are intervals over subtrees recomputed"
    rows = compute_rows(
        *(stored.scores, stored.predictions, similarity, options, about.runs),
        manifest=manifest,
        with_intervals=sample,
        left_out=[*left_out, *newer],
        progress=choose_progress(progress),
    )
    if has_hierarchy and about.clusters != rows.clusters:
        comparison.value("about", "clusters", options.over, about.clusters, rows.clusters)
    recomputed = [{"detector": d, "run": r, **row._asdict()} for (d, r), row in rows.results]
    comparison.table("results", scored.results, recomputed, ROW_KEY, ("value", "n_id", "n_ood"))
    intervals = _compare_intervals(scored, _by_key(recomputed, ROW_KEY), sample, comparison)
    comparison.table("by_class", scored.by_class, rows.by_class.to_pylist(), CLASS_KEY, ("n_ood", "auroc"))
    comparison.table(
        "by_nearness", scored.by_nearness, rows.by_nearness.to_pylist(), BIN_KEY, ("n_ood", "auroc")
    )
    comparison.value("about", "composition", "", about.composition.model_dump(), dict(rows.composition))
    if manifest is not None:
        _compare_with_benchmark(stored, similarity, manifest, comparison)
    if about.unscored_runs:
        note = f"{len(about.unscored_runs)} runs without scores not recomputed; {note}"
    return CheckedResults(
        str(folder),
        comparison.rows,
        comparison.values,
        comparison.exact,
        intervals,
        note,
        tuple(comparison.differences),
        tuple(f"{facts.name} ({facts.origin})" for facts in not_installed),
        tuple(newer),
    )


def _sweep_differences(stored: ResultTables) -> Iterator[Difference]:
    """Yield the differences between the parameters that a sweep chose and the best parameters tried."""
    sweeps = sweeps_of(stored)
    chosen = {(f.detector, f.run): f for f in stored.about.detectors if f.chosen_on is not None}
    for key in dict.fromkeys([*sweeps, *chosen]):
        row = f"{key[0]}, {key[1]}"
        if key not in sweeps or key not in chosen:
            sides = (None, "values") if key in chosen else ("values", None)
            yield Difference("sweeps", row, "tried", *sides)
            continue
        on = sorted({trial["on"] for trial in sweeps[key]})
        words = on[0].removeprefix("auroc of ").removesuffix(f" in {DISJOINT}")
        sides = words.replace(" against ", " + ").split(" + ")
        if len(on) > 1 or not all(side.endswith("/val") for side in sides):
            yield Difference("sweeps", row, "on", ", ".join(on), "validation sets, the same for all")
        elif not (chosen[key].chosen_on or "").startswith(on[0]):
            yield Difference("sweeps", row, "chosen_on", chosen[key].chosen_on, on[0])
        best, params = best_of(sweeps[key]), chosen[key].params
        if best is None or params != params_of(best["params"]):
            yield Difference("sweeps", row, "params", params, None if best is None else best["params"])


def sampled(keys: Collection[DetectorRun], draws: int) -> Collection[DetectorRun] | None:
    """Return the detectors and runs whose intervals are recomputed, given the draws that each takes.

    Return None, to recompute all intervals, if they take few draws in total. Otherwise return the first
    detector and run by a hash of the name, or an empty collection if each takes more than
    `MAX_DETECTOR_DRAWS`.
    """
    if len(keys) * draws <= MAX_DRAWS:
        return None
    candidates = keys if draws <= MAX_DETECTOR_DRAWS else ()
    return sorted(candidates, key=lambda key: sha256(f"{key[0]}\x1f{key[1]}".encode()).digest())[:1]


def _compare_intervals(
    stored: Results, recomputed: RowsByKey, sample: Collection[DetectorRun] | None, comparison: _Comparison
) -> CheckedIntervals:
    """Compare the recomputed intervals; check that all others are there and in order."""
    n_stored, roles = 0, ResultSets.from_results(stored).roles
    counts: dict[DetectorRun, int] = {}
    for row in stored.results.select([*ROW_KEY, "lo", "hi"]).to_pylist():
        row_key, key = tuple(row[name] for name in ROW_KEY), (row["detector"], row["run"])
        n_stored += row["lo"] is not None
        if row_key not in recomputed:
            continue  # reported as a row
        name = ", ".join(map(str, row_key))
        if sample is None or key in sample or not _has_interval(row, stored.about, roles):
            for column in ("lo", "hi"):
                comparison.value("results", name, column, row[column], recomputed[row_key][column])
            if row["lo"] is not None:
                counts[key] = counts.get(key, 0) + 1
        elif None in (row["lo"], row["hi"]) or not (
            row["lo"] <= row["hi"] or (_is_nan(row["lo"]) and _is_nan(row["hi"]))
        ):
            interval = f"{row['lo']} to {row['hi']}"
            comparison.differences.append(Difference("results", name, "lo", interval, "an interval"))
    labels = tuple(f"{detector}, run {run}" for detector, run in counts)
    return CheckedIntervals(n_stored, sum(counts.values()), labels)


def _has_interval(row: Mapping[str, Any], about: ResultsMetadata, roles: Mapping[str, str]) -> bool:
    """Return whether a row of results has an interval: not if none of its sets has several clusters."""
    counts = [
        count
        for group, count in about.clusters.items()
        if row["group"] == group or (row["group"] not in roles and roles.get(group) in row["role"].split("+"))
    ]
    drawn = not counts or not all(isinstance(count, str) for count in counts)
    return about.options.replicates > 0 and has_interval(row["metric"]) and drawn


def _benchmark_of(
    about: ResultsMetadata, benchmark: Manifest | str | Path | None, comparison: _Comparison
) -> tuple[Manifest | None, str]:
    """Return the benchmark and a note on it, or None and why it is not compared with."""
    try:
        manifest = load_manifest(about.benchmark if benchmark is None else benchmark)
    except UnknownNameError:
        if benchmark is not None:
            raise
        shipped = shipped_data(about.benchmark)
        if shipped is not None and shipped.version == about.version:  # another draw of the benchmark
            fingerprints = (about.evaluation_fingerprint, shipped.fingerprints.evaluation)
            comparison.value("about", "benchmark", "fingerprint of evaluation", *fingerprints)
        return None, f"images not compared: there is no {about.benchmark} here"
    if benchmark is None and manifest.version != about.version:
        return None, f"images not compared: {manifest.name} is at version {manifest.version} here"
    return manifest, f"images compared with {manifest.name}, version {manifest.version}"


def _compare_with_benchmark(
    stored: Results, similarity: Mapping[ClassKey, float | None], manifest: Manifest, comparison: _Comparison
) -> None:
    """Compare images and classes with the benchmark's."""
    about = stored.about
    comparison.value("about", "benchmark", "name", about.benchmark, manifest.name)
    for subject, fingerprint in fingerprints_of(manifest).items():
        column = f"fingerprint of {subject}"
        comparison.value("about", "benchmark", column, about.fingerprints[subject], fingerprint)
    sets = EvaluatedSets.from_manifest(manifest)
    benchmark_similarity = sets.similarity()
    for key, value in similarity.items():
        expected = benchmark_similarity.get(key)
        comparison.value("by_class", f"{key[0]}, {key[1]}", "similarity", value, expected)
    if stored.sweeps.num_rows:
        for criterion in stored.sweeps["on"].unique().to_pylist():
            disjoint = criterion.endswith(DISJOINT)
            expected_criterion = sweep_criterion(*validation_groups(sets), disjoint=disjoint)
            comparison.value("sweeps", "every row", "on", criterion, expected_criterion)
    columns = [name for name in IMAGES.names if name != "group"]
    images = {
        group: {
            row["image_id"]: {**row, "group": group}
            for row in manifest.images("test", group).select(columns).to_pylist()
        }
        for group in sets.test
    }
    counts: dict[str, int] = {}
    for row in stored.scores.select(IMAGES.names).to_pylist():
        group = row["group"]
        counts[group] = counts.get(group, 0) + 1
        expected_row = images.get(group, {}).get(row["image_id"])
        if row != expected_row:
            comparison.value("scores", f"{group}, {row['image_id']}", "", row, expected_row)
    not_chosen = frozenset(row.group for row in about.missing if row.status == NOT_CHOSEN)
    missing = tuple(replace(sets, not_chosen=not_chosen - counts.keys()).missing(counts))
    comparison.value("about", "missing", "", about.missing, missing)


RowsByKey = dict[tuple[Any, ...], Mapping[str, Any]]


def _by_key(rows: Iterable[Mapping[str, Any]], key: tuple[str, ...]) -> RowsByKey:
    by_key: RowsByKey = {}
    for row in rows:
        if by_key.setdefault(tuple(row[name] for name in key), row) is not row:
            raise DataError(f"two rows of {', '.join(str(row[name]) for name in key)}")
    return by_key


class _Comparison:
    def __init__(self) -> None:
        self.rows = self.exact = self.values = 0
        self.differences: list[Difference] = []

    def table(
        self,
        name: str,
        stored: pa.Table,
        recomputed: Iterable[Mapping[str, Any]],
        key: tuple[str, ...],
        columns: tuple[str, ...],
    ) -> None:
        """Compare two tables row by row."""
        stored_rows, expected_rows = _by_key(stored.to_pylist(), key), _by_key(recomputed, key)
        for row_key in dict.fromkeys([*stored_rows, *expected_rows]):
            self.rows += 1
            row = ", ".join(map(str, row_key))
            if row_key not in stored_rows or row_key not in expected_rows:
                sides = ("a row" if row_key in rows else None for rows in (stored_rows, expected_rows))
                self.differences.append(Difference(name, row, "", *sides))
                continue
            for column in columns:
                self.value(name, row, column, stored_rows[row_key][column], expected_rows[row_key][column])

    def value(self, table: str, row: str, column: str, stored: Any, expected: Any) -> None:
        """Compare two values."""
        self.values += 1
        if stored == expected or (_is_nan(stored) and _is_nan(expected)):
            self.exact += 1
        elif not (
            isinstance(stored, float)
            and isinstance(expected, float)
            and math.isclose(stored, expected, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
        ):
            self.differences.append(Difference(table, row, column, stored, expected))


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)
