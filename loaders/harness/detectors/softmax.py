"""Softmax confidences that never saturate, for logits with or without a background class.

``logits`` are (n, K) over the classes; ``background`` (n,), optional, is the logit of the background class:
part of every denominator, never a class (Palechor: its column is dropped after softmax). Results do not
depend on the number or order of rows. Differences, powers and their sums are computed in the type of the
logits, logs in float64: float32 is precise enough for sums of terms with equal sign, and three times as fast.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from wordnet_splits.base.errors import DataError

from ..data.arrays import Array, Arrays, ArrayView


def at_least_single(values: npt.ArrayLike | ArrayView) -> Array:
    """Return values unchanged, except half precision as float32, so that sums keep their digits."""
    array = np.asarray(values)
    return array.astype(np.float32) if array.dtype == np.float16 else array


def sums(rows: Array) -> Array:
    """Return the sum over the last axis, float64 of sums in the type of the values."""
    return np.asarray(np.einsum("...j->...", rows), dtype=np.float64)


def maxima(rows: Array) -> Array:
    """Return the greatest value (n,) of each row (n, K); minus infinity if K = 0."""
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


WARM = 10.0
"""Temperature above which powers are so close to 1 that their differences from 1 are summed instead."""


def logits_of(
    data: Arrays, name: str = "logits", *, classes: int = 1, dtype: Any = np.float64
) -> tuple[Array, Array | None]:
    """Return logits (n, K) and background logit (n,) or None, as ``dtype``; ``dtype=None`` keeps the type.

    Raises
    ------
    DataError : fewer than ``classes`` columns.
    """
    logits = np.asarray(data[name], dtype=dtype)
    if logits.ndim != 2 or logits.shape[1] < classes:
        raise DataError(f"array {name!r} of shape {logits.shape} where (n, at least {classes}) is expected")
    background = data.get("background") if name == "logits" else None
    return logits, None if background is None else np.asarray(background, dtype=dtype)


def log_others(logits: Array, background: Array | None = None, temperature: float = 1.0) -> Array:
    """Return log of the sum of exp((z_j - z_top)/T) over all j but the top class, shape (n,).

    The maximum softmax is 1/(1 + that sum). For a single class without background it is minus infinity.
    """
    top = logits.argmax(axis=1)[:, None]
    peak = np.take_along_axis(logits, top, axis=1)[:, 0].astype(np.float64)
    beside = None if background is None else background / temperature
    total = _of_others(_powers(logits, temperature), top, beside)
    with np.errstate(divide="ignore"):
        logs = np.asarray(np.log(total) - peak / temperature)
    faint = np.flatnonzero(_lost(total, logits))
    if len(faint):
        beside = None if background is None else (background[faint] - peak[faint]) / temperature
        below, top = gaps_and_top(logits[faint], temperature)
        logs[faint] = log_of_others(below, top, np.exp(below), beside)
    return logs


def log_of_others(below: Array, top: Array, powers: Array, beside: Array | None = None) -> Array:
    """Return `log_others` from `gaps_and_top` and the background's gap (n,).

    Parameters
    ----------
    powers : exp of the gaps; the values of the top classes are set to 0.
    """
    total = _of_others(powers, top, beside)
    with np.errstate(divide="ignore"):
        logs = np.asarray(np.log(total))
    faint = np.flatnonzero(_lost(total, below))
    if len(faint):  # or a background far above
        left = below[faint]
        np.put_along_axis(left, top[faint], -np.inf, axis=1)
        logs[faint] = log_sum_exp(left if beside is None else np.column_stack([left, beside[faint]]))
    return logs


def _of_others(powers: Array, top: Array, beside: Array | None) -> Array:
    """Return the sum (n,) of powers (n, K) without the top classes, plus exp(beside); set the tops to 0."""
    np.put_along_axis(powers, top, 0, axis=1)
    total = sums(powers)
    if beside is not None:
        with np.errstate(over="ignore"):
            total += np.exp(beside)
    return total


def _powers(values: Array, temperature: float) -> Array:
    """Return exp(z/T), infinity beyond its type."""
    scaled = np.divide(values, temperature) if temperature != 1 else values
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(scaled, out=None if scaled is values else scaled))


def _lost(total: Array, powers: Array) -> Array:
    """Return a mask (n,) of the sums of powers that lost digits beyond the range of their type."""
    return np.asarray((total < 1e8 * np.finfo(powers.dtype).tiny) | (total == np.inf))


def gaps_and_top(logits: Array, temperature: float = 1.0) -> tuple[Array, Array]:
    """Return `gaps` (n, K) and the top class of each row (n, 1)."""
    top = logits.argmax(axis=1)[:, None]
    below = logits - np.take_along_axis(logits, top, axis=1)
    if temperature != 1:
        below /= temperature
    return below, top


def gaps(logits: Array, temperature: float = 1.0, *, dtype: Any = None) -> Array:
    """Return (z - z_top)/T, at most 0, shape (n, K), as ``dtype`` or in the type of the logits."""
    below = np.subtract(logits, maxima(logits)[:, None], dtype=dtype)
    if temperature != 1:
        below /= temperature
    return np.asarray(below)


def log_max_softmax(logits: Array, background: Array | None = None) -> Array:
    """Return the log of the maximum softmax, -log1p(sum over j != top of exp(z_j - z_top)), shape (n,).

    Monotone in the maximum softmax. From a margin of 20 in float32 or 38 in float64, the maximum softmax
    itself would be 1 to the last bit; its log is close to 0, where floats are dense.
    """
    return -softplus(log_others(logits, background))


def scaled_odds(logits: Array, background: Array | None, temperatures: Sequence[float]) -> list[Array]:
    """Return T (log(p/(1 - p)) + log m) at each T, p the maximum softmax and m the number of other columns.

    Monotone in p. At large T, p differs from 1/(m + 1) only in digits that float32 would drop; this form
    keeps these digits (it tends to the gap between the top logit and the mean of the rest), and does not
    saturate at small T.
    """
    others = logits.shape[1] - (background is None)
    gap, top = gaps_and_top(logits)
    above = None if background is None else background - np.take_along_axis(logits, top, axis=1)[:, 0]
    return [temperature * _log_odds(gap, top, above, temperature, others) for temperature in temperatures]


def _log_odds(gap: Array, top: Array, above: Array | None, temperature: float, others: int) -> Array:
    """Return log(p/(1 - p)) + log m from `gaps_and_top` at T = 1 and the background's gap."""
    below, beside = gap / temperature, None if above is None else above / temperature
    if temperature <= WARM:
        return np.asarray(np.log(others) - log_of_others(below, top, np.exp(below), beside))
    less = sums(np.expm1(below, out=below))
    if beside is not None:
        with np.errstate(over="ignore"):
            less += np.expm1(beside)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_odds = np.asarray(-np.log1p(less / others))
    far = np.flatnonzero(~(np.abs(less) < 0.9 * others))
    if len(far):
        left = gap[far].astype(np.float64) / temperature
        rest = log_of_others(left, top[far], np.exp(left), None if beside is None else beside[far])
        log_odds[far] = np.log(others) - rest
    return log_odds


