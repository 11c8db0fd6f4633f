"""Check results: every row of a folder is recomputed from its stored confidences."""

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
from wordnet_splits.base.progress import Progress
from wordnet_splits.base.tabular import Tabular
from wordnet_splits.finding import load_manifest
from wordnet_splits.manifest import Manifest
from wordnet_splits.manifest.shipped import shipped_data

from . import consistency
from .fitting import criterion, validation_sets
from .metric_rows import has_interval
from .results import Results, read_folder
from .rows_from_scores import Derived, DetectorRun, block_sizes, derive, similarities
from .schema import fingerprints_of
from .sets import EvaluatedSets
from .sweeps import disagreements

TOLERANCE = 1e-12
"""Relative and absolute: the order in which a processor adds may differ in the last digit."""
FEW_DRAWS, MOST_DRAWS = 10_000_000, 200_000_000
"""Images times replicates: of results whose intervals are all recomputed, and of one detector in a sample."""
ROW = ("detector", "run", "group", "role", "metric")
CLASS = ("detector", "run", "group", "role", "source", "class_id")
EVALUATION = "fingerprint of evaluation"
BIN = ("detector", "run", "low", "high")


@dataclass(frozen=True)
class Difference:
    """A value that differs; ``column`` is empty for a row that only one of the two has."""

    table: str
    row: str
    column: str
    stored: Any
    recomputed: Any


@dataclass(frozen=True)
class CheckedIntervals:
    """How many bootstrap intervals results hold, and of which detectors and runs they were recomputed."""

    stored: int
    recomputed: int
    of: tuple[str, ...]


