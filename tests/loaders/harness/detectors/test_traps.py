"""What has gone wrong in other people's detectors, each with a test over every registered detector.

The rest of them: the sign, swept values without effect, and chunks in test_detectors; a sweep that starts
from AUROC 0 or stops at NaN, below; two checkpoints under one key in test_model (`the_key_is_of_tensors`).
"""

from __future__ import annotations

import ast
import inspect
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import loaders.harness
from loaders.harness.data.arrays import Array, Arrays
from loaders.harness.detectors import (
    DETECTORS,
    detector_from_object,
    detector_spec,
    get_detector,
    list_detectors,
    neighbours,
)
from loaders.harness.evaluation import scoring
from loaders.harness.evaluation.fitting import (
    choose_on_validation,
    fit_on_benchmark,
    group_by_fit,
    sweep_grid,
)
from loaders.harness.evaluation.scoring import confidence, fit, shares_work
from tests.loaders.harness.detectors.separable import head_of, images, learned, reordered, without_step
from tests.raising import raises
from wordnet_splits.base.errors import DataError
from wordnet_splits.base.workers import thread_count
from wordnet_splits.metrics import auroc

BUILT_IN = list_detectors()
LEARNING = [name for name in BUILT_IN if DETECTORS[name].splits]
SPLITS: Mapping[str, Arrays] = {
    "train": images(160, seed=1),
    "val": images(120, seed=2),
    "ood-val": images(60, seed=5, unknown=True),
}
KNOWN, UNKNOWN = images(40, seed=3), images(40, seed=4, unknown=True)
HEAD = head_of()


@cache
def fitted_as(name: str) -> Any:
    """The detector fitted on `SPLITS`; its state is never changed."""
    return learned(without_step(name), SPLITS, HEAD)


def scores(fitted: Any, data: Arrays, rows: int = 4096) -> Array:
    return confidence(fitted, [data, data] if fitted.configured.spec.models == "many" else data, rows=rows)


def filled(value: float) -> Callable[[Arrays], Arrays]:
    """Every array but the labels has one value throughout."""
    return lambda data: Arrays(
        {k: np.full_like(np.asarray(v), value) if k != "labels" else v for k, v in data.items()}
    )


def without_class(data: Arrays) -> Arrays:
    return reordered(data, np.flatnonzero(np.asarray(data["labels"]) != 2))


@pytest.mark.parametrize("name", [name for name in BUILT_IN if DETECTORS[name].threads])
def test_any_number_of_threads_gives_the_same_bytes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for threads in (1, 2, 5):
        monkeypatch.setattr(scoring, "thread_count", lambda threads=threads: threads)
        found.append(scores(fitted_as(name), KNOWN, rows=7).tobytes())
    assert found == [found[0]] * 3


@pytest.mark.parametrize(
    "name", [name for name in BUILT_IN if shares_work(get_detector(name)) and DETECTORS[name].sweep]
)
def test_values_that_share_work_are_scored_in_one_go(name: str) -> None:
    grid = list(sweep_grid(get_detector(name)))
    assert len(group_by_fit(grid)) == len({one.fit_key for one in grid}) < len(grid)


def test_threads_name_the_first_bad_image(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "thread_count", lambda: 4)
    logits = np.array(KNOWN["logits"])
    logits[[13, 29]] = np.nan
    for _ in range(5):
        with raises(DataError, where="'msp'", naming=("logits", "13")):
            scores(fitted_as("msp"), KNOWN.replace(logits=logits), rows=4)


