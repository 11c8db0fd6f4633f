"""ID against OOD: AUROC, FPR at 95% TPR, AUPR and detection error, each variant by name; and Kendall's tau.

Scores are confidences: higher means more in-distribution. Naming: `*_in` and `*_id_positive` take ID as the
positive class, `*_out` and `*_ood_positive` take OOD. Every function accepts two arrays (numpy, torch, lists)
or the `RankCounts` of both.

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
    Scores,
    as_scores,
    count_below,
    least_count,
    ratio,
    take,
)
from wordnet_splits.metrics.registry import pair_metric


@pair_metric(higher_is_better=True)
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
    """FPR of the ROC curve whose positive class is the ID side of ``counts``; NaN if a side is empty."""
    if not 0 < tpr <= 1:
        raise DataError(f"the true positive rate must be in (0, 1], not {tpr}", hint="0.95 is usual")
    needed = least_count(tpr, counts.n_id)
    last = counts.cum_id.shape[-1] - 1
    point = np.minimum(count_below(counts.cum_id, needed), last)  # first with TPR >= tpr
    n_ood = np.where(counts.n_id == 0, 0, counts.n_ood)
    if not interpolate:
        return ratio(take(counts.cum_ood, point), n_ood)
    # as np.interp on the curve, which starts at (0, 0): from the last point with TPR <= tpr to the next
    exact = take(counts.cum_id, point) / np.maximum(counts.n_id, 1) == tpr
    after = np.where(exact, count_below(counts.cum_id, needed + 1), point)
    end = np.minimum(after, last)
    x0, y0 = (
        np.where(after > 0, take(cum, np.maximum(after - 1, 0)), 0) for cum in (counts.cum_id, counts.cum_ood)
    )
    x1, y1 = take(counts.cum_id, end), take(counts.cum_ood, end)
    fraction = (tpr * counts.n_id - x0) / np.maximum(x1 - x0, 1)
    return ratio(y0 + np.where(exact, 0.0, fraction) * (y1 - y0), n_ood)


@pair_metric(higher_is_better=False, variants={"fpr95_id_positive_interpolated": {"interpolate": True}})
def fpr95_id_positive(counts: RankCounts, tpr: float = 0.95, interpolate: bool = False) -> Array:
    """Share of OOD accepted by the highest observed threshold that accepts 95% of ID.

    ID is the positive class (Kim, ODIN; the text of Abdelzad and Recalcati): t = largest observed score
    with share(ID >= t) >= .95; the value is share(OOD >= t). Lower is better, range [0, 1].

    Parameters
    ----------
    interpolate : interpolate the ROC curve linearly at TPR = .95, as ``np.interp(0.95, tpr, fpr)`` (OODL's
        code); of several points with exactly that TPR, use the greatest FPR.
    tpr : the true positive rate, in (0, 1].
    """
    return _fpr_at_tpr(counts, tpr, interpolate)


@pair_metric(higher_is_better=False, variants={"fpr95_ood_positive_interpolated": {"interpolate": True}})
def fpr95_ood_positive(counts: RankCounts, tpr: float = 0.95, interpolate: bool = False) -> Array:
    """Share of ID rejected by the lowest observed threshold that rejects 95% of OOD.

    OOD is the positive class (OpenOOD): t = smallest observed score with share(OOD <= t) >= .95; the value
    is share(ID <= t). Lower is better, range [0, 1]. OpenOOD takes this point from scikit-learn's
    ``roc_curve``, whose ``drop_intermediate`` may remove it if neighbouring ties have equal numbers of
    samples; OpenOOD then reports a later threshold. `interpolate` and `tpr` as in `fpr95_id_positive`.
    """
    return _fpr_at_tpr(counts.ood_positive, tpr, interpolate)


openood_fpr95 = fpr95_ood_positive  # FPR@95 in OpenOOD's tables


def _precision(counts: RankCounts) -> Array:
    """Share of ID among samples at or above each threshold; 1 without samples, where curves start."""
    precision = counts.cum_id / np.maximum(counts.cum_all, 1)
    precision[counts.cum_all == 0] = 1.0
    return precision


def _average_precision(counts: RankCounts) -> Array:
    return ratio(np.sum(counts.id_steps * counts.cached(_precision), axis=-1), counts.n_id)


def _precision_recall_trapezoid(counts: RankCounts) -> Array:
    precision = counts.cached(_precision)
    doubled = precision.copy()
    doubled[..., 0] += 1
    doubled[..., 1:] += precision[..., :-1]
    doubled *= counts.id_steps
    return ratio(np.sum(doubled, axis=-1), 2 * counts.n_id)


@pair_metric(higher_is_better=True, variants={"aupr_in_trapezoid": {"trapezoid": True}})
def aupr_in(counts: RankCounts, trapezoid: bool = False) -> Array:
    """Area under precision and recall with ID as the positive class.

    Average precision: the sum over thresholds of (increase in recall) x precision, as scikit-learn's
    ``average_precision_score``. With ``trapezoid`` the trapezoid rule from (recall 0, precision 1), as
    OpenOOD. Higher is better; chance is the share of ID. Range [0, 1].
    """
    return _precision_recall_trapezoid(counts) if trapezoid else _average_precision(counts)


@pair_metric(higher_is_better=True, variants={"aupr_out_trapezoid": {"trapezoid": True}})
def aupr_out(counts: RankCounts, trapezoid: bool = False) -> Array:
    """Area under precision and recall with OOD as the positive class, ranked by negated confidence.

    As `aupr_in` with the sides swapped. Higher is better; chance is the share of OOD. Range [0, 1].
    """
    return aupr_in.kernel(counts.ood_positive, trapezoid)


def _margin(counts: RankCounts) -> Array:
    """(TPR - FPR) n_id n_ood at each threshold, integers: 0.5 (1 - TPR) + 0.5 FPR = 0.5 (1 - TPR + FPR)."""
    margin = counts.cum_id * counts.n_ood[..., None]
    margin -= counts.cum_ood * counts.n_id[..., None]
    return np.asarray(margin)


def _error_of(margin: Array, counts: RankCounts) -> Array:
    return 0.5 * (1 - ratio(margin, counts.n_id * counts.n_ood))


@pair_metric(higher_is_better=False, variants={"detection_error_ood_positive": {"ood_positive": True}})
def detection_error(counts: RankCounts, ood_positive: bool = False) -> Array:
    """Smallest 0.5 (1 - TPR) + 0.5 FPR over thresholds with TPR >= .95, as in the papers' tables.

    Abdelzad and Recalcati define the error *at* 95% TPR, but their tables show minima over TPR >= .95. ID is
    the positive class unless ``ood_positive``. Lower is better, range [0, 0.5].
    """
    pair = counts.ood_positive if ood_positive else counts
    margin = pair.cached(_margin)
    reached = pair.cum_id >= least_count(0.95, pair.n_id)[..., None]
    return _error_of(np.max(margin, axis=-1, where=reached, initial=np.iinfo(np.int64).min), pair)


@pair_metric(higher_is_better=False)
def detection_error_at_tpr95(counts: RankCounts, ood_positive: bool = False) -> Array:
    """0.5 (1 - TPR) + 0.5 FPR at the threshold of FPR95, as in the papers' text, with the observed TPR.

    ID is the positive class unless ``ood_positive``. Lower is better, range [0, 0.525].
    """
    pair = counts.ood_positive if ood_positive else counts
    point = count_below(pair.cum_id, least_count(0.95, pair.n_id))
    return _error_of(take(pair.cached(_margin), point), pair)


@pair_metric(higher_is_better=False)
def detection_error_min(counts: RankCounts) -> Array:
    """Smallest 0.5 (1 - TPR) + 0.5 FPR over all thresholds.

    The same for either positive class. Lower is better, range [0, 0.5].
    """
    return _error_of(np.max(counts.cached(_margin), axis=-1), counts)


def kendall_tau(a: Scores, b: Scores) -> float:
    """Return Kendall's tau-b of two arrays of shape (n,): 1 for the same order, -1 for the reverse order.

    (concordant - discordant pairs) / sqrt(pairs not tied in a x pairs not tied in b); NaN if either array is
    constant or n < 2.

    Reference: Kendall, The Treatment of Ties in Ranking Problems, Biometrika 1945.

    Example
    -------
    >>> round(kendall_tau([1, 2, 3, 4], [1, 2, 4, 3]), 4)  # 5 pairs agree, 1 does not
    0.6667
    """
    x, y = as_scores(a, side="first ordering"), as_scores(b, side="second ordering")
    if len(x) != len(y):
        raise DataError(f"the orderings have {len(x)} and {len(y)} values: equal lengths expected")
    from scipy.stats import kendalltau  # takes a while to import

    return float(kendalltau(x, y).statistic) if len(x) else float("nan")
