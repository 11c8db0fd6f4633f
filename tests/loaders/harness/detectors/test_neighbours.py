"""Detectors on the nearest training features: against scikit-learn, and in features on disk."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_info

from loaders.harness.data.arrays import Arrays, ArrayView, map_in_order
from loaders.harness.detectors import get_detector, neighbours
from loaders.harness.detectors.softmax import (
    at_least_single,
    lengths,
    log_others,
    log_sum_exp,
    maxima,
    products,
    scaled_odds,
    sums,
)
from loaders.harness.evaluation.scoring import Fitted, confidence, confidences, fit
from tests.loaders.harness.detectors.separable import WIDTH, images, reordered
from tests.raising import raises
from wordnet_splits.base.errors import DataError

TRAIN, KNOWN = images(1600, seed=1), images(300, seed=3)


@pytest.mark.parametrize("k", [1, 10, 399])
def test_knn_is_that_of_scikit_learn(k: int) -> None:
    unit = [np.asarray(d["features"], dtype=np.float64) for d in (TRAIN, KNOWN)]
    bank, queries = (f / np.linalg.norm(f, axis=1, keepdims=True) for f in unit)
    distance, _ = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(bank).kneighbors(queries)
    np.testing.assert_allclose(
        confidence(fit(get_detector("knn", k=k), TRAIN), KNOWN), -(distance[:, -1] ** 2), rtol=1e-4
    )


@pytest.mark.parametrize("name", ["knn", "nnguide"])
def test_neighbours_are_searched_in_features_on_disk(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In half precision, in shards, by class or not: the scores are those of a copy in memory."""
    order = np.random.default_rng(2).permutation(TRAIN.n)
    grid = [get_detector(name, k=k) for k in (1, 9, 500)]
    monkeypatch.setattr(neighbours, "BANK", 128)
    monkeypatch.setattr(neighbours, "QUERIES", 32)
    monkeypatch.setattr(neighbours, "STEP", 16)
    for data in (TRAIN, reordered(TRAIN, np.argsort(TRAIN["labels"][:])), reordered(TRAIN, order)):
        half = np.asarray(data["features"], dtype=np.float16)
        parts = [tmp_path / f"{i}.npy" for i in range(3)]
        for path, part in zip(parts, np.array_split(half, 3), strict=True):
            np.save(path, part)
        on_disk = data.replace(features=ArrayView([np.load(path, mmap_mode="r") for path in parts]))
        state = fit(grid[0], on_disk).state
        assert state.features is on_disk["features"]  # memory-mapped, no copy
        found = confidences([Fitted(one, one.detector, state) for one in grid], KNOWN)
        unit = half.astype(np.float64) / np.linalg.norm(half.astype(np.float64), axis=1)[:, None]
        seen = np.asarray(KNOWN["features"], dtype=np.float64)
        seen /= np.linalg.norm(seen, axis=1)[:, None]
        energies = logsumexp(np.asarray(data["logits"], dtype=np.float64), axis=1)
        products = -np.sort(-(seen @ (unit * energies[:, None] if name == "nnguide" else unit).T), axis=1)
        for one, ours in zip(grid, found, strict=True):
            k = int(one.params["k"])
            guidance = products[:, :k].mean(axis=1) * logsumexp(KNOWN["logits"][:], axis=1)
            expected = guidance if name == "nnguide" else 2 * products[:, k - 1] - 2
            np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-6)


def test_knn_of_an_image_seen_in_training_is_zero_and_near_ones_keep_their_digits() -> None:
    fitted = fit(get_detector("knn", k=1), TRAIN)
    assert np.abs(confidence(fitted, TRAIN)).max() < 1e-12
    bank = Arrays.of(features=np.array([[1, 0], [0, 1]], np.float32), labels=np.zeros(2, np.int64))
    near = Arrays.of(features=np.array([[1, 1e-5], [1, 2e-5], [1, 3e-5]], np.float32))
    squared = confidence(fit(get_detector("knn", k=1), bank), near)
    np.testing.assert_allclose(squared, [-1e-10, -4e-10, -9e-10], rtol=1e-4)  # products are all 1 in float32


def test_knn_takes_features_without_direction() -> None:
    blank = Arrays.of(features=np.zeros((3, WIDTH), np.float32))
    scores = confidence(fit(get_detector("knn"), TRAIN), blank)  # in float64, of directions in float32
    np.testing.assert_allclose(scores, -1, rtol=1e-6)


