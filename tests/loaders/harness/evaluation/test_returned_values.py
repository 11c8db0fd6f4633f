"""What code of users returns: confidences, predictions, metrics, logits and labels that are no numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from loaders.harness import evaluate, evaluate_arrays, zero_shot_arrays
from loaders.harness.data.arrays import Arrays
from wordnet_splits.base.errors import DataError, SplitsError
from wordnet_splits.metrics import auroc_by_nearness, ece, mixture_moments, robustness, robustness_score
from wordnet_splits.metrics.registry import pair_metric

N, K = 40, 3
RNG = np.random.default_rng(0)
KNOWN: dict[str, Any] = {"logits": 4 * RNG.normal(size=(N, K)).astype(np.float32), "labels": np.arange(N) % K}
SETS = {"id": KNOWN, "near": {"logits": RNG.normal(size=(N, K)).astype(np.float32)}}
Change = Callable[[np.ndarray[Any, Any]], Any]

WRONG: dict[str, Change] = {
    "masked": lambda z: np.ma.masked_array(z, z > np.median(z)),
    "masked items": lambda z: [np.ma.masked, *z[1:].tolist()],
    "complex": lambda z: z + 1j,
    "complex without an imaginary part": lambda z: z + 0j,
    "complex tensor": lambda z: torch.tensor(z) * 1j,
    "complex tensor with gradient": lambda z: torch.tensor(z).requires_grad_() * 1j,
    "object": lambda z: z.astype(object),
    "texts": lambda z: z.astype(str),
    "dates": lambda z: z.astype("M8[s]"),
    "NaN": lambda z: z * np.nan,
    "none": lambda z: None,
    "short": lambda z: z[1:],
    "one more axis": lambda z: z[..., None],
    "ragged": lambda z: [[1.0], [1.0, 2.0]],
    "without data": lambda z: torch.tensor(z).to("meta"),
    "sparse": lambda z: torch.tensor(z).to_sparse(),
    "a dict": lambda z: dict(enumerate(z.tolist())),
}
RIGHT: dict[str, Change] = {
    "gradient": lambda z: torch.tensor(z).requires_grad_(),
    "a list": lambda z: z.tolist(),
    "a list of tensors": lambda z: list(torch.tensor(z).requires_grad_()),
    "masking nothing": np.ma.masked_array,
}


def of_detector(change: Change) -> pa.Table:
    def stated(data: Arrays) -> Any:
        return change(np.array(data["logits"]).max(axis=1))

    return evaluate_arrays(SETS, [stated]).scores


def of_predictions(change: Change) -> pa.Table:
    @dataclass(frozen=True)
    class Stated:
        def score(self, state: None, data: Arrays) -> Any:
            return np.asarray(data["logits"]).max(axis=1)

        def predict(self, state: None, data: Arrays) -> Any:
            return {"logits": change(np.array(data["logits"]))}

    return evaluate_arrays(SETS, [Stated()]).predictions


def of_model(change: Change) -> pa.Table:
    images = torch.arange(2.0 * N * 3).reshape(2 * N, 3, 1, 1) / (6 * N)
    sets = {"id": (images[:N], KNOWN["labels"]), "near": images[N:]}

    def stated(x: Any) -> Any:
        logits = np.sin(1 + 40 * x.numpy().reshape(len(x), -1))
        values = change(logits)
        return np.asarray(values) if isinstance(values, list) else values

    return evaluate(stated, sets=sets, detectors="msp").scores


DOORS = {"detector 'stated'": of_detector, "predictions": of_predictions, "model": of_model}


@pytest.mark.sampled("fuzz", one_in=3)
@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("case", WRONG)
def test_what_are_no_real_numbers_is_refused_by_the_name_of_its_code(case: str, door: str) -> None:
    with pytest.raises(SplitsError) as caught, np.errstate(all="ignore"):
        DOORS[door](WRONG[case])
    assert caught.value.where


@pytest.mark.parametrize("door", list(DOORS)[:2])
@pytest.mark.parametrize("case", RIGHT)
def test_numbers_of_any_kind_are_numbers(case: str, door: str) -> None:
    assert DOORS[door](RIGHT[case]).equals(DOORS[door](np.asarray))


@pytest.mark.parametrize(
    "outputs",
    [
        {},
        {"background": np.zeros(N)},
        {"logits": np.zeros((N, K + 1))},
        {"logits": np.zeros((N, K)), "background": np.zeros(3)},
        {"logits": np.zeros((N, K)), "background": np.full(N, np.inf)},
    ],
)
def test_predictions_of_another_shape_are_refused(outputs: dict[str, Any]) -> None:
    @dataclass(frozen=True)
    class Stated:
        def score(self, state: None, data: Arrays) -> Any:
            return np.asarray(data["logits"]).max(axis=1)

        def predict(self, state: None, data: Arrays) -> Any:
            return outputs

    with pytest.raises(DataError) as caught:
        evaluate_arrays(SETS, [Stated()])
    assert caught.value.where == "detector 'stated'"


LABELS: dict[str, Any] = {
    "masked": np.ma.masked_equal(KNOWN["labels"], 1),
    "complex": KNOWN["labels"] + 0j,
    "complex tensor": torch.tensor(KNOWN["labels"]) + 0j,
    "texts": ["a"] * N,
    "object": KNOWN["labels"].astype(object),
    "float": KNOWN["labels"].astype(float),
    "gradient": torch.tensor(KNOWN["labels"]).float().requires_grad_(),
}


@pytest.mark.parametrize("case", LABELS)
def test_labels_of_a_pair_that_are_no_whole_numbers_are_refused(case: str) -> None:
    images = torch.rand(N, 3, 1, 1)
    with pytest.raises(DataError) as caught:
        evaluate(
            lambda x: 9 * x.flatten(1), sets={"id": (images, LABELS[case]), "near": images}, detectors="msp"
        )
    assert caught.value.where in ("sets", "id")


METRICS: dict[str, Callable[[Any], Any]] = {
    "complex": lambda counts: counts.n_id * 1j,
    "masked": lambda counts: np.ma.masked_all(counts.n_id.shape),
    "texts": lambda counts: "high",
    "none": lambda counts: None,
    "object": lambda counts: counts.n_id.astype(object),
    "ragged": lambda counts: [[1.0], [1.0, 2.0]],
    "infinity": lambda counts: np.asarray(counts.n_id * np.inf),
}


@pytest.mark.usefixtures("user_metrics_forgotten")
@pytest.mark.parametrize("case", METRICS)
def test_a_metric_is_a_real_number_in_an_evaluation_and_by_itself(case: str) -> None:
    def stated(counts: Any) -> Any:
        """Return what the case says."""
        return METRICS[case](counts)

    metric = pair_metric(higher_is_better=True)(stated)
    for compute in (lambda: metric([1.0, 2.0], [0.0]), lambda: evaluate_arrays(SETS, "msp")):
        with pytest.raises(DataError) as caught:
            compute()
        assert "metric 'stated'" in str(caught.value.where)


@pytest.mark.usefixtures("user_metrics_forgotten")
def test_a_metric_with_a_gradient_is_its_value() -> None:
    def stated(counts: Any) -> Any:
        """Return the number of ID images."""
        return torch.tensor(np.asarray(counts.n_id, float)).requires_grad_()

    assert pair_metric(higher_is_better=True)(stated)([1.0, 2.0], [0.0]) == 2


@pytest.mark.parametrize(
    "values", [["a", "b"], [1j, 2.0], [[1.0], [1.0, 2.0]], np.ma.masked_equal([1.0, 2.0], 1)]
)
def test_metrics_of_what_are_no_real_numbers_are_refused(values: Any) -> None:
    two = [0.2, 0.1]
    for compute in (
        lambda: robustness([values], higher_is_better=True),
        lambda: mixture_moments(values, two),
        lambda: mixture_moments(two, values),
        lambda: robustness_score(values[0], 1.0, higher_is_better=True),
        lambda: auroc_by_nearness(two, two, values),
        lambda: auroc_by_nearness(two, two, two, bins=values),
        lambda: ece([values], [0]),
    ):
        with pytest.raises(DataError):
            compute()


@pytest.mark.parametrize("name", ["images", "names", "negatives"])
@pytest.mark.parametrize("case", [case for case in WRONG if case not in ("short", "a dict")])
def test_embeddings_that_are_no_real_numbers_are_refused_by_name(case: str, name: str) -> None:
    rows = np.abs(RNG.normal(size=(4, 3))) + 1
    given = {"images": rows, "names": rows, "negatives": rows}
    given[name] = WRONG[case](rows)
    if (case, name) == ("none", "negatives"):
        return
    with pytest.raises(DataError) as caught:
        zero_shot_arrays(**given, groups=2)
    assert caught.value.where == name


def test_embeddings_with_a_gradient_are_embeddings_and_a_row_of_zeros_is_none() -> None:
    rows = np.abs(RNG.normal(size=(4, 3))) + 1
    found = zero_shot_arrays(torch.tensor(rows).requires_grad_(), torch.tensor(rows), rows.tolist(), groups=2)  # type: ignore[arg-type]
    expected = zero_shot_arrays(rows, rows, rows, groups=2)
    assert {key: array.tolist() for key, array in found.items()} == {
        key: array.tolist() for key, array in expected.items()
    }
    for options in ({"groups": 0}, {"T": 0.0}, {"groups": 2.5}, {"groups": 9}):
        with pytest.raises(DataError):
            zero_shot_arrays(rows, rows, rows, **options)  # type: ignore[arg-type]
    with pytest.raises(DataError) as caught:
        zero_shot_arrays(rows, rows * [[1], [0], [1], [1]])
    assert caught.value.where == "names"
