"""Confidences and arrays are kept in float32: refused where that makes values equal that differ."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from loaders.harness import evaluate_arrays
from loaders.harness.arrays import Arrays
from loaders.harness.detectors.registry import choose, describe
from loaders.harness.narrowing import as_float32
from wordnet_splits.errors import DataError

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
    with pytest.raises(DataError, match="'mine': float32, in which confidences are kept.*spreads them out"):
        evaluate_arrays(arrays(), [detector(of_greatest)])


def test_sets_whose_confidences_differ_only_beyond_float32_are_refused() -> None:
    def by_set(data: Arrays) -> np.ndarray[Any, Any]:
        return np.full(data.n, 1e9 + (data.n == 300))

    with pytest.raises(DataError, match=r"makes 100.00% of the pairs that differ equal"):
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
    with pytest.raises(DataError, match=f"id: float32, in which {key} are kept.*take away the offset"):
        evaluate_arrays(given, "mls")


def test_offsets_that_leave_the_differences_give_the_same_numbers() -> None:
    plain = evaluate_arrays(arrays(), "msp").values("auroc", group="near")
    moved = evaluate_arrays(arrays(lambda z: z + 100), "msp").values("auroc", group="near")
    assert moved == [pytest.approx(plain[0], abs=1e-4)]


def test_values_that_meet_by_chance_are_not_refused() -> None:
    """Of 300,000 values between 1/2 and 1 float32 makes some thousand pairs equal, 1e-7 of all."""
    values = np.random.default_rng(0).uniform(0.5, 1, 300_000)
    narrow = as_float32(values, what="values", where="here", hint="")
    assert len(np.unique(narrow)) < len(np.unique(values))
    assert as_float32(np.zeros((0, 3)), what="values", where="here", hint="").dtype == np.float32
    assert as_float32(np.full((9, 4), 0.1), what="values", where="here", hint="").shape == (9, 4)


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
    with pytest.raises(DataError, match="Sequential: float32, in which logits are kept"):
        evaluate(network(1e9), on, "msp", **options)


def test_a_sweep_passes_over_values_whose_confidences_collapse() -> None:
    def moved(data: Arrays, *, offset: float = 1e9) -> np.ndarray[Any, Any]:
        return np.asarray(data["logits"], dtype=np.float64).max(axis=1) + offset

    sets = arrays()
    sets |= {f"{name}/val": held for name, held in {"id": sets["id"], "external": sets["near"]}.items()}
    swept = choose(describe(moved, needs=("logits",), sweep={"offset": (1e9, 0.0)}), {}, label="moved")
    found = evaluate_arrays(sets, [swept], sweep=True)
    tried = {row["params"]: row["reason"] for row in found.sweeps.to_pylist()}
    assert tried['{"offset": 0.0}'] is None or not tried['{"offset": 0.0}']
    assert "float32, in which confidences are kept" in tried['{"offset": 1000000000.0}']
    assert json.loads(found.results["params"][-1].as_py()) == {"offset": 0.0}


def test_a_shipped_detector_whose_values_are_too_small_names_another() -> None:
    """MSP is 1 less e^-margin, in its log form too: from a margin of 103 on that is 0 in float32."""
    given = arrays(lambda z: (200 * z).astype("f4"))
    with pytest.raises(DataError, match=r"'msp': float32, .*ts\[T=1\] ranks as msp does"):
        evaluate_arrays(given, "msp")
    plain = evaluate_arrays(arrays(lambda z: z.astype("f4")), "ts[T=1]").values("auroc", group="near")
    assert evaluate_arrays(given, "ts[T=200]").values("auroc", group="near") == pytest.approx(plain, abs=1e-6)
    evaluate_arrays(given, "ts[T=1],mls,margin")
