"""Results on disk: columns, exact recomputation, and what a changed score or row does to it."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from loaders.harness.evaluation.run_evaluation import evaluate_runs
from loaders.harness.results import results as written
from loaders.harness.results.check import check_results
from loaders.harness.results.metadata import MetricOptions
from loaders.harness.results.results import ACCESSORS, Results, register_accessor
from loaders.harness.results.scores import MAX_COLUMNS, SCHEMAS
from tests.loaders.harness.altering import assert_no_alteration_passes, refusal, reseal
from tests.loaders.harness.evaluation.fake_runs import OPEN_SET, fake_manifest, fake_run
from tests.raising import mentions, raises
from wordnet_splits.base.errors import DataError, OutputError, UnknownNameError
from wordnet_splits.benchmark.resolve import load_manifest

MANIFEST = fake_manifest(
    [
        ("known", "id", "train", 40),
        ("known", "id", "test", 30),
        ("shifted", "csid", "test", 12),
        ("negative", "external", "test", 16),
        ("near-a", "near", "test", 20),
        ("far-a", "far", "test", 24),
    ]
)


@pytest.fixture(scope="module")
def computed() -> Results:
    runs = [fake_run(MANIFEST, seed) for seed in (0, 1)]
    return evaluate_runs(
        MANIFEST, runs, ["msp", "knn[k=5]", "ensemble"], options=MetricOptions(replicates=5, seed=3)
    )


@pytest.fixture(scope="module")
def stored(computed: Results, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stored")
    computed.write(folder)
    return folder


@pytest.fixture
def folder(stored: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(stored, tmp_path / "results"))


def test_written_and_read_back(computed: Results, folder: Path) -> None:
    again = Results.read(folder)
    assert again.about == computed.about
    for name in (*SCHEMAS, "scores", "predictions"):
        assert getattr(again, name).schema.equals(getattr(computed, name).schema)
        np.testing.assert_equal(getattr(again, name).to_pylist(), getattr(computed, name).to_pylist())


def test_the_score_table_has_a_row_for_each_image_and_a_column_for_each_detector_and_run(
    folder: Path,
) -> None:
    stored = pq.read_table(folder / "scores.parquet")
    keys = ["msp/0", "msp/1", "knn[k=5]/0", "knn[k=5]/1", "ensemble/0"]
    assert stored.schema.names == [*("source", "image_id", "class_id", "group", "role", "label"), *keys]
    assert {stored.schema.field(key).type for key in keys} == {pa.float64()}
    results = Results.read(folder)
    assert stored.num_rows == 30 + 12 + 16 + 20 + 24
    assert results.confidences("knn[k=5]", 1).tolist() == stored["knn[k=5]/1"].to_pylist()
    with pytest.raises(UnknownNameError):
        results.confidences("ensemble", 1)
    said = results.predicted(1)
    known = pa.compute.equal(said["role"], "id")
    right = np.mean(said.filter(known)["label"].to_numpy() == said.filter(known)["prediction"].to_numpy())
    assert right == results.rows(metric="accuracy", run=1, role="id", group="(pooled)")[0]["value"]


def test_every_row_recomputes_from_the_stored_confidences(folder: Path) -> None:
    found = check_results(folder)
    assert found.ok
    assert found.compared > 300
    assert found.exact == found.values  # on the machine that wrote them


def rewrite(path: Path, column: str, values: pa.Array) -> None:
    table = pq.read_table(path)
    pq.write_table(
        table.set_column(table.schema.get_field_index(column), table.schema.field(column), values), path
    )


def test_one_changed_confidence_is_noticed(folder: Path) -> None:
    values = pq.read_table(folder / "scores.parquet")["msp/0"].to_numpy().copy()
    values[0] = values.min() - 1
    rewrite(folder / "scores.parquet", "msp/0", pa.array(values))
    found = check_results(folder)
    assert not found.ok
    assert {"files", "results", "by_class", "by_nearness"} == {p.table for p in found.differences}
    assert all(p.row.startswith("msp, 0") for p in found.differences if p.table == "results")


def test_one_changed_value_is_noticed_and_named(folder: Path) -> None:
    table = pq.read_table(folder / "results.parquet")
    values = table["value"].to_numpy().copy()
    row = next(
        i
        for i, r in enumerate(table.to_pylist())
        if (r["detector"], r["group"], r["metric"], r["run"]) == ("ensemble", "far-a", "auroc", 0)
    )
    values[row] += 1e-9
    rewrite(folder / "results.parquet", "value", pa.array(values))
    altered, problem = check_results(folder).differences
    assert (altered.table, altered.row) == ("files", "results.parquet")
    assert (problem.row, problem.column) == ("ensemble, 0, far-a, far, auroc", "value")
    assert problem.stored == pytest.approx(problem.recomputed, abs=1e-8)


def test_an_invented_row_and_a_dropped_one_are_noticed(folder: Path) -> None:
    names = pq.read_table(folder / "results.parquet")["metric"].to_pylist()
    names[5] = "wishful"
    rewrite(folder / "results.parquet", "metric", pa.array(names))
    problems = [p for p in check_results(folder).differences if p.table != "files"]
    assert {(p.stored, p.recomputed) for p in problems} == {("a row", None), (None, "a row")}


def test_a_row_twice_is_an_error(folder: Path) -> None:
    table = pq.read_table(folder / "results.parquet")
    pq.write_table(pa.concat_tables([table, table.slice(3, 1)]), folder / "results.parquet")
    with pytest.raises(DataError):
        check_results(folder)


Change = Callable[[pa.Table], pa.Table]
MALFORMED: dict[str, tuple[str, Change]] = {
    "an image in the place of another": ("scores", lambda t: t.take([1, *range(1, len(t))])),
    "fewer predictions": ("predictions", lambda t: t.slice(1)),
    "columns of another table": ("by_class", lambda t: t.rename_columns([*t.column_names[:-1], "x"])),
    "no metric": ("results", lambda t: t.set_column(5, t.schema.field(5), pa.nulls(len(t), pa.string()))),
    "another model": ("results", lambda t: t.set_column(0, "model", pa.array(["other"] * len(t)))),
    "a run that is not described": (
        "results",
        lambda t: t.set_column(1, t.schema.field(1), pa.array([7] * len(t), pa.int32())),
    ),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_tables_that_are_not_as_about_json_describes_them_are_refused(folder: Path, name: str) -> None:
    table, change = MALFORMED[name]
    path = folder / f"{table}.parquet"
    pq.write_table(change(pq.read_table(path)), path)
    with pytest.raises(DataError) as refused:
        check_results(folder)
    assert str(refused.value.where).startswith(str(folder))


def test_not_a_results_folder(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError) as refused:
        check_results(tmp_path)
    assert refused.value.where == str(tmp_path)
    (folder / "by_class.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError) as refused:
        check_results(folder)
    assert refused.value.where == str(folder / "by_class.parquet")


def test_an_unwritable_folder_is_an_error(computed: Results, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with raises(OutputError, where="file"):
        computed.write(tmp_path / "file" / "below")


def test_every_field_of_about_json_is_covered(folder: Path) -> None:
    assert assert_no_alteration_passes(folder / "about.json", lambda: Results.read(folder)) > 60


def test_files_may_not_be_absent(folder: Path) -> None:
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        path.unlink()
        with pytest.raises(DataError) as refused:
            check_results(folder)
        assert refused.value.where in (str(path), str(folder))
        path.write_bytes(content)


def test_images_are_compared_with_the_benchmark(tmp_path: Path) -> None:
    """Consistent tables over other rows than the benchmark's: the checksums hold, the images do not."""
    manifest = load_manifest("digits")
    computed = evaluate_runs(manifest, [fake_run(manifest)], "msp", groups=["digits-6-9"])
    computed.write(tmp_path / "whole")
    found = check_results(tmp_path / "whole")
    assert (found.ok, found.benchmark) == (True, "images compared with digits, version 1")
    labels = computed.scores["label"].to_pylist()
    labels[0] = (labels[0] + 1) % 6
    column = computed.scores.schema.get_field_index("label")
    other = computed.scores.set_column(column, "label", pa.array(labels, pa.int32()))
    replace(computed, scores=other).write(tmp_path / "other")
    found = check_results(tmp_path / "other")
    assert {"scores", "results"} >= {one.table for one in found.differences} >= {"scores"}
    made = check_results(tmp_path / "whole", MANIFEST)
    assert {one.row for one in made.differences if one.table == "about"} >= {"benchmark"}