def softplus(values: Array) -> Array:
    """Return log(1 + exp(x))."""
    return np.asarray(np.maximum(values, 0.0) + np.log1p(np.exp(-np.abs(values))))


def log_softmax(logits: Array) -> Array:
    """Return the log of the softmax over the columns, shape (n, K)."""
    below = gaps(logits)
    below -= log_sum_exp(below)[:, None].astype(below.dtype)
    return below


def energy(logits: Array | ArrayView, temperature: float = 1.0) -> Array:
    """Return T times the log of the sum of exp(z/T) over the columns, shape (n,): minus the free energy."""
    values = np.asarray(logits)
    return temperature * log_sum_exp(
        values if values.dtype == np.float32 else values.astype(np.float64), temperature
    )


def log_sum_exp(values: Array, temperature: float = 1.0) -> Array:
    """Return the log of the sum of exp(z/T) over the last axis; minus infinity if all z are minus infinity.

    It is computed from the values if their type has the range, else from the differences to the maximum.
    """
    total = sums(_powers(values, temperature))
    with np.errstate(divide="ignore"):
        logs = np.asarray(np.log(total))
        lost = _lost(total, values)
        if lost.any():
            rest = values[lost]
            top = rest.max(axis=-1, keepdims=True, initial=-np.inf)
            shift = np.where(np.isfinite(top), top, 0.0)
            rest -= shift
            logs[lost] = np.log(sums(_powers(rest, temperature))) + shift[..., 0] / temperature
    return logs
