"""Near and far classes of a large source at every threshold of similarity to known classes.

Classes that equal a known class are left out. Classes below or above a known class leak at any threshold and
count as leaks, not as near or far. Every other class is `near` if its similarity to the nearest known class
is at least the threshold (for ``distance``: at most), and `far` otherwise, as with the operator
``similarity`` of recipes.
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

from wordnet_splits.audit.class_list import (
    ClassList,
    ClassListLike,
    ListedClass,
    hierarchy_of_lists,
    load_two_class_lists,
)
from wordnet_splits.base import plotting
from wordnet_splits.base.drawing import BLACK, BLUE, GREY, ORANGE
from wordnet_splits.base.jsonable import Jsonable, to_json
from wordnet_splits.base.parquet import schema_of, write_table
from wordnet_splits.base.shapes import Line, Lines
from wordnet_splits.base.tabular import Tabular
from wordnet_splits.benchmark.rules.relations import EQUAL, KnownClasses
from wordnet_splits.wordnet.similarity import pairs as similarity
from wordnet_splits.wordnet.taxonomy import Taxonomy

SCHEMA = schema_of("class_id name relation nearest value:double")
SUMMARY_THRESHOLDS = 11
LEAST_GAP = 1e-6
"""Least difference of two values between which a threshold is chosen."""
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class BalancedThreshold(Jsonable):
    """The threshold that best balances the numbers of near and far classes.

    Ties go to the widest gap between values, then to the threshold with the fewest near classes. It is
    the middle of its gap, rounded to two digits or as many as keep it there.

    Attributes
    ----------
    near, far : numbers of classes.
    farthest_near, nearest_far : the classes on either side of the threshold, the first by id.
    near_margin, far_margin : difference of their values from the threshold.
    """

    threshold: float
    near: int
    far: int
    farthest_near: str
    near_margin: float
    nearest_far: str
    far_margin: float

    @property
    def sentence(self) -> str:
        """The threshold, its sizes and its margins."""
        return (
            f"balanced at {self.threshold:g}: {self.near:,} near and {self.far:,} far; the farthest near "
            f"class, {self.farthest_near}, is {self.near_margin:.4f} from it, the nearest far class, "
            f"{self.nearest_far}, {self.far_margin:.4f}"
        )


@dataclass(frozen=True)
class Thresholds(Tabular):
    """The classes of a list that do not equal a known class, with the nearest known class of each.

    Attributes
    ----------
    listed, against : names of the two lists.
    known : number of known classes.
    equal : number of classes that equal a known one; they are not in the table.
    table : class_id, name, relation (the closest to a known class: below, above or null), nearest, and
        ``value`` of the measure for class and nearest; null without a synset.
    """

    listed: str
    against: str
    measure: str
    known: int
    equal: int
    table: pa.Table

    def to_table(self) -> pa.Table:
        """Return one row per class, in the list's order."""
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
        """Count near, far, below and above at some thresholds, by default at each where a count changes."""
        values = self._free[1]
        relations = self.table["relation"].to_pylist()
        kin = {name: relations.count(name) for name in ("below", "above")}
        rows = []
        for threshold in np.unique(values).tolist() if thresholds is None else thresholds:
            near = int(self._near(threshold).sum())
            rows.append({"threshold": threshold, "near": near, "far": len(values) - near, **kin})
        return rows

    @property
    def balanced(self) -> BalancedThreshold | None:
        """The balanced threshold; None where no threshold has both near and far classes."""
        ids, values = self._free
        sign = -1.0 if self.measure == "distance" else 1.0
        scores = sign * values
        steps = np.unique(scores)
        gaps = [
            (low, high, int((scores >= high).sum()))
            for low, high in zip(steps[:-1].tolist(), steps[1:].tolist(), strict=True)
            if high - low >= LEAST_GAP
        ]
        if not gaps:
            return None
        low, high, near = min(gaps, key=lambda gap: (abs(2 * gap[2] - len(ids)), gap[0] - gap[1], gap[2]))
        threshold = sign * _rounded_between(low, high)
        farthest_near, nearest_far = (
            min(i for i, s in zip(ids, scores, strict=True) if s == value) for value in (high, low)
        )
        return BalancedThreshold(
            threshold,
            near,
            len(ids) - near,
            farthest_near,
            abs(sign * high - threshold),
            nearest_far,
            abs(sign * low - threshold),
        )

    def summary(self) -> list[float]:
        """Return thresholds from the least to the greatest value: each number of edges, or eleven values."""
        values = self._free[1]
        if not len(values):
            return []
        low, high = float(values.min()), float(values.max())
        if self.measure == "distance":
            return [float(n) for n in range(int(low), int(high) + 1)]
        return sorted({round(float(v), 2) for v in np.linspace(low, high, SUMMARY_THRESHOLDS)})

    def as_dict(self) -> dict[str, Any]:
        """Return what ``audit thresholds --json`` prints."""
        return {
            "list": self.listed,
            "against": self.against,
            "measure": self.measure,
            "known": self.known,
            "equal": self.equal,
            "balanced": to_json(self.balanced),
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
            for name, colour in (("near", ORANGE), ("far", BLUE))
        ]
        for name, colour in (("below", BLACK), ("above", GREY)):
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
    classes: ClassListLike = "imagenet21k",
    against: ClassListLike = "imagenet1k",
    *,
    measure: str = "mean",
    of: str | None = None,
    column: str | None = None,
    taxonomy: Taxonomy | str | None = None,
    manifests: Path | None = None,
) -> Thresholds:
    """Find the classes of a list that are near, far, below or above known classes, at any threshold.

    Parameters
    ----------
    classes, against, of, column, manifests : as of `audit_classes`.
    measure : one of `similarity.MEASURES`.
    taxonomy : default that of the lists' benchmarks and datasets, else the embedded WordNet 3.0.

    Raises
    ------
    UnknownNameError : a list, a measure or the class of an entry does not exist.
    DataError : a file without a list of classes, known classes without any synset, or two hierarchies.

    Examples
    --------
    >>> counts = thresholds(["wolf", "spoon", "dog"], ["dalmatian.n.02"])
    >>> counts.at(0.5)
    {'near': ['wolf'], 'far': ['spoon'], 'below': [], 'above': ['dog']}
    """
    taxonomy = hierarchy_of_lists(classes, against, of=of, taxonomy=taxonomy, manifests=manifests)
    listed, known_classes = load_two_class_lists(
        classes, against, taxonomy, of=of, column=column, manifests=manifests
    )
    known = KnownClasses(known_classes.require_synsets(taxonomy).by_id, taxonomy)
    relations = {item.id: next((kin.relation for kin in known.kin(item)), None) for item in listed.classes}
    unequal = [item for item in listed.classes if relations[item.id] != EQUAL]
    nearest = nearest_classes(measure, unequal, known_classes, taxonomy)
    rows = [(c.id, c.name, relations[c.id], *nearest.get(c.id, (None, None))) for c in unequal]
    columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in SCHEMA]
    table = pa.table(columns, schema=SCHEMA)
    equal = len(listed.classes) - len(unequal)
    return Thresholds(listed.name, known_classes.name, measure, len(known_classes.classes), equal, table)


