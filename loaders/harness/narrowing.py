"""From float64 and integers to float32, in which arrays and confidences are kept: new ties are refused.

Rounding to float32 keeps the order of values, but not that they differ: those that lie close together beside
their own size (``1e8 + z``, ``exp(z - 100)``) become equal, and what ranks by them ranks by chance.
"""

from __future__ import annotations

import numpy as np

from wordnet_splits.errors import DataError

from .arrays import Array

MOST_TIED = 1e-3
"""Share of the pairs of different values that may become equal: AUROC changes by half of that at most.

Of values that spread as far as they are large it is 1e-7; of those that differ in the third digit only, 1e-4.
"""
CHECKED = 1 << 22
"""Values of a matrix that are looked at, in rows evenly spread: sorting all of a large one takes a minute."""


def as_float32(values: Array, *, what: str, where: str, hint: str) -> Array:
    """Return (n,) or (n, width) numbers as float32, half precision as it is.

    Parameters
    ----------
    what : the values as the error names them. hint : how to give them so that they keep their differences.

    Raises
    ------
    DataError : more than `MOST_TIED` of the different pairs become equal, of all values or, in a matrix,
        within its rows or its columns.
    """
    if values.dtype in (np.float16, np.float32):
        return values
    with np.errstate(over="ignore"):  # infinity is refused where the values are checked to be finite
        narrow = values.astype(np.float32)
    if np.can_cast(values.dtype, np.float32):
        return narrow
    step = max(1, -(-values.size // CHECKED)) if values.ndim > 1 else 1
    tied = max(_newly_tied(np.sort(values[::step], axis=axis), axis) for axis in range(values.ndim))
    if tied > MOST_TIED:
        raise DataError(
            f"float32, in which {what} are kept, makes {tied:.2%} of the pairs that differ equal",
            where=where,
            hint=hint,
        )
    return narrow


def _newly_tied(ordered: Array, axis: int) -> float:
    """Return the share of the pairs of different values along an axis, in order, that float32 makes equal."""
    rows = np.moveaxis(ordered, axis, -1)
    with np.errstate(over="ignore"):
        after = _ties(rows.astype(np.float32))
    n = rows.shape[-1]
    different = rows.size * (n - 1) / 2 - (before := _ties(rows))
    return (after - before) / different if different else 0.0


def _ties(rows: Array) -> float:
    """Return the number of pairs of equal values within rows, which are in order."""
    starts = np.ones(rows.shape, bool)
    np.not_equal(rows[..., 1:], rows[..., :-1], out=starts[..., 1:])
    lengths = np.diff(np.append(np.flatnonzero(starts), rows.size)).astype(np.float64)
    return float(np.dot(lengths, lengths - 1) / 2)
