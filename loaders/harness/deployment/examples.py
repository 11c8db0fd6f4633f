"""Calibration images that an exported detector carries: their arrays must still give their confidences.

So a state, a parameter or a confidence that was altered contradicts the rest of its folder, whatever the
detector keeps in its state.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np

from wordnet_splits.base.errors import DataError

from ..data.arrays import Array, Arrays
from ..evaluation.scoring import Fitted, confidence

MOST: Final = 64
"""Greatest number of images that are carried."""
TOLERANCE: Final = 1e-4
"""Greatest change of a confidence, relative to it or to the range of the calibration scores."""
CONFIDENCES: Final = "examples"
PREFIX: Final = f"{CONFIDENCES}/"


class Examples(NamedTuple):
    """The arrays of some calibration images, and their confidences (n,), float32."""

    arrays: Arrays
    confidences: Array

    @classmethod
    def of(cls, data: Arrays, scores: Array) -> Examples:
        """Return every n-th calibration image; those are in the order of their classes."""
        rows = np.unique(np.linspace(0, len(scores) - 1, min(MOST, len(scores))).astype(np.int64))
        arrays = {name: np.array(view[rows]) for name, view in data.items() if name != "labels"}
        return cls(Arrays(arrays), np.asarray(scores, np.float32)[rows])

    @classmethod
    def taken(cls, stored: dict[str, Array], *, where: str) -> Examples:
        """Take the examples out of a folder's arrays; raise DataError if the arrays differ in length."""
        names = [name for name in stored if name.startswith(PREFIX)]
        try:
            arrays = Arrays({name.removeprefix(PREFIX): stored.pop(name) for name in names})
        except (DataError, TypeError) as error:  # TypeError: an array without axes
            raise DataError(f"its examples are malformed: {error}", where=where) from error
        return cls(arrays, stored.pop(CONFIDENCES, np.empty(0, np.float32)))

    def stored(self) -> Mapping[str, Array]:
        """Return the arrays of a folder."""
        named = {f"{PREFIX}{name}": np.asarray(view) for name, view in self.arrays.items()}
        return {**named, CONFIDENCES: self.confidences}

    def check(self, fitted: Fitted, calibration: Array, *, where: str, hint: str) -> None:
        """Raise DataError if the detector's confidences for its examples differ from the stored ones."""
        expected, count = self.confidences, min(MOST, len(calibration))
        if expected.shape != (count,) or self.arrays.n != count or not np.isin(expected, calibration).all():
            message = f"must hold {count} examples of its {len(calibration):,} calibration scores"
            raise DataError(message, where=where, hint=hint)
        try:
            found = np.asarray(confidence(fitted, self.arrays), np.float32)
        except DataError as error:
            raise DataError(f"cannot score its examples: {error.what}", where=where, hint=hint) from error
        scale = np.maximum(np.abs(expected), np.ptp(calibration))
        if not (np.abs(found - expected) <= TOLERANCE * scale).all():
            message = "does not give its examples the confidences that it had at the export"
            raise DataError(message, where=where, hint=hint)
