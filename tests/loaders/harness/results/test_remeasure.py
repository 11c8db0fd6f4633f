"""Intervals of stored results: computed without the model, and checked, all or a sample of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from loaders.harness import remeasure
from loaders.harness.cli.main import app
from loaders.harness.evaluation.run_evaluation import evaluate_runs
from loaders.harness.results import check
from loaders.harness.results.check import check_results, sampled
from loaders.harness.results.entries import check_entry
from loaders.harness.results.metadata import MAX_REPLICATES, MetricOptions
from loaders.harness.results.metric_rows import has_interval
from loaders.harness.results.results import Results
from loaders.harness.results.scores import SCHEMAS
from tests.loaders.harness.evaluation.fake_runs import OPEN_SET, fake_run
from tests.raising import raises
from wordnet_splits.base.errors import DataError

DETECTORS = ["msp", "knn[k=5]"]
SCORES = ("scores.parquet", "predictions.parquet")


def results(**options: int) -> Results:
    runs = [fake_run(OPEN_SET, seed) for seed in (0, 1)]
    return evaluate_runs(OPEN_SET, runs, DETECTORS, options=MetricOptions(**options))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Results without an interval."""
    results().write(tmp_path / "results")
    return tmp_path / "results"


@pytest.fixture
def with_intervals(folder: Path) -> Path:
    remeasure(folder, bootstrap=20).write(folder)
    return folder


def test_intervals_are_those_of_an_evaluation_with_the_same_bootstrap(folder: Path) -> None:
    again, due = remeasure(folder, bootstrap=20, seed_boot=3), results(replicates=20, seed=3)
    assert again.about == due.about
    for name in SCHEMAS:
        np.testing.assert_equal(getattr(again, name).to_pylist(), getattr(due, name).to_pylist())
    for row in again.results.to_pylist():
        assert (row["lo"] is not None) == has_interval(row["metric"])
    without = remeasure(folder, bootstrap=0).results
    np.testing.assert_equal(without.to_pylist(), Results.read(folder).results.to_pylist())


def test_a_metric_newer_than_the_results_is_named_and_added_and_a_row_of_it_is_not_lost(folder: Path) -> None:
    stored = Results.read(folder)
    names = np.array(stored.results["metric"].to_pylist())
    older = replace(stored, results=stored.results.filter(names != "fpr95_failure"))
    older.write(folder)
    found = check_results(folder)
    assert (found.ok, found.newer) == (True, ("fpr95_failure",))
    np.testing.assert_equal(remeasure(folder, bootstrap=0).results.to_pylist(), stored.results.to_pylist())
    last = np.flatnonzero(names == "fpr95_failure")[-1]
    for keep in (np.arange(len(names)) != last, names != "auroc"):  # one row of it, all of an older metric
        replace(stored, results=stored.results.filter(keep)).write(folder)
        assert not check_results(folder).ok


def test_in_place_of_the_results_no_score_is_written_anew(folder: Path) -> None:
    before = {name: (folder / name).read_bytes() for name in SCORES}
    remeasure(folder, bootstrap=5).write(folder)
    assert {name: (folder / name).read_bytes() for name in SCORES} == before
    assert check_results(folder).ok


def test_options_that_cannot_be_are_refused_in_one_line(folder: Path) -> None:
    for wrong in ({"bootstrap": MAX_REPLICATES + 1}, {"seed_boot": -1}):
        with raises(DataError, where="options of the evaluation"):
            remeasure(folder, **wrong)


def test_altered_results_are_refused(folder: Path) -> None:
    rewrite(folder, "lo", [0.0] * pq.read_metadata(folder / "results.parquet").num_rows)
    with raises(DataError, where="results.parquet"):
        remeasure(folder)


