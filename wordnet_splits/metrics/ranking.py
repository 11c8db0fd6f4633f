"""ID against OOD: AUROC, FPR at 95% TPR, AUPR and detection error, each variant under its own name.

Scores are confidence, higher = more in-distribution. Naming: `*_in` and `*_id_positive` take ID as the
positive class, `*_out` and `*_ood_positive` take OOD. Every function accepts two arrays (numpy, torch,
lists) or, in place of the first, the `RankCounts` of a pair that was sorted already.

References
----------
Hendrycks and Gimpel, A Baseline for Detecting Misclassified and Out-of-Distribution Examples, ICLR 2017.
Liang et al., ODIN, ICLR 2018. Zhang et al., OpenOOD v1.5, 2023.
"""

from __future__ import annotations

import numpy as np

from wordnet_splits.base.errors import DataError
from wordnet_splits.metrics.counts import (
    Array,
    RankCounts,
    count_below,
    least_count,
    ratio,
    take,
)
from wordnet_splits.metrics.registry import of_pair


@of_pair(higher_is_better=True)
def auroc(counts: RankCounts) -> Array:
    """Probability that a random ID sample outranks a random OOD sample, ties counting one half.

    ID is the positive class; with OOD positive and scores negated the value is the same. Higher is better,
    0.5 is chance, range [0, 1].

    Example
    -------
    >>> auroc([0.9, 0.8, 0.3], [0.3, 0.1])  # 5 wins and 1 tie of 6 pairs
    0.9166666666666666
    """
    below = counts.n_ood[..., None] - counts.cum_ood
    twice_wins = np.sum(counts.id_steps * (2 * below + counts.ood_steps), axis=-1)  # integers: exact
    return ratio(twice_wins, 2 * counts.n_id * counts.n_ood)


def _fpr_at_tpr(counts: RankCounts, tpr: float, interpolate: bool) -> Array:
    """FPR of the ROC curve whose positive class is the ID side of ``counts``."""
    if not 0 < tpr <= 1:
        raise DataError(f"a true positive rate of {tpr}", hint="it lies in (0, 1]; the usual one is 0.95")
    needed = least_count(tpr, counts.n_id)
    first = count_below(counts.cum_id, needed)  # first point with TPR >= tpr
    if not interpolate:
        return ratio(take(counts.cum_ood, first), counts.n_ood)
    # As np.interp reads the curve, which starts at (0, 0): from the last point with TPR <= tpr to the next.
    exact = take(counts.cum_id, first) / np.maximum(counts.n_id, 1) == tpr
    after = np.where(exact, count_below(counts.cum_id, needed + 1), first)
    end = np.minimum(after, counts.cum_id.shape[-1] - 1)
    x0, y0 = (
        np.where(after > 0, take(cum, np.maximum(after - 1, 0)), 0) for cum in (counts.cum_id, counts.cum_ood)
    )
    x1, y1 = take(counts.cum_id, end), take(counts.cum_ood, end)
    way = (tpr * counts.n_id - x0) / np.maximum(x1 - x0, 1)
    return ratio(y0 + np.where(exact, 0.0, way) * (y1 - y0), counts.n_ood)


@of_pair(higher_is_better=False, variants={"fpr95_id_positive_interpolated": {"interpolate": True}})
def fpr95_id_positive(counts: RankCounts, tpr: float = 0.95, interpolate: bool = False) -> Array:
    """Share of OOD accepted by the highest observed threshold that accepts 95% of ID.

    ID is the positive class (Kim, ODIN; the text of Abdelzad and Recalcati): t = largest observed score
    with share(ID >= t) >= .95; the value is share(OOD >= t). Lower is better, range [0, 1].

    Parameters
    ----------
    interpolate : read the ROC polyline at TPR = .95 instead, as ``np.interp(0.95, tpr, fpr)`` does
        (OODL's code; where several points have that very TPR, the one of greatest FPR).
    tpr : another true positive rate, in (0, 1].
    """
    return _fpr_at_tpr(counts, tpr, interpolate)


@of_pair(higher_is_better=False, variants={"fpr95_ood_positive_interpolated": {"interpolate": True}})
def fpr95_ood_positive(counts: RankCounts, tpr: float = 0.95, interpolate: bool = False) -> Array:
    """Share of ID rejected by the lowest observed threshold that rejects 95% of OOD.

    OOD is the positive class (OpenOOD): t = smallest observed score with share(OOD <= t) >= .95; the value
    is share(ID <= t). Lower is better, range [0, 1]. OpenOOD reads the same point from scikit-learn's
    ``roc_curve``, whose ``drop_intermediate`` may remove it where neighbouring ties hold equal numbers of
    samples; its value is then that of a later threshold, ours is not. `interpolate` and `tpr` as in
    `fpr95_id_positive`.
    """
    return _fpr_at_tpr(counts.ood_positive, tpr, interpolate)


