"""Check results: recompute every row of a folder from its stored confidences."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
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
from wordnet_splits.benchmark.manifest.places import shipped_data
from wordnet_splits.benchmark.resolve import load_manifest

from .consistency import row_disagreements, sweep_disagreements
from .fitting import sweep_criterion, validation_sets
from .metric_rows import has_interval
from .recompute import metrics_to_leave_out, without_metrics
from .results import Results, read_folder
from .rows_from_scores import DetectorRun, block_sizes, compute_rows, similarities
from .schema import fingerprints_of
from .sets import NOT_CHOSEN, EvaluatedSets

TOLERANCE = 1e-12
"""Relative and absolute tolerance: processors may add in another order, which changes the last digit."""
MAX_DRAWS, MAX_DETECTOR_DRAWS = 10_000_000, 200_000_000
"""Images times replicates: of results whose intervals are all recomputed, and of a detector in a sample."""
ROW_KEY = ("detector", "run", "group", "role", "metric")
CLASS_KEY = ("detector", "run", "group", "role", "source", "class_id")
BIN_KEY = ("detector", "run", "low", "high")
IMAGE_COLUMNS = ["source", "image_id", "class_id", "role", "label"]


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
    compared : number of rows. values, exact : number of their values, and of those equal to the last bit.
    intervals : counts of intervals. benchmark : the benchmark that images were compared with, or why not.
    differences : every value that differs.
    not_installed : users' metrics whose rows cannot be recomputed, with the origin of each.
    """

    folder: str
    compared: int
    values: int
    exact: int
    intervals: CheckedIntervals
    benchmark: str
    differences: tuple[Difference, ...]
    not_installed: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing differs."""
        return not self.differences

    def rows(self) -> list[dict[str, Any]]:
        """Return the differences."""
        return [asdict(difference) for difference in self.differences]

    def as_dict(self) -> dict[str, Any]:
        """Return the outcome as ``check-results --json`` prints it."""
        return {
            "ok": self.ok,
            "folder": self.folder,
            "rows": self.compared,
            "values": self.values,
            "exact": self.exact,
            "intervals": asdict(self.intervals),
            "benchmark": self.benchmark,
            "not_installed": list(self.not_installed),
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

    Names of benchmark, model and run are compared with ``about.json``, parameters with the detector's name;
    images, labels, roles and similarities with the benchmark. The values chosen by a sweep must be the best
    of those tried, on the validation sets of the benchmark. AUROC on validation images cannot be recomputed,
    and is checked by checksum alone. So are rows of a user's metric that is not installed, which are named.

    Bootstrap intervals take minutes where there are many scores: above `MAX_DRAWS` draws they are recomputed
    for one detector and run, chosen by a hash, and only the order of the ends of all others is checked.

    Parameters
    ----------
    benchmark : its manifest, name or folder; by default the benchmark named by the results, if it is here.
    all_intervals : recompute every interval.
    progress : as of `evaluate`.

    Raises
    ------
    DataError : a file is absent or damaged, or scores and predictions hold different images.
    """
    stored, altered = read_folder(Path(folder))
    about = stored.about
    if not stored.has_scores:
        return _of_tables_alone(str(folder), stored, altered)
    left_out, not_installed = metrics_to_leave_out(about)
    complete, stored = (
        stored,
        without_metrics(_of_scored_runs(stored), [facts.name for facts in not_installed]),
    )
    similarity = similarities(stored.by_class)
    tables = (stored.scores, stored.predictions)
    sample = None if all_intervals else sampled(block_sizes(stored.scores), about.options.replicates)
    rows = compute_rows(
        *tables,
        similarity,
        about.options,
        stored.about.runs,
        with_intervals=sample,
        left_out=left_out,
        progress=choose_progress(progress),
    )
    comparison = _Comparison()
    for name in altered:
        comparison.differences.append(Difference("files", name, "sha256", "of other content", "as written"))
    recomputed = [{"detector": d, "run": r, **row._asdict()} for (d, r), row in rows.results]
    comparison.table("results", stored.results, recomputed, ROW_KEY, ("value", "n_id", "n_ood"))
    intervals = _compare_intervals(stored, _by_key(recomputed, ROW_KEY), sample, comparison)
    comparison.table("by_class", stored.by_class, rows.by_class.to_pylist(), CLASS_KEY, ("n_ood", "auroc"))
    comparison.table(
        "by_nearness", stored.by_nearness, rows.by_nearness.to_pylist(), BIN_KEY, ("n_ood", "auroc")
    )
    comparison.differences += [
        Difference("results", *disagreement) for disagreement in row_disagreements(complete)
    ]
    comparison.differences += [
        Difference("sweeps", *disagreement) for disagreement in sweep_disagreements(complete)
    ]
    comparison.value("about", "composition", "", about.composition.model_dump(), dict(rows.composition))
    benchmark_note = _compare_with_benchmark(stored, similarity, benchmark, comparison)
    if complete.unscored_runs:
        count = len(complete.unscored_runs)
        benchmark_note = f"{count} runs without scores not recomputed; {benchmark_note}"
    return CheckedResults(
        str(folder),
        comparison.rows,
        comparison.values,
        comparison.exact,
        intervals,
        benchmark_note,
        tuple(comparison.differences),
        tuple(f"{facts.name} ({facts.origin})" for facts in not_installed),
    )


