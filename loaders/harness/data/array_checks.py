"""Checks of arrays: probabilities in place of logits, a head that gives other logits, rounding to ties.

Arrays and confidences are stored as float32. Rounding keeps the order of values but may make different ones
equal: values that are close relative to their size (``1e8 + z``, ``exp(z - 100)``) become ties, and their
ranking becomes arbitrary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from wordnet_splits.base.errors import DataError

from .arrays import CHUNK, Array, Head

PROBABILITY_TOLERANCE = 1e-2
"""Largest difference of a row's sum from 1 in probabilities; float16 rounds by that over 1,000 classes."""
MIN_ROWS, MIN_DIFFERENCE = 8, 0.1
"""Fewest rows, and least difference between rows as a share of the sum, to check for a constant sum."""
LOG_PROBABILITIES = (
    "the logits are log-probabilities (the exponentials of each row sum to 1): energy is rounding error, and "
    "mls is msp; give the inputs of the softmax"
)
SIGMOIDS = (
    "the logits have bounds (0 and 1, or two that many reach), as outputs of a sigmoid or tanh, or cosine "
    "similarities without their scale do; give the inputs of the softmax"
)
STANDARDISED = (
    "every column of its {name} has mean 0 (standardised by itself?): each set loses what tells it apart; "
    "take mean and standard deviation of ID training"
)
MIN_SATURATED_ROWS, SATURATED, MIN_SATURATED_SHARE = 32, 0.99, 0.1
"""Fewest rows, share of the logits' range, and least share of rows that reach it, to take it for a bound."""
CENTRED, CENTRED_COLUMNS = 1e-4, 64
"""Largest mean, in standard deviations, of columns that are standardised; chance gives 1 / sqrt(n)."""
MAX_TIED_SHARE = 1e-3
"""Largest accepted share of pairs of different values that become equal; AUROC changes by half at most.

The share is 1e-7 for values that spread as far as their size, 1e-4 for values that differ in the third digit.
"""
CHECKED_VALUES = 1 << 22
"""Largest number of matrix values that are checked, in evenly spread rows; more would take minutes."""
HEAD_ROWS = 64
"""Number of rows, at most, whose logits are compared with the head's."""
ROUNDINGS = 6
"""Largest difference between logits and the head's, in standard deviations of rounding."""
BFLOAT16, TENSOR_FLOAT = 2.0**-8, 2.0**-11
"""Relative rounding in bfloat16, and in float16 or the TF32 that GPUs may use for float32."""
OFFSET_HINT = "take away the offset that they have in common"


def refuse_probabilities(logits: Array, *, where: str, hint: str) -> None:
    """Raise DataError if every row of logits (n, K) holds probabilities, or percentages (equal sums)."""
    total = 1.0 if _in_every_row(logits, _are_probabilities) else _constant_sum(logits)
    if total:
        raise DataError(
            f"probabilities are given where logits are expected: every row sums to {total:.4g}",
            where=where,
            hint=hint,
        )


def logit_notes(logits: Array) -> Iterator[str]:
    """Yield notes on logits (n, K) that look like something else: log-probabilities, outputs of a sigmoid."""
    if _in_every_row(logits, _are_logarithms):
        yield LOG_PROBABILITIES
    if not logits.size or logits.shape[1] < 2:
        return
    greatest, least = (reduce(axis=1).astype(np.float64) for reduce in (logits.max, logits.min))
    top, bottom = float(greatest.max()), min(float(least.min()), 0.0)
    margin = (1 - SATURATED) * (top - bottom)
    reached = [np.mean(greatest >= top - margin), np.mean(least <= bottom + margin)]
    if bottom == 0:
        reached.pop()
    bounded = min(reached) >= MIN_SATURATED_SHARE and (bottom == 0 or abs(top + bottom) <= margin)
    differ = float(np.ptp(logits, axis=0).max()) > (top - bottom) / 2
    if (0 < top <= 1 and bottom == 0) or (len(logits) >= MIN_SATURATED_ROWS and bounded and differ):
        yield SIGMOIDS


