"""Formulas of the similarity measures, the three readings of Wu-Palmer, and the table of names."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol


def path(distance: int) -> float:
    """Return 1 / (D + 1), in (0, 1]."""
    return 1.0 / (distance + 1)


def lch(distance: int, height: int) -> float:
    """Return -ln((D + 1) / 2H), at most ln 2H."""
    return -math.log((distance + 1) / (2.0 * height))


def wup(detour: int, depth: int) -> float:
    """Return 2k / (detour + 2k), in (0, 1]; the detour is D(x, s) + D(y, s)."""
    return (2.0 * depth) / (detour + 2 * depth)


class Terms(Protocol):
    """Terms of the measures: numbers for one pair, arrays for a tile of pairs."""

    @property
    def distance(self) -> Any:
        """D."""

    def over_distance(self, name: str) -> Any:
        """Return the formula of that name in ``OF_DISTANCE``."""

    def wup(self, reading: str) -> Any:
        """Return Wu-Palmer in one of the ``READINGS``."""


OF_DISTANCE: dict[str, Callable[[int, int], float]] = {
    "path": lambda distance, height: path(distance),
    "lch": lch,
    "lch_perl": lambda distance, height: lch(distance, height + 1),
    "lch_unit": lambda distance, height: lch(distance, height) / lch(0, height),
}
"""Functions of D and the height H of the taxonomy."""


FORMULAS: dict[str, Callable[[Terms], Any]] = {
    "distance": lambda t: t.distance,
    "path": lambda t: t.over_distance("path"),
    "lch": lambda t: t.over_distance("lch"),
    "lch_perl": lambda t: t.over_distance("lch_perl"),
    "wup": lambda t: t.wup("nltk"),
    "wup_wn": lambda t: t.wup("wn"),
    "wup_perl": lambda t: t.wup("perl"),
    "mean": lambda t: (t.over_distance("path") + t.wup("wn") + t.over_distance("lch_unit")) / 3,
    "mean_nltk": lambda t: (t.over_distance("path") + t.wup("nltk") + t.over_distance("lch_unit")) / 3,
    "mean2": lambda t: (t.over_distance("path") + t.wup("wn")) / 2,
}

MEASURES: tuple[str, ...] = tuple(FORMULAS)
"""Names of the measures."""

BEYOND_ONE = ("distance", "lch", "lch_perl")
"""Measures whose values are not limited to 0..1."""


@dataclass(frozen=True)
class Reading:
    """One reading of Wu-Palmer.

    Parameters
    ----------
    subsumer_depth : the depth that selects the subsumer, ``max_depths`` or ``min_depths``.
    depth : the depth of the subsumer in the formula.
    offset : number added to that depth to give k.
    by_name : ties go to the first of NLTK's names instead of the smaller wnid.
    prefers_x : x wins every tie.
    """

    subsumer_depth: str
    depth: str
    offset: int
    by_name: bool = False
    prefers_x: bool = False


READINGS = {
    "wn": Reading("max_depths", "max_depths", 1),
    "nltk": Reading("min_depths", "max_depths", 1, by_name=True, prefers_x=True),
    "perl": Reading("min_depths", "min_depths", 2),
}
