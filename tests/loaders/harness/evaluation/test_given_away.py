"""Arrays and detectors that give themselves away: probabilities, repeated rows, confidences by the batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from loaders import evaluate_arrays
from loaders.harness import check_results, image_ids
from loaders.harness.data.array_checks import refuse_probabilities
from loaders.harness.data.arrays import Array, Arrays
from loaders.harness.results.results import Results
from wordnet_splits.base.errors import DataError
from wordnet_splits.benchmark.resolve import load_manifest

K, N = 6, 90
ID = "digits-0-5"
GROUPS = (ID, "digits-6-9", "gaussian", "uniform")


def logits(seed: int, n: int = N, *, known: bool = False) -> Array:
    rng = np.random.default_rng(seed)
    values = 3 * rng.normal(size=(n, K))
    values[np.arange(n), np.arange(n) % K] += 6 * known
    return values.astype(np.float32)


def softmax(z: Array) -> Array:
    exponentials = np.exp(z - z.max(axis=1, keepdims=True))
    return exponentials / exponentials.sum(axis=1, keepdims=True)


def sigmoid(z: Array) -> Array:
    return 1 / (1 + np.exp(-z))


def sets(change: Callable[[Array], Array] = lambda z: z, **more: Any) -> dict[str, Any]:
    given = {
        "id": {"logits": change(logits(0, known=True)), "labels": np.arange(N) % K},
        "near": {"logits": change(logits(1))},
    }
    return {**given, **more}


def on_digits(**more: Any) -> dict[str, Any]:
    given = {}
    for seed, group in enumerate(GROUPS):
        ids = image_ids("digits", group)
        given[group] = {"logits": logits(seed, len(ids)), "features": logits(seed + 9, len(ids)), "ids": ids}
    labels = load_manifest("digits").images("test", ID)["label"].to_numpy()
    given[ID]["logits"][np.arange(len(labels)), labels] += 9
    return {name: {**held, **more.get(name.replace("-", "_"), {})} for name, held in given.items()}


PROBABILITIES: dict[str, Callable[[Array], Array]] = {
    "probabilities": softmax,
    "percent": lambda z: 100 * softmax(z),
    "permille": lambda z: 1000 * softmax(z),
    "rounded percent": lambda z: np.round(100 * softmax(z), 1),
    "half precision": lambda z: (100 * softmax(z)).astype(np.float16),
    "half of them": lambda z: softmax(z) / 2,
    "sigmoids of one sum": lambda z: K * sigmoid(z) / sigmoid(z).sum(axis=1, keepdims=True),
    "squares of one length": lambda z: z**2 / (z**2).sum(axis=1, keepdims=True) * 7,
}


@pytest.mark.parametrize("change", PROBABILITIES.values(), ids=PROBABILITIES)
def test_rows_of_one_sum_are_refused(change: Callable[[Array], Array]) -> None:
    for given, options in ((sets(change), {}), (on_digits(), {"benchmark": "digits"})):
        if options:
            given = {name: {**held, "logits": change(held["logits"])} for name, held in given.items()}
        with pytest.raises(DataError) as caught:
            evaluate_arrays(given, "msp", **options)
        assert caught.value.where in given


NOTED: dict[str, Callable[[Array], Array]] = {
    "sigmoids": sigmoid,
    "sigmoids in percent": lambda z: 100 * sigmoid(z),
    "ten sigmoids": lambda z: 10 * sigmoid(z),
    "cosines": lambda z: (0.2 + z / 100).clip(0),
    "log-probabilities": lambda z: np.log(softmax(z)),
    "ten hyperbolic tangents": lambda z: 10 * np.tanh(z),
    "standardised set by set": lambda z: (z - z.mean(axis=0)) / z.std(axis=0),
}


@pytest.mark.parametrize("change", NOTED.values(), ids=NOTED)
def test_what_is_no_logit_by_its_range_is_noted_in_the_table(change: Callable[[Array], Array]) -> None:
    results = evaluate_arrays(sets(change), "msp")
    assert results.about.notes
    for note in results.about.notes:
        assert note in results.table(width=10_000)


HONEST: dict[str, Callable[[Array], Array]] = {
    "as they are": lambda z: z,
    "centred": lambda z: z - z.mean(axis=1, keepdims=True),
    "above 0": lambda z: z - z.min(),
    "shifted": lambda z: z + 100,
    "rectified": lambda z: np.maximum(z, 0),
    "cosines": lambda z: z / np.linalg.norm(z, axis=1, keepdims=True),
    "large": lambda z: 1000 * z,
    "half precision": lambda z: z.astype(np.float16),
    "whole numbers": lambda z: np.round(z).astype(np.int64),
}


@pytest.mark.parametrize("change", HONEST.values(), ids=HONEST)
def test_logits_of_any_kind_are_taken_without_a_note(change: Callable[[Array], Array]) -> None:
    results = evaluate_arrays(sets(change), "mls")
    assert not [note for note in results.about.notes if "equal confidences" not in note]


@pytest.mark.parametrize(
    "values",
    [
        *([[9.0, 0.0], [0.0, 9.0]], 9 * np.eye(3), 9 * np.eye(20), np.full((40, K), 2.0), np.ones((1, K))),
        *(np.zeros((40, K)), np.zeros((0, K)), np.ones((40, 1)), np.tile([1.0, 2, 3], (40, 1))),
    ],
)
def test_toys_and_constant_models_are_no_percentages(values: Any) -> None:
    refuse_probabilities(np.asarray(values, np.float32), where="id", hint="")


def test_rows_of_another_set_are_refused_or_noted_on_a_benchmark() -> None:
    assert evaluate_arrays(on_digits(), "msp", benchmark="digits").about.notes == ()
    own = on_digits()
    n = len(own[ID]["logits"])
    for name in ("logits", "features"):
        copied = own["gaussian"][name].copy()
        copied[:n] = own[ID][name]
        with pytest.raises(DataError) as caught:
            evaluate_arrays(on_digits(gaussian={name: copied}), "msp", benchmark="digits")
        assert caught.value.where == "sets"
        few = own["gaussian"][name].copy()
        few[:7] = own[ID][name][:7]
        (note,) = evaluate_arrays(on_digits(gaussian={name: few}), "msp", benchmark="digits").about.notes
        assert "gaussian" in note
        assert ID in note
    twice = own["uniform"]["logits"][np.arange(500) // 2]
    (note,) = evaluate_arrays(on_digits(uniform={"logits": twice}), "msp", benchmark="digits").about.notes
    assert "uniform" in note
    shared = evaluate_arrays(
        on_digits(uniform=own["gaussian"] | {"ids": own["uniform"]["ids"]}), "msp", benchmark="digits"
    )
    assert any("gaussian and uniform" in note for note in shared.about.notes)


def test_sets_of_ones_own_of_the_same_rows_are_refused() -> None:
    same = {"logits": logits(0, known=True)}
    for more in ({"near": same}, {"far:x/val": same}, {"near": {**same, "features": logits(3)}}):
        with pytest.raises(DataError) as caught:
            evaluate_arrays(sets(**more), "msp")
        assert caught.value.where in ("sets", "own-sets")
    constant = {"logits": np.tile(logits(5, 1), (N, 1))}
    assert evaluate_arrays(sets(id={**constant, "labels": np.arange(N) % K}, near=constant), "msp")


def test_images_that_a_benchmark_has_twice_are_not_noted() -> None:
    """CIFAR-100 has 26 groups of images with the same pixels, some of them in training and test."""
    manifest = load_manifest("unknown-cifar-tinyval")
    given = {}
    for split, group in (("test", "cifar-40"), ("train", "cifar-40"), ("test", "cifar-60")):
        table = manifest.images(split, group)
        rows = [np.random.default_rng(list(digest)).normal(size=40) for digest in table["digest"].to_pylist()]
        name = group if split == "test" else f"{group}/{split}"
        given[name] = {"logits": np.array(rows), "ids": table["image_id"].to_pylist()}
    results = evaluate_arrays(given, "msp", benchmark=manifest, groups=["cifar-60"])
    assert not [note for note in results.about.notes if "accuracy" not in note]


def mine(data: Arrays) -> Array:
    return np.asarray(data["logits"]).max(axis=1)


def standardised(data: Arrays) -> Array:
    values = mine(data)
    return (values - values.mean()) / values.std()


def by_percentile(data: Arrays) -> Array:
    z = np.asarray(data["logits"])
    return np.minimum(z, np.percentile(z, 90)).sum(axis=1)


def ranked(data: Arrays) -> Array:
    return mine(data).argsort().argsort().astype(np.float64)


def numbered(data: Arrays) -> Array:
    return np.arange(data.n, dtype=np.float64)


def drawn(data: Arrays) -> Array:
    return mine(data) + np.random.default_rng().normal(size=data.n)


def neighbouring(data: Arrays) -> Array:
    z = np.asarray(data["logits"])
    return -np.sort(np.linalg.norm(z[:, None] - z[None], axis=2), axis=1)[:, 2]


@dataclass
class Remembering:
    """It counts its calls."""

    calls: int = 0

    def score(self, state: Any, data: Arrays) -> Array:
        self.calls += 1
        return mine(data) + self.calls


@dataclass(frozen=True)
class Fitted:
    """It standardises, by what it was fitted on."""

    needs: ClassVar[tuple[str, ...]] = ("logits",)
    fit_on: ClassVar[str] = "train"

    def fit(self, data: Arrays, head: Any) -> Any:
        return mine(data).mean(), mine(data).std()

    def score(self, state: Any, data: Arrays) -> Array:
        return np.asarray((mine(data) - state[0]) / state[1])


COUNTED = count()


def remembering(data: Arrays) -> Array:
    return mine(data) * (1 + next(COUNTED))


UNSTEADY = (standardised, by_percentile, ranked, numbered, drawn, neighbouring, remembering, Remembering())


def name_of(detector: Any) -> str:
    """The name of a function, or of the class of an object."""
    return str(getattr(detector, "__name__", type(detector).__name__))


@pytest.mark.parametrize("detector", UNSTEADY, ids=name_of)
def test_a_detector_that_scores_images_by_the_others_is_marked(detector: Any) -> None:
    results = evaluate_arrays(sets(), ["msp", detector])
    note, *_ = results.about.notes
    assert results.detectors[1] in note
    assert note in results.table(width=10_000)


def float32(data: Arrays) -> Array:
    return np.asarray(data["logits"][:] @ np.ones((K, 1), np.float32))[:, 0] + np.float32(1e3)


def log_sum(data: Arrays) -> Array:
    return np.log(np.exp(np.asarray(data["logits"])).sum(axis=1))


def binary(data: Arrays) -> Array:
    return mine(data) > 3


@pytest.mark.parametrize("detector", [mine, float32, log_sum, binary, Fitted()], ids=name_of)
def test_a_detector_that_scores_each_image_alone_is_not(detector: Any) -> None:
    train = {"logits": logits(7, known=True), "labels": np.arange(N) % K}
    results = evaluate_arrays(sets(**{"id/train": train}), [detector])
    assert not [note for note in results.about.notes if "equal confidences" not in note]


@pytest.mark.parametrize("sign", [1, -1])
def test_a_detector_of_the_other_sign_is_noted(sign: int) -> None:
    def signed(data: Arrays) -> Array:
        return sign * mine(data)

    notes = evaluate_arrays(sets(far={"logits": logits(8)}), ["mls", signed]).about.notes
    assert [bool(note.startswith("signed")) for note in notes] == [True] * (sign < 0)


@pytest.mark.parametrize("shift", [0, 1])
def test_training_labels_that_the_model_does_not_predict_are_noted(shift: int) -> None:
    """Mahalanobis of one-based labels of training images: AUROC .94 becomes .82."""
    features = {"features": logits(7, known=True), "logits": logits(7, known=True)}
    given = {name: {**held, "features": held["logits"]} for name, held in sets().items()}
    given["id/train"] = {**features, "labels": (np.arange(N) + shift) % K}
    notes = evaluate_arrays(given, "msp,mahalanobis").about.notes
    assert ["id/train" in note for note in notes] == [True] * shift


def test_shipped_detectors_are_scored_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*arguments: Any) -> Any:
        raise AssertionError

    monkeypatch.setattr("loaders.harness.evaluation.notes._taken", never)
    assert evaluate_arrays(sets(), "preset:simple")


@pytest.mark.parametrize("detector", [standardised, mine])
def test_the_mark_is_kept_in_files_that_check(detector: Any, tmp_path: Path) -> None:
    evaluate_arrays(on_digits(), [detector], benchmark="digits", model="m").write(tmp_path)
    assert check_results(tmp_path).ok
    assert bool(Results.read(tmp_path).about.notes) == (detector is standardised)
