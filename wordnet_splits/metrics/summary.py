"""Sets of scores: their roles, pooling, composition, near and far means, spread over runs.

The role of a set, never a label, decides whether its samples count as ID.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from wordnet_splits.base.errors import DataError, unknown
from wordnet_splits.metrics.counts import Array, RankCounts, Scores, as_flags, as_scores, rank_counts

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

    Raises
    ------
    UnknownNameError : the role does not exist.
    DataError : the scores are not finite numbers, or ``correct`` does not match them.
    """

    name: str
    role: str
    confidence: Array
    correct: Array | None = None

    def __post_init__(self) -> None:
        if self.role not in ID_ROLES + OOD_ROLES:
            raise unknown("role", self.role, ID_ROLES + OOD_ROLES, where=self.name)
        confidence = as_scores(self.confidence, name=self.name, exact=True)  # sets are pooled
        object.__setattr__(self, "confidence", confidence)
        if self.correct is not None:
            if not self.is_id:
                raise DataError("an OOD sample is neither correct nor wrong", where=self.name)
            object.__setattr__(self, "correct", as_flags(self.correct, len(confidence), name=self.name))

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
