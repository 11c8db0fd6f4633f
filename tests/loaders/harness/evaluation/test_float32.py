"""Arrays are kept in float32, confidences in float64: what becomes equal is refused, ties are noted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from loaders.harness import evaluate_arrays
from loaders.harness.data.array_checks import as_float32
from loaders.harness.data.arrays import Arrays
from loaders.harness.results.results import Results
from tests.raising import raises
from wordnet_splits.base.errors import DataError

K = 5
Score = Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]


def arrays(change: Score = lambda z: z) -> dict[str, dict[str, Any]]:
    rng = np.random.default_rng(0)
    labels = np.arange(300) % K
    known = rng.normal(size=(300, K)) + 2 * np.eye(K)[labels]
    return {
        "id": {"logits": change(known), "labels": labels},
        "near": {"logits": change(rng.normal(size=(200, K)))},
    }


def detector(of_greatest: Score) -> Callable[[Arrays], np.ndarray[Any, Any]]:
    def mine(data: Arrays) -> np.ndarray[Any, Any]:
        return of_greatest(np.asarray(data["logits"], dtype=np.float64).max(axis=1))

    return mine


def equal_pairs(found: Results) -> float:
    """The share of the pairs of images of equal confidence, pair by pair."""
    scores = found.scores["mine/0"].to_numpy()
    first, second = np.triu_indices(len(scores), 1)
    return float(np.mean(scores[first] == scores[second]))


FEW: dict[str, Score] = {
    "constant": lambda z: 0 * z,
    "few integers": lambda z: np.floor(z),
    "zeros": lambda z: np.maximum(z - 1, 0),
    "offset in float32": lambda z: 1e8 + z.astype("f4"),
    "saturated": lambda z: 1 / (1 + np.exp(-z - 40)),
}


@pytest.mark.parametrize("of_greatest", FEW.values(), ids=FEW)
def test_equal_confidences_are_noted(of_greatest: Score) -> None:
    found = evaluate_arrays(arrays(), [renamed(of_greatest)])
    share = equal_pairs(found)
    assert share > 0.01
    (note,) = found.about.notes
    assert note.startswith(f"arrays: mine: {share:.1%} of the pairs")


def renamed(of_greatest: Score) -> Callable[[Arrays], np.ndarray[Any, Any]]:
    """A detector that returns the values in their own type."""

    def mine(data: Arrays) -> np.ndarray[Any, Any]:
        return of_greatest(data["logits"][:].max(axis=1))

    return mine


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_few_equal_confidences_are_not_worth_a_note(dtype: str) -> None:
    """Of 500 images 40 of one confidence are 0.6% of the pairs; 60 are 1.4%."""

    def smallest(number: int) -> Callable[[Arrays], np.ndarray[Any, Any]]:
        def mine(data: Arrays) -> np.ndarray[Any, Any]:
            values = data["logits"][:].astype(dtype, copy=False).max(axis=1)
            values[: number if data.n == 300 else 0] = 0
            return values

        return mine

    assert evaluate_arrays(arrays(), [smallest(0)]).about.notes == ()
    (note,) = evaluate_arrays(arrays(), [smallest(40)]).about.notes
    assert "equal" not in note  # it is of the order of the images, on which this detector depends
    assert "1.4% of the pairs" in evaluate_arrays(arrays(), [smallest(60)]).about.notes[0]


KEPT: dict[str, Score] = {
    "as they are": lambda z: z,
    "offset": lambda z: 1e3 + z,
    "tiny": lambda z: np.exp(z - 80),
    "few integers": lambda z: z.astype(np.int64),
    "truth": lambda z: z > 1,
    "large offset": lambda z: 1e8 + z,
    "vanishing": lambda z: np.exp(z / 10 - 110),
    "long": lambda z: z.astype(np.longdouble),
}


@pytest.mark.parametrize("of_greatest", KEPT.values(), ids=KEPT)
def test_confidences_that_it_can_give_their_own_auroc(of_greatest: Score) -> None:
    given = arrays()
    found = evaluate_arrays(given, [detector(of_greatest)])
    as_seen = {name: held["logits"].astype("f4").astype("f8").max(axis=1) for name, held in given.items()}
    scores = np.concatenate([of_greatest(as_seen[name]) for name in ("id", "near")]).astype(np.float64)
    expected = roc_auc_score(np.repeat([1, 0], [300, 200]), scores)
    assert found.values("auroc", group="near")["value"].tolist() == [pytest.approx(expected, abs=1e-5)]


@pytest.mark.parametrize(
    "change",
    [
        lambda z: z + 1e9,
        lambda z: (1e3 * z).astype(np.int64) + 10**12,
        lambda z: z + 1e9 * np.arange(len(z))[:, None],
        lambda z: z + 1e9 * np.arange(K),
        lambda z: z * 1e-50,
    ],
    ids=["offset", "integers", "offset of each image", "offset of each class", "tiny"],
)
@pytest.mark.parametrize("key", ["logits", "features"])
def test_arrays_that_float32_cannot_tell_apart_are_refused(change: Score, key: str) -> None:
    given = arrays()
    for held in given.values():
        held[key] = change(held["logits"])
    with raises(DataError, where="id", naming=(key, "float32", "offset")):
        evaluate_arrays(given, "mls")


def test_offsets_that_leave_the_differences_give_the_same_numbers() -> None:
    plain = evaluate_arrays(arrays(), "msp").values("auroc", group="near")["value"].tolist()
    moved = evaluate_arrays(arrays(lambda z: z + 100), "msp").values("auroc", group="near")["value"].tolist()
    assert moved == [pytest.approx(plain[0], abs=1e-4)]


def test_values_that_meet_by_chance_are_not_refused() -> None:
    """Of 300,000 values between 1/2 and 1 float32 makes some thousand pairs equal, 1e-7 of all."""
    values = np.random.default_rng(0).uniform(0.5, 1, 300_000)
    narrow = as_float32(values, name="values", where="here", hint="")
    assert len(np.unique(narrow)) < len(np.unique(values))
    assert as_float32(np.zeros((0, 3)), name="values", where="here", hint="").dtype == np.float32
    assert as_float32(np.full((9, 4), 0.1), name="values", where="here", hint="").shape == (9, 4)


@pytest.mark.parametrize("on", ["digits", None], ids=["benchmark", "own sets"])
def test_outputs_of_a_model_in_double_precision_are_no_exception(on: str | None) -> None:
    torch = pytest.importorskip("torch", reason="needs torch")
    from loaders import evaluate

    def network(offset: float) -> Any:
        torch.manual_seed(0)
        made = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 6)).double()
        made[1].bias.data += offset
        return made

    images = torch.rand(30, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    sets = {"id": (images, torch.arange(30) % 6), "near": images.flip(2)} if on is None else None
    options: dict[str, Any] = {"sets": sets} if on is None else {"groups": ["uniform"]}
    assert evaluate(network(1.0), on, "msp", **options).detectors == ("msp",)
    with raises(DataError, where="Sequential", naming="float32"):
        evaluate(network(1e9), on, "msp", **options)


@pytest.mark.parametrize("dead", [1, 40])
@pytest.mark.parametrize("constant", [0.5, 0.0])
def test_features_of_dead_channels_are_no_collapse(dead: int, constant: float) -> None:
    """A channel that is constant but for rounding errors ranks nothing, and says nothing of the others."""
    rng = np.random.default_rng(0)
    given = arrays()
    for held in given.values():
        held["features"] = rng.normal(size=(len(held["logits"]), 256))
        noise = rng.uniform(size=(len(held["logits"]), dead)) * (1e-10 if constant else 1e-60)
        held["features"][:, :dead] = constant + noise
    given["id/train"] = given["id"]
    plain = {name: held | {"features": held["features"].astype("f4")} for name, held in given.items()}
    first, second = (
        evaluate_arrays(sets, "knn[k=5]").values("auroc", group="near")["value"].tolist()
        for sets in (given, plain)
    )
    assert first == second


def test_features_most_of_which_collapse_are_refused() -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(300, 256))
    features[:, :140] += 1e9
    with raises(DataError, where="here", naming="100.00"):
        as_float32(features, name="features", where="here", by_column=True)


def test_logits_of_which_one_column_collapses_are_refused() -> None:
    logits = np.random.default_rng(0).normal(size=(300, 256))
    logits[:, 0] += 1e9
    with raises(DataError, where="here", naming="0.39%"):
        as_float32(logits, name="logits", where="here")
