"""Inversions: far groups with classes nearer to ID than the median class of a near group."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

TableRow = Mapping[str, Any]
NEARNESS = "mean"
"""Column of the class table by which the nearest ID class is found; greater is nearer."""


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
