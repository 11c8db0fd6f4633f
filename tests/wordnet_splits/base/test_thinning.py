"""Thinned curves: few points, and nowhere further from the curve than is said."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wordnet_splits.base.drawing import MAX_POINTS, TOLERANCE, thin


def farthest(x: Any, y: Any, kept: Any) -> float:
    """The greatest distance of a point of the curve from the polyline through those kept."""
    worst = 0.0
    for start, end in pairwise(kept):
        a, b = np.array([x[start], y[start]]), np.array([x[end], y[end]])
        points = np.column_stack([x[start : end + 1], y[start : end + 1]])
        along = np.clip((points - a) @ (b - a) / max((b - a) @ (b - a), 1e-300), 0, 1)
        worst = max(worst, float(np.max(np.linalg.norm(points - a - along[:, None] * (b - a), axis=1))))
    return worst


def roc(n: int, seed: int, gap: float) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    is_id = rng.random(n) < 0.5
    is_id[:2] = (True, False)
    is_id = is_id[np.argsort(-(rng.normal(size=n) + gap * is_id))]
    return np.cumsum(~is_id) / np.sum(~is_id), np.cumsum(is_id) / np.sum(is_id)


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 5000), st.integers(0, 1000), st.floats(0, 4))
def test_a_curve_moves_by_less_than_is_said(n: int, seed: int, gap: float) -> None:
    x, y = roc(n, seed, gap)
    kept = thin(x, y)
    assert (kept[0], kept[-1]) == (0, n - 1)
    assert np.all(np.diff(kept) > 0)
    assert len(kept) <= MAX_POINTS
    assert farthest(x, y, kept) <= TOLERANCE + 1e-12


def test_a_long_curve_becomes_a_hundred_points() -> None:
    x, y = roc(200_000, 0, 1.5)
    assert len(thin(x, y)) < 200


@pytest.mark.parametrize("steps", [600, 1500, 5000])
def test_a_staircase_of_the_worst_kind_stays_within_the_bound(steps: int) -> None:
    grid = np.arange(steps + 1) / steps
    x, y = np.repeat(grid, 2)[:-1], np.repeat(grid, 2)[1:]
    kept = thin(x, y)
    assert len(kept) <= MAX_POINTS
    assert farthest(x, y, kept) <= 0.002


def test_short_curves_and_equal_points_stay() -> None:
    assert thin(np.array([]), np.array([])).tolist() == []
    assert thin(np.array([1.0]), np.array([2.0])).tolist() == [0]
    assert thin(np.zeros(9), np.zeros(9)).tolist() == [0, 8]
    there_and_back = np.array([0.0, 1.0, 0.0])
    assert thin(there_and_back, np.zeros(3)).tolist() == [0, 1, 2]