@pytest.mark.parametrize(("told", "threads"), [("3", 3), ("0", None), ("many", None), ("", None)])
def test_the_number_of_threads_is_openmps(
    told: str, threads: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", told)
    if threads is None:
        assert thread_count() >= 1
    else:
        assert thread_count() == threads


DEGENERATE: dict[str, Callable[[Arrays], Arrays]] = {
    "constant": filled(1.5),
    "zero": filled(0.0),
    "no image of a class": without_class,
    "one image": lambda data: data.rows(0, 1),  # k > N among them
    "no label": lambda data: data.replace(labels=np.full(data.n, -1)),
    "no image": lambda data: data.rows(0, 0),
}


@pytest.mark.parametrize("what", DEGENERATE)
@pytest.mark.parametrize("name", LEARNING)
def test_learning_from_little_gives_finite_scores_or_one_clear_error(name: str, what: str) -> None:
    chosen = without_step(name)
    degenerate = {split: DEGENERATE[what](data) for split, data in SPLITS.items()}
    found, error = None, ""
    try:
        found = scores(learned(chosen, degenerate, HEAD), KNOWN)
    except DataError as caught:
        error = str(caught)
    if found is not None:
        assert what != "no image"
        assert np.isfinite(found).all()
        assert found.shape == (KNOWN.n,)
        return
    assert what != "no image of a class"
    assert error.startswith(f"detector {chosen.label!r}: ")
    assert "\n" not in error
    assert "raises " not in error  # of numpy's or another package's
    assert "gave " not in error  # said while fitting, not of the scores that came of it


@pytest.mark.parametrize("name", BUILT_IN)
def test_images_without_anything_in_them_have_finite_scores(name: str) -> None:
    fitted = fitted_as(name)
    for what in (filled(0.0), filled(1.5), lambda data: data.rows(0, 1), lambda data: data.rows(0, 0)):
        data = what(KNOWN)
        found = scores(fitted, data)
        assert np.isfinite(found).all()
        assert found.shape == (data.n,)


def spoilt(data: Arrays, value: float) -> Arrays:
    """One value of the fourth image of every array."""

    def spoil(view: Any) -> Array:
        array = np.array(view)
        array.reshape(len(array), -1)[3, 0] = value
        return array

    return Arrays({k: v if k == "labels" else spoil(v) for k, v in data.items()})


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", BUILT_IN)
def test_nan_and_infinity_are_refused_by_array_and_image(name: str, value: float) -> None:
    chosen, fitted = without_step(name), fitted_as(name)
    place, row = f"'{chosen.label}'", 3
    for rows in (4096, 2):
        with raises(DataError, naming=(place, row)):
            scores(fitted, spoilt(KNOWN, value), rows)
    if chosen.spec.splits:
        with raises(DataError, naming=(place, row)):
            learned(chosen, {split: spoilt(data, value) for split, data in SPLITS.items()}, HEAD)


def test_a_sum_that_overflows_is_not_taken_for_infinity() -> None:
    """Finite values near the end of their type, whose sum is beyond it."""
    for kind, value in ((np.float32, 3e38), (np.float16, 6e4)):
        logits = np.full((3, 4), value, kind)
        assert np.isfinite(confidence(fit(get_detector("msp")), Arrays.of(logits=logits))).all()
        for bad in (np.nan, np.inf, -np.inf):
            logits[2, 1] = bad
            with raises(DataError, where="'msp'", naming="2"):
                confidence(fit(get_detector("msp")), Arrays.of(logits=logits))


class Recorded:
    """A model's arrays, and which of them were asked for."""

    name = "recorded"

    def __init__(self) -> None:
        self.asked: set[str] = set()

    def require(self, split: str, group: str, needs: Any = ()) -> None:
        """Everything is there."""

    def group(self, split: str, group: str, needs: Any) -> Any:
        self.asked.add(split)
        assert split != "test"
        data = SPLITS["ood-val"] if group == "outside" else SPLITS[split]
        return SimpleNamespace(arrays=data, head=HEAD)


class Sets:
    """ID training and validation images, external validation images, and a test set."""

    manifest = SimpleNamespace(name="recorded")
    test: Mapping[str, str] = {"inside": "id"}

    def of_role(self, split: str, *roles: str) -> list[str]:
        held = {("train", "id"): "inside", ("val", "id"): "inside", ("val", "external"): "outside"}
        return [held[split, role] for role in roles if (split, role) in held]


@pytest.mark.parametrize("name", LEARNING)
def test_neither_fitting_nor_a_sweep_asks_for_a_test_image(name: str) -> None:
    """A subspace fitted on test data, hyper-parameters chosen on them."""
    run, sets, chosen = Recorded(), Sets(), without_step(name)
    fit_on_benchmark(chosen, sets, run, HEAD)  # type: ignore[arg-type]  # what it needs of them
    expected = {"val" if split == "ood-val" else split for split in chosen.spec.splits}
    assert run.asked == expected | ({"val"} if name == "mdsens" else set())
    if chosen.sweep:
        choose_on_validation(chosen, sets, run)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_score_depends_on_its_own_image_alone(name: str) -> None:
    """Not on what else is in the batch: statistics of a batch, of test images, or an order of them."""
    fitted = fitted_as(name)
    alone = scores(fitted, KNOWN)
    together = scores(fitted, Arrays.concat([UNKNOWN, KNOWN]))[UNKNOWN.n :]
    one_by_one = scores(fitted, KNOWN.rows(0, 5), rows=1)
    error = {"rtol": 1e-4, "atol": 1e-5 * float(np.ptp(alone))}
    np.testing.assert_allclose(together, alone, **error)
    np.testing.assert_allclose(one_by_one, alone[:5], **error)


@cache
def many_images() -> Arrays:
    return images(6000, seed=6)


@pytest.mark.parametrize("name", BUILT_IN)
def test_no_matrix_of_images_by_images(name: str) -> None:
    """A B x B Gram matrix for its diagonal: 144 MB in float32 for these images."""
    fitted = fitted_as(name)
    data = many_images()
    tracemalloc.start()
    try:
        scores(fitted, data, rows=data.n)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 40e6


@pytest.mark.parametrize("name", LEARNING)
def test_nothing_is_learned_while_scoring(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No index, mean or subspace that is made anew for a batch."""
    fitted = fitted_as(name)
    before = scores(fitted, KNOWN)
    monkeypatch.delattr(type(fitted.detector), "fit")
    scores(fitted, UNKNOWN, rows=7)
    np.testing.assert_array_equal(scores(fitted, KNOWN), before)


def test_directions_have_no_constant_added() -> None:
    """Not ``x / norm + 1e-10``: zeros stay zeros, lengths are one, and a scale plays no part."""
    features = np.abs(np.asarray(KNOWN["features"])) * (np.asarray(KNOWN["features"]) > 0.4)
    directions = neighbours.unit_length(features)
    assert ((directions == 0) == (features == 0)).all()
    assert (features == 0).any()
    np.testing.assert_allclose(np.linalg.norm(directions.astype(np.float64), axis=1), 1, atol=1e-7)
    fitted = fitted_as("knn")
    for scale in (2.0**-60, 2.0**60):
        longer = KNOWN.replace(features=np.asarray(KNOWN["features"]) * np.float32(scale))
        np.testing.assert_array_equal(scores(fitted, longer), scores(fitted, KNOWN))


def names_used() -> Iterator[tuple[str, str]]:
    """(file, attribute) wherever the harness's own code uses one, but for the losses of training methods."""
    harness = Path(inspect.getfile(loaders.harness)).parent
    for path in (path for path in harness.rglob("*.py") if path.parent != harness / "training" / "methods"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute):
                yield path.name, node.attr
            elif isinstance(node, ast.ImportFrom):
                yield from ((path.name, alias.name) for alias in node.names)


@pytest.mark.parametrize(
    ("unwanted", "wanted"),
    [
        ({"eig", "eigvals"}, "eigh"),  # a covariance is symmetric: its eigenvalues are real
        ({"sigmoid", "Sigmoid", "expit"}, "binary_cross_entropy_with_logits"),  # ties what is most certain
    ],
)
def test_what_is_never_called(unwanted: set[str], wanted: str) -> None:
    found = set(names_used())
    assert not {(file, name) for file, name in found if name in unwanted}
    assert wanted in {name for _, name in found}  # else this looks in the wrong place


def test_the_discriminators_logit_is_not_squashed() -> None:
    found = scores(fitted_as("opengan"), KNOWN)
    assert found.min() < 0
    assert len(np.unique(found)) == KNOWN.n


def test_a_sweep_ends_whatever_its_values_give() -> None:
    """Every AUROC 0, and one value that gives NaN: OpenOOD's search starts from 0 and then has nothing."""

    def inverted(data: Arrays, *, power: float = 1.0) -> Array:
        z = np.asarray(data["logits"], dtype=np.float64).max(axis=1)
        return np.full(data.n, np.nan) if power == 2 else -(np.abs(z) ** power)

    inverted.sweep = {"power": (2.0, 1.0, 3.0)}  # type: ignore[attr-defined]  # as a user's function has it
    inverted.needs = ("logits",)  # type: ignore[attr-defined]
    chosen = detector_from_object(inverted)
    assert detector_spec(inverted).parameters == {"power": 1.0}
    best, _ = choose_on_validation(chosen, Sets(), Recorded())  # type: ignore[arg-type]
    assert best.params == {"power": 1.0}
    assert "without power=2" in best.chosen_on.replace("[", "").replace("]", "")
    inside, outside = (scores(fit(best), SPLITS[split]) for split in ("val", "ood-val"))
    assert auroc(inside, outside) < 0.1