@dataclass(frozen=True)
class CheckedResults(Tabular):
    """The outcome of `check_results`.

    Attributes
    ----------
    compared : rows recomputed. values, exact : their values, and those of them equal to the last bit.
    intervals : the intervals that were recomputed, of those there are.
    benchmark : what the images were compared with, or why they were not.
    differences : what differs.
    """

    folder: str
    compared: int
    values: int
    exact: int
    intervals: CheckedIntervals
    benchmark: str
    differences: tuple[Difference, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing differs."""
        return not self.differences

    def rows(self) -> list[dict[str, Any]]:
        """Return the differences."""
        return [asdict(one) for one in self.differences]

    def as_dict(self) -> dict[str, Any]:
        """Return the outcome as ``check-results --json`` prints it."""
        found = {
            "rows": self.compared,
            "values": self.values,
            "exact": self.exact,
            "intervals": asdict(self.intervals),
            "benchmark": self.benchmark,
        }
        return {"ok": self.ok, "folder": self.folder, **found, "problems": self.rows()}


def check_results(
    folder: str | Path,
    benchmark: Manifest | str | Path | None = None,
    *,
    all_intervals: bool = False,
    progress: Progress | None = None,
) -> CheckedResults:
    """Recompute every row of a folder that `Results.write` wrote, and compare.

    Names of benchmark, model and run are compared with ``about.json``, parameters with the detector's name;
    images, labels, roles and similarities with the benchmark. What a sweep chose has to be the best of what
    it tried, on the validation sets of the benchmark. AUROC on validation images, which nothing recomputes,
    is checked by checksum alone.

    Bootstrap intervals take minutes where there are many scores: of more than `FEW_DRAWS` draws they are
    recomputed for one detector and run, chosen by a hash. That the others are there and in order is checked.

    Parameters
    ----------
    benchmark : its manifest, name or folder; by default the one of the results' name, if it can be found.
    all_intervals : recompute every interval.

    Raises
    ------
    DataError : a file is absent or damaged, or scores and predictions hold different images.
    """
    stored, altered = read_folder(Path(folder))
    about = stored.about
    if not stored.has_scores:
        return _of_tables_alone(str(folder), stored, altered)
    written, stored = stored, _of_scored_runs(stored)
    similarity = similarities(stored.by_class)
    tables = (stored.scores, stored.predictions)
    sample = None if all_intervals else sampled(block_sizes(stored.scores), about.options.replicates)
    found = derive(
        *tables, similarity, about.options, stored.about.runs, with_intervals=sample, progress=progress
    )
    comparison = _Comparison()
    for name in altered:
        comparison.differences.append(Difference("files", name, "sha256", "of other content", "as written"))
    comparison.table("results", stored.results, found.results, ROW, ("value", "n_id", "n_ood"))
    intervals = _compare_intervals(stored, found, sample, comparison)
    comparison.table("by_class", stored.by_class, found.classes, CLASS, ("n_ood", "auroc"))
    comparison.table("by_nearness", stored.by_nearness, found.bins, BIN, ("n_ood", "auroc"))
    for row, column, held, due in consistency.disagreements(written):
        comparison.differences.append(Difference("results", row, column, held, due))
    for row, column, held, due in disagreements(written):
        comparison.differences.append(Difference("sweeps", row, column, held, due))
    comparison.value("about", "composition", "", about.composition.model_dump(), dict(found.composition))
    against = _compare_with_benchmark(stored, similarity, benchmark, comparison)
    if written.unscored_runs:
        against = f"{len(written.unscored_runs)} runs without scores not recomputed; {against}"
    return CheckedResults(
        str(folder),
        comparison.rows,
        comparison.values,
        comparison.exact,
        intervals,
        against,
        tuple(comparison.differences),
    )


def _of_scored_runs(stored: Results) -> Results:
    """Return the rows of the runs whose scores were kept."""
    if not stored.unscored_runs:
        return stored
    unscored = pa.array(stored.unscored_runs, pa.int32())
    names = ("results", "by_class", "by_nearness")
    tables = {name: getattr(stored, name) for name in names}
    kept = {n: t.filter(pc.invert(pc.is_in(t["run"], value_set=unscored))) for n, t in tables.items()}
    runs = tuple(run for run in stored.about.runs if run.run not in stored.unscored_runs)
    return replace(stored, **kept, about=stored.about.model_copy(update={"runs": runs}))


def _of_tables_alone(folder: str, stored: Results, altered: Sequence[str]) -> CheckedResults:
    """Check what can be checked without scores: the files' checksums, and that names and labels agree."""
    differences = [Difference("files", name, "sha256", "of other content", "as written") for name in altered]
    differences += [Difference("results", *row) for row in consistency.disagreements(stored)]
    differences += [Difference("sweeps", *row) for row in disagreements(stored)]
    unchecked = "nothing recomputed: the scores of images were left out; its commands compute them again"
    return CheckedResults(folder, 0, 0, 0, CheckedIntervals(0, 0, ()), unchecked, tuple(differences))


def sampled(sizes: Mapping[DetectorRun, int], replicates: int) -> Collection[DetectorRun] | None:
    """Return the detectors and runs whose intervals are recomputed, given how many images each scored.

    None (all of them) where that takes few draws, else the first by a hash of its name among those that take
    no more than `MOST_DRAWS`; there may be none.
    """
    draws = {key: size * replicates for key, size in sizes.items()}
    if sum(draws.values()) <= FEW_DRAWS:
        return None
    able = [key for key, number in draws.items() if number <= MOST_DRAWS]
    return sorted(able, key=lambda key: sha256(f"{key[0]}\x1f{key[1]}".encode()).digest())[:1]


def _compare_intervals(
    stored: Results, found: Derived, sample: Collection[DetectorRun] | None, comparison: _Comparison
) -> CheckedIntervals:
    """Compare the intervals that were recomputed; of the others, that they are there and in order."""
    due = _keyed(({"detector": d, "run": r, **row._asdict()} for (d, r), row in found.results), ROW)
    asked = stored.about.options.replicates > 0
    kept = 0
    of: dict[DetectorRun, int] = {}
    for row in stored.results.select([*ROW, "lo", "hi"]).to_pylist():
        place, key = tuple(row[name] for name in ROW), (row["detector"], row["run"])
        kept += row["lo"] is not None
        if place not in due:
            continue  # said of the row
        name = ", ".join(map(str, place))
        if sample is None or key in sample or not (asked and has_interval(row["metric"])):
            for column in ("lo", "hi"):
                comparison.value("results", name, column, row[column], due[place][column])
            if row["lo"] is not None:
                of[key] = of.get(key, 0) + 1
        elif not _in_order(row["lo"], row["hi"]):
            comparison.differences.append(
                Difference("results", name, "lo", f"{row['lo']} to {row['hi']}", "an interval")
            )
    labels = tuple(f"{detector}, run {run}" for detector, run in of)
    return CheckedIntervals(kept, sum(of.values()), labels)


def _in_order(lo: float | None, hi: float | None) -> bool:
    return lo is not None and hi is not None and (lo <= hi or (_is_nan(lo) and _is_nan(hi)))


def _compare_with_benchmark(
    stored: Results,
    similarity: Mapping[tuple[str, str], float | None],
    benchmark: Manifest | str | Path | None,
    comparison: _Comparison,
) -> str:
    """Compare images and classes with the benchmark's; return what they were compared with, or why not."""
    about = stored.about
    try:
        manifest = load_manifest(about.benchmark if benchmark is None else benchmark)
    except UnknownNameError:
        if benchmark is not None:
            raise
        shipped = shipped_data(about.benchmark)
        if shipped is not None and shipped.version == about.version:  # another draw of it
            shipped_print = shipped.fingerprints.evaluation
            comparison.value("about", "benchmark", EVALUATION, about.evaluation_fingerprint, shipped_print)
        return f"images not compared: there is no {about.benchmark} here"
    if benchmark is None and manifest.version != about.version:
        return f"images not compared: {manifest.name} is at version {manifest.version} here"
    comparison.value("about", "benchmark", "name", about.benchmark, manifest.name)
    for what, print_here in fingerprints_of(manifest).items():
        comparison.value("about", "benchmark", f"fingerprint of {what}", about.fingerprints[what], print_here)
    sets = EvaluatedSets.of(manifest)
    known = sets.similarity()
    for (source, class_id), value in similarity.items():
        comparison.value(
            "by_class", f"{source}, {class_id}", "similarity", value, known.get((source, class_id))
        )
    if stored.sweeps.num_rows:
        due_on = criterion(*validation_sets(sets))
        for on in dict.fromkeys(stored.sweeps["on"].to_pylist()):
            comparison.value("sweeps", "every row", "on", on, due_on)
    columns = ["source", "image_id", "class_id", "role", "label"]
    rows = {
        group: {row["image_id"]: row for row in manifest.images("test", group).select(columns).to_pylist()}
        for group in sets.test
    }
    seen: dict[tuple[str, int], dict[str, int]] = {}
    for row in stored.predictions.select(["detector", "run", "group", *columns]).to_pylist():
        counts = seen.setdefault((row["detector"], row["run"]), {})
        counts[row["group"]] = counts.get(row["group"], 0) + 1
        expected = rows.get(row["group"], {}).get(row["image_id"])
        held = {name: row[name] for name in columns}
        if held != expected:
            comparison.value("predictions", f"{row['group']}, {row['image_id']}", "", held, expected)
    for (detector, run), counts in seen.items():
        due = tuple(sets.missing(counts))
        comparison.value("about", f"missing of {detector or 'run'} {run}", "", about.missing, due)
    return f"images compared with {manifest.name}, version {manifest.version}"


RowsByKey = dict[tuple[Any, ...], Mapping[str, Any]]


def _keyed(rows: Iterable[Mapping[str, Any]], key: tuple[str, ...]) -> RowsByKey:
    found: RowsByKey = {}
    for row in rows:
        if found.setdefault(tuple(row[name] for name in key), row) is not row:
            raise DataError(f"two rows of {', '.join(str(row[name]) for name in key)}")
    return found


class _Comparison:
    def __init__(self) -> None:
        self.rows = self.exact = self.values = 0
        self.differences: list[Difference] = []

    def table(
        self,
        name: str,
        stored: pa.Table,
        recomputed: Iterable[tuple[DetectorRun, Any]],
        key: tuple[str, ...],
        columns: tuple[str, ...],
    ) -> None:
        """Compare two tables row by row."""
        held = _keyed(stored.to_pylist(), key)
        due = _keyed(({"detector": d, "run": r, **row._asdict()} for (d, r), row in recomputed), key)
        for place in [*held, *(place for place in due if place not in held)]:
            self.rows += 1
            row = ", ".join(map(str, place))
            if place not in held or place not in due:
                sides = ("a row" if place in table else None for table in (held, due))
                self.differences.append(Difference(name, row, "", *sides))
                continue
            for column in columns:
                self.value(name, row, column, held[place][column], due[place][column])

    def value(self, table: str, row: str, column: str, held: Any, due: Any) -> None:
        """Compare two values."""
        self.values += 1
        if held == due or (_is_nan(held) and _is_nan(due)):
            self.exact += 1
        elif not _close(held, due):
            self.differences.append(Difference(table, row, column, held, due))


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _close(held: Any, due: Any) -> bool:
    if not isinstance(held, float) or not isinstance(due, float):
        return False
    return math.isclose(held, due, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
