"""Sets of scores: roles, pooling, near and far means, spread over runs, and AUROC by class and nearness.

The role of a set, never a label, decides whether its samples count as ID. In AUROC by class or by bin of
semantic similarity ID is the positive class and higher is better. The ID scores are sorted once; the AUROC of
a group of OOD samples against all ID samples is the mean, over the group, of the share of ID samples that
score above each OOD sample.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from wordnet_splits.base.errors import DataError, unknown
from wordnet_splits.metrics.counts import (
    Array,
    RankCounts,
    Scores,
    as_flags,
    as_score_pair,
    as_scores,
    rank_counts,
    ratio,
    to_numpy,
)

ID_ROLES = ("id", "csid")  # csid: covariate-shifted ID, pooled with ID in full-spectrum evaluation
OOD_ROLES = ("near", "far", "external")


@dataclass(frozen=True, eq=False)
class ScoreSet:
    """The confidences of a set of a benchmark.

    Attributes
    ----------
    name : name of the set, e.g. "svhn", for error messages and bootstrap draws.
    role : "id" or "csid" (both count as ID), "near", "far" or "external" (OOD).
    confidence : (n,) finite scores, higher = more in-distribution.
    correct : (n,) whether each sample was classified correctly; None if unknown, always None for OOD.
    clusters : (n,) integers, the class or subtree of each sample, for a bootstrap over these (`draws`):
        clusters of OOD sets are drawn, and samples of ID sets are drawn within theirs; None to draw samples.

    Raises
    ------
    UnknownNameError : the role does not exist.
    DataError : the scores are not finite numbers, ``correct`` or ``clusters`` do not match them, or clusters
        are not integers.
    """

    name: str
    role: str
    confidence: Array
    correct: Array | None = None
    clusters: Array | None = None

    def __post_init__(self) -> None:
        if self.role not in ID_ROLES + OOD_ROLES:
            raise unknown("role", self.role, ID_ROLES + OOD_ROLES, where=self.name)
        confidence = as_scores(self.confidence, name=self.name, exact=True)  # sets are pooled
        object.__setattr__(self, "confidence", confidence)
        if self.correct is not None:
            if not self.is_id:
                raise DataError("an OOD sample is neither correct nor wrong", where=self.name)
            object.__setattr__(self, "correct", as_flags(self.correct, len(confidence), name=self.name))
        if self.clusters is not None:
            clusters = to_numpy(self.clusters, where=self.name)
            if clusters.shape != confidence.shape or clusters.dtype.kind not in "iu":
                found = f"{clusters.dtype} {clusters.shape}"
                raise DataError(f"clusters must be {len(confidence)} integers, got {found}", where=self.name)
            object.__setattr__(self, "clusters", clusters)

    @property
    def is_id(self) -> bool:
        """Whether the samples count as in-distribution."""
        return self.role in ID_ROLES


def pool(sets: Iterable[ScoreSet], *, full_spectrum: bool = False) -> RankCounts:
    """Return the counts of all sets, pooled by side.

    Correctness is known if it is known for every pooled ID set.

    Parameters
    ----------
    sets : any number of ID and OOD sets.
    full_spectrum : count covariate-shifted ID (role csid) as ID, as OpenOOD's full-spectrum evaluation;
        otherwise such sets are ignored.
    """
    inside, outside = split_sides(sets, full_spectrum=full_spectrum)
    flags = [part.correct for part in inside if part.correct is not None]
    return rank_counts(
        _join([part.confidence for part in inside]),
        _join([part.confidence for part in outside]),
        correct=_join(flags) if inside and len(flags) == len(inside) else None,
        name=" + ".join(part.name for part in inside + outside),
    )


def split_sides(
    sets: Iterable[ScoreSet], *, full_spectrum: bool = False
) -> tuple[list[ScoreSet], list[ScoreSet]]:
    """Return the ID sets and the OOD sets; csid counts as ID or is ignored (see `pool`)."""
    used = [part for part in sets if full_spectrum or part.role != "csid"]
    return [part for part in used if part.is_id], [part for part in used if not part.is_id]


def _join(arrays: Sequence[Array]) -> Array:
    return np.concatenate(arrays) if arrays else np.empty(0)


class Composition(NamedTuple):
    """The samples behind a pooled metric; `sets` maps each set to its number of samples."""

    sets: dict[str, int]
    n_id: int
    n_ood: int
    prevalence: float  # share of OOD


def composition(sets: Iterable[ScoreSet], *, full_spectrum: bool = False) -> Composition:
    """Return the sizes of pooled sets and the share of OOD, to report with `aurc_unknown`."""
    inside, outside = split_sides(sets, full_spectrum=full_spectrum)
    sizes = {part.name: len(part.confidence) for part in inside + outside}
    n_id, n_ood = (sum(len(part.confidence) for part in side) for side in (inside, outside))
    if not n_id + n_ood:
        raise DataError("there are no samples in the pool")
    return Composition(sizes, n_id, n_ood, n_ood / (n_id + n_ood))


def role_means(values: Mapping[str, float], roles: Mapping[str, str]) -> dict[str, float]:
    """Return the unweighted mean of a metric over the sets of each role, e.g. {"near": ..., "far": ...}.

    Parameters
    ----------
    values : set -> value; a NaN makes the mean of its role NaN.
    roles : set -> role, for every set in `values`.
    """
    missing = sorted(set(values) - set(roles))
    if missing:
        raise DataError(f"roles has no entry for {', '.join(missing)}")
    groups: dict[str, list[float]] = {}
    for name in sorted(values):
        groups.setdefault(roles[name], []).append(values[name])
    return {role: float(np.mean(group)) for role, group in sorted(groups.items())}


class Spread(NamedTuple):
    """Mean and standard deviation over n runs; sd is NaN for a single run."""

    mean: float
    sd: float
    n: int


def spread(values: Scores, *, ddof: int = 1) -> Spread:
    """Return mean and standard deviation of a metric over runs or resampled draws (``NAME@seed=N``).

    ``ddof=1`` gives the sample standard deviation, ``ddof=0`` the population's (Abdelzad's tables).
    """
    runs = np.sort(as_scores(values, side="runs").astype(np.float64))
    if not len(runs):
        raise DataError("there are no runs")
    sd = float(np.std(runs, ddof=ddof)) if len(runs) > ddof else float("nan")
    return Spread(float(np.mean(runs)), sd, len(runs))


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
    id_scores : (n_id,).
    ood_scores : (n_ood,).
    ood_classes : (n_ood,) class of each OOD sample, as text or
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
