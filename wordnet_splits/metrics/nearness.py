"""AUROC per OOD class and per bin of semantic similarity to ID: is detection harder for nearer classes?

ID is the positive class, scores are confidences (higher means more in-distribution), and higher AUROC is
better. The ID scores are sorted once; the AUROC of a group of OOD samples against all ID samples is the mean,
over the group, of the share of ID samples that score above each OOD sample.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from wordnet_splits.base.errors import DataError
from wordnet_splits.metrics.counts import Array, Scores, as_score_pair, ratio, to_numpy


class ClassAuroc(NamedTuple):
    """AUROC of all ID samples against the n_ood samples of an OOD class."""

    ood_class: str
    n_ood: int
    auroc: float


class NearnessBin(NamedTuple):
    """AUROC of all ID against OOD with low <= similarity < high (<= in the last bin); NaN if n_ood is 0."""

    low: float
    high: float
    n_ood: int
    auroc: float


def auroc_per_class(
    id_scores: Scores, ood_scores: Scores, ood_classes: Sequence[str], *, name: str | None = None
) -> tuple[ClassAuroc, ...]:
    """Return the AUROC of ID against each OOD class, sorted by class; higher is better.

    Parameters
    ----------
    id_scores : (n_id,). ood_scores : (n_ood,). ood_classes : (n_ood,) class of each OOD sample, as text or
        numbers.

    Raises
    ------
    DataError : see `auroc`; or a class is not a text or a number.
    """
    wins, twice_n_id = _twice_wins(id_scores, ood_scores, name)
    given = _per_sample(ood_classes, len(wins), "classes", name)
    if given.dtype.kind == "O":
        others = [label for label in given if not isinstance(label, str | int | float | np.generic)]
        if others:
            message = f"a class must be a text or a number, got {type(others[0]).__name__}"
            raise DataError(message, where=name)
        given = given.astype(str)
    classes, group = np.unique(given, return_inverse=True)
    values, sizes = _group_auroc(wins, twice_n_id, group, len(classes))
    return tuple(
        ClassAuroc(str(label), int(size), float(value))
        for label, size, value in zip(classes, sizes, values, strict=True)
    )


def auroc_by_nearness(
    id_scores: Scores,
    ood_scores: Scores,
    similarity: Scores,
    *,
    bins: int | Sequence[float] = 10,
    name: str | None = None,
) -> tuple[NearnessBin, ...]:
    """Return the AUROC of ID against OOD binned by similarity of the OOD class to its nearest ID class.

    Parameters
    ----------
    similarity : (n_ood,) similarity in [0, 1] of each sample's class (the class table's `mean`).
    bins : number of equal bins over [0, 1], or ascending edges.

    Raises
    ------
    DataError : a similarity is NaN (as for a class without a synset) or outside the bins.
    """
    wins, twice_n_id = _twice_wins(id_scores, ood_scores, name)
    given = _per_sample(similarity, len(wins), "similarities", name)
    edges = np.arange(bins + 1) / bins if isinstance(bins, int) and bins > 0 else to_numpy(bins, where=name)
    if given.dtype.kind not in "fiub" or edges.dtype.kind not in "fiu":
        message = f"similarities and bins must be numbers, got {given.dtype} and {edges.dtype}"
        raise DataError(message, where=name)
    nearness, edges = given.astype(np.float64), edges.astype(np.float64)
    if edges.ndim != 1 or len(edges) < 2 or not (np.diff(edges) > 0).all():
        raise DataError("bins must be a positive number or at least two ascending edges", where=name)
    if np.isnan(nearness).any():
        raise DataError(
            f"{np.isnan(nearness).sum()} of {len(nearness)} similarities are NaN",
            where=name,
            hint="drop the samples of classes without a synset, and report their number",
        )
    if ((nearness < edges[0]) | (nearness > edges[-1])).any():
        raise DataError(f"similarities outside [{edges[0]:g}, {edges[-1]:g}]", where=name)
    group = np.minimum(np.searchsorted(edges, nearness, side="right") - 1, len(edges) - 2)
    values, sizes = _group_auroc(wins, twice_n_id, group, len(edges) - 1)
    return tuple(
        NearnessBin(float(low), float(high), int(size), float(value))
        for low, high, size, value in zip(edges[:-1], edges[1:], sizes, values, strict=True)
    )


def nearness_trend(per_class: Sequence[ClassAuroc], similarity: Mapping[str, float]) -> float:
    """Return Spearman's rank correlation between a class's similarity to ID and its AUROC, range [-1, 1].

    Negative means that AUROC falls as classes get nearer. Classes missing from ``similarity`` (no synset) are
    ignored; NaN if fewer than two classes remain or either side is constant.
    """
    pairs = [(similarity[row.ood_class], row.auroc) for row in per_class if row.ood_class in similarity]
    if len(pairs) < 2:
        return float("nan")
    from scipy.stats import rankdata  # takes a while to import

    near, value = (rankdata(side) for side in zip(*sorted(pairs), strict=True))
    near, value = near - near.mean(), value - value.mean()
    return float(ratio(np.sum(near * value), np.sqrt(np.sum(near**2) * np.sum(value**2))))


def _twice_wins(id_scores: Scores, ood_scores: Scores, name: str | None) -> tuple[Array, int]:
    """Return, per OOD sample, twice the ID samples above it plus those equal to it; and 2 n_id."""
    inside, outside = as_score_pair(id_scores, ood_scores, name=name)
    ranked = np.sort(inside)
    if not len(ranked):
        raise DataError("there are no ID scores", where=name)
    up_to = np.searchsorted(ranked, outside, side="right")
    below = np.searchsorted(ranked, outside, side="left")
    return 2 * len(ranked) - up_to - below, 2 * len(ranked)


def _group_auroc(wins: Array, twice_n_id: int, group: Array, groups: int) -> tuple[Array, Array]:
    """Return AUROC (NaN if empty) and size of each group; integer sums do not depend on the row order."""
    total = np.zeros(groups, dtype=np.int64)
    np.add.at(total, group, wins)
    sizes = np.bincount(group, minlength=groups)
    return ratio(total, twice_n_id * sizes), sizes


def _per_sample(values: Scores | Sequence[str], length: int, noun: str, name: str | None) -> Array:
    array = to_numpy(values, where=name)
    if array.shape != (length,):
        raise DataError(f"{noun} must have shape ({length},), as OOD scores, not {array.shape}", where=name)
    return array
