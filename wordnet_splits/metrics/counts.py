"""The one sort behind every metric: how many ID, correct and OOD samples score at least each threshold.

Scores are confidence, higher = more in-distribution. A score pair is sorted once, into integer counts at
its distinct values; every metric is computed from those counts. Ties are therefore exact and the order of
the rows can never change a value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from wordnet_splits.base.errors import DataError

Array = npt.NDArray[Any]
Scores = npt.ArrayLike  # any one-dimensional array of numbers, torch tensors included

EXACT_INTEGERS = 2.0**53
"""Below it float64 holds every integer; beyond, it has gaps."""


@dataclass(frozen=True, eq=False)
class RankCounts:
    """Cumulative counts of a score pair over its m distinct scores, highest first.

    Attributes
    ----------
    thresholds : (m,) distinct scores, descending.
    cum_id : (..., m) int64, ID samples with score >= the threshold. The ID side is the positive class.
    cum_ood : (..., m) int64, OOD samples with score >= the threshold.
    cum_correct : (..., m) int64, correctly classified ID samples with score >= the threshold; None where
        correctness is not known.
    name : what was scored, for error messages.

    Leading axes hold bootstrap replicates over the same thresholds; there is none for a plain score pair.
    """

    thresholds: Array
    cum_id: Array
    cum_ood: Array
    cum_correct: Array | None = None
    name: str | None = None
    _shared: dict[Callable[[RankCounts], Array], Array] = field(default_factory=dict, init=False, repr=False)

    def once(self, part: Callable[[RankCounts], Array]) -> Array:
        """Return ``part(self)``, computed at the first call only: something that several metrics share."""
        if part not in self._shared:
            self._shared[part] = part(self)
        return self._shared[part]

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
        """ID samples exactly at each threshold, shape (..., m)."""
        return steps(self.cum_id)

    @cached_property
    def ood_steps(self) -> Array:
        """OOD samples exactly at each threshold, shape (..., m)."""
        return steps(self.cum_ood)

    @cached_property
    def cum_all(self) -> Array:
        """Samples of both sides with score >= each threshold, shape (..., m)."""
        return np.asarray(self.cum_id + self.cum_ood)

    @cached_property
    def correct(self) -> Array:
        """`cum_correct`, or an error saying that correctness was not given."""
        if self.cum_correct is None:
            raise DataError(
                "this metric needs to know which ID samples were classified correctly",
                where=self.name,
                hint="build the counts with rank_counts(confidence, ood_confidence, correct=...)",
            )
        return self.cum_correct

    @cached_property
    def ood_positive(self) -> RankCounts:
        """The same ranking with OOD as the positive class: scores negated, sides exchanged."""
        return RankCounts(
            thresholds=-self.thresholds[::-1],
            cum_id=_at_most(self.cum_ood, self.ood_steps),
            cum_ood=_at_most(self.cum_id, self.id_steps),
            name=self.name,
        )

    @cached_property
    def failures(self) -> RankCounts:
        """Misclassification detection: correct ID samples as positives against wrong ID samples."""
        return self._pair(self.cum_id - self.correct)

    @cached_property
    def unknowns(self) -> RankCounts:
        """Unknown detection (Kim): correct ID samples against wrong ID samples and all OOD."""
        return self._pair(self.cum_id - self.correct + self.cum_ood)

    @cached_property
    def proposed(self) -> RankCounts:
        """The `proposed` pooling of fd-shifts: correct ID samples against OOD; wrong ID samples left out."""
        return self._pair(self.cum_ood)

    def _pair(self, errors: Array) -> RankCounts:
        """Correct ID samples in the place of ID, ``errors`` in the place of OOD."""
        return RankCounts(self.thresholds, self.correct, errors, name=self.name)

    def require(self, *sides: str) -> RankCounts:
        """Return self, or raise DataError about the first of ``sides`` (id, ood, correct) that is absent."""
        sizes = {"id": self.n_id, "ood": self.n_ood}
        for side in sides:
            if side == "correct":
                _ = self.correct
            elif not np.all(sizes[side]):
                raise DataError(
                    f"there are no {side.upper()} scores, so this metric has no value",
                    where=self.name,
                    hint="a set may be empty after filtering; leave it out of the evaluation",
                )
        return self


def _at_most(cumulative: Array, at: Array) -> Array:
    """Turn counts of scores >= t, t descending, of which ``at`` equal t, into counts <= t, t ascending."""
    return np.ascontiguousarray((cumulative[..., -1:] - cumulative + at)[..., ::-1])


def rank_counts(
    id_scores: Scores,
    ood_scores: Scores = (),
    *,
    correct: Scores | None = None,
    name: str | None = None,
) -> RankCounts:
    """Sort a score pair once and return its counts, from which every metric is computed.

    Parameters
    ----------
    id_scores : (n_id,) confidence of ID samples, higher = more in-distribution.
    ood_scores : (n_ood,) confidence of OOD samples; may be left out for metrics of ID samples alone.
    correct : (n_id,) whether each ID sample was classified correctly; bool or 0 and 1.
    name : what is scored, e.g. "knn on svhn"; errors name it.

    Raises
    ------
    DataError : a side is not one-dimensional or not numeric, holds NaN or infinity, or `correct` does not
        match `id_scores`; or there is no score at all.

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

    order = np.argsort(scores)[::-1]  # any order inside a tie: only the counts at its end are kept
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
    """Return ``scores`` where it is counts already, else sort the arrays (see `rank_counts`)."""
    if isinstance(scores, RankCounts):
        return scores
    return rank_counts(scores, () if ood_scores is None else ood_scores, correct=correct, name=name)


