"""Whose results are joined: runs of one model where somebody said so, and never other images."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from loaders.harness import compare, evaluate_arrays
from loaders.harness.comparison.entries import draws_of
from loaders.harness.report.plots.selection import Selection
from loaders.harness.results.results import Results
from tests.raising import raises
from wordnet_splits.base.errors import DataError, OutputError

K = 4


def arrays(seed: int, *, ids: bool = False) -> dict[str, dict[str, Any]]:
    """Sets of 60 and 40 images; those of greater seeds are told apart less well."""
    rng = np.random.default_rng(seed)
    known = np.arange(60) % K
    logits = rng.normal(size=(60, K)) + (6 - 3 * seed) * np.eye(K)[known]
    sets: dict[str, dict[str, Any]] = {
        "id": {"logits": logits.astype("f4"), "labels": known},
        "near": {"logits": rng.normal(size=(40, K)).astype("f4")},
    }
    for name, held in sets.items():
        held |= {"ids": [f"{name}-{n}" for n in range(len(held["logits"]))]} if ids else {}
    return sets


def auroc_of(sets: dict[str, dict[str, Any]]) -> float:
    scores = [sets[name]["logits"].max(axis=1) for name in ("id", "near")]
    return float(roc_auc_score(np.repeat([1, 0], [60, 40]), np.concatenate(scores)))


def test_images_that_nobody_named_are_not_paired_with_others() -> None:
    both = [evaluate_arrays(arrays(seed), "mls") for seed in (0, 1)]
    with raises(DataError, naming="ids"):
        compare(both, metric="auroc", on="near")


def test_arrays_without_a_name_are_no_runs_of_one_model() -> None:
    given = [arrays(seed, ids=True) for seed in (0, 1)]
    held = [evaluate_arrays(one, "mls") for one in given]
    found = compare(held, metric="auroc", on="near", bootstrap=20)
    assert {row["model"]: (row["n"], row["mean"]) for row in found.rows()} == {
        f"arrays (results {n + 1})": (1, pytest.approx(auroc_of(one))) for n, one in enumerate(given)
    }
    assert "are treated as separate models" in found.notes[0]
    networks = [network.model for network in Selection.from_results(held).first_networks()]
    assert networks == ["arrays (results 1)", "arrays (results 2)"]


def test_arrays_of_a_model_that_is_named_are_its_runs() -> None:
    given = [arrays(seed, ids=True) for seed in (0, 1)]
    held = [evaluate_arrays(one, "mls", model="net") for one in given]
    (row,) = compare(held, metric="auroc", on="near", bootstrap=20).rows()
    assert (row["model"], row["n"]) == ("net", 2)
    assert row["mean"] == pytest.approx(np.mean([auroc_of(one) for one in given]))


def test_a_name_that_is_the_default_is_a_name_too() -> None:
    held = [evaluate_arrays(arrays(seed, ids=True), "mls", model="arrays") for seed in (0, 1)]
    found = compare(held, metric="auroc", on="near", bootstrap=20)
    assert [(row["model"], row["n"]) for row in found.rows()] == [("arrays", 2)]
    assert not found.notes


def test_other_sets_are_no_other_transforms() -> None:
    both = [evaluate_arrays(arrays(0, ids=True), "mls")]
    more = {**arrays(0, ids=True), "far": arrays(1)["near"]}
    both.append(evaluate_arrays(more, "mls"))
    with raises(DataError, naming=("own-sets", "id, near", "id, near, far")):
        compare(both, metric="auroc", on="near")


def test_other_detectors_of_the_same_arrays_are_of_one_model() -> None:
    held = [evaluate_arrays(arrays(0), name) for name in ("mls", "energy")]
    found = compare(held, metric="auroc", on="near", bootstrap=20)
    assert {(row["model"], row["detector"]) for row in found.rows()} == {
        ("arrays", "mls"),
        ("arrays", "energy"),
    }
    with raises(DataError, where="results 2", naming=("mls", "arrays")):
        compare([held[0], evaluate_arrays(arrays(0), "mls")])


def test_networks_of_one_class_are_other_models_until_they_are_named() -> None:
    torch = pytest.importorskip("torch", reason="needs torch")
    from loaders import evaluate

    def linear(seed: int) -> Any:
        torch.manual_seed(seed)
        return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 6))

    def rows(name: str | None) -> list[tuple[str, int]]:
        models = [linear(seed) if name is None else {name: linear(seed)} for seed in (0, 1)]
        held = [evaluate(one, "digits", "msp", groups=["digits-6-9"]) for one in models]
        (draw,) = draws_of(held)
        return [(entry.model, len(entry.runs)) for entry in draw.entries]

    assert rows(None) == [("Sequential (results 1)", 1), ("Sequential (results 2)", 1)]
    assert rows("linear") == [("linear", 2)]
    assert rows("Sequential") == [("Sequential", 2)]  # somebody said so, though it is the default too


def test_written_results_give_way_to_those_of_the_same_arrays_alone(tmp_path: Path) -> None:
    evaluate_arrays(arrays(0), "mls").write(tmp_path)
    other = evaluate_arrays(arrays(1), "mls")
    with raises(OutputError, where=tmp_path, naming="--overwrite"):
        other.write(tmp_path)
    named = evaluate_arrays(arrays(1, ids=True), "mls")
    evaluate_arrays(arrays(0, ids=True), "mls").write(tmp_path, overwrite=True)
    with raises(OutputError, where=tmp_path):
        named.write(tmp_path)
    same = evaluate_arrays(arrays(0, ids=True), "mls,energy")
    altered = same.about.model_copy(update={"evaluation_fingerprint": "e" * 64})
    with raises(OutputError, where=tmp_path):
        replace(same, about=altered).write(tmp_path)
    same.write(tmp_path)
    assert Results.read(tmp_path).detectors == ("mls", "energy")


@pytest.mark.parametrize(
    ("ids", "named"),
    [
        (["a"] * 40, ("a", "39")),
        (range(39), ("39", "40")),
        ([None] * 40, ()),
        (["a\n", *range(39)], ()),
    ],
)
def test_ids_name_each_image_once(ids: Any, named: object) -> None:
    given = arrays(0)
    given["near"]["ids"] = ids
    with raises(DataError, where="near", naming=named):
        evaluate_arrays(given, "mls")


def test_ids_may_be_numbers_and_come_from_numpy() -> None:
    given = arrays(0)
    given["near"]["ids"] = np.arange(40)
    found = evaluate_arrays(given, "mls").scores.to_pandas()
    assert found[found.group == "near"].image_id.tolist() == [str(n) for n in range(40)]