def is_standardised(values: Array) -> bool:
    """Return whether the first columns of values (n, D), two or more that are not constant, have mean 0."""
    if len(values) < MIN_ROWS:
        return False
    wide = np.asarray(values)[:, :CENTRED_COLUMNS].astype(np.float64)
    spread = wide.std(axis=0)
    varied = spread > CENTRED * np.abs(wide).max(axis=0)
    return bool(varied.sum() > 1 and (np.abs(wide.mean(axis=0)) <= CENTRED * spread)[varied].all())


def gives_logits(head: Head, features: Array, logits: Array) -> bool:
    """Return whether ``features @ weight.T + bias`` are the logits, up to rounding, on the first rows.

    The root mean square difference of each column is compared with the rounding error, which grows with the
    root of the sum of squared products. If all features or all logits are exact in bfloat16, its rounding is
    assumed, else the rounding of TF32 and float16.
    """
    f, z = (np.asarray(values[:HEAD_ROWS]).astype(np.float32) for values in (features, logits))
    if f.ndim != 2 or f.shape[1] != head.weight.shape[1] or z.shape != (len(f), len(head.weight)):
        return False
    rounding = ROUNDINGS * (BFLOAT16 if _exact_in_bfloat16(f) or _exact_in_bfloat16(z) else TENSOR_FLOAT)
    wide, squares = f.astype(np.float64), np.square(f, dtype=np.float64)
    for start in range(0, len(head.weight), CHUNK):
        weight, bias = (part[start : start + CHUNK].astype(np.float64) for part in (head.weight, head.bias))
        difference = wide @ weight.T + bias - z[:, start : start + CHUNK]
        size = squares @ np.square(weight).T + np.square(bias) + np.square(z[:, start : start + CHUNK])
        if not (np.square(difference).sum(axis=0) <= rounding**2 * size.sum(axis=0)).all():
            return False
    return True


def nearly_equal(values: Array, others: Array, tolerance: float) -> bool:
    """Return whether arrays of equal shapes differ by at most a share of the greatest value."""
    scale = float(np.abs(values).max(initial=0.0))
    return values.shape == others.shape and bool(
        np.allclose(others, values, rtol=tolerance, atol=tolerance * scale)
    )


def _exact_in_bfloat16(values: Array) -> bool:
    return not (np.ascontiguousarray(values).view(np.uint32) & 0xFFFF).any()


def as_float32(
    values: Array, *, name: str, where: str, hint: str = OFFSET_HINT, by_column: bool = False
) -> Array:
    """Return numbers (n,) or (n, width) as float32; half precision is kept.

    Parameters
    ----------
    name : the values as the error names them.
    hint : how to provide values that keep their differences.
    by_column : whether columns are independent (features). Some columns may then be constant up to rounding,
        so the median column and row are checked instead of all columns and rows.

    Raises
    ------
    DataError : more than `MAX_TIED_SHARE` of the pairs of different values become equal, among all values or,
        in a matrix, within its rows or its columns.
    """
    tied = tied_by_column(values) if by_column else newly_tied(values)
    if tied > MAX_TIED_SHARE:
        raise DataError(
            f"float32, in which {name} are kept, makes {tied:.2%} of the pairs that differ equal",
            where=where,
            hint=hint,
        )
    with np.errstate(over="ignore"):  # infinity is refused where the values are checked to be finite
        return values if values.dtype == np.float16 else values.astype(np.float32, copy=False)


def newly_tied(values: Array) -> float:
    """Return the share of the pairs of different values that float32 makes equal.

    For a matrix: the greater share of that among pairs within columns and that among pairs within rows.
    """
    if np.can_cast(values.dtype, np.float32) or not values.size:
        return 0.0
    checked = _checked(values)
    pairs = (_tied_and_different(checked, axis) for axis in range(values.ndim))
    return max(float(_share(tied.sum(), different.sum())) for tied, different in pairs)