def _of_scored_runs(stored: Results) -> Results:
    """Return the rows of the runs with scores."""
    if not stored.unscored_runs:
        return stored
    unscored = pa.array(stored.unscored_runs, pa.int32())
    names = ("results", "by_class", "by_nearness")
    tables = {name: getattr(stored, name) for name in names}
    scored = {n: t.filter(pc.invert(pc.is_in(t["run"], value_set=unscored))) for n, t in tables.items()}
    runs = tuple(run for run in stored.about.runs if run.run not in stored.unscored_runs)
    return replace(stored, **scored, about=stored.about.model_copy(update={"runs": runs}))


def _of_tables_alone(folder: str, stored: Results, altered: Sequence[str]) -> CheckedResults:
    """Check results without scores: the checksums of files, and that names and labels agree."""
    differences = [Difference("files", name, "sha256", "of other content", "as written") for name in altered]
    differences += [Difference("results", *row) for row in row_disagreements(stored)]
    differences += [Difference("sweeps", *row) for row in sweep_disagreements(stored)]
    unchecked = "nothing recomputed: the scores of images were left out; its commands compute them again"
    return CheckedResults(folder, 0, 0, 0, CheckedIntervals(0, 0, ()), unchecked, tuple(differences))


def sampled(sizes: Mapping[DetectorRun, int], replicates: int) -> Collection[DetectorRun] | None:
    """Return the detectors and runs whose intervals are recomputed, given how many images each scored.

    None (all of them) where that takes few draws, else the first by a hash of its name among those of at most
    `MAX_DETECTOR_DRAWS`; there may be none.
    """
    draws = {key: size * replicates for key, size in sizes.items()}
    if sum(draws.values()) <= MAX_DRAWS:
        return None
    candidates = [key for key, number in draws.items() if number <= MAX_DETECTOR_DRAWS]
    return sorted(candidates, key=lambda key: sha256(f"{key[0]}\x1f{key[1]}".encode()).digest())[:1]


def _compare_intervals(
    stored: Results, recomputed: RowsByKey, sample: Collection[DetectorRun] | None, comparison: _Comparison
) -> CheckedIntervals:
    """Compare the recomputed intervals; check that all others are there and in order."""
    has_replicates = stored.about.options.replicates > 0
    n_stored = 0
    counts: dict[DetectorRun, int] = {}
    for row in stored.results.select([*ROW_KEY, "lo", "hi"]).to_pylist():
        row_key, key = tuple(row[name] for name in ROW_KEY), (row["detector"], row["run"])
        n_stored += row["lo"] is not None
        if row_key not in recomputed:
            continue  # reported as a row
        name = ", ".join(map(str, row_key))
        if sample is None or key in sample or not (has_replicates and has_interval(row["metric"])):
            for column in ("lo", "hi"):
                comparison.value("results", name, column, row[column], recomputed[row_key][column])
            if row["lo"] is not None:
                counts[key] = counts.get(key, 0) + 1
        elif not _in_order(row["lo"], row["hi"]):
            interval = f"{row['lo']} to {row['hi']}"
            comparison.differences.append(Difference("results", name, "lo", interval, "an interval"))
    labels = tuple(f"{detector}, run {run}" for detector, run in counts)
    return CheckedIntervals(n_stored, sum(counts.values()), labels)