def test_an_entry_keeps_its_author_and_gets_the_facts_of_its_new_tables(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from loaders.harness.leaderboard import submit

    entry = submit(folder, by="me", name="made", commands=["python made.py"], to=tmp_path / "entries")
    before = json.loads((entry / "entry.json").read_text())
    assert app(["recompute", str(entry), "--bootstrap", "5", "--json"], standalone_mode=False) == 0
    said = json.loads(capsys.readouterr().out)
    table = pq.read_table(entry / "results.parquet")
    assert said["intervals"] == table.num_rows - table["lo"].null_count > 0
    after = json.loads((entry / "entry.json").read_text())
    assert after["facts"]["about"] != before["facts"]["about"]
    assert {**after, "facts": 0, "checksum": 0} == {**before, "facts": 0, "checksum": 0}
    assert check_entry(entry).ok


def rewrite(folder: Path, column: str, values: list[float | None]) -> None:
    path = folder / "results.parquet"
    table = pq.read_table(path)
    place = table.schema.get_field_index(column)
    pq.write_table(table.set_column(place, table.schema.field(column), pa.array(values, pa.float64())), path)


def alter(folder: Path, detector: str, run: int, lo: float | None) -> None:
    """Give every AUROC of a detector and run another lower end."""
    rows = pq.read_table(folder / "results.parquet").to_pylist()
    wanted = [(row["detector"], row["run"], row["metric"]) == (detector, run, "auroc") for row in rows]
    rewrite(folder, "lo", [lo if hit else row["lo"] for hit, row in zip(wanted, rows, strict=True)])


def differing(folder: Path, *, all_intervals: bool = False) -> set[str]:
    found = check_results(folder, all_intervals=all_intervals)
    return {one.row.rpartition(", ")[2] for one in found.differences if one.table == "results"}


@pytest.mark.parametrize("detector", DETECTORS)
def test_few_intervals_are_all_recomputed(with_intervals: Path, detector: str) -> None:
    found = check_results(with_intervals).intervals
    assert found.recomputed == found.stored > 100
    alter(with_intervals, detector, 1, 0.0123)
    assert differing(with_intervals) == {"auroc"}


def test_of_many_those_of_one_detector_and_run(
    with_intervals: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(check, "MAX_DRAWS", 0)
    found = check_results(with_intervals)
    (label,) = found.intervals.of
    detector, _, run = label.partition(", run ")
    assert found.ok
    assert 0 < found.intervals.recomputed < found.intervals.stored
    assert app(["recompute", "--check", str(with_intervals)], standalone_mode=False) == 0
    stated = f"{found.intervals.recomputed:,} of {found.intervals.stored:,} intervals recomputed ({label})"
    assert f"{stated}, all with --all-intervals" in capsys.readouterr().out
    other = next(name for name in DETECTORS if name != detector)
    alter(with_intervals, other, int(run), 0.0123)
    assert differing(with_intervals) == set()
    assert differing(with_intervals, all_intervals=True) == {"auroc"}
    alter(with_intervals, detector, int(run), 0.0123)
    assert differing(with_intervals) == {"auroc"}


@pytest.mark.parametrize("lo", [None, 2.0])
def test_an_interval_that_is_absent_or_in_disorder_is_noticed_outside_the_sample(
    with_intervals: Path, monkeypatch: pytest.MonkeyPatch, lo: float | None
) -> None:
    monkeypatch.setattr(check, "MAX_DRAWS", 0)
    monkeypatch.setattr(check, "MAX_DETECTOR_DRAWS", 0)
    found = check_results(with_intervals).intervals
    assert (found.recomputed, found.of) == (0, ())
    alter(with_intervals, "msp", 0, lo)
    assert differing(with_intervals) == {"auroc"}


def test_what_options_demand_is_bounded() -> None:
    """Results may come from anyone, and checking them draws what their options say."""
    keys = [("msp", 0), ("knn", 0)]
    assert sampled(keys, 20_000 * 100) is None  # all of them
    assert len(sampled(keys, 20_000 * 1_000) or ()) == 1
    assert sampled(keys, 20_000 * MAX_REPLICATES) == []


RESULTS = Path(__file__).resolve().parents[4] / "manifests" / "results"
ENTRIES = {folder.name: folder for folder in sorted(RESULTS.glob("*")) if folder.is_dir()}
OF_A_FAMILY = (
    "openood-cifar100-drawn",
    "optimizers-mnist-small",
    "rungs-cifar100-all",
    "unknown-cifar-tinyval-kim",
)
WITHOUT_SCORES = (
    "openood-cifar100-drawn-methods",
    "openood-cifar100-drawn-methods-knn",
    "openood-cifar100-drawn-methods-outputs",
    "optimizers-fashion-small",
    "unknown-cifar-tinyval-methods",
    "unknown-cifar-tinyval-methods-knn",
    "unknown-cifar-tinyval-methods-outputs",
)


def test_every_family_of_benchmarks_has_an_entry() -> None:
    families = {name.partition("-")[0] for name in ENTRIES}
    assert {name.partition("-")[0] for name in OF_A_FAMILY} == families


@pytest.mark.results
@pytest.mark.parametrize("name", ENTRIES)
def test_every_value_recomputes(name: str) -> None:
    checked = check_entry(ENTRIES[name])
    assert checked.ok, checked.differences
    if name not in WITHOUT_SCORES:
        assert checked.exact == checked.values > 1_000


@pytest.mark.sampled("oracle", one_in=4)
@pytest.mark.parametrize("name", OF_A_FAMILY)
def test_an_entry_of_every_family_recomputes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the intervals of one entry: the others' are recomputed by ``make check-results``."""
    if name != OF_A_FAMILY[-1]:
        monkeypatch.setattr(check, "sampled", lambda sizes, replicates: ())
    test_every_value_recomputes(name)


@pytest.mark.parametrize("name", ENTRIES)
def test_every_value_has_its_interval(name: str) -> None:
    """Of 1,000 replicates over images; `check_entry` recomputes a sample of them."""
    results = Results.read(ENTRIES[name])
    assert results.about.options.replicates == 1_000
    for row in results.results.select(["metric", "lo", "hi"]).to_pylist():
        assert (row["lo"] is not None) == (row["hi"] is not None) == has_interval(row["metric"])
