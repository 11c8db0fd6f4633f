"""Rows of OOD sets that are rows of an ID set in another precision, which digests do not find."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from ..data.arrays import Array, Arrays
from .sets import UserSet

ROUNDED = 2.0**-8
"""Largest difference of a row and its copy, as a share of the row's length: bfloat16's rounding."""
TRIED_ROWS = 64
"""Number of rows of an OOD set that are compared with all rows of the ID sets."""
MIN_COLUMNS = 8
"""Smallest number of columns that makes equal rows of different images unlikely by chance."""
MIN_SHARE = 0.5
CHUNK = 4096


def rounding_notes(sets: Mapping[str, UserSet], data: Mapping[str, Arrays]) -> Iterator[str]:
    """Yield a note for every OOD set whose first rows mostly repeat rows of an ID set, up to rounding.

    Other checks note rows that are equal bit for bit.
    """
    tests = {name: user_set for name, user_set in sets.items() if user_set.split == "test"}
    for id_name in (name for name, user_set in tests.items() if user_set.role == "id"):
        known = set(sets[id_name].digests)
        for name in (name for name, user_set in tests.items() if user_set.role != "id"):
            kind = next(
                (kind for kind in ("features", "logits") if kind in data[name] and kind in data[id_name]), ""
            )
            tried = sets[name].digests[:TRIED_ROWS]
            rows = [row for row, digest in enumerate(tried) if digest not in known]
            if not kind or data[name][kind].shape[1] < MIN_COLUMNS or not rows:
                continue
            copies = count_copies(np.asarray(data[name][kind])[rows], np.asarray(data[id_name][kind]))
            if copies >= MIN_SHARE * len(tried):
                yield (
                    f"{copies} of the first {len(tried)} rows of {name} are rows of {id_name} up to rounding "
                    "(a copy in another precision?)"
                )


def count_copies(values: Array, others: Array) -> int:
    """Return the number of rows of values (n, D) that a row of others (m, D) equals up to rounding."""
    wide = values.astype(np.float64)
    squares = np.square(wide).sum(axis=1)[:, None]
    copied = np.zeros(len(wide), bool)
    for start in range(0, len(others), CHUNK):
        part = others[start : start + CHUNK].astype(np.float64)
        distances = squares + np.square(part).sum(axis=1) - 2 * wide @ part.T
        copied |= (distances <= ROUNDED**2 * squares).any(axis=1)
    return int((copied & (squares[:, 0] > 0)).sum())