def _in_order(lo: float | None, hi: float | None) -> bool:
    return lo is not None and hi is not None and (lo <= hi or (_is_nan(lo) and _is_nan(hi)))


def _compare_with_benchmark(
    stored: Results,
    similarity: Mapping[tuple[str, str], float | None],
    benchmark: Manifest | str | Path | None,
    comparison: _Comparison,
) -> str:
    """Compare images and classes with the benchmark's; return a note on the benchmark, or why not."""
    about = stored.about
    try:
        manifest = load_manifest(about.benchmark if benchmark is None else benchmark)
    except UnknownNameError:
        if benchmark is not None:
            raise
        shipped = shipped_data(about.benchmark)
        if shipped is not None and shipped.version == about.version:  # another draw of it
            fingerprints = (about.evaluation_fingerprint, shipped.fingerprints.evaluation)
            comparison.value("about", "benchmark", "fingerprint of evaluation", *fingerprints)
        return f"images not compared: there is no {about.benchmark} here"
    if benchmark is None and manifest.version != about.version:
        return f"images not compared: {manifest.name} is at version {manifest.version} here"
    comparison.value("about", "benchmark", "name", about.benchmark, manifest.name)
    for subject, fingerprint in fingerprints_of(manifest).items():
        column = f"fingerprint of {subject}"
        comparison.value("about", "benchmark", column, about.fingerprints[subject], fingerprint)
    sets = EvaluatedSets.of(manifest)
    benchmark_similarity = sets.similarity()
    for key, value in similarity.items():
        expected = benchmark_similarity.get(key)
        comparison.value("by_class", f"{key[0]}, {key[1]}", "similarity", value, expected)
    if stored.sweeps.num_rows:
        expected_criterion = sweep_criterion(*validation_sets(sets))
        for criterion in stored.sweeps["on"].unique().to_pylist():
            comparison.value("sweeps", "every row", "on", criterion, expected_criterion)
    images = {
        group: {
            row["image_id"]: row for row in manifest.images("test", group).select(IMAGE_COLUMNS).to_pylist()
        }
        for group in sets.test
    }
    not_chosen = frozenset(row.group for row in about.missing if row.status == NOT_CHOSEN)
    counts: dict[DetectorRun, dict[str, int]] = {}
    predictions = stored.predictions.select(["detector", "run", "group", *IMAGE_COLUMNS])
    for row in (row for batch in predictions.to_batches(max_chunksize=10_000) for row in batch.to_pylist()):
        group, by_group = row["group"], counts.setdefault((row["detector"], row["run"]), {})
        by_group[group] = by_group.get(group, 0) + 1
        image = {name: row[name] for name in IMAGE_COLUMNS}
        expected_image = images.get(group, {}).get(row["image_id"])
        if image != expected_image:
            comparison.value("predictions", f"{group}, {row['image_id']}", "", image, expected_image)
    for (detector, run), by_group in counts.items():
        missing = tuple(replace(sets, not_chosen=not_chosen - by_group.keys()).missing(by_group))
        comparison.value("about", f"missing of {detector or 'run'} {run}", "", about.missing, missing)
    return f"images compared with {manifest.name}, version {manifest.version}"


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
        elif not _is_close(stored, expected):
            self.differences.append(Difference(table, row, column, stored, expected))


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _is_close(stored: Any, expected: Any) -> bool:
    if not isinstance(stored, float) or not isinstance(expected, float):
        return False
    return math.isclose(stored, expected, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
