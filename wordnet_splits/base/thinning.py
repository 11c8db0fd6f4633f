"""Curves with fewer points that look the same."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.floating]

MAX_POINTS: Final = 1000
TOLERANCE: Final = 0.001
"""Greatest distance of a curve from its thinned form, in widths of the panel: a quarter of a line's width."""


def thin(x: Values, y: Values, tolerance: float = TOLERANCE, most: int = MAX_POINTS) -> npt.NDArray[np.intp]:
    """Return the indices of points (x, y) with a polyline within ``tolerance`` of the full polyline.

    Douglas and Peucker's method, all segments at a time. A curve that needs more than ``most`` points gets
    twice the tolerance until it does not: a monotone curve in the unit square never needs more than 0.002.

    Parameters
    ----------
    x, y : (n,), finite, in units of the plot's width and height.
    """
    if len(x) <= 2:
        return np.arange(len(x))
    while len(kept := _within(x, y, tolerance)) > most:
        tolerance *= 2
    return kept


def _within(x: Values, y: Values, tolerance: float) -> npt.NDArray[np.intp]:
    ends = np.array([0, len(x) - 1])
    while True:
        lengths = np.diff(ends)
        distances = _distances(x, y, np.repeat(ends[:-1], lengths), np.repeat(ends[1:], lengths))
        greatest = np.maximum.reduceat(distances, ends[:-1])
        if greatest.max() <= tolerance:
            return ends
        split = np.repeat((greatest > tolerance) * greatest, lengths)
        candidates = np.flatnonzero((split > 0) & (distances == split))
        segments = np.searchsorted(ends, candidates, side="right")
        _, first = np.unique(segments, return_index=True)
        ends = np.sort(np.concatenate([ends, candidates[first]]))


def _distances(x: Values, y: Values, start: npt.NDArray[np.intp], end: npt.NDArray[np.intp]) -> Values:
    """Return the distance of every point but the last to the segment from ``start`` to ``end``."""
    dx, dy = x[end] - x[start], y[end] - y[start]
    px, py = x[:-1] - x[start], y[:-1] - y[start]
    length = dx * dx + dy * dy
    with np.errstate(divide="ignore", invalid="ignore"):
        along = np.where(length > 0, (px * dx + py * dy) / length, 0.0)
    along = np.clip(along, 0.0, 1.0)
    return np.asarray(np.hypot(px - along * dx, py - along * dy))
