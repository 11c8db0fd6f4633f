"""Does detection get harder as classes get nearer? Rows by OOD class, by bin of similarity, and the trend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from wordnet_splits.metrics import (
    ClassAuroc,
    ScoreSet,
    auroc_by_nearness,
    auroc_per_class,
    nearness_trend,
)

from .measure import POOLED, UNKNOWN_ROLES, Array, Options, Row


class ClassRow(NamedTuple):
    """AUROC of all ID samples against one OOD class, and how near that class is to the nearest ID class."""

    group: str
    role: str
    source: str
    class_id: str
    similarity: float | None
    n_ood: int
    auroc: float


class BinRow(NamedTuple):
    """AUROC of all ID against OOD with low <= similarity < high; None where there is no such sample."""

    low: float
    high: float
    n_ood: int
    auroc: float | None


@dataclass(frozen=True, eq=False)
class Members:
    """The classes of one OOD set.

    Attributes
    ----------
    source : the set's source. class_ids : (n,) class of each sample.
    similarity : class -> similarity (class table's `mean`) to its nearest ID class, None without synset.
    """

    source: str
    class_ids: Array
    similarity: Mapping[str, float | None]


def by_nearness(
    sets: Sequence[ScoreSet], members: Mapping[str, Members], options: Options
) -> tuple[list[ClassRow], list[BinRow], list[Row]]:
    """Return AUROC by OOD class, by bin of similarity to the nearest ID class, and whether it falls.

    Parameters
    ----------
    sets : as for `measure`. members : set -> classes of its samples; near and far sets are taken.
    """
    inside = np.concatenate([part.confidence for part in sets if part.role == "id"])
    outside = [part for part in sets if part.role in UNKNOWN_ROLES]
    classes: list[ClassRow] = []
    for part in outside:
        about = members[part.name]
        for found in auroc_per_class(inside, part.confidence, about.class_ids.tolist(), name=part.name):
            near = about.similarity[found.ood_class]
            classes.append(
                ClassRow(part.name, part.role, about.source, found.ood_class, near, found.n_ood, found.auroc)
            )
    if not outside:
        return classes, [], []
    confidence = np.concatenate([part.confidence for part in outside])
    bins = auroc_by_nearness(inside, confidence, _similarities(outside, members), bins=options.bins)
    rows = [BinRow(b.low, b.high, b.n_ood, b.auroc if b.n_ood else None) for b in bins]
    return classes, rows, [_trend(classes, len(inside))] if classes else []


def _similarities(outside: Sequence[ScoreSet], members: Mapping[str, Members]) -> Array:
    """Similarity of each sample's class to its nearest ID class, NaN where the class has no synset."""
    parts = []
    for part in outside:
        about = members[part.name]
        ids, which = np.unique(about.class_ids, return_inverse=True)
        values = [about.similarity[str(i)] for i in ids]
        parts.append(np.array([np.nan if v is None else v for v in values])[which])
    return np.concatenate(parts)


def _trend(classes: Sequence[ClassRow], n_id: int) -> Row:
    """Rank correlation of similarity and AUROC over classes; negative: nearer classes are harder."""
    named = [(f"{row.group}/{row.class_id}", row) for row in classes]
    value = nearness_trend(
        [ClassAuroc(name, row.n_ood, row.auroc) for name, row in named],
        {name: row.similarity for name, row in named if row.similarity is not None},
    )
    role = "+".join(r for r in UNKNOWN_ROLES if any(row.role == r for row in classes))
    n_ood = sum(row.n_ood for row in classes)
    return Row(POOLED, role, "nearness_trend", value, None, None, n_id, n_ood)
