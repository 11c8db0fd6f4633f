"""Detectors on the nearest training features: against scikit-learn, and in features on disk."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.neighbors import NearestNeighbors

from loaders.harness.data.arrays import Arrays, ArrayView
from loaders.harness.detectors import get_detector, neighbours
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