def tied_by_column(values: Array) -> float:
    """Return `newly_tied` of the median column (n, width) or, if that keeps its values, of the median row.

    Columns that float32 makes constant are left out of the rows.
    """
    if np.can_cast(values.dtype, np.float32) or not values.size:
        return 0.0
    checked = _checked(values.reshape(len(values), -1))
    of_columns = _share(*_tied_and_different(checked, 0))
    of_median = float(np.median(of_columns))
    if of_median > MAX_TIED_SHARE:
        return of_median
    return float(np.median(_share(*_tied_and_different(checked[:, of_columns <= MAX_TIED_SHARE], 1))))


def tied_share(values: Array) -> float:
    """Return the share of the pairs of values (n,) that are equal."""
    n = len(values)
    return float(_ties(np.sort(values)[None])[0]) / (n * (n - 1) / 2) if n > 1 else 0.0


def _checked(values: Array) -> Array:
    """Return the values, or evenly spread rows of a large matrix."""
    return values[:: max(1, -(-values.size // CHECKED_VALUES))] if values.ndim > 1 else values


def _tied_and_different(values: Array, axis: int) -> tuple[Array, Array]:
    """Return, for each of m lines along an axis, the pairs that float32 makes equal and those that differ."""
    n = values.shape[axis]
    lines = np.moveaxis(np.sort(values, axis=axis), axis, -1).reshape(-1, n)
    with np.errstate(over="ignore"):
        after = _ties(lines.astype(np.float32))
    before = _ties(lines)
    return after - before, n * (n - 1) / 2 - before


def _share(tied: Array, different: Array) -> Array:
    """Return tied / different, 0 where ``different`` is 0."""
    return np.asarray(tied / np.maximum(different, 1))


def _ties(lines: Array) -> Array:
    """Return the number of pairs of equal values within each of m sorted lines (m, n)."""
    m, n = lines.shape
    starts = np.ones(lines.shape, bool)
    np.not_equal(lines[:, 1:], lines[:, :-1], out=starts[:, 1:])
    positions = np.flatnonzero(starts)
    lengths = np.diff(np.append(positions, lines.size)).astype(np.float64)
    return np.bincount(positions // n, lengths * (lengths - 1) / 2, minlength=m)


def _in_every_row(values: Array, test: Callable[[Array], bool]) -> bool:
    if len(values) == 0 or values.shape[1] < 2:
        return False
    chunks = (values[start : start + CHUNK] for start in range(0, len(values), CHUNK))
    return all(test(chunk.astype(np.float64)) for chunk in chunks)


def _constant_sum(logits: Array) -> float:
    """Return the common sum of the rows of non-negative logits (n, K), 0 if the sums differ.

    Return 0 also for equal rows and for rows with a single value above 0, which do not suffice to decide.
    """
    if len(logits) < MIN_ROWS or logits.shape[1] < 2 or logits.min() < 0:
        return 0.0
    sums = logits.sum(axis=1, dtype=np.float64)
    total = float(sums.mean())
    is_constant = float(np.ptp(sums)) <= PROBABILITY_TOLERANCE * total
    several = float(logits.max(axis=1).min()) < (1 - PROBABILITY_TOLERANCE) * total
    differ = float(np.ptp(logits, axis=0).max()) > MIN_DIFFERENCE * total
    return total if is_constant and several and differ else 0.0


def _are_probabilities(rows: Array) -> bool:
    return bool((rows >= 0).all() and (np.abs(rows.sum(axis=1) - 1) < PROBABILITY_TOLERANCE).all())


def _are_logarithms(rows: Array) -> bool:
    return bool((rows < PROBABILITY_TOLERANCE).all()) and _are_probabilities(np.exp(rows))
