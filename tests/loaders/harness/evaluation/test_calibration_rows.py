"""Calibration in results: against the softmax of the logits, over ID sets, and of older files without it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.special import softmax

from loaders.harness import check_results, compare
from loaders.harness.arrays import Arrays
from loaders.harness.evaluation.results import Results, read_folder
from loaders.harness.evaluation.run_evaluation import evaluate_runs
from loaders.harness.evaluation.schema import CALIBRATION_COLUMNS, PREDICTIONS, MetricOptions
from loaders.harness.evaluation.wide_tables import VALUES, lengthen, widen
from tests.loaders.harness.evaluation.fake_runs import OPEN_SET, fake_manifest, fake_run
from wordnet_splits import metrics
from wordnet_splits.base.parquet import read_table, write_table

NAMES = ("ece", "ece_equal_mass", "brier_score", "nll")
SHIFTED = fake_manifest(
    [("known", "id", "test", 200), ("blurred", "csid", "test", 80), ("far-a", "far", "test", 50)]
)


def values(results: Results, group: str, role: str = "id", suffix: str = "") -> list[float]:
    return [
        value
        for name in NAMES
        for value in results.values(name + suffix, group=group, role=role, detector="(model)")
    ]


def expected(*outputs: tuple[np.ndarray, np.ndarray]) -> list[float]:
    logits, labels = (np.concatenate(part) for part in zip(*outputs, strict=True))
    probabilities = softmax(logits.astype(np.float64), axis=1)
    return [getattr(metrics, name)(probabilities, labels) for name in NAMES]


def outputs(run, group):
    out = run.group("test", group)
    return np.asarray(out.arrays["logits"]), out.table["label"].to_numpy()


def test_rows_are_of_the_classifier_on_each_id_set(tmp_path: Path) -> None:
    run = fake_run(SHIFTED)
    results = evaluate_runs(SHIFTED, [run], "msp,energy", options=MetricOptions(replicates=20))
    known, blurred = outputs(run, "known"), outputs(run, "blurred")
    assert values(results, "(pooled)") == pytest.approx(expected(known), rel=1e-5)
    assert values(results, "blurred", "csid") == pytest.approx(expected(blurred), rel=1e-5)
    full = values(results, "(pooled)", suffix="[full-spectrum]")
    assert full == pytest.approx(expected(known, blurred), rel=1e-5)
    rows = [row for row in results.rows(detector="(model)") if row["metric"].partition("[")[0] in NAMES]
    assert len(rows) == 12
    assert all(row["lo"] <= row["hi"] for row in rows)
    (brier,) = results.rows(metric="brier_score", group="(pooled)")
    assert brier["lo"] < brier["value"] < brier["hi"]
    assert "Calibration of fake on ID test images: ECE" in results.table()
    results.write(tmp_path)
    assert check_results(tmp_path, SHIFTED).ok
    predictions = pq.read_table(tmp_path / "predictions.parquet")
    of_ood = predictions.filter(pa.compute.equal(predictions["role"], "far"))
    assert all(of_ood[f"{name}.0"].null_count == len(of_ood) for name in CALIBRATION_COLUMNS)


def test_a_background_class_takes_its_share() -> None:
    run = fake_run(SHIFTED)

    def with_background(split, group, needs):
        found = run.read_group(split, group, needs)
        arrays = dict(found.arrays.items())
        return replace(found, arrays=Arrays({**arrays, "background": np.ones(found.arrays.n, np.float32)}))

    results = evaluate_runs(SHIFTED, [replace(run, read_group=with_background)], "msp")
    logits, labels = outputs(run, "known")
    logits = np.column_stack([logits, np.ones(len(logits))])
    assert (logits.argmax(axis=1) < 4).all()
    assert values(results, "(pooled)") == pytest.approx(expected((logits, labels)), rel=1e-5)


def test_a_probability_of_zero_in_float32_has_its_likelihood() -> None:
    run = fake_run(OPEN_SET, temperature=0.05)
    results = evaluate_runs(OPEN_SET, [run], "msp")
    logits, labels = outputs(run, "known")
    shifted = logits.astype(np.float64) - logits.max(axis=1, keepdims=True)
    logs = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    assert logs.min() < -200
    (value,) = results.values("nll", group="(pooled)")
    assert value == pytest.approx(-logs[np.arange(len(labels)), labels].mean(), rel=1e-5)


def test_older_files_are_read_without_calibration(tmp_path: Path) -> None:
    results = evaluate_runs(OPEN_SET, [fake_run(OPEN_SET), fake_run(OPEN_SET, 1)], "msp")
    path = tmp_path / "predictions.parquet"
    for table, metadata in (widen("predictions", results.predictions), (results.predictions, {})):
        older = table.select(
            [n for n in table.column_names if n.partition(".")[0] not in CALIBRATION_COLUMNS]
        )
        write_table(older, path, metadata=metadata)
        read = lengthen("predictions", read_table(path), PREDICTIONS, max_rows=10**6, where=str(path))
        assert read.schema.equals(PREDICTIONS)
        kept = [name for name in PREDICTIONS.names if name not in CALIBRATION_COLUMNS]
        assert read.select(kept).equals(results.predictions.select(kept))
        assert all(read[name].null_count == len(read) for name in CALIBRATION_COLUMNS)
    assert set(CALIBRATION_COLUMNS) < set(VALUES["predictions"])


def test_results_without_the_columns_still_recompute(tmp_path: Path) -> None:
    results = evaluate_runs(OPEN_SET, [fake_run(OPEN_SET)], "msp")
    predictions = results.predictions
    for name in CALIBRATION_COLUMNS:
        nothing = pa.nulls(len(predictions), pa.float32())
        predictions = predictions.set_column(predictions.column_names.index(name), name, nothing)
    without = results.results.filter(
        pa.compute.invert(pa.compute.is_in(results.results["metric"], pa.array(NAMES)))
    )
    older = replace(results, predictions=predictions, results=without)
    older.write(tmp_path)
    assert check_results(tmp_path, OPEN_SET).ok
    stored, _ = read_folder(tmp_path)
    assert "ECE" not in stored.table()
    assert results.results.num_rows == older.results.num_rows + len(NAMES)


def test_an_altered_value_is_found_out(tmp_path: Path) -> None:
    results = evaluate_runs(OPEN_SET, [fake_run(OPEN_SET)], "msp")
    rows = results.results.to_pylist()
    for row in rows:
        row["value"] *= 0.9 if row["metric"] == "ece" else 1.0
    replace(results, results=pa.Table.from_pylist(rows, schema=results.results.schema)).write(tmp_path)
    (difference,) = check_results(tmp_path, OPEN_SET).differences
    assert "ece" in difference.row


def test_models_are_ranked_by_their_calibration() -> None:
    runs = [fake_run(OPEN_SET, 0, model="soft"), fake_run(OPEN_SET, 1, model="sharp", temperature=2)]
    results = evaluate_runs(OPEN_SET, runs, "msp,energy")
    expected_order = sorted(
        (value, row["model"]) for row in results.rows(metric="nll") for value in [row["value"]]
    )
    ranked = compare(results, metric="nll")
    assert ranked.on == "id"
    assert [(row["mean"], row["model"]) for row in ranked.rows()] == expected_order
    assert {row["detector"] for row in ranked.rows()} == {"(model)"}
    best, last = compare(results, metric="gamma", on="negative").rows()
    assert best["mean"] >= last["mean"]
