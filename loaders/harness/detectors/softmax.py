"""Softmax confidences that never saturate, of logits with or without a background class.

``logits`` are (n, K) over the classes; ``background`` (n,), where there is one, is the logit of the
background class: part of every denominator, never a class (Palechor: its column is dropped after softmax).
Every row is computed by itself, so neither the number nor the order of rows plays a part. Differences and
powers are computed in the type of the logits, sums and logs in float64: float32 is enough where terms of one
sign are added, and three times as fast.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wordnet_splits.errors import DataError

from ..arrays import Array, Arrays, ArrayView


def logits_of(
    data: Arrays, name: str = "logits", *, classes: int = 1, dtype: Any = np.float64
) -> tuple[Array, Array | None]:
    """Return logits (n, K) and background logit (n,) or None, as ``dtype``.

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

    The maximum softmax is 1/(1 + that sum). Minus infinity with one class and no background.
    """
    below, top = gaps_and_top(logits, temperature)
    if background is None:
        return log_of_others(below, top)
    peak = np.take_along_axis(logits, top, axis=1)[:, 0]
    return log_of_others(below, top, beside=(background - peak) / temperature)


def log_of_others(
    below: Array, top: Array, *, beside: Array | None = None, powers: Array | None = None
) -> Array:
    """Return `log_others` from `gaps_and_top`, the background's gap (n,), and exp of the gaps if known."""
    others = np.exp(below) if powers is None else powers.copy()
    np.put_along_axis(others, top, 0, axis=1)
    total = others.sum(axis=1, dtype=np.float64)
    if beside is not None:
        with np.errstate(over="ignore"):
            total += np.exp(beside)
    with np.errstate(divide="ignore"):
        found = np.log(total)
    faint = np.flatnonzero((total < 1e8 * np.finfo(below.dtype).tiny) | (total == np.inf))
    if len(faint):  # powers that have lost digits, or all of them; or a background far above
        left = below[faint]
        np.put_along_axis(left, top[faint], -np.inf, axis=1)
        found[faint] = log_sum_exp(left if beside is None else np.column_stack([left, beside[faint]]))
    return np.asarray(found)


def gaps_and_top(logits: Array, temperature: float = 1.0) -> tuple[Array, Array]:
    """Return `gaps` (n, K) and the top class of each row (n, 1)."""
    top = logits.argmax(axis=1)[:, None]
    below = logits - np.take_along_axis(logits, top, axis=1)
    if temperature != 1:
        below /= temperature
    return below, top


def gaps(logits: Array, temperature: float = 1.0) -> Array:
    """Return (z - z_top)/T, at most 0, shape (n, K)."""
    below = logits - logits.max(axis=1, keepdims=True, initial=-np.inf)
    if temperature != 1:
        below /= temperature
    return np.asarray(below)


def log_max_softmax(logits: Array, background: Array | None = None) -> Array:
    """Return the log of the maximum softmax, -log1p(sum over j != top of exp(z_j - z_top)), shape (n,).

    Monotone in the maximum softmax, and close to 0 (where floats are dense) where that would be 1 to the
    last bit: from a margin of 20 in float32, of 38 in float64.
    """
    return np.asarray(-np.logaddexp(0.0, log_others(logits, background)))


def scaled_odds(logits: Array, background: Array | None, temperature: float) -> Array:
    """Return T (log(p/(1 - p)) + log m), p the maximum softmax at T and m the number of other columns.

    Monotone in p. At large T every p is 1/(m + 1) but for digits that float32 would drop; this form keeps
    them (it tends to the gap between the top logit and the mean of the others), and does not saturate at
    small T.
    """
    others = logits.shape[1] - (background is None)
    return np.asarray(temperature * (np.log(others) - log_others(logits, background, temperature)))


def log_softmax(logits: Array) -> Array:
    """Return the log of the softmax over the columns, shape (n, K)."""
    below = gaps(logits)
    below -= log_sum_exp(below)[:, None].astype(below.dtype)
    return below


def energy(logits: Array | ArrayView) -> Array:
    """Return the log of the sum of exp over the columns, shape (n,): minus the free energy at T = 1."""
    values = np.asarray(logits)
    return log_sum_exp(values if values.dtype == np.float32 else values.astype(np.float64))


def log_sum_exp(values: Array) -> Array:
    """Return the log of the sum of exp over the last axis; minus infinity of nothing but minus infinities."""
    top = values.max(axis=-1, keepdims=True, initial=-np.inf)
    shift = np.where(np.isfinite(top), top, 0.0)
    powers = np.subtract(values, shift)
    np.exp(powers, out=powers)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(powers.sum(axis=-1, dtype=np.float64)) + shift[..., 0])
