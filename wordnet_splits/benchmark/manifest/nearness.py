"""Nearness of the OOD classes to ID, from the rows of a class table: ranks, clauses, inversions."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from wordnet_splits.base.names import counted
from wordnet_splits.wordnet.taxonomy import Taxonomy

OOD_ROLES = ("near", "far")
"""Roles of the classes among which the nearness of a class is ranked."""

TableRow = Mapping[str, Any]
NEARNESS = "mean"
"""Column of the class table that determines the nearest ID class; greater is nearer."""


def nearer_ood_classes(rows: Sequence[TableRow]) -> tuple[list[int | None], int]:
    """Return the number of OOD classes nearer to ID for each row of a class table, and of all OOD classes.

    Nearness is the column ``mean``; a class without it has None, and never counts as nearer.
    """
    scores = sorted(r[NEARNESS] for r in rows if r["role"] in OOD_ROLES and r[NEARNESS] is not None)
    nearer = [None if r[NEARNESS] is None else len(scores) - bisect_right(scores, r[NEARNESS]) for r in rows]
    return nearer, sum(r["role"] in OOD_ROLES for r in rows)


def nearness_clauses(rows: Sequence[TableRow], taxonomy: Taxonomy) -> list[str]:
    """Return a clause for each row: its nearest ID class, and the share of OOD classes that are farther.

    The share, rounded down, is of the other OOD classes that have a distance.
    """
    names = {r["class_id"]: str(r["name"]).replace("_", " ") for r in rows if r["role"] == "id"}
    ood = sorted(r[NEARNESS] for r in rows if r["role"] in OOD_ROLES and r[NEARNESS] is not None)
    clauses = []
    for row in rows:
        if row[NEARNESS] is None:
            noun = taxonomy.noun
            lacking = f"no other ID class has a {noun}" if row["wnids"] else f"no {noun}"
            clauses.append(f"{lacking}, so no distance to ID")
            continue
        clause = (
            f"nearest {'other ' if row['role'] == 'id' else ''}ID class {names[row['nearest_id']]} "
            f"({counted(row['distance'], 'edge')}, via {taxonomy.name(row['lcs'])})"
        )
        if others := len(ood) - (row["role"] in OOD_ROLES):
            farther = 100 * bisect_left(ood, row[NEARNESS]) // others
            clause += f", nearer than {farther}% of OOD classes"
        clauses.append(clause)
    return clauses


@dataclass(frozen=True)
class Inversion:
    """A far group with classes nearer to ID than the median class of a near group of the same source.

    Attributes
    ----------
    far, near : the groups.
    nearer : number of classes of the far group that are nearer.
    classes : number of its classes that have a distance.
    median : nearness of the near group's median class, in 0..1.
    nearest, value : the far group's nearest class, and its nearness.
    """

    far: str
    near: str
    nearer: int
    classes: int
    median: float
    nearest: str
    value: float

    def sentence(self) -> str:
        """Return the inversion in words, with the far group as subject."""
        verb = "is" if self.nearer == 1 else "are"
        return (
            f"{self.nearer:,} of {self.classes:,} classes {verb} nearer to ID than the median of the near "
            f"group {self.near} ({NEARNESS} {self.median:.3f}), the nearest {self.nearest} ({self.value:.3f})"
        )


def inversions(rows: Iterable[TableRow]) -> list[Inversion]:
    """Return the inversions among the rows of a class table, in the order of groups' names.

    Classes without a distance count on neither side.
    """
    near: dict[tuple[str, str], list[float]] = defaultdict(list)
    far: dict[tuple[str, str], list[tuple[float, str]]] = defaultdict(list)
    for row in rows:
        group = str(row["source"]), str(row["group"])
        if row[NEARNESS] is not None and row["role"] == "near":
            near[group].append(row[NEARNESS])
        elif row[NEARNESS] is not None and row["role"] == "far":
            far[group].append((row[NEARNESS], str(row["class_id"])))
    inverted = []
    for (source, far_group), classes in sorted(far.items()):
        for (near_source, near_group), values in sorted(near.items()):
            middle = median(values)
            nearer = sum(value > middle for value, _ in classes)
            if near_source == source and nearer:
                value, class_id = max(classes)
                inverted.append(
                    Inversion(far_group, near_group, nearer, len(classes), middle, class_id, value)
                )
    return inverted
