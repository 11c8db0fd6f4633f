"""Results on disk: columns, exact recomputation, and what a changed score or row does to it."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from loaders.harness.evaluation.about import Options
from loaders.harness.evaluation.check import check_results
from loaders.harness.evaluation.of_runs import evaluate_runs
from loaders.harness.evaluation.results import SCHEMAS, Results
from tests.loaders.harness.evaluation.fake_runs import fake_manifest, fake_run
from wordnet_splits.errors import DataError, OutputError

MANIFEST = fake_manifest(
    [
        ("known", "id", "train", 80),
        ("known", "id", "test", 90),
        ("shifted", "csid", "test", 40),
        ("negative", "external", "test", 50),
        ("near-a", "near", "test", 60),
        ("far-a", "far", "test", 70),
    ]
)


@pytest.fixture(scope="module")
def computed() -> Results:
    runs = [fake_run(MANIFEST, seed) for seed in (0, 1)]
    return evaluate_runs(
        MANIFEST, runs, ["msp", "knn[k=5]", "ensemble"], options=Options(replicates=20, seed=3)
    )


@pytest.fixture
def folder(computed: Results, tmp_path: Path) -> Path:
    computed.write(tmp_path / "results")
    return tmp_path / "results"


def test_written_and_read_back(computed: Results, folder: Path) -> None:
    again = Results.read(folder)
    assert again.about == computed.about
    for name in SCHEMAS:
        table = getattr(again, name)
        assert table.schema.equals(SCHEMAS[name])
        np.testing.assert_equal(table.to_pylist(), getattr(computed, name).to_pylist())


def test_the_columns_are_those_promised(folder: Path) -> None:
    assert pq.read_schema(folder / "results.parquet").names == [
        *("benchmark", "version", "images_fingerprint", "model", "model_key", "transform_key", "run"),
        *("detector", "params", "chosen_on", "group", "role", "metric", "value", "lo", "hi", "n_id", "n_ood"),
    ]
    assert pq.read_schema(folder / "scores.parquet").names == [
        "detector",
        "run",
        "source",
        "image_id",
        "group",
        "confidence",
    ]
    csv = pa_csv.read_csv(folder / "results.csv")
    assert csv.column_names == pq.read_schema(folder / "results.parquet").names
    assert csv.num_rows == pq.read_metadata(folder / "results.parquet").num_rows


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
    values = pq.read_table(folder / "scores.parquet")["confidence"].to_numpy().copy()
    values[0] = values.min() - 1
    rewrite(folder / "scores.parquet", "confidence", pa.array(values))
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
    table = pq.read_table(folder / "results.parquet")
    names = table["metric"].to_pylist()
    names[5] = "wishful"
    rewrite(folder / "results.parquet", "metric", pa.array(names))
    problems = [p for p in check_results(folder).differences if p.table != "files"]
    assert {(p.stored, p.recomputed) for p in problems} == {("a row", None), (None, "a row")}


def test_a_row_twice_is_an_error(folder: Path) -> None:
    table = pq.read_table(folder / "results.parquet")
    pq.write_table(pa.concat_tables([table, table.slice(3, 1)]), folder / "results.parquet")
    with pytest.raises(DataError, match="two rows of"):
        check_results(folder)


def test_other_images_than_predicted_are_refused(folder: Path) -> None:
    table = pq.read_table(folder / "scores.parquet")
    pq.write_table(table.slice(1), folder / "scores.parquet")
    with pytest.raises(DataError, match="msp, run 0: scores and predictions hold different images"):
        check_results(folder)


def test_not_a_results_folder(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no about.json here"):
        check_results(tmp_path)
    shutil.copy(folder / "scores.parquet", folder / "by_class.parquet")
    with pytest.raises(DataError, match="its columns are not those of by_class"):
        check_results(folder)
    (folder / "by_class.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match="not a Parquet file"):
        check_results(folder)


def test_an_unwritable_folder_is_an_error(computed: Results, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be written"):
        computed.write(tmp_path / "file" / "below")
