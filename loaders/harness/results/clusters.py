"""The class or subtree of each image of results, for intervals over unknown classes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from wordnet_splits.base.errors import DataError
from wordnet_splits.benchmark.clusters import Level, subtree_clusters
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.metrics.summary import ID_ROLES
from wordnet_splits.metrics.uncertainty import effective_number

from ..data.arrays import Array
from .metadata import ClusterCount

UNRECORDED = "all"
"""Class of the images of a set whose classes are not recorded: noise, and sets without labels."""
KINDS = {"images": "images", "classes": "OOD classes", "subtrees": "subtrees of OOD classes"}
"""Level -> the units that are drawn, in sentences."""


def cut_text(cut: int | None) -> str:
    """Return a cut that differs from the default, to follow the name of the level."""
    return "" if cut is None else f", cut {cut}"


@dataclass(frozen=True, eq=False)
class ImageClusters:
    """The clusters of the images of a score table.

    Attributes
    ----------
    codes : (n,) integers of all rows. On an OOD set, equal for images of a cluster, and 0 for all images of a
        set with a problem; on an ID set, equal for images of a class.
    sets : OOD set -> its clusters, or the reason why it says nothing about other classes.
    """

    over: Level
    cut: int | None
    codes: Array
    sets: Mapping[str, ClusterCount | str]

    def notes(self, groups: Iterable[str]) -> Iterator[str]:
        """Yield a sentence for each of the groups that says nothing about other classes."""
        for group in groups:
            if isinstance(why := self.sets.get(group), str):
                yield f"{group} cannot be generalised to other {self.over}: {why}."


def image_clusters(images: pa.Table, manifest: Manifest | None, *, cut: int | None = None) -> ImageClusters:
    """Return the clusters of images.

    Parameters
    ----------
    images : with columns ``group``, ``role``, ``source`` and ``class_id``, as a score table has.
    manifest : the benchmark, for the subtrees of its classes (`subtree_clusters`); None for classes.

    Raises
    ------
    DataError : an OOD set or the class of an image is not in the manifest.
    """
    subtrees = None if manifest is None else subtree_clusters(manifest, cut=cut)
    groups, roles, sources, classes = (
        np.array(images[name].to_pylist(), dtype=object) for name in ("group", "role", "source", "class_id")
    )
    codes = np.zeros(len(groups), dtype=np.int64)
    sets: dict[str, ClusterCount | str] = {}
    for group in dict.fromkeys(groups.tolist()):
        rows = np.flatnonzero(groups == group)
        keys = list(zip(sources[rows].tolist(), classes[rows].tolist(), strict=True))
        names, problem = ["/".join(key) for key in keys], None
        if roles[rows[0]] in ID_ROLES:
            codes[rows] = np.unique(names, return_inverse=True)[1]
            continue
        if subtrees is not None and manifest is not None:
            of_group = subtrees.get(group)
            if of_group is None or {*keys} - of_group.of.keys():
                message = f"the benchmark has other classes of {group}"
                hint = "give the benchmark that the results are on"
                raise DataError(message, where=manifest.name, hint=hint)
            names, problem = [of_group.of[key] for key in keys], of_group.problem
        if UNRECORDED in classes[rows]:
            problem = "a single class, or none recorded"
        elif problem is None and len({*names}) == 1:
            problem = f"a single {'class' if subtrees is None else 'subtree'}"
        if problem is not None:
            sets[group] = problem
        else:
            _, codes[rows], sizes = np.unique(names, return_inverse=True, return_counts=True)
            sets[group] = ClusterCount(len(sizes), effective_number(sizes))
    return ImageClusters("classes" if subtrees is None else "subtrees", cut, codes, sets)


def refuse_subtrees(over: Level) -> None:
    """Raise DataError for subtrees of sets given in Python instead of a benchmark."""
    if over == "subtrees":
        hint = "draw their classes: over='classes'"
        raise DataError("sets given in Python have no hierarchy", where="--over", hint=hint)


def clusters_of_intervals(
    images: pa.Table, over: Level, cut: int | None, manifest: Manifest | None
) -> tuple[Array, dict[str, ClusterCount | str]]:
    """Return the cluster of each image, (n,), and `ResultsMetadata.clusters`.

    Parameters
    ----------
    images : as of `image_clusters`; the classes of the sets will do for a check.
    over : ``classes`` or ``subtrees``.
    manifest : the benchmark, None if the sets were given in Python.

    Raises
    ------
    DataError : there is no hierarchy for subtrees, or no OOD set has several clusters.
    """
    if manifest is None:
        refuse_subtrees(over)
    clusters = image_clusters(images, manifest if over == "subtrees" else None, cut=cut)
    if all(isinstance(found, str) for found in clusters.sets.values()):
        reasons = "; ".join(f"{group}: {problem}" for group, problem in clusters.sets.items())
        message = f"no OOD set has several {over}" + (f" ({reasons})" if reasons else "")
        raise DataError(message, where="--over", hint="draw images: over='images'")
    return clusters.codes, dict(clusters.sets)
