"""AUROC against its definition, and the bootstrap against its documentation."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fix_resize.auditing.auroc import Estimate, auroc, bootstrap_auroc, bootstrap_indices
from wordnet_splits.errors import DataError

few_levels = st.lists(st.integers(0, 6), min_size=1, max_size=40).map(lambda x: np.array(x, dtype=np.float64))


def by_pairs(higher: np.ndarray, lower: np.ndarray) -> float:
    """Return the definition: over all pairs, 1 where higher exceeds lower and 1/2 where they tie."""
    above = (higher[:, None] > lower).sum()
    tied = (higher[:, None] == lower).sum()
    return float(2 * above + tied) / (2 * len(higher) * len(lower))


@settings(max_examples=200, deadline=None, derandomize=True)
@given(higher=few_levels, lower=few_levels)
def test_is_the_share_of_pairs(higher: np.ndarray, lower: np.ndarray) -> None:
    assert auroc(higher, lower) == by_pairs(higher, lower)
    assert auroc(higher, lower) + auroc(lower, higher) == pytest.approx(1)
    assert auroc(higher, lower) == auroc(higher[::-1], np.sort(lower))  # the order of rows does not matter


def test_agrees_with_scikit_learn() -> None:
    metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn is not installed")
    rng = np.random.default_rng(40)
    higher, lower = rng.normal(0.5, 1, 400).round(1), rng.normal(0, 1, 900).round(1)
    labels = np.repeat([1, 0], [400, 900])
    expected = metrics.roc_auc_score(labels, np.concatenate([higher, lower]))
    assert auroc(higher, lower) == pytest.approx(expected, abs=1e-12)


def test_directions_by_hand() -> None:
    assert auroc(np.array([2.0, 3.0]), np.array([0.0, 1.0])) == 1
    assert auroc(np.array([0.0, 1.0]), np.array([2.0, 3.0])) == 0
    assert auroc(np.array([1.0]), np.array([1.0, 1.0])) == 0.5
    assert auroc(np.array([1.0, 4.0]), np.array([0.0, 2.0, 4.0])) == (1 + 0 + 0 + 1 + 1 + 0.5) / 6


def test_the_draws_are_the_documented_hash() -> None:
    stream = hashlib.shake_128(b"bootstrap\x1fsigned-higher\x1f7").digest(4 * 5)
    words = [int.from_bytes(stream[i : i + 4], "little") for i in range(0, 20, 4)]
    assert bootstrap_indices("signed-higher", 7, 5).tolist() == [word * 5 >> 32 for word in words]
    drawn = np.concatenate([bootstrap_indices("evenness", r, 10) for r in range(2000)])
    counts = np.bincount(drawn, minlength=10)
    assert ((counts - 2000) ** 2 / 2000).sum() < 27.9  # chi-square with 9 degrees of freedom, p = 0.001


def test_replicates_are_those_of_resampled_scores() -> None:
    rng = np.random.default_rng(41)
    higher, lower = rng.normal(1, 1, 30).round(1), rng.normal(0, 1, 50).round(1)
    values = [
        by_pairs(higher[bootstrap_indices("k-higher", r, 30)], lower[bootstrap_indices("k-lower", r, 50)])
        for r in range(100)
    ]
    lo, hi = np.quantile(values, [0.025, 0.975])
    estimate = bootstrap_auroc(higher, lower, key="k", replicates=100)
    assert estimate == pytest.approx(Estimate(by_pairs(higher, lower), lo, hi), abs=1e-12)


def test_blocks_of_replicates_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(42)
    higher, lower = rng.normal(1, 1, 30), rng.normal(0, 1, 50)
    whole = bootstrap_auroc(higher, lower, key="k")
    monkeypatch.setattr("fix_resize.auditing.auroc._CELLS", 80 * 7)
    assert bootstrap_auroc(higher, lower, key="k") == whole


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """Of 200 samples of two normals an sd apart, the 95% intervals hold Phi(1 / sqrt 2) in about 190."""
    truth, rng = 0.7602499389, np.random.default_rng(43)
    held = 0
    for i in range(200):
        estimate = bootstrap_auroc(rng.normal(1, 1, 60), rng.normal(0, 1, 80), key=str(i), replicates=300)
        held += estimate.lo <= truth <= estimate.hi
    assert 178 <= held <= 199


def test_bad_scores_are_named() -> None:
    good = np.array([1.0])
    for bad, message in [
        (np.array([]), "above zero"),
        (np.array([np.nan]), "NaN"),
        (np.array([np.inf]), "infinite"),
    ]:
        with pytest.raises(DataError, match=message):
            auroc(good, bad)
        with pytest.raises(DataError, match=message):
            bootstrap_auroc(bad, good, key="k")
