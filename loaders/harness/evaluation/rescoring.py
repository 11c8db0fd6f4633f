"""Whether a user's detector gives an image one confidence, whatever it is scored with and however often."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ..arrays import Array, Arrays
from .scoring import Data, Fitted, UnusableError, confidence

MAX_ROWS = 1000
"""Largest number of images of a set that are scored again: half of a small set, fewer of a large one."""
SPREAD_TOLERANCE, SIZE_TOLERANCE = 1e-3, 1e-5
"""Largest change of a confidence by arithmetic, in standard deviations and in the greatest absolute value."""


def rescoring_notes(fitted: Fitted, data: Mapping[str, Data], scores: Mapping[str, Array]) -> Iterator[str]:
    """Yield a note where images get another confidence when some of a set are scored again, backwards.

    Parameters
    ----------
    data, scores : set -> the arrays of all its images, and the confidences that they got.
    """
    changed: dict[str, int] = {}
    scored_again = 0
    for group, of_group in data.items():
        first = np.asarray(scores[group], np.float64)
        rows = np.arange(len(first))[::-1][:: max(2, -(-len(first) // MAX_ROWS))]
        scored_again += len(rows)
        try:
            again = confidence(fitted, _taken(of_group, rows), on=group)
        except UnusableError:  # it needs the others
            again = np.full(len(rows), np.nan)
        tolerance = SPREAD_TOLERANCE * first.std() + SIZE_TOLERANCE * np.abs(first).max(initial=0)
        count = int(np.count_nonzero(~(np.abs(again - first[rows]) <= tolerance)))
        changed |= {group: count} if count else {}
    if changed:
        yield (
            f"{fitted.configured.label}: {sum(changed.values()):,} of {scored_again:,} images get another "
            f"confidence when they are scored again among fewer (in {', '.join(changed)}): it depends on the "
            "other images of a set, on their order or on chance, and so do its figures"
        )


def _taken(data: Data, rows: Array) -> Any:
    if isinstance(data, Arrays):
        return Arrays({name: view[rows] for name, view in data.items()})
    return [_taken(of_model, rows) for of_model in data]