def said_to_be(computed: Results, **change: Any) -> Results:
    """Return results that state other facts."""
    return replace(computed, about=computed.about.model_copy(update=change))


@pytest.mark.parametrize("name", ["digits", "digits@local"])
def test_what_the_evaluation_read_is_compared_with_the_benchmark(tmp_path: Path, name: str) -> None:
    """Another normalisation leaves every table consistent: only the fingerprint tells."""
    manifest = load_manifest("digits")
    computed = evaluate_runs(manifest, [fake_run(manifest)], "msp", groups=["digits-6-9"])
    computed = said_to_be(computed, benchmark=name)
    computed.write(tmp_path / "same")
    assert check_results(tmp_path / "same").ok
    about = computed.about.model_copy(update={"evaluation_fingerprint": "e" * 64})
    replace(computed, about=about).write(tmp_path / "b")
    (difference,) = check_results(tmp_path / "b").differences
    assert difference.column == "fingerprint of evaluation"
    assert difference.recomputed == manifest.evaluation_fingerprint


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"benchmark": "no-such-benchmark"}, "images not compared: there is no no-such-benchmark here"),
        ({"version": 99}, "images not compared: digits is at version 1 here"),
    ],
)
def test_a_benchmark_that_is_absent_or_of_another_version_is_not_compared(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    manifest = load_manifest("digits")
    computed = evaluate_runs(manifest, [fake_run(manifest)], "msp", groups=["digits-6-9"])
    said_to_be(computed, **change).write(tmp_path)
    found = check_results(tmp_path)
    assert (found.ok, found.benchmark) == (True, said)
    given = check_results(tmp_path, manifest)  # one that is named is compared, whatever its version
    assert given.benchmark == "images compared with digits, version 1"
    with raises(UnknownNameError, near="digits"):
        check_results(tmp_path, "digit")


@pytest.mark.parametrize(
    ("option", "value"),
    [("replicates", 10**9), ("bins", 10**12), ("prevalences", [0.5] * 10**5), ("seed", -1), ("level", 1.0)],
)
def test_a_folder_that_asks_for_endless_work_is_refused(folder: Path, option: str, value: Any) -> None:
    reseal(folder / "about.json", lambda sealed: sealed["about"]["options"].update({option: value}))
    line = refusal(lambda: check_results(folder))
    assert line is not None
    assert mentions(line, f"about.options.{option}", "about.json")


def test_tables_of_endless_columns_or_rows_are_refused(folder: Path) -> None:
    path = folder / "scores.parquet"
    table = pq.read_table(path)
    many = {f"x{n}/0": table["msp/0"].slice(0, 1) for n in range(MAX_COLUMNS)}
    pq.write_table(pa.table({**{n: table[n].slice(0, 1) for n in table.column_names}, **many}), path)
    assert refusal(lambda: check_results(folder)) is not None
    rows = pa.table({name: pa.repeat(table[name][0], 1_100_000) for name in table.column_names})
    pq.write_table(rows, path)  # some kilobytes on the disk
    line = refusal(lambda: check_results(folder))
    assert line is not None
    assert mentions(line, "1,100,000")


class Killed(BaseException):
    """What no handler of errors catches."""


@pytest.mark.parametrize("after", range(7))
def test_a_kill_while_new_results_are_written_leaves_the_old_ones_whole(
    computed: Results, folder: Path, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {path.name: path.read_bytes() for path in folder.glob("[!.]*")}
    left = iter(range(after))

    def or_killed(write: Callable[..., Any]) -> Callable[..., Any]:
        def attempt(*given: Any, **options: Any) -> Any:
            if next(left, None) is None:
                raise Killed
            return write(*given, **options)

        return attempt

    others = replace(computed, scores=computed.scores.slice(0, 10))
    with monkeypatch.context() as patched:
        for name in ("write_table", "sha256_of", "write_sealed"):
            patched.setattr(written, name, or_killed(getattr(written, name)))
        with pytest.raises(Killed):
            others.write(folder)
    assert {path.name: path.read_bytes() for path in folder.glob("[!.]*")} == before
    assert Results.read(folder).detectors == computed.detectors


def test_what_a_killed_run_left_is_cleared(computed: Results, folder: Path) -> None:
    (folder / ".scores.parquet.0.part").write_bytes(b"half")
    computed.write(folder)
    assert not list(folder.glob(".*.part"))


@pytest.mark.parametrize(
    ("metric", "filters", "named"),
    [
        ("aurocc", {"group": "near-a"}, ("aurocc", "auroc")),
        ("auroc", {"group": "neara"}, ("neara", "near-a")),
        ("auroc", {"group": "near-a", "role": "near-a"}, ("near-a", "role")),
        ("auroc", {"group": "near-a", "detector": "mps"}, ("mps", "detector")),
    ],
)
def test_values_of_a_mistyped_name_are_not_an_empty_list(
    computed: Results, metric: str, filters: dict[str, str], named: object
) -> None:
    assert len(computed.values("auroc", group="near-a", role="near", detector="msp")["value"].tolist()) == 2
    with raises(UnknownNameError, where="made", naming=named):
        computed.values(metric, **filters)["value"].tolist()


@pytest.fixture(scope="module")
def results() -> Results:
    return evaluate_runs(OPEN_SET, [fake_run(OPEN_SET)], "msp")


@pytest.fixture
def registered() -> Iterator[None]:
    @register_accessor("best")
    def best(results: Results) -> str:
        return results.detectors[0]

    yield
    ACCESSORS.remove("best")


def test_a_registered_function_is_an_attribute(results: Results, registered: None) -> None:
    assert results.best == "msp"
    assert "best" in dir(results)


@pytest.mark.extensions("loaders.harness.report", "loaders.harness.deployment", "loaders.harness.hierarchy")
def test_extensions_are_found_and_completed(results: Results) -> None:
    assert {"plot", "export_detector", "hierarchy", "scores", "write"} <= {*dir(results)}
    assert "roc" in dir(results.plot)
    assert [panel.title for panel in results.plot.roc().panels]
    assert "false_alarms" in (results.export_detector.__doc__ or "")


@pytest.mark.parametrize("name", ["best", "_repr_png_", "__deepcopy__"])
def test_other_names_are_no_attributes(results: Results, name: str) -> None:
    assert not hasattr(results, name)
    assert copy.copy(results).detectors == results.detectors
