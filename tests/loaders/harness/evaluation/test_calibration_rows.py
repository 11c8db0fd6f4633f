"""Calibration in results: against the softmax of the logits, over ID sets, and of older files without it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy.special import softmax

from loaders.harness import check_results
from loaders.harness.data.arrays import Arrays
from loaders.harness.evaluation.run_evaluation import evaluate_runs
from loaders.harness.results.metadata import MetricOptions
from loaders.harness.results.results import Results
from loaders.harness.results.scores import CALIBRATION_COLUMNS
from tests.loaders.harness.evaluation.fake_runs import OPEN_SET, Reading, fake_manifest, fake_run
from wordnet_splits import metrics

NAMES = ("ece", "ece_equal_mass", "brier_score", "nll")
SHIFTED = fake_manifest(
    [("known", "id", "test", 200), ("blurred", "csid", "test", 80), ("far-a", "far", "test", 50)]
)


def values(results: Results, group: str, role: str = "id", suffix: str = "") -> list[float]:
    return [
        value
        for name in NAMES
        for value in results.values(name + suffix, group=group, role=role, detector="(model)")[
            "value"
        ].tolist()
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
    said = Results.read(tmp_path).predicted()
    of_ood = said.filter(pa.compute.equal(said["role"], "far"))
    assert all(of_ood[name].null_count == len(of_ood) for name in CALIBRATION_COLUMNS)


def test_a_background_class_takes_its_share() -> None:
    run = fake_run(SHIFTED)

    def with_background(split, group, needs):
        found = run.group(split, group, needs)
        arrays = dict(found.arrays.items())
        return replace(found, arrays=Arrays({**arrays, "background": np.ones(found.arrays.n, np.float32)}))

    results = evaluate_runs(SHIFTED, [replace(run, source=Reading(with_background))], "msp")
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
    (value,) = results.values("nll", group="(pooled)")["value"].tolist()
    assert value == pytest.approx(-logs[np.arange(len(labels)), labels].mean(), rel=1e-5)


def test_an_altered_value_is_found_out(tmp_path: Path) -> None:
    results = evaluate_runs(OPEN_SET, [fake_run(OPEN_SET)], "msp")
    rows = results.results.to_pylist()
    for row in rows:
        row["value"] *= 0.9 if row["metric"] == "ece" else 1.0
    replace(results, results=pa.Table.from_pylist(rows, schema=results.results.schema)).write(tmp_path)
    (difference,) = check_results(tmp_path, OPEN_SET).differences
    assert "ece" in difference.row


def test_models_are_ranked_by_their_calibration() -> None:
    from loaders.harness import compare

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
