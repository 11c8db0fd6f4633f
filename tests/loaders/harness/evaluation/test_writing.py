"""Detectors share their input: who writes into it is named, and changes nobody's numbers."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from loaders.harness import evaluate_arrays
from loaders.harness.arrays import Arrays, Head
from wordnet_splits.errors import DataError

K = 5


def arrays() -> dict[str, dict[str, Any]]:
    rng = np.random.default_rng(0)
    labels = np.arange(50) % K
    known = (rng.normal(size=(50, K)) + 3 * np.eye(K)[labels]).astype("f4")
    sets: dict[str, Any] = {"id": {"logits": known, "labels": labels}}
    sets["near"] = {"logits": rng.normal(size=(40, K)).astype("f4")}
    sets["id/train"] = {"logits": known[::-1].copy(), "labels": labels[::-1].copy()}
    for held in sets.values():
        held["features"] = held["logits"].copy()
    return sets


def content(sets: dict[str, dict[str, Any]]) -> list[bytes]:
    return [array.tobytes() for held in sets.values() for array in held.values()]


def shifted(data: Arrays) -> np.ndarray[Any, Any]:
    logits = np.asarray(data["logits"])
    logits -= logits.max(axis=1, keepdims=True)
    return logits[:, 0]


def rearranged(data: Arrays) -> np.ndarray[Any, Any]:
    logits = data["logits"][np.arange(data.n)]
    logits.sort(axis=1)
    return logits[:, -1]


@dataclass(frozen=True)
class Centred:
    """Features about their mean, which it takes away from those that it is given."""

    def fit(self, data: Arrays, head: Head | None) -> Any:
        features = np.asarray(data["features"])
        np.subtract(features, features.mean(axis=0), out=features)
        return features

    def score(self, state: Any, data: Arrays) -> Any:
        return np.asarray(data["features"]).sum(axis=1)


@dataclass(frozen=True)
class Halved:
    """A head whose weights it halves."""

    def fit(self, data: Arrays, head: Head | None) -> Any:
        assert head is not None
        head.weight[:] /= 2

    def score(self, state: Any, data: Arrays) -> Any:
        return np.asarray(data["logits"]).max(axis=1)


def registered(cls: Any, **about: Any) -> Any:
    from loaders.harness.detectors.registry import choose, describe

    return choose(describe(cls, **about), {}, label=cls.__name__.lower())


@pytest.mark.parametrize(
    ("writer", "name"),
    [
        (shifted, "shifted"),
        (rearranged, "rearranged"),
        (registered(Centred, needs=("features",), fit_on="train"), "centred"),
        (registered(Halved, needs=("head",), fit_on="train"), "halved"),
    ],
)
def test_a_detector_that_writes_into_its_input_is_named(writer: Any, name: str) -> None:
    given = arrays()
    before, weight = content(given), np.eye(K, dtype="f4")
    with pytest.raises(DataError, match=f"detector '{name}'.*writes into its input, which is read-only"):
        evaluate_arrays(given, [writer, "mls"], head=(weight, np.zeros(K, "f4")))
    assert content(given) == before
    assert (weight == np.eye(K)).all()


def test_what_is_written_through_torch_stays_with_the_detector() -> None:
    torch = pytest.importorskip("torch", reason="needs torch")

    def through_torch(data: Arrays) -> Any:
        return torch.from_numpy(np.asarray(data["logits"])).neg_().max(dim=1).values

    given = arrays()
    before, alone = content(given), evaluate_arrays(arrays(), "mls")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")  # torch says it once
        found = evaluate_arrays(given, [through_torch, "mls"])
    assert content(given) == before
    assert found.values("auroc", group="near", detector="mls") == alone.values("auroc", group="near")


def test_a_copy_may_be_written() -> None:
    def doubled(data: Arrays) -> Any:
        logits = np.array(data["logits"])
        logits *= 2
        return logits.max(axis=1)

    found = evaluate_arrays(arrays(), [doubled, "mls"])
    first, second = (found.values("auroc", group="near", detector=name) for name in found.detectors)
    assert first == second


def test_every_way_to_read_arrays_is_read_only() -> None:
    mine = np.arange(24, dtype="f4").reshape(6, 4)
    data = Arrays.of(logits=mine)
    several = Arrays.concat([data, data])
    for view in (data["logits"], data["logits"].copied(), several["logits"], data["logits"].columns([2, 0])):
        reads = [np.asarray(view), view[1:3], view[[0, 2]], view[::2], view[1], next(view.chunks(2))]
        assert not any(read.flags.writeable for read in reads)
        assert not np.shares_memory(np.asarray(view.copied()), mine)
        assert np.array(view).flags.writeable
    assert mine.flags.writeable
