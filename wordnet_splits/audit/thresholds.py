"""Near or far at every threshold: every other class of a large source, as seen from known classes.

A class of the source that equals a known one is left out. One below or above a known class leaks at any
threshold and is neither near nor far. Of the others `near` are those whose nearest known class is as alike
as the threshold or more (for ``distance``: as close or closer), `far` the rest, as the operator
``similarity`` of recipes has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from wordnet_splits.audit.audit import Given
from wordnet_splits.audit.class_list import ClassList, ListedClass, load_class_list
from wordnet_splits.base import plotting
from wordnet_splits.base.errors import DataError
from wordnet_splits.base.parquet import schema_of, write_table
from wordnet_splits.base.shapes import Line, Lines
from wordnet_splits.base.tabular import Tabular
from wordnet_splits.rules.keywords import are_same_class
from wordnet_splits.similarity import similarity
from wordnet_splits.taxonomy import Taxonomy, load

SCHEMA = schema_of("class_id name relation nearest value:double")
STEPS = 11
"""Thresholds of a summary."""
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Thresholds(Tabular):
    """The other classes of a list: relation to a known class (below, above or null), the nearest known one
    and the ``value`` of the measure for the two, null where there is no synset.

    ``equal`` classes of the list are known ones, and not in the table.
    """

    listed: str
    against: str
    measure: str
    known: int
    equal: int
    table: pa.Table

    def to_table(self) -> pa.Table:
        """Return a row a class, in the list's order."""
        return self.table

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return the fields of each class."""
        rows: list[dict[str, Any]] = self.table.to_pylist()
        return rows

    @cached_property
    def _free(self) -> tuple[list[str], Floats]:
        """Ids and values of the classes that are near or far."""
        columns = (self.table[name].to_pylist() for name in ("class_id", "relation", "value"))
        free = [(i, v) for i, relation, v in zip(*columns, strict=True) if relation is None and v is not None]
        return [i for i, _ in free], np.array([v for _, v in free], np.float64)

    def _near(self, threshold: float) -> npt.NDArray[np.bool_]:
        values = self._free[1]
        return values <= threshold if self.measure == "distance" else values >= threshold

    def at(self, threshold: float) -> dict[str, list[str]]:
        """Return the ids of the classes that are near, far, below and above at a threshold, in order."""
        near = self._near(threshold)
        ids = self._free[0]
        relations = zip(*(self.table[name].to_pylist() for name in ("class_id", "relation")), strict=True)
        kin: dict[str, list[str]] = {"below": [], "above": []}
        for class_id, relation in relations:
            if relation is not None:
                kin[relation].append(class_id)
        return {
            "near": [i for i, is_near in zip(ids, near, strict=True) if is_near],
            "far": [i for i, is_near in zip(ids, near, strict=True) if not is_near],
            **kin,
        }

    def counts(self, thresholds: Iterable[float] | None = None) -> list[dict[str, float]]:
        """Return how many are near, far, below and above at thresholds, else at each where that changes."""
        values = self._free[1]
        relations = self.table["relation"].to_pylist()
        kin = {name: relations.count(name) for name in ("below", "above")}
        rows = []
        for threshold in np.unique(values).tolist() if thresholds is None else thresholds:
            near = int(self._near(threshold).sum())
            rows.append({"threshold": threshold, "near": near, "far": len(values) - near, **kin})
        return rows

    def summary(self) -> list[float]:
        """Return thresholds from the least value to the greatest: every edge, or eleven to two digits."""
        values = self._free[1]
        if not len(values):
            return []
        low, high = float(values.min()), float(values.max())
        if self.measure == "distance":
            return [float(n) for n in range(int(low), int(high) + 1)]
        return sorted({round(float(v), 2) for v in np.linspace(low, high, STEPS)})

    def as_dict(self) -> dict[str, Any]:
        """Return what ``thresholds --json`` prints."""
        return {
            "list": self.listed,
            "against": self.against,
            "measure": self.measure,
            "known": self.known,
            "equal": self.equal,
            "counts": self.counts(),
            "classes": self.rows(),
        }

    def write(self, path: Path) -> None:
        """Write the table as Parquet; its metadata name the list, the known classes and the measure."""
        metadata = {"list": self.listed, "against": self.against, "measure": self.measure}
        write_table(self.table, path, metadata=metadata)

    def plot(self, path: Path) -> None:
        """Draw the counts against the threshold; SVG, PNG or PDF by the name.

        Raises
        ------
        MissingPackageError : matplotlib is not installed.
        OutputError : the file cannot be written.
        """
        plotting.check_output(path, "the plot of thresholds")
        counts = self.counts()
        at = np.array([row["threshold"] for row in counts])
        lines = [
            Line(name, at, np.array([row[name] for row in counts]), colour=colour)
            for name, colour in (("near", plotting.ORANGE), ("far", plotting.BLUE))
        ]
        for name, colour in (("below", plotting.BLACK), ("above", plotting.GREY)):
            heights = np.full(len(at), counts[0][name] if counts else 0)
            lines.append(Line(name, at, heights, dashed=True, colour=colour))
        panel = Lines(
            "",
            f"threshold: {self.measure} to the nearest class of {self.against}",
            f"classes of {self.listed}",
            tuple(lines),
            steps="post" if self.measure == "distance" else "pre",
        )
        title = f"{self.listed} against {self.against}"
        plotting.save_plot(plotting.Plot(title, (panel,)), path, salt="wordnet-splits")


def thresholds(
    classes: Given = "imagenet21k",
    against: Given = "imagenet1k",
    *,
    measure: str = "mean",
    of: str | None = None,
    column: str | None = None,
    taxonomy: Taxonomy | None = None,
    manifests: Path | None = None,
) -> Thresholds:
    """Return, for known classes, which other classes of a list are near, far, below or above.

    Parameters
    ----------
    classes, against, of, column, manifests : as of `audit`. measure : one of `similarity.MEASURES`.
    taxonomy : default the embedded WordNet 3.0.

    Raises
    ------
    UnknownNameError : no such list or measure, or entries that name no class.
    DataError : a file that holds no list of classes, or known classes without any synset.

    Examples
    --------
    >>> found = thresholds(["wolf", "spoon", "dog"], ["dalmatian"])
    >>> found.at(0.5)
    {'near': ['wolf'], 'far': ['spoon'], 'below': [], 'above': ['dog']}
    """
    taxonomy = taxonomy or load()
    listed, known_classes = (
        load_class_list(class_list, taxonomy, of=of, column=column, manifests=manifests)
        for class_list in (classes, against)
    )
    targets = sorted((item.id, wnid) for item in known_classes.classes for wnid in item.wnids)
    if not targets:
        raise DataError(
            "no class of it has a synset", where=known_classes.name, hint="give other known classes"
        )
    relations = _relations(listed, known_classes, taxonomy)
    others = [item for item in listed.classes if relations[item.id] != "equal"]
    wnids = sorted({wnid for item in others for wnid in item.wnids})
    best = _best(measure, wnids, [wnid for _, wnid in targets], taxonomy)
    rows = []
    for item in others:
        nearest, value = None, None
        if item.wnids:
            score, at = max((best[wnid] for wnid in item.wnids), key=lambda b: (b[0], -b[1]))
            nearest, value = targets[at][0], -score if measure == "distance" else score
        rows.append((item.id, item.name, relations[item.id], nearest, value))
    columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in SCHEMA]
    table = pa.table(columns, schema=SCHEMA)
    equal = len(listed.classes) - len(others)
    return Thresholds(listed.name, known_classes.name, measure, len(known_classes.classes), equal, table)


def _relations(listed: ClassList, known: ClassList, taxonomy: Taxonomy) -> dict[str, str | None]:
    """Return of each class equal, below, above or None, the first that holds."""
    known_by_wnid: dict[str, list[ListedClass]] = {}
    for item in known.classes:
        for wnid in item.wnids:
            known_by_wnid.setdefault(wnid, []).append(item)
    below = taxonomy.descendants(*{wnid for item in known.classes for wnid in item.covers})
    above = {up for wnid in known_by_wnid for up in taxonomy.ancestors(wnid)}

    def relation(item: ListedClass) -> str | None:
        equals = (known_class for wnid in item.wnids for known_class in known_by_wnid.get(wnid, ()))
        if any(are_same_class(item, known_class) for known_class in equals):
            return "equal"
        kinds = (("below", below, item.wnids), ("above", above, item.covers))
        return next((name for name, kin, wnids in kinds if not kin.isdisjoint(wnids)), None)

    return {item.id: relation(item) for item in listed.classes}


def _best(
    measure: str, wnids: Sequence[str], columns: Sequence[str], taxonomy: Taxonomy
) -> dict[str, tuple[float, int]]:
    """Return of each wnid its greatest similarity (distance negated) and the first column that has it."""
    best: dict[str, tuple[float, int]] = {}
    for rows, block in similarity.similarity_blocks(measure, wnids, columns, taxonomy):
        scores = -block.astype(np.float64) if measure == "distance" else block
        at = scores.argmax(axis=1)
        values = zip(scores.max(axis=1).tolist(), at.tolist(), strict=True)
        best |= dict(zip(wnids[rows], values, strict=True))
    return best