def as_score_pair(id_scores: Scores, ood_scores: Scores, *, name: str | None = None) -> tuple[Array, Array]:
    """Return both sides of a score pair as `as_scores` does; different scores stay different across them."""
    sides = {"ID scores": id_scores, "OOD scores": ood_scores}
    given = [to_numpy(scores, where=f"{name}: {side}" if name else side) for side, scores in sides.items()]
    positives, negatives = (
        as_scores(scores, name=name, side=side) for side, scores in zip(sides, given, strict=True)
    )
    _refuse_new_ties(given, name)
    return positives, negatives


def as_scores(values: Scores, *, name: str | None = None, side: str = "scores", exact: bool = False) -> Array:
    """Return ``values`` as a one-dimensional float array of finite numbers, or raise DataError.

    float32 stays float32 (the dtype in which confidences are stored); smaller floats widen to float32,
    integers to float64, in which those that differ have to differ. Minus zero becomes zero, which it ties
    with.

    Parameters
    ----------
    exact : float64 has to hold every integer: for scores that are ranked with others later.
    """
    where = f"{name}: {side}" if name else side
    given = to_numpy(values, where=where)
    if given.ndim != 1:
        raise DataError(
            f"an array of shape {given.shape} where one score per sample is expected", where=where
        )
    if given.dtype.kind not in "fiub" and given.size:
        raise DataError(f"values of type {given.dtype} where numbers are expected", where=where)
    array = given
    if given.dtype.kind != "f":
        array = given.astype(np.float64)
    elif given.dtype.itemsize < 4:
        array = given.astype(np.float32)
    if not np.isfinite(array).all():
        bad = np.flatnonzero(~np.isfinite(array))
        raise DataError(
            f"{len(bad)} of {len(array)} scores are NaN or infinite, the first in row {bad[0]}",
            where=where,
            hint="a detector has to give a finite confidence for every sample",
        )
    _refuse_new_ties([given, *([array] if exact else [])], where)
    return np.asarray(array + array.dtype.type(0))


def _refuse_new_ties(sides: Sequence[Array], where: str | None) -> None:
    """Refuse finite scores that differ and are equal in float64, which rounds integers beyond 2^53."""
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
            hint="rank all scores that are compared, and give the ranks",
        )


def as_flags(values: Scores, length: int, *, name: str | None = None) -> npt.NDArray[np.bool_]:
    """Return ``values`` as ``length`` booleans (0 and 1 are accepted), or raise DataError."""
    where = f"{name}: correct" if name else "correct"
    array = to_numpy(values, where=where)
    if array.shape != (length,):
        raise DataError(
            f"shape {array.shape} where ({length},) is expected: one flag per ID score", where=where
        )
    if array.size and array.dtype.kind not in "fiub":
        raise DataError(f"values of type {array.dtype} where true or false is expected", where=where)
    if not np.isin(array, (0, 1)).all():
        raise DataError("values other than 0 and 1", where=where, hint="pass (prediction == label)")
    return array.astype(np.bool_)


def to_numpy(values: Any, *, where: str | None = None) -> Array:
    """Return any array-like as numpy; torch tensors (on any device, with or without gradient) included.

    Raises
    ------
    DataError : a masked array that masks something: numpy would drop the mask and keep the values.
    """
    if np.ma.is_masked(values):
        raise DataError(
            f"{np.ma.getmaskarray(values).sum()} of {np.size(values)} values are masked",
            where=where,
            hint="leave them out of every array of these samples, as in scores[~scores.mask]",
        )
    if hasattr(values, "detach") and hasattr(values, "cpu"):  # a tensor, recognised without importing torch
        values = values.detach().cpu()
        try:
            return np.asarray(values)
        except TypeError:  # bfloat16 has no numpy dtype; float32 holds its every value
            return np.asarray(values.float())
    return np.asarray(values)


def steps(cumulative: Array) -> Array:
    """Return the differences along the last axis, the first from zero."""
    out = np.empty_like(cumulative)
    out[..., 0] = cumulative[..., 0]
    np.subtract(cumulative[..., 1:], cumulative[..., :-1], out=out[..., 1:])
    return out


def ratio(numerator: Array, denominator: Array) -> Array:
    """Divide elementwise, NaN where the denominator is zero: a value that does not exist."""
    return np.where(denominator == 0, np.nan, numerator / np.where(denominator == 0, 1, denominator))


def take(values: Array, index: Array) -> Array:
    """Return ``values[..., index[...]]``: one element of each leading row."""
    return np.asarray(np.take_along_axis(values, index[..., None], axis=-1)[..., 0])


def count_below(cumulative: Array, bound: Array) -> Array:
    """Return, for each leading row of ascending counts, how many of them are below its ``bound``."""
    rows = cumulative.reshape(-1, cumulative.shape[-1])
    bounds = np.broadcast_to(bound, cumulative.shape[:-1]).reshape(-1)
    found = [np.searchsorted(row, value) for row, value in zip(rows, bounds, strict=True)]
    return np.array(found, dtype=np.int64).reshape(cumulative.shape[:-1])


def least_count(share: float, total: Array) -> Array:
    """Return the smallest count c with c/total >= share, the division being float64's."""
    count = np.ceil(share * total).astype(np.int64)
    divisor = np.maximum(total, 1)
    count -= (count - 1) / divisor >= share  # share * total may have been rounded across an integer
    count += count / divisor < share
    return np.asarray(count)
