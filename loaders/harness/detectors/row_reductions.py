"""Sums, maxima and products of each row of an array: fast, and precise in float32.

Results do not depend on the number or order of rows.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..arrays import Array, ArrayView


def at_least_single(values: npt.ArrayLike | ArrayView) -> Array:
    """Return values as they are, half precision as float32, so that sums keep their digits."""
    array = np.asarray(values)
    return array.astype(np.float32) if array.dtype == np.float16 else array


def sums(rows: Array) -> Array:
    """Return the sum over the last axis, float64 of sums in the type of the values."""
    return np.asarray(np.einsum("...j->...", rows), dtype=np.float64)


def maxima(rows: Array) -> Array:
    """Return the greatest value (n,) of each row (n, K); minus infinity where there are no columns."""
    n, width = rows.shape
    if not width:
        return np.full(n, -np.inf, rows.dtype)
    # one pass over all values; a maximum over an axis costs as much again per row as a short row
    return np.asarray(
        np.maximum.reduceat(np.ascontiguousarray(rows).reshape(-1), np.arange(0, n * width, width))
    )


def products(rows: Array, others: Array) -> Array:
    """Return the inner products (n,) float64 of rows (n, D) with rows of the same type."""
    return np.asarray(np.einsum("ij,ij->i", rows, others), dtype=np.float64)


def lengths(rows: Array) -> Array:
    """Return the Euclidean lengths (n,) float64 of rows (n, D)."""
    return np.asarray(np.sqrt(products(rows, rows)))