def _rounded_between(low: float, high: float) -> float:
    """Return the middle of two numbers, rounded to the fewest digits, at least two, that keep it between."""
    middle = (low + high) / 2
    rounded = (round(middle, digits) for digits in range(2, 17))
    return next((value for value in rounded if low < value < high), middle)


def nearest_classes(
    measure: str, classes: Iterable[ListedClass], known: ClassList, taxonomy: Taxonomy
) -> dict[str, tuple[str, float]]:
    """Return class id -> (nearest known class, value of the measure), for classes with a synset.

    The nearest class has the greatest similarity, or the smallest ``distance``, over all pairs of synsets; of
    several the first by id and wnid.
    """
    classes = [item for item in classes if item.wnids]
    targets = sorted((item.id, wnid) for item in known.classes for wnid in item.wnids)
    wnids = sorted({wnid for item in classes for wnid in item.wnids})
    sign = -1 if measure == "distance" else 1
    best: dict[str, tuple[float, int]] = {}  # wnid -> greatest score, minus the first column that has it
    for rows, block in similarity.similarity_blocks(measure, wnids, [wnid for _, wnid in targets], taxonomy):
        scores = sign * block.astype(np.float64)
        columns = (-scores.argmax(axis=1)).tolist()
        best |= dict(zip(wnids[rows], zip(scores.max(axis=1).tolist(), columns, strict=True), strict=True))
    nearest = {}
    for item in classes:
        score, column = max(best[wnid] for wnid in item.wnids)
        nearest[item.id] = targets[-column][0], sign * score
    return nearest
