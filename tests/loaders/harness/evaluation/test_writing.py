"""Detectors share their input: one that writes into what it reads changes nobody else's numbers."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from loaders.harness import evaluate_arrays
from loaders.harness.data.arrays import Arrays, Head

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
    from loaders.harness.detectors.registry import configure, detector_spec

    return configure(detector_spec(cls, **about), {}, label=cls.__name__.lower())


def through_torch(data: Arrays) -> Any:
    torch = pytest.importorskip("torch", reason="needs torch")
    return torch.from_numpy(data["logits"][:]).neg_().max(dim=1).values


@dataclass(frozen=True)
class HalvedThroughTorch(Halved):
    """A head whose weights it halves as a tensor."""

    def fit(self, data: Arrays, head: Head | None) -> Any:
        assert head is not None
        torch = pytest.importorskip("torch", reason="needs torch")
        torch.from_numpy(head.weight).div_(2)
        torch.from_numpy(head.bias).add_(1)


@pytest.mark.parametrize(
    "writer",
    [
        shifted,
        rearranged,
        through_torch,
        registered(Centred, needs=("features",), fit_on="train"),
        registered(Halved, needs=("head",), fit_on="train"),
        registered(HalvedThroughTorch, needs=("head",), fit_on="train"),
    ],
    ids=lambda writer: getattr(writer, "label", None) or writer.__name__,
)
def test_what_a_detector_writes_stays_with_it(writer: Any) -> None:
    others = "mls,knn[k=5],vim[dim=2]"
    weight, bias = np.eye(K, dtype="f4"), np.zeros(K, "f4")
    alone = evaluate_arrays(arrays(), others, head=(weight.copy(), bias.copy()))
    given = arrays()
    before = content(given)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = evaluate_arrays(given, [writer, others], head=(weight, bias))
    assert content(given) == before
    assert (weight == np.eye(K)).all()
    assert not bias.any()
    for name in alone.detectors:
        assert (
            found.values("auroc", group="near", detector=name)["value"].tolist()
            == alone.values("auroc", detector=name, group="near")["value"].tolist()
        )


def test_a_detector_of_a_users_own_reads_arrays_that_may_be_written() -> None:
    """Torch warns of those that may not, once per process."""
    reads: list[np.ndarray[Any, Any]] = []

    @dataclass(frozen=True)
    class Reader:
        def fit(self, data: Arrays, head: Head | None) -> Any:
            assert head is not None
            reads.extend([head.weight, head.bias, data["logits"][:], data["labels"][:]])

        def score(self, state: Any, data: Arrays) -> Any:
            view = data["logits"]
            reads.extend(
                [np.asarray(view), view[1:3], view[[0, 2]], view[::2], view[1], next(view.chunks(2))]
            )
            reads.extend([view.columns([2, 0])[:], view.rows(1, 3)[:], next(data.chunks(2))["logits"][:]])
            return view[:, 0]

    needs = ("logits", "labels", "head")
    reader = registered(Reader, needs=needs, fit_on="train")
    given = arrays()
    evaluate_arrays(given, [reader], head=(np.eye(K, dtype="f4"), np.zeros(K, "f4")))
    assert len(reads) == 4 + 4 * 9  # of two sets, and again of half of them
    assert all(read.flags.writeable for read in reads)
    assert not any(np.shares_memory(read, array) for read in reads for array in given["id"].values())


def test_every_read_is_read_only_or_a_copy() -> None:
    mine = np.arange(24, dtype="f4").reshape(6, 4)
    data = Arrays.of(logits=mine)
    several = Arrays.concat([data, data])
    for view in (data["logits"], several["logits"], data["logits"].columns([2, 0])):
        shared, copied = (
            [np.asarray(one), one[1:3], one[[0, 2]], one[::2], one[1], next(one.chunks(2))]
            for one in (view, view.copied())
        )
        assert not any(read.flags.writeable for read in shared)
        assert all(read.flags.writeable for read in copied)
        assert not any(np.shares_memory(read, mine) for read in copied)
        assert np.array(view).flags.writeable
    assert mine.flags.writeable
