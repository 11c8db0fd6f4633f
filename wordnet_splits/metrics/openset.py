"""Open-set classification: the OSCR curve, CCR at an FPR, and Palechor's validation confidences gamma.

Scores are confidences over the known classes (for softmax the maximum probability, excluding a background
class): higher means more in-distribution. Knowns are the positive class. Negatives and unknowns are evaluated
separately, against the same knowns.

References
----------
Palechor, Bhoumik and Guenther, Large-Scale Open-Set Classification Protocols for ImageNet, WACV 2023, eq. 6
and 7. Dhamija, Guenther and Boult, Reducing Network Agnostophobia, NeurIPS 2018 (OSCR).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wordnet_splits.base.errors import DataError
from wordnet_splits.metrics.counts import (
    Array,
    RankCounts,
    Scores,
    as_counts,
    as_scores,
    count_below,
    least_count,
    ratio,
    take,
)
from wordnet_splits.metrics.registry import ID_CORRECT_OOD, register_metric

NEAREST_TOLERANCE = 0.1  # relative distance beyond which the nearest FPR does not count as reached


@dataclass(frozen=True, eq=False)
class OscrCurve:
    """The OSCR curve, from the highest threshold down.

    Attributes
    ----------
    thresholds : (m + 1,) distinct scores of knowns and unknowns, descending, then minus infinity.
    fpr : (m + 1,) share of unknowns with score > threshold; ends at 1.
    ccr : (m + 1,) share of knowns classified correctly with score > threshold; ends at the accuracy.
    """

    thresholds: Array
    fpr: Array
    ccr: Array


def _curve(counts: RankCounts) -> tuple[Array, Array]:
    """Return FPR and CCR at each distinct score and minus infinity (> a score is >= the next higher one)."""
    start = np.zeros((*counts.cum_id.shape[:-1], 1), dtype=np.int64)
    fpr = ratio(np.concatenate([start, counts.cum_ood], axis=-1), counts.n_ood[..., None])
    ccr = ratio(np.concatenate([start, counts.correct], axis=-1), counts.n_id[..., None])
    return fpr, ccr


def _oscr(counts: RankCounts) -> Array:
    pairs = 2 * counts.correct - counts.correct_steps
    pairs *= counts.ood_steps
    doubled = np.sum(pairs, axis=-1)  # integers: exact
    return ratio(doubled, 2 * counts.n_ood * counts.n_id)


def _ccr_at_fpr(counts: RankCounts, fpr: float, nearest: bool = False) -> Array:
    allowed = least_count(fpr, counts.n_ood)  # largest number of false positives, or one more
    allowed -= allowed / np.maximum(counts.n_ood, 1) > fpr
    points = count_below(counts.cum_ood, allowed + 1)  # distinct scores with at most that many
    ccr = _ccr_after(counts, points)
    if not nearest:
        return ccr
    lower = _after(counts.cum_ood, points) / np.maximum(counts.n_ood, 1)
    next_fpr = take(counts.cum_ood, np.minimum(points, counts.cum_ood.shape[-1] - 1))
    upper = next_fpr / np.maximum(counts.n_ood, 1)  # the next observed FPR, or the last again
    closer = np.abs(upper - fpr) <= np.abs(lower - fpr)
    ccr = np.where(closer, _ccr_after(counts, count_below(counts.cum_ood, next_fpr + 1)), ccr)
    distance = np.abs(np.where(closer, upper, lower) - fpr)
    return np.where(distance > NEAREST_TOLERANCE * fpr, np.nan, ccr)


def _after(cumulative: Array, points: Array) -> Array:
    """Return the count after the first ``points`` distinct scores, 0 after none."""
    return np.where(points > 0, take(cumulative, np.maximum(points - 1, 0)), 0)


def _ccr_after(counts: RankCounts, points: Array) -> Array:
    return ratio(_after(counts.correct, points), counts.n_id)


def oscr_curve(
    confidence: Scores | RankCounts,
    correct: Scores | None = None,
    unknown_confidence: Scores | None = None,
    *,
    name: str | None = None,
) -> OscrCurve:
    """Return the OSCR curve (Palechor eq. 6, strict >): CCR of the knowns over FPR of the unknowns.

    Parameters
    ----------
    confidence, correct : (n_known,) maximum score of each known, and whether it was classified correctly.
    unknown_confidence : (n_unknown,) maximum score over the known classes of each negative or unknown.
    """
    counts = as_counts(confidence, unknown_confidence, correct=correct, name=name).require(*ID_CORRECT_OOD)
    fpr, ccr = _curve(counts)
    return OscrCurve(np.append(counts.thresholds, -np.inf), fpr, ccr)


@register_metric("oscr", _oscr, higher_is_better=True, needs=ID_CORRECT_OOD)
def oscr(
    confidence: Scores | RankCounts,
    correct: Scores | None = None,
    unknown_confidence: Scores | None = None,
    *,
    name: str | None = None,
) -> float:
    """Area under the OSCR curve by the trapezoid rule (see `oscr_curve`).

    Equals accuracy x AUROC of correctly classified knowns against unknowns, and is at most the accuracy.
    Knowns are the positive class; higher is better, range [0, 1].
    """
    counts = as_counts(confidence, unknown_confidence, correct=correct, name=name).require(*ID_CORRECT_OOD)
    return float(_oscr(counts))


def ccr_at_fpr(
    confidence: Scores | RankCounts,
    correct: Scores | None = None,
    unknown_confidence: Scores | None = None,
    *,
    fpr: float,
    nearest: bool = False,
    name: str | None = None,
) -> float:
    """Largest correct classification rate of the knowns at a false positive rate of at most ``fpr``.

    Knowns are the positive class; higher is better, range [0, accuracy].

    Parameters
    ----------
    fpr : in (0, 1], e.g. 1e-3, 1e-2, 1e-1, 1.
    nearest : use the point whose FPR is nearest (the greater of two equally near), as the authors' tables;
        NaN, a blank there, if it is more than 10% off.
    """
    if not 0 < fpr <= 1:
        raise DataError(f"fpr must be in (0, 1], not {fpr}", where=name)
    counts = as_counts(confidence, unknown_confidence, correct=correct, name=name).require(*ID_CORRECT_OOD)
    return float(_ccr_at_fpr(counts, fpr, nearest))


for _fpr in (0.001, 0.01, 0.1, 1.0):  # the rates of Palechor's tables
    for _suffix, _nearest in (("", False), ("_nearest", True)):
        register_metric(
            f"ccr_at_fpr_{_fpr:g}{_suffix}",
            _ccr_at_fpr,
            higher_is_better=True,
            needs=ID_CORRECT_OOD,
            fpr=_fpr,
            nearest=_nearest,
        )(ccr_at_fpr)


def gamma_plus(target_probability: Scores, *, name: str | None = None) -> float:
    """Mean probability of the correct class over known samples (Palechor eq. 7).

    Higher is better, range [0, 1].

    Parameters
    ----------
    target_probability : (n_known,) softmax probability of each known sample's true class.
    """
    return float(np.mean(_probabilities(target_probability, name, "target probabilities")))


def gamma_minus(
    max_probability: Scores, *, classes: int, background: bool = False, name: str | None = None
) -> float:
    """Mean of 1 - max over known classes, + 1/K, over negative samples (Palechor eq. 7); higher is better.

    The offset 1/K makes 1 the best value if the network has only the K known classes; with a background
    class, whose probability is excluded from the maximum, the offset is 0. Range [0, 1].

    Parameters
    ----------
    max_probability : (n_negative,) greatest softmax probability over the K known classes.
    classes : number K of known classes.
    background : whether the network has a background class in addition.
    """
    if classes < 1:
        raise DataError(f"the number of known classes must be at least 1, not {classes}", where=name)
    offset = 0.0 if background else 1 / classes
    highest = _probabilities(max_probability, name, "maximum probabilities")
    return float(np.mean(1 - highest + offset))


def gamma(
    target_probability: Scores,
    max_probability: Scores,
    *,
    classes: int,
    background: bool = False,
    name: str | None = None,
) -> float:
    """Mean of `gamma_plus` over knowns and `gamma_minus` over negatives (Palechor eq. 7).

    The authors' code selects epochs by the sum, which ranks them equally. Higher is better, range [0, 1].
    """
    plus = gamma_plus(target_probability, name=name)
    minus = gamma_minus(max_probability, classes=classes, background=background, name=name)
    return (plus + minus) / 2


def _probabilities(values: Scores, name: str | None, side: str) -> Array:
    """Return ``values`` as sorted float64 probabilities: sums must not depend on the order of rows."""
    array = np.sort(as_scores(values, name=name, side=side).astype(np.float64))
    where = f"{name}: {side}" if name else side
    if not len(array):
        raise DataError("there are no samples to average over", where=where)
    if array[0] < 0 or array[-1] > 1 + 1e-6:  # float32 softmax may exceed 1 by rounding
        raise DataError(
            "found values outside [0, 1]", where=where, hint="pass softmax probabilities, not logits"
        )
    return array
