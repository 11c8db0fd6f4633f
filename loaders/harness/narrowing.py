"""From float64 and integers to float32, in which arrays and confidences are kept: what becomes equal.

Rounding to float32 keeps the order of values, but not that they differ: those that lie close together beside
their own size (``1e8 + z``, ``exp(z - 100)``) become equal, and what ranks by them ranks by chance.
"""

from __future__ import annotations

import numpy as np

from wordnet_splits.base.errors import DataError

from .arrays import Array

MOST_TIED = 1e-3
"""Share of the pairs of different values that may become equal: AUROC changes by half of that at most.

Of values that spread as far as they are large it is 1e-7; of those that differ in the third digit only, 1e-4.
"""
CHECKED = 1 << 22
"""Values of a matrix that are looked at, in rows evenly spread: sorting all of a large one takes a minute."""
ARRAY_HINT = "take away the offset that they have in common"


def as_float32(
    values: Array, *, what: str, where: str, hint: str = ARRAY_HINT, by_column: bool = False
) -> Array:
    """Return (n,) or (n, width) numbers as float32, half precision as it is.

    Parameters
    ----------
    what : the values as the error names them. hint : how to give them so that they keep their differences.
    by_column : columns are independent (features), and some of them may be constant but for rounding errors:
        what becomes equal in the median column and row counts. Otherwise that of all columns, or all rows.

    Raises
    ------
    DataError : more than `MOST_TIED` of the different pairs become equal, of all values or, in a matrix,
        within its rows or its columns.
    """
    tied = tied_by_column(values) if by_column else newly_tied(values)
    if tied > MOST_TIED:
        raise DataError(
            f"float32, in which {what} are kept, makes {tied:.2%} of the pairs that differ equal",
            where=where,
            hint=hint,
        )
    with np.errstate(over="ignore"):  # infinity is refused where the values are checked to be finite
        return values if values.dtype == np.float16 else values.astype(np.float32, copy=False)


def newly_tied(values: Array) -> float:
    """Return the share of the pairs of different values that float32 makes equal.

    Of a matrix it is the greater one of all pairs within a column and all pairs within a row.
    """
    if np.can_cast(values.dtype, np.float32) or not values.size:
        return 0.0
    checked = _checked(values)
    pairs = (_tied_and_different(checked, axis) for axis in range(values.ndim))
    return max(float(_share(tied.sum(), different.sum())) for tied, different in pairs)


def tied_by_column(values: Array) -> float:
    """Return `newly_tied` of the median column (n, width) or, where that keeps its values, of the median row.

    Columns that float32 makes constant are left out of the rows: beside one another they say nothing.
    """
    if np.can_cast(values.dtype, np.float32) or not values.size:
        return 0.0
    checked = _checked(values.reshape(len(values), -1))
    of_columns = _share(*_tied_and_different(checked, 0))
    of_median = float(np.median(of_columns))
    if of_median > MOST_TIED:
        return of_median
    return float(np.median(_share(*_tied_and_different(checked[:, of_columns <= MOST_TIED], 1))))


def tied_share(values: Array) -> float:
    """Return the share of the pairs of values (n,) that are equal."""
    n = len(values)
    return float(_ties(np.sort(values)[None])[0]) / (n * (n - 1) / 2) if n > 1 else 0.0


def _checked(values: Array) -> Array:
    """Return the values, or evenly spread rows of a large matrix."""
    return values[:: max(1, -(-values.size // CHECKED))] if values.ndim > 1 else values


def _tied_and_different(values: Array, axis: int) -> tuple[Array, Array]:
    """Return, for each of m lines along an axis, how many pairs float32 makes equal, and how many differ."""
    n = values.shape[axis]
    lines = np.moveaxis(np.sort(values, axis=axis), axis, -1).reshape(-1, n)
    with np.errstate(over="ignore"):
        after = _ties(lines.astype(np.float32))
    before = _ties(lines)
    return after - before, n * (n - 1) / 2 - before


def _share(tied: Array, different: Array) -> Array:
    """Return tied / different, 0 where there is nothing different."""
    return np.asarray(tied / np.maximum(different, 1))


def _ties(lines: Array) -> Array:
    """Return the number of pairs of equal values within each of m lines (m, n), which are in order."""
    m, n = lines.shape
    starts = np.ones(lines.shape, bool)
    np.not_equal(lines[:, 1:], lines[:, :-1], out=starts[:, 1:])
    first = np.flatnonzero(starts)
    lengths = np.diff(np.append(first, lines.size)).astype(np.float64)
    return np.bincount(first // n, lengths * (lengths - 1) / 2, minlength=m)