def test_knn_needs_k_images() -> None:
    with raises(DataError, where="'knn[k=1601]'", naming="1600"):
        fit(get_detector("knn", k=1601), TRAIN)


RNG = np.random.default_rng(0)


@pytest.mark.parametrize("width", [1, 7, 100, 1000])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_row_has_the_same_sums_wherever_it_lies(width: int, kind: type) -> None:
    rows = RNG.normal(0, 3, (97, width)).astype(kind)
    others = RNG.normal(0, 3, (97, width)).astype(kind)
    whole = sums(rows), products(rows, others), lengths(rows), maxima(rows)
    for first, size in ((0, 1), (1, 13), (5, 92), (96, 1)):
        own = slice(first, first + size)
        parts = (
            sums(rows[own]),
            products(rows[own], others[own]),
            lengths(rows[own].copy()),
            maxima(rows[own]),
        )
        assert [part.tobytes() for part in parts] == [found[own].tobytes() for found in whole]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(0, 5), (3, 0), (1, 1), (97, 100)])
def test_the_greatest_of_a_row_is_numpys(shape: tuple[int, int], order: str) -> None:
    values = RNG.normal(0, 3, shape).astype(np.float32)
    rows = np.asfortranarray(values) if order == "F" else values
    if rows.size > 1:
        rows[1, 2:4] = np.inf, np.nan
    np.testing.assert_array_equal(maxima(rows), rows.max(axis=1, initial=-np.inf))


def test_sums_in_float32_keep_its_digits() -> None:
    rows = RNG.exponential(1, (50, 2048)).astype(np.float32)
    np.testing.assert_allclose(sums(rows), rows.sum(axis=1, dtype=np.float64), rtol=5e-7)
    half = at_least_single(rows.astype(np.float16))
    np.testing.assert_allclose(sums(half), half.sum(axis=1, dtype=np.float64), rtol=5e-7)


@pytest.mark.parametrize("offset", [0.0, -70.0, -500.0, 70.0, 500.0])
def test_log_sum_exp_is_scipys_beyond_the_range_of_float32_too(offset: float) -> None:
    values = (RNG.normal(0, 10, (40, 100)) + offset).astype(np.float32)
    np.testing.assert_allclose(log_sum_exp(values), logsumexp(values.astype(np.float64), axis=1), atol=5e-6)


@pytest.mark.parametrize("temperature", [0.01, 0.1, 1.0, 10.0, 11.0, 1000.0, 1e6])
@pytest.mark.parametrize("spread", [0.1, 3.0, 300.0])
@pytest.mark.parametrize("with_background", [False, True])
def test_odds_in_float32_are_those_of_float64(
    temperature: float, spread: float, with_background: bool
) -> None:
    logits = RNG.normal(0, spread, (60, 50)).astype(np.float32)
    background = RNG.normal(0, spread, 60).astype(np.float32) if with_background else None
    others = [np.delete(row, row.argmax()) for row in logits.astype(np.float64)]
    if background is not None:
        others = [np.append(row, one) for row, one in zip(others, background, strict=True)]
    top = logits.max(axis=1).astype(np.float64)
    exact = np.array([logsumexp((row - one) / temperature) for row, one in zip(others, top, strict=True)])
    found = log_others(logits, background, temperature)
    np.testing.assert_allclose(found, exact, rtol=2e-6, atol=4e-6 * max(1, spread) / min(1, temperature))
    odds = scaled_odds(logits, background, [temperature])[0]
    wanted = np.array([(one - row).mean() for row, one in zip(others, top, strict=True)])  # at T without end
    if temperature < 1e6:
        wanted = temperature * (np.log(len(others[0])) - exact)
    np.testing.assert_allclose(odds, wanted, rtol=2e-3 if temperature == 1e6 else 1e-5, atol=2e-6 * spread)


def test_blas_has_one_thread_beside_ours_and_its_own_number_after() -> None:
    def of_blas(_: int = 0) -> list[int]:
        return [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]

    before = of_blas()
    assert before
    assert map_in_order(of_blas, range(3), 2) == [[1] * len(before)] * 3
    assert of_blas() == before


def test_a_job_on_a_thread_may_map_jobs_itself() -> None:
    def squares(n: int) -> list[int]:
        return map_in_order(lambda i: i * i, range(n), 2)

    assert map_in_order(squares, [3] * 8, 2) == [[0, 1, 4]] * 8
