"""Smallest differences between detectors that a benchmark can show, before anything is evaluated.

Variance components come from ``data/power.toml`` (`python -m tools.power`): measured on the same set where
committed results hold it, else the medians over the measured sets of that role.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from operator import mul
from pathlib import Path
from typing import Any

import numpy as np

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.jsonable import Jsonable
from wordnet_splits.base.names import counted
from wordnet_splits.base.tabular import Tabular
from wordnet_splits.benchmark.clusters import LEVELS, ClassKey, subtree_clusters
from wordnet_splits.benchmark.explain import manifest_of
from wordnet_splits.benchmark.manifest import GroupRow, Manifest
from wordnet_splits.benchmark.recipe import Recipe
from wordnet_splits.metrics import power as formulas
from wordnet_splits.metrics.power import METRICS, Components, OodSet
from wordnet_splits.metrics.summary import OOD_ROLES

MEAN, MEANS = "(mean)", ("near", "far")


@dataclass(frozen=True)
class PowerRow:
    """Smallest differences that an OOD set, or the mean over the sets of a role, can show with 80% power.

    Attributes
    ----------
    group, role : the set; ``(mean)`` for the mean.
    classes, subtrees, images : their numbers, summed in a mean.
    auroc, fpr95 : level -> smallest difference, as a fraction; None without several classes or subtrees.
    needed : number of OOD classes that would show the difference in AUROC over classes; None if none would.
    """

    group: str
    role: str
    classes: int
    subtrees: int
    images: int
    auroc: Mapping[str, float | None]
    fpr95: Mapping[str, float | None]
    needed: int | None


@dataclass(frozen=True)
class BenchmarkPower(Jsonable, Tabular):
    """The power of a benchmark, given the AUROC of the detectors and a difference to show.

    Attributes
    ----------
    id_images : number of ID test images, 0 if it is not known.
    sets : a row for each OOD set, then for each mean over several near or far sets.
    notes : sentences on sets that are left out or cannot be generalised, and on the variances.
    """

    benchmark: str
    auroc: float
    difference: float
    id_images: int
    sets: tuple[PowerRow, ...]
    notes: tuple[str, ...]

    def rows(self) -> list[dict[str, Any]]:
        """Return a flat row for each set: ``auroc_classes`` is the smallest difference over classes."""
        rows = [dict(vars(row)) for row in self.sets]
        for row in rows:
            for metric in METRICS:
                row |= {f"{metric}_{over}": value for over, value in row.pop(metric).items()}
        return rows

    @property
    def summary(self) -> PowerRow | None:
        """The row on the near (else far) classes, of all sets together; None if no images are counted."""
        return next((row for role in MEANS for row in reversed(self.sets) if row.role == role), None)

    @property
    def is_shown(self) -> bool:
        """Whether the classes of the summary can show the difference."""
        smallest = None if self.summary is None else self.summary.auroc["classes"]
        return smallest is not None and smallest <= self.difference

    def sentence(self) -> str | None:
        """Return a line on the near (else far) classes; None if their images are not counted."""
        row = self.summary
        if row is None:
            return None
        smallest, number = row.auroc["classes"], counted(row.classes, f"{row.role} class")
        wanted = f"{self.difference:g}".removeprefix("0")
        needed = f"{row.needed:,} classes" if row.needed else "more ID images"
        if smallest is None:
            return f"{number}: no difference can be generalised to other classes"
        if smallest > 2 * (1 - self.auroc):  # the gap of two detectors of mean `auroc` is no wider
            return f"{number}: no AUROC gap has 80% power; {wanted} needs {needed}"
        if self.is_shown:
            return f"{number} can tell AUROC differences of {wanted} apart (80% power)"
        return f"{number}: 80% power at AUROC gap {figure(smallest)}; {wanted} needs {needed}"


def figure(value: float | None) -> str:
    """Return a difference as a table shows it: ``.085``, ``.12``; ``none`` from 1 on."""
    if value is None:
        return "-"
    return "none" if value >= 1 else f"{value:.{2 if value >= 0.0995 else 3}f}".removeprefix("0")


def power(
    benchmark: Recipe | Manifest | str | Path,
    *,
    auroc: float = 0.8,
    difference: float = 0.02,
    cut: int | None = None,
    manifests: Path | None = None,
) -> BenchmarkPower:
    """Return the smallest differences between two detectors that a benchmark can show with 80% power.

    A difference is shown if a two-sided test at 5% rejects that the detectors are equal, over images, classes
    or subtrees (`wordnet_splits.metrics.power`).

    Parameters
    ----------
    benchmark : a frozen benchmark's name, the folder of a build, a recipe, or a manifest.
    auroc : AUROC of the detectors, in (.5, 1), which determines the variances.
    difference : difference in AUROC, in (0, 1), for which the number of classes is computed.
    cut : edges from a set's least common subsumer down to its subtrees, as of `subtree_roots`.

    Raises
    ------
    UnknownNameError : no such benchmark; similar names are suggested.
    DataError : ``auroc`` or ``difference`` is out of range.

    Examples
    --------
    >>> power("digits", difference=0.05).sentence()
    '4 near classes: 80% power at AUROC gap .094; .05 needs 11 classes'
    """
    for name, value, low in (("auroc", auroc, 0.5), ("difference", difference, 0)):
        if not low < value < 1:
            raise DataError(f"must be between {low:g} and 1, got {value:g}", where=name)
    manifest = manifest_of(benchmark, manifests)
    tests = [row for row in manifest.groups if row.split == "test"]
    id_images = sum(_count(row) for row in tests if row.role == "id")
    if not id_images:
        note = "the number of ID test images is not known"
        return BenchmarkPower(manifest.name, auroc, difference, 0, (), (note,))
    subtrees = subtree_clusters(manifest, cut=cut)
    notes, origins = dict[str, list[str]](), dict[str, list[str]]()
    sets: dict[tuple[str, str], OodSet] = {}
    for row in (row for row in tests if row.role in OOD_ROLES):
        sizes = _class_sizes(manifest, row, list(subtrees[row.group].of)) if row.group in subtrees else {}
        if not sizes:
            notes.setdefault("left out, without classes or a known number of images", []).append(row.group)
            continue
        of_subtrees: dict[str, float] = {}
        problem = subtrees[row.group].problem
        for key, images in sizes.items():
            root = "" if problem else subtrees[row.group].of[key]
            of_subtrees[root] = of_subtrees.get(root, 0) + images
        if problem:
            level = "subtrees" if len(sizes) > 1 else "classes"
            notes.setdefault(f"not generalised to other {level} ({problem})", []).append(row.group)
        parts, origin = _components(manifest.name, row)
        origins.setdefault(f"with {origin}", []).append(row.group)
        by_level = dict(zip(LEVELS[1:], (sizes.values(), of_subtrees.values()), strict=True))
        scaled = {m: Components(*map(mul, parts[m], formulas.unpaired(m, auroc))) for m in METRICS}
        sets[row.group, row.role] = OodSet(scaled, {k: np.array([*v]) for k, v in by_level.items()})
    rows = [_row(*key, [part], id_images, difference) for key, part in sets.items()]
    for role in MEANS:
        of_role = [part for (_, r), part in sets.items() if r == role]
        if len(of_role) > 1:
            rows.append(_row(MEAN, role, of_role, id_images, difference))
    sentences = [f"{note}: {', '.join(groups)}" for note, groups in (notes | origins).items()]
    if cut is not None:
        below = f"{counted(cut, 'edge')} below the least common subsumer of a set"
        sentences.append(f"subtrees are {below}; the variance between them was measured at the default cut")
    return BenchmarkPower(manifest.name, auroc, difference, id_images, tuple(rows), tuple(sentences))


def _count(row: GroupRow) -> int:
    return (row.actual if row.actual is not None else row.expected) or 0


def _class_sizes(manifest: Manifest, row: GroupRow, classes: Sequence[ClassKey]) -> dict[ClassKey, float]:
    """Return the number of images of each class: counted if they are known, else the same for each."""
    if (row.split, row.group) in manifest.parts:
        images = manifest.images(row.split, row.group)
        return dict(Counter(zip(*(images[c].to_pylist() for c in ("source", "class_id")), strict=True)))
    return {key: _count(row) / len(classes) for key in classes if _count(row)}


def _row(group: str, role: str, sets: Sequence[OodSet], id_images: int, difference: float) -> PowerRow:
    auroc, fpr95 = (
        {str(over): formulas.smallest_difference(sets, id_images, metric, over) for over in LEVELS}
        for metric in METRICS
    )
    classes, subtrees = (sum(len(part.sizes[over]) for part in sets) for over in LEVELS[1:])
    images = round(sum(part.sizes["classes"].sum() for part in sets))
    needed = formulas.classes_needed(difference, sets, id_images)
    return PowerRow(group, role, classes, subtrees, images, auroc, fpr95, needed)


def _components(benchmark: str, row: GroupRow) -> tuple[Mapping[str, Components], str]:
    """Return the components of a set by metric, in units of `unpaired`, and their origin."""
    for entry in _table()["measured"]:
        if (entry["benchmark"], entry["group"]) == (benchmark.partition("@")[0], row.group):
            return {metric: Components(*entry[metric]) for metric in METRICS}, "measured variances"
    role = row.role if row.role in MEANS else "near"
    entry = _table()["default"][role]
    parts = {metric: Components(*entry[metric]) for metric in METRICS}
    return parts, f"median variances of measured {role} sets"


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads((files("wordnet_splits") / "data" / "power.toml").read_text("utf-8"))
