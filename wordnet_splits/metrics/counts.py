"""Cumulative counts of ID, correct and OOD samples at each threshold, the input of every metric.

Scores are confidences: higher means more in-distribution. A score pair is sorted once, into integer counts at
its distinct values, and every metric is computed from these counts. Ties are therefore exact, and the order
of the rows never changes a value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from wordnet_splits.base.errors import DataError

Array = npt.NDArray[Any]
Scores = npt.ArrayLike  # any one-dimensional array of numbers, torch tensors included

EXACT_INTEGERS = 2.0**53
"""Largest number up to which float64 represents every integer."""


@dataclass(frozen=True, eq=False)
class RankCounts:
    """Cumulative counts of a score pair over its m distinct scores, highest first.

    Attributes
    ----------
    thresholds : (m,) distinct scores, descending.
    cum_id : (..., m) int64, ID samples with score >= the threshold. The ID side is the positive class.
    cum_ood : (..., m) int64, OOD samples with score >= the threshold.
    cum_correct : (..., m) int64, correctly classified ID samples with score >= the threshold; None if
        correctness is unknown.
    name : detector and set, for error messages.
    loops : the module `compiled`, for kernels that have loops there; the counts then have one leading axis.

    Leading axes hold bootstrap replicates over the same thresholds; a plain score pair has none.
    """

    thresholds: Array
    cum_id: Array
    cum_ood: Array
    cum_correct: Array | None = None
    name: str | None = None
    loops: ModuleType | None = None
    _shared: dict[Callable[[RankCounts], Array], Array] = field(default_factory=dict, init=False, repr=False)

    def cached(self, compute: Callable[[RankCounts], Array]) -> Array:
        """Return ``compute(self)``, computed only once: an intermediate result shared by several metrics."""
        if compute not in self._shared:
            self._shared[compute] = compute(self)
        return self._shared[compute]

    def copied(self) -> RankCounts:
        """Return the same counts in arrays of their own."""
        correct = None if self.cum_correct is None else self.cum_correct.copy()
        return RankCounts(self.thresholds.copy(), self.cum_id.copy(), self.cum_ood.copy(), correct, self.name)

    def replicate(self, number: int) -> RankCounts:
        """Return the counts of a single replicate, without the leading axis."""
        correct = None if self.cum_correct is None else self.cum_correct[number]
        return RankCounts(self.thresholds, self.cum_id[number], self.cum_ood[number], correct, self.name)

    @cached_property
    def n_id(self) -> Array:
        """Number of ID samples, shape (...)."""
        return np.asarray(self.cum_id[..., -1])

    @cached_property
    def n_ood(self) -> Array:
        """Number of OOD samples, shape (...)."""
        return np.asarray(self.cum_ood[..., -1])

    @cached_property
    def id_steps(self) -> Array:
        """Number of ID samples at each threshold, shape (..., m)."""
        return steps(self.cum_id)

    @cached_property
    def ood_steps(self) -> Array:
        """Number of OOD samples at each threshold, shape (..., m)."""
        return steps(self.cum_ood)

    @cached_property
    def cum_all(self) -> Array:
        """Number of ID and OOD samples with score >= each threshold, shape (..., m)."""
        return np.asarray(self.cum_id + self.cum_ood)

    @cached_property
    def all_steps(self) -> Array:
        """Number of ID and OOD samples at each threshold, shape (..., m)."""
        return steps(self.cum_all)

    @cached_property
    def correct(self) -> Array:
        """`cum_correct`; DataError if correctness is unknown."""
        if self.cum_correct is None:
            raise DataError(
                "this metric requires to know which ID samples were classified correctly",
                where=self.name,
                hint="build the counts with rank_counts(confidence, ood_confidence, correct=...)",
            )
        return self.cum_correct

    @cached_property
    def ood_positive(self) -> RankCounts:
        """The same ranking with OOD as the positive class: scores negated, sides swapped."""
        return RankCounts(
            thresholds=-self.thresholds[::-1],
            cum_id=_at_most(self.cum_ood, self.ood_steps),
            cum_ood=_at_most(self.cum_id, self.id_steps),
            name=self.name,
        )

    @cached_property
    def failures(self) -> RankCounts:
        """Misclassification detection: correct ID samples as positives against wrong ID samples."""
        return self._pair(self.cum_id - self.correct, cum_all=self.cum_id, all_steps=self.id_steps)

    @cached_property
    def unknowns(self) -> RankCounts:
        """Unknown detection (Kim): correct ID samples against wrong ID samples and all OOD."""
        return self._pair(self.cum_all - self.correct, cum_all=self.cum_all, all_steps=self.all_steps)

    @cached_property
    def proposed(self) -> RankCounts:
        """The `proposed` pooling of fd-shifts: correct ID samples against OOD; wrong ID samples left out."""
        return self._pair(self.cum_ood, ood_steps=self.ood_steps)

    @cached_property
    def correct_steps(self) -> Array:
        """Number of correctly classified ID samples at each threshold, shape (..., m)."""
        return steps(self.correct)

    def _pair(self, errors: Array, **known: Array) -> RankCounts:
        """Return counts with correct ID samples as the ID side and ``errors`` as the OOD side.

        Parameters
        ----------
        known : properties of the pair that are known already.
        """
        pair = RankCounts(self.thresholds, self.correct, errors, name=self.name, loops=self.loops)
        vars(pair).update(known, id_steps=self.correct_steps)
        return pair

    def require(self, *sides: str) -> RankCounts:
        """Return self; DataError if any of ``sides`` ("id", "ood", "correct") is missing."""
        sizes = {"id": self.n_id, "ood": self.n_ood}
        for side in sides:
            if side == "correct":
                _ = self.correct
            elif not np.all(sizes[side]):
                raise DataError(
                    f"there are no {side.upper()} scores, so this metric is undefined",
                    where=self.name,
                    hint="a set may be empty after filtering; leave it out of the evaluation",
                )
        return self


def _at_most(cumulative: Array, at: Array) -> Array:
    """Turn counts of scores >= t (t descending, ``at`` scores equal t) into counts <= t (t ascending)."""
    return np.ascontiguousarray((cumulative[..., -1:] - cumulative + at)[..., ::-1])


def rank_counts(
    id_scores: Scores,
    ood_scores: Scores = (),
    *,
    correct: Scores | None = None,
    name: str | None = None,
) -> RankCounts:
    """Sort a score pair once and return the counts that every metric is computed from.

    Parameters
    ----------
    id_scores : (n_id,) confidence of ID samples, higher = more in-distribution.
    ood_scores : (n_ood,) confidence of OOD samples; optional for metrics of ID samples alone.
    correct : (n_id,) whether each ID sample was classified correctly; bool, or 0 and 1.
    name : detector and set, e.g. "knn on svhn", for error messages.

    Raises
    ------
    DataError : a side is not one-dimensional, not numeric or not finite, `correct` does not match
        `id_scores`, or no score is given.

    Example
    -------
    >>> counts = rank_counts([0.9, 0.8, 0.3], [0.3, 0.1])
    >>> counts.thresholds.tolist(), counts.cum_id.tolist(), counts.cum_ood.tolist()
    ([0.9, 0.8, 0.3, 0.1], [1, 2, 3, 3], [0, 0, 1, 2])
    """
    positives, negatives = as_score_pair(id_scores, ood_scores, name=name)
    flags = None if correct is None else as_flags(correct, len(positives), name=name)
    scores = np.concatenate([positives, negatives])
    if not len(scores):
        raise DataError("there are no scores to rank", where=name)

    order = np.argsort(scores)[::-1]  # any order within a tie: only the counts at its end are used
    ranked = scores[order]
    last = np.append(np.flatnonzero(ranked[1:] != ranked[:-1]), len(ranked) - 1)
    cum_id = np.cumsum(order < len(positives), dtype=np.int64)[last]
    cum_correct = None
    if flags is not None:
        padded = np.concatenate([flags, np.zeros(len(negatives), dtype=bool)])
        cum_correct = np.cumsum(padded[order], dtype=np.int64)[last]
    return RankCounts(ranked[last], cum_id, last + 1 - cum_id, cum_correct, name)


def as_counts(
    scores: Scores | RankCounts,
    ood_scores: Scores | None = None,
    *,
    correct: Scores | None = None,
    name: str | None = None,
) -> RankCounts:
    """Return ``scores`` if it is a `RankCounts`, else the counts of the arrays (see `rank_counts`)."""
    if isinstance(scores, RankCounts):
        return scores
    return rank_counts(scores, () if ood_scores is None else ood_scores, correct=correct, name=name)


def as_score_pair(id_scores: Scores, ood_scores: Scores, *, name: str | None = None) -> tuple[Array, Array]:
    """Return both sides as `as_scores` does; DataError if scores that differ between sides become equal."""
    sides = {"ID scores": id_scores, "OOD scores": ood_scores}
    arrays = {side: to_numpy(s, where=f"{name}: {side}" if name else side) for side, s in sides.items()}
    positives, negatives = (as_scores(array, name=name, side=side) for side, array in arrays.items())
    _refuse_new_ties(list(arrays.values()), name)
    return positives, negatives


def as_scores(values: Scores, *, name: str | None = None, side: str = "scores", exact: bool = False) -> Array:
    """Return ``values`` as a one-dimensional float array of finite numbers; DataError if that is impossible.

    float32 stays float32 (the dtype of stored confidences); smaller floats become float32, and integers
    float64, provided that different integers stay different. Minus zero becomes zero.

    Parameters
    ----------
    exact : whether float64 must represent every integer exactly, for scores ranked with others later.
    """
    where = f"{name}: {side}" if name else side
    raw = to_numpy(values, where=where)
    if raw.ndim != 1:
        raise DataError(f"one score per sample expected, found an array of shape {raw.shape}", where=where)
    if raw.dtype.kind not in "fiub" and raw.size:
        raise DataError(f"numbers expected, found values of type {raw.dtype}", where=where)
    array = raw
    if raw.dtype.kind != "f":
        array = raw.astype(np.float64)
    elif raw.dtype.itemsize < 4:
        array = raw.astype(np.float32)
    if not np.isfinite(array).all():
        bad = np.flatnonzero(~np.isfinite(array))
        raise DataError(
            f"{len(bad)} of {len(array)} scores are NaN or infinite, the first in row {bad[0]}",
            where=where,
            hint="a detector must return a finite confidence for every sample",
        )
    _refuse_new_ties([raw, *([array] if exact else [])], where)
    return np.asarray(array + array.dtype.type(0))


def _refuse_new_ties(sides: Sequence[Array], where: str | None) -> None:
    """Raise DataError if different integer scores become equal in float64, which rounds beyond 2^53."""
    if not any(side.dtype.kind in "iu" for side in sides):
        return
    far = (side[np.abs(side.astype(np.float64)) >= EXACT_INTEGERS] for side in sides)
    different = {int(value) for side in far for value in np.unique(side).tolist()}
    equal = len(different) - len({float(value) for value in different})
    if equal:
        raise DataError(
            f"float64, in which integers are ranked, makes {equal:,} of {len(different):,} different scores "
            "beyond 2^53 equal to another",
            where=where,
            hint="rank all scores together, and pass the ranks",
        )


def as_flags(values: Scores, length: int, *, name: str | None = None) -> npt.NDArray[np.bool_]:
    """Return ``values`` as a boolean array of shape (length,); DataError if it is not one (0 and 1 are)."""
    where = f"{name}: correct" if name else "correct"
    array = to_numpy(values, where=where)
    if array.shape != (length,):
        raise DataError(
            f"shape ({length},) expected, one flag per ID score, found {array.shape}", where=where
        )
    if array.size and array.dtype.kind not in "fiub":
        raise DataError(f"booleans expected, found values of type {array.dtype}", where=where)
    if not np.isin(array, (0, 1)).all():
        raise DataError("found values other than 0 and 1", where=where, hint="pass (prediction == label)")
    return array.astype(np.bool_)


def to_numpy(values: Any, *, where: str | None = None) -> Array:
    """Return an array-like as a numpy array; accepts torch tensors on any device, with or without gradient.

    Raises
    ------
    DataError : masked values or complex numbers, whose mask or imaginary part a conversion would drop; or
        values that cannot form an array.
    """
    parts = values if isinstance(values, list | tuple) else (values,)
    masked = [np.ma.getmaskarray(part) for part in parts if isinstance(part, np.ma.MaskedArray)]
    if count := sum(int(mask.sum()) for mask in masked):
        raise DataError(
            f"{count} of {sum(map(np.size, parts))} values are masked",
            where=where,
            hint="drop these samples from every array, as in scores[~scores.mask]",
        )
    try:
        array = _converted(values)
    except (TypeError, ValueError, RuntimeError) as error:  # rows of several lengths, a tensor without data
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise DataError(f"cannot be an array: {reason}", where=where) from error
    if array.dtype.kind == "c":
        hint = "pass real numbers, as in values.real, if the imaginary parts mean nothing"
        raise DataError("real numbers expected, found complex ones", where=where, hint=hint)
    return array


def _converted(values: Any) -> Array:
    if hasattr(values, "detach") and hasattr(values, "cpu"):  # a tensor, recognised without importing torch
        values = values.detach().cpu()
        try:
            return np.asarray(values)
        except TypeError:  # bfloat16 has no numpy dtype; float32 represents all its values
            return np.asarray(values.float())
    if isinstance(values, list | tuple) and any(hasattr(item, "detach") for item in values):
        values = [_converted(item) for item in values]
    return np.asarray(values)


def steps(cumulative: Array) -> Array:
    """Return the differences along the last axis, with a leading zero: the inverse of a cumulative sum."""
    out = np.empty_like(cumulative)
    out[..., 0] = cumulative[..., 0]
    np.subtract(cumulative[..., 1:], cumulative[..., :-1], out=out[..., 1:])
    return out


def ratio(numerator: Array, denominator: Array) -> Array:
    """Divide elementwise; NaN where the denominator is zero."""
    return np.where(denominator == 0, np.nan, numerator / np.where(denominator == 0, 1, denominator))


def take(values: Array, index: Array) -> Array:
    """Return ``values[..., index[...]]``: one element per leading row."""
    return np.asarray(np.take_along_axis(values, index[..., None], axis=-1)[..., 0])


def count_below(cumulative: Array, bound: Array) -> Array:
    """Return, for each leading row of ascending counts, the number of counts below its ``bound``."""
    rows = cumulative.reshape(-1, cumulative.shape[-1])
    bounds = np.broadcast_to(bound, cumulative.shape[:-1]).reshape(-1)
    indices = [np.searchsorted(row, value) for row, value in zip(rows, bounds, strict=True)]
    return np.array(indices, dtype=np.int64).reshape(cumulative.shape[:-1])


def least_count(share: float, total: Array) -> Array:
    """Return the smallest count c with c/total >= share, divided in float64."""
    count = np.ceil(share * total).astype(np.int64)
    divisor = np.maximum(total, 1)
    count -= (count - 1) / divisor >= share  # share * total may have been rounded across an integer
    count += count / divisor < share
    return np.asarray(count)
