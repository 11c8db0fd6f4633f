"""Confidences and arrays are kept in float32: what that makes equal is refused, ties are said."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.metrics import roc_auc_score

from loaders.harness import evaluate_arrays
from loaders.harness.array_checks import as_float32
from loaders.harness.arrays import Arrays
from loaders.harness.detectors import get_detector, get_spec
from loaders.harness.detectors.registry import configure, detector_spec
from loaders.harness.evaluation.results import Results
from loaders.harness.evaluation.scoring import confidence, fit
from tests.raising import raises
from wordnet_splits.base.errors import DataError
from wordnet_splits.metrics import kendall_tau

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


COLLAPSING: dict[str, Score] = {
    "offset": lambda z: 1e8 + z,
    "small offset": lambda z: 1e5 + z,
    "vanishing": lambda z: np.exp(z / 10 - 110),
    "saturated": lambda z: 1 / (1 + np.exp(-z - 20)),
    "integers": lambda z: (1e4 * z).astype(np.int64) + 10**15,
    "beyond 2**53": lambda z: (1e4 * z).astype(np.int64) + 10**18,
}


@pytest.mark.parametrize("of_greatest", COLLAPSING.values(), ids=COLLAPSING)
def test_confidences_that_float32_cannot_tell_apart_are_refused(of_greatest: Score) -> None:
    with raises(DataError, where="'mine'", naming="float32"):
        evaluate_arrays(arrays(), [detector(of_greatest)])


def equal_pairs(found: Results) -> float:
    """The share of the pairs of images of equal confidence, pair by pair."""
    scores = found.scores["confidence"].to_numpy()
    first, second = np.triu_indices(len(scores), 1)
    return float(np.mean(scores[first] == scores[second]))


TYING: dict[str, Score] = {
    "offset": lambda z: 1e8 + z,
    "vanishing": lambda z: np.exp(z / 10 - 110),
    "saturated": lambda z: 1 / (1 + np.exp(-z - 20)),
}
HONEST: dict[str, Score] = {
    "constant": lambda z: 0 * z,
    "few integers": lambda z: np.floor(z),
    "zeros": lambda z: np.maximum(z - 1, 0),
}


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("of_greatest", [*TYING.values(), *HONEST.values()], ids=[*TYING, *HONEST])
def test_confidences_that_are_equal_are_said_whatever_their_type(of_greatest: Score, dtype: str) -> None:
    """Stored logits are float32, and numpy computes in it: then nothing is lost when confidences are kept."""

    def mine(data: Arrays) -> np.ndarray[Any, Any]:
        return of_greatest(data["logits"][:].astype(dtype, copy=False).max(axis=1))

    if dtype == "f8" and of_greatest in TYING.values():
        with raises(DataError, where="'mine'", naming="float32"):
            evaluate_arrays(arrays(), [mine])
        return
    found = evaluate_arrays(arrays(), [mine])
    share = equal_pairs(found)
    assert share > 0.01
    assert found.about.notes == (
        f"arrays: mine: {share:.1%} of the pairs of images have equal confidences, and metrics count each as "
        "half right (a large offset? saturation?)",
    )


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


def test_sets_whose_confidences_differ_only_beyond_float32_are_refused() -> None:
    def by_set(data: Arrays) -> np.ndarray[Any, Any]:
        return np.full(data.n, 1e9 + (data.n == 300))

    with raises(DataError, where="'by_set'", naming="100.00"):
        evaluate_arrays(arrays(), [by_set])


KEPT: dict[str, Score] = {
    "as they are": lambda z: z,
    "offset": lambda z: 1e3 + z,
    "tiny": lambda z: np.exp(z - 80),
    "few integers": lambda z: z.astype(np.int64),
    "truth": lambda z: z > 1,
    "long": lambda z: z.astype(np.longdouble),
}


@pytest.mark.parametrize("of_greatest", KEPT.values(), ids=KEPT)
def test_confidences_that_it_can_give_their_own_auroc(of_greatest: Score) -> None:
    given = arrays()
    found = evaluate_arrays(given, [detector(of_greatest)])
    as_seen = {name: held["logits"].astype("f4").astype("f8").max(axis=1) for name, held in given.items()}
    scores = np.concatenate([of_greatest(as_seen[name]) for name in ("id", "near")]).astype(np.float64)
    expected = roc_auc_score(np.repeat([1, 0], [300, 200]), scores)
    assert found.values("auroc", group="near") == [pytest.approx(expected, abs=1e-5)]


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
    plain = evaluate_arrays(arrays(), "msp").values("auroc", group="near")
    moved = evaluate_arrays(arrays(lambda z: z + 100), "msp").values("auroc", group="near")
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


def test_a_sweep_passes_over_values_whose_confidences_collapse() -> None:
    def moved(data: Arrays, *, offset: float = 1e9) -> np.ndarray[Any, Any]:
        return np.asarray(data["logits"], dtype=np.float64).max(axis=1) + offset

    sets = arrays()
    sets |= {f"{name}/val": held for name, held in {"id": sets["id"], "external": sets["near"]}.items()}
    swept = configure(
        detector_spec(moved, needs=("logits",), sweep={"offset": (1e9, 0.0)}), {}, label="moved"
    )
    found = evaluate_arrays(sets, [swept], sweep=True)
    tried = {row["params"]: row["reason"] for row in found.sweeps.to_pylist()}
    assert tried['{"offset": 0.0}'] is None or not tried['{"offset": 0.0}']
    assert "float32, in which confidences are kept" in tried['{"offset": 1000000000.0}']
    assert json.loads(found.results["params"][-1].as_py()) == {"offset": 0.0}


CONFIDENT = {"msp": 200, "mcp": 200, "klm": 40}
"""Shipped detector -> by how much logits are multiplied."""


def confident(factor: float) -> dict[str, dict[str, Any]]:
    sets = arrays(lambda z: (factor * z).astype("f4"))
    sets["external/val"] = {"logits": sets["near"]["logits"][::-1].copy()}
    sets["id/val"] = {name: array[::-1].copy() for name, array in sets["id"].items()}
    return sets


@pytest.mark.parametrize(("name", "factor"), CONFIDENT.items())
def test_a_shipped_detector_keeps_confidences_that_float32_makes_equal(name: str, factor: float) -> None:
    """MSP is 1 less e^-margin, in its log form too: from a margin of 103 on that is 0 in float32."""
    found = evaluate_arrays(confident(factor), name)
    scores = found.scores["confidence"].to_numpy()
    expected = roc_auc_score(np.array(found.scores["group"].to_pylist()) == "id", scores)
    assert found.values("auroc", group="near") == [pytest.approx(expected, abs=1e-12)]
    said = " ".join(found.about.notes)
    assert re.search(
        rf"arrays: {name}: [\d.]+% of the pairs that differ in float64 are equal in float32", said
    )
    assert ("(ts[T=1] ranks as msp does, and keeps them apart)" in said) == (name != "klm")
    assert f"{name}: {equal_pairs(found):.1%} of the pairs of images have equal confidences" in said


def test_presets_and_sweeps_keep_detectors_whose_confidences_float32_makes_equal() -> None:
    found = evaluate_arrays(confident(200), "preset:simple", sweep=True)
    assert "msp" in found.detectors
    assert not any("msp is left out" in note for note in found.about.notes)

    swept = configure(replace(get_spec("gen"), sweep={"gamma": (5.0, 4.0)}), {}, label="swept")
    found = evaluate_arrays(confident(200), [swept], sweep=True)
    assert [row["reason"] or "" for row in found.sweeps.to_pylist()] == ["", ""]
    assert any("equal in float32" in note for note in found.about.notes)


def test_ts_at_1_ranks_as_msp_does_and_keeps_values_apart() -> None:
    """As the advice says; exact margins in float64 decide, with a background class beside."""
    rng = np.random.default_rng(0)
    for factor in (1, 60, 200):
        logits = np.sort((factor * rng.normal(size=(500, K))).astype("f4"))[:, ::-1].copy()
        data = Arrays.of(logits=logits, background=(factor * rng.normal(size=500)).astype("f4"))
        for given in (data, Arrays.of(logits=logits)):
            others = np.concatenate([given[name][:].reshape(500, -1) for name in given], axis=1)[:, 1:]
            exact = logits[:, 0].astype(np.float64) - logsumexp(others.astype(np.float64), axis=1)
            own = confidence(fit(get_detector("ts", T=1)), given)
            assert kendall_tau(own.astype("f4"), exact) > 1 - 1e-4
            if factor == 1:
                assert kendall_tau(confidence(fit(get_detector("msp")), given), exact) > 1 - 1e-4


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
        evaluate_arrays(sets, "knn[k=5]").values("auroc", group="near") for sets in (given, plain)
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