openood_fpr95 = fpr95_ood_positive  # the name under which OpenOOD's tables print it (FPR@95)


def _precision(counts: RankCounts) -> Array:
    """Share of ID at or above each threshold; 1 above every score, where precision-recall curves start."""
    precision = counts.cum_id / np.maximum(counts.cum_all, 1)
    precision[counts.cum_all == 0] = 1.0
    return precision


def _average_precision(counts: RankCounts) -> Array:
    return ratio(np.sum(counts.id_steps * counts.once(_precision), axis=-1), counts.n_id)


def _precision_recall_trapezoid(counts: RankCounts) -> Array:
    precision = counts.once(_precision)
    doubled = precision.copy()
    doubled[..., 0] += 1
    doubled[..., 1:] += precision[..., :-1]
    doubled *= counts.id_steps
    return ratio(np.sum(doubled, axis=-1), 2 * counts.n_id)


@of_pair(higher_is_better=True, variants={"aupr_in_trapezoid": {"trapezoid": True}})
def aupr_in(counts: RankCounts, trapezoid: bool = False) -> Array:
    """Area under precision and recall with ID as the positive class.

    Average precision, sum over thresholds of (recall gained) x precision, scikit-learn's
    ``average_precision_score``; with ``trapezoid`` the trapezoid rule from (recall 0, precision 1), as
    OpenOOD. Higher is better; chance is the share of ID. Range [0, 1].
    """
    return _precision_recall_trapezoid(counts) if trapezoid else _average_precision(counts)


@of_pair(higher_is_better=True, variants={"aupr_out_trapezoid": {"trapezoid": True}})
def aupr_out(counts: RankCounts, trapezoid: bool = False) -> Array:
    """Area under precision and recall with OOD as the positive class, ranked by negated confidence.

    As `aupr_in` with the sides exchanged. Higher is better; chance is the share of OOD. Range [0, 1].
    """
    return aupr_in.kernel(counts.ood_positive, trapezoid)


def _margin(counts: RankCounts) -> Array:
    """(TPR - FPR) n_id n_ood at each threshold, integers: 0.5 (1 - TPR) + 0.5 FPR = 0.5 (1 - TPR + FPR)."""
    margin = counts.cum_id * counts.n_ood[..., None]
    margin -= counts.cum_ood * counts.n_id[..., None]
    return np.asarray(margin)


def _error_of(margin: Array, counts: RankCounts) -> Array:
    return 0.5 * (1 - ratio(margin, counts.n_id * counts.n_ood))


@of_pair(higher_is_better=False, variants={"detection_error_ood_positive": {"ood_positive": True}})
def detection_error(counts: RankCounts, ood_positive: bool = False) -> Array:
    """Smallest 0.5 (1 - TPR) + 0.5 FPR over thresholds with TPR >= .95: what the papers' tables hold.

    Abdelzad and Recalcati define the error *at* 95% TPR, but their tables are minima over TPR >= .95. ID is
    the positive class unless ``ood_positive``. Lower is better, range [0, 0.5].
    """
    pair = counts.ood_positive if ood_positive else counts
    margin = pair.once(_margin)
    reached = pair.cum_id >= least_count(0.95, pair.n_id)[..., None]
    return _error_of(np.max(margin, axis=-1, where=reached, initial=np.iinfo(np.int64).min), pair)


@of_pair(higher_is_better=False)
def detection_error_at_tpr95(counts: RankCounts, ood_positive: bool = False) -> Array:
    """0.5 (1 - TPR) + 0.5 FPR at the threshold of FPR95: the papers' text, with the TPR observed there.

    ID is the positive class unless ``ood_positive``. Lower is better, range [0, 0.525].
    """
    pair = counts.ood_positive if ood_positive else counts
    first = count_below(pair.cum_id, least_count(0.95, pair.n_id))
    return _error_of(take(pair.once(_margin), first), pair)


@of_pair(higher_is_better=False)
def detection_error_min(counts: RankCounts) -> Array:
    """Smallest 0.5 (1 - TPR) + 0.5 FPR over every threshold; 0.5, as at the lowest one, at worst.

    The same whichever side is positive. Lower is better, range [0, 0.5].
    """
    return _error_of(np.max(counts.once(_margin), axis=-1), counts)
