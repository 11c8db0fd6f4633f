"""Distances of the sets of a benchmark from its ID classes, from the columns of the class table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wordnet_splits.base import plotting
from wordnet_splits.base.drawing import BLUE, ORANGE
from wordnet_splits.base.errors import unknown
from wordnet_splits.base.jsonable import Jsonable
from wordnet_splits.base.shapes import Box, Boxes
from wordnet_splits.base.tabular import Tabular
from wordnet_splits.benchmark.construct.assemble import MEASURES
from wordnet_splits.benchmark.explain import manifest_of
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.benchmark.manifest.nearness import NEARNESS, Inversion, inversions
from wordnet_splits.benchmark.recipe import Recipe
from wordnet_splits.metrics import auroc

COLOURS = {"near": ORANGE, "far": BLUE}
"""Colours of the roles that detection is measured on; others are grey."""
UNITS = {"distance": "edges to the nearest ID class"}


@dataclass(frozen=True)
class SetDistance:
    """Quartiles (linear) of the distance of a set's classes to the nearest ID class; None without synsets.

    ``unmapped`` is the number of ``classes`` without a synset.
    """

    group: str
    role: str
    classes: int
    unmapped: int
    min: float | None
    q1: float | None
    median: float | None
    q3: float | None
    max: float | None


@dataclass(frozen=True)
class Distances(Jsonable, Tabular):
    """Distances of every OOD set of a benchmark, in the recipe's order.

    Attributes
    ----------
    near_against_far : measure -> AUROC of near against far classes by nearness to ID: 1 if every near class
        is nearer than every far one, NaN without near or without far classes.
    inversions : far sets with classes nearer than the median of a near set of the same source.
    """

    benchmark: str
    measure: str
    sets: tuple[SetDistance, ...]
    near_against_far: dict[str, float]
    inversions: tuple[Inversion, ...] = ()

    def rows(self) -> list[dict[str, Any]]:
        """Return the fields of each set."""
        return [dict(vars(item)) for item in self.sets]

    def conclusions(self) -> list[str]:
        """Return sentences on the measure, on how well it separates near from far, and on inversions."""
        unit = "in edges" if self.measure == "distance" else f"by {self.measure}, larger is nearer"
        sentences = [f"Each class is compared with its nearest ID class, {unit}."]
        separations = {name: value for name, value in self.near_against_far.items() if not np.isnan(value)}
        if separations:
            values = ", ".join(f"{name} {value:.3f}" for name, value in separations.items())
            sentences.append(f"AUROC of near against far classes: {values} (1: every near class is nearer).")
        return [*sentences, *(f"{item.far} (far): {item.sentence()}." for item in self.inversions)]

    def plot(self, path: Path) -> None:
        """Write a box plot of the sets (minimum, quartiles, maximum) as SVG or PNG.

        Raises
        ------
        MissingPackageError : matplotlib is not installed.
        OutputError : the file cannot be written.
        """
        plotting.check_output(path, "the plot of distances")
        boxes = []
        for row in self.sets:
            quantiles = tuple(v for v in (row.min, row.q1, row.median, row.q3, row.max) if v is not None)
            name = f"{row.group} ({row.role}, {row.classes:,})"
            boxes.append(Box(name, quantiles, "no synset", COLOURS.get(row.role, "")))
        label = UNITS.get(self.measure, f"{self.measure} of the nearest ID class")
        plot = plotting.Plot(self.benchmark, (Boxes("", label, tuple(boxes)),))
        plotting.save_plot(plot, path, salt="wordnet-splits")


def distance(
    benchmark: Recipe | Manifest | str | Path, *, measure: str = "distance", manifests: Path | None = None
) -> Distances:
    """Measure the distance of each OOD set of a benchmark from its ID classes.

    Parameters
    ----------
    benchmark : a frozen benchmark's name, the folder of a build, a recipe, or a manifest.
    measure : a column of the class table: ``distance`` in edges, or ``path``, ``wup``, ``lch``, ``mean``
        (larger is nearer).
    manifests : folder of manifests, else the usual ones.

    Raises
    ------
    UnknownNameError : no such benchmark or measure; similar names are suggested.

    Examples
    --------
    >>> far = distance("unknown-imagenet").sets[2]
    >>> far.group, far.classes, far.min, far.median, far.max
    ('food', 32, 2.0, 5.0, 7.0)
    """
    if measure not in MEASURES:
        raise unknown("measure", measure, MEASURES)
    manifest = manifest_of(benchmark, manifests)
    table = manifest.classes
    groups = np.array(table.column("group").to_pylist(), dtype=object)
    values = {
        name: np.array([np.nan if v is None else v for v in table.column(name).to_pylist()], np.float64)
        for name in MEASURES
    }
    roles = {row.group: row.role for row in manifest.groups}
    outside = {group: role for group, role in roles.items() if role != "id"}
    sets = tuple(_set(group, role, values[measure][groups == group]) for group, role in outside.items())
    role_of = np.array([roles.get(group, "") for group in groups], dtype=object)
    separation = {
        name: _near_against_far(column, role_of, -1.0 if name == "distance" else 1.0)
        for name, column in values.items()
    }
    inverted = inversions(table.select(["source", "group", "class_id", "role", NEARNESS]).to_pylist())
    return Distances(manifest.name, measure, sets, separation, tuple(inverted))


def _set(group: str, role: str, values: np.ndarray) -> SetDistance:
    mapped = values[~np.isnan(values)]
    ends: Sequence[float | None] = [None] * 5
    if len(mapped):
        ends = [float(v) for v in np.quantile(mapped, (0, 0.25, 0.5, 0.75, 1))]
    return SetDistance(group, role, len(values), len(values) - len(mapped), *ends)


def _near_against_far(values: np.ndarray, roles: np.ndarray, sign: float) -> float:
    near, far = (values[(roles == role) & ~np.isnan(values)] for role in ("near", "far"))
    return float(auroc(sign * near, sign * far)) if len(near) and len(far) else float("nan")
