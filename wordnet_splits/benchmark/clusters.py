"""Clusters of a benchmark's classes: what is drawn again when a conclusion is about other unknown classes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import pyarrow as pa

from wordnet_splits.benchmark.hierarchies import taxonomy_of
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.metrics.summary import OOD_ROLES
from wordnet_splits.wordnet.taxonomy import Taxonomy
from wordnet_splits.wordnet.taxonomy.subtrees import subtree_roots

Level = Literal["images", "classes", "subtrees"]
LEVELS: tuple[Level, ...] = get_args(Level)
ClassKey = tuple[str, str]
"""Source and class_id."""


@dataclass(frozen=True)
class GroupClusters:
    """The subtrees of a group's classes.

    Attributes
    ----------
    of : class -> wnid of the root of its subtree; the class itself if there is a problem.
    problem : the reason why the group says nothing about other subtrees; None if it has several.
    """

    of: Mapping[ClassKey, str]
    problem: str | None = None


def subtree_clusters(manifest: Manifest, *, cut: int | None = None) -> dict[str, GroupClusters]:
    """Return OOD group -> subtrees of its classes; ``cut`` is that of `subtree_roots`."""
    groups: dict[str, dict[ClassKey, tuple[str, ...]]] = {}
    columns = ["source", "class_id", "wnids", "role", "group"]
    for row in manifest.classes.select(columns).to_pylist():
        if row["role"] in OOD_ROLES:
            of_group = groups.setdefault(row["group"], {})
            of_group[row["source"], row["class_id"]] = tuple(row["wnids"] or ())
    taxonomy = taxonomy_of(manifest)
    return {group: _subtrees(classes, taxonomy, cut) for group, classes in groups.items()}


def disjoint_classes(manifest: Manifest, groups: Sequence[str]) -> tuple[frozenset[ClassKey], int, int]:
    """Return the validation classes of groups in no subtree of OOD test classes, and two numbers.

    These are the numbers of all validation classes, and of test classes without a synset, which are in no
    subtree. Subtrees are those of all these classes together (`subtree_roots`).
    """
    tested = [row.group for row in manifest.groups if row.split == "test" and row.role in ("near", "far")]
    validation, test = _classes_of(manifest, "val", groups), _classes_of(manifest, "test", tested)
    wnids = {key: names for key, names in (validation | test).items() if names}
    roots = subtree_roots(wnids, taxonomy_of(manifest)) if wnids else {}
    shared = {roots[key] for key in test if key in roots}
    kept = frozenset(key for key in validation if key in roots and roots[key] not in shared)
    return kept, len(validation), len(test.keys() - roots.keys())


def _classes_of(manifest: Manifest, split: str, groups: Sequence[str]) -> dict[ClassKey, tuple[str, ...]]:
    """Return the wnids of the classes of groups that have images in a split, or of all without its images."""
    columns = (manifest.classes[name].to_pylist() for name in ("group", "source", "class_id", "wnids"))
    keys = {group: {*_pairs(manifest.images(split, group))} for s, group in manifest.parts if s == split}
    return {
        (source, class_id): tuple(wnids or ())
        for group, source, class_id, wnids in zip(*columns, strict=True)
        if group in groups and (source, class_id) in keys.get(group, {(source, class_id)})
    }


def _pairs(table: pa.Table) -> Iterator[ClassKey]:
    return zip(table["source"].to_pylist(), table["class_id"].to_pylist(), strict=True)


def _subtrees(
    classes: Mapping[ClassKey, tuple[str, ...]], taxonomy: Taxonomy, cut: int | None
) -> GroupClusters:
    of = {key: "/".join(key) for key in classes}
    if len(classes) == 1:
        return GroupClusters(of, "a single class")
    unmapped = [key for key, wnids in classes.items() if not wnids]
    if unmapped:
        return GroupClusters(of, f"{len(unmapped)} of {len(classes)} classes have no {taxonomy.noun}")
    of = subtree_roots(classes, taxonomy, cut=cut)
    return GroupClusters(of, "a single subtree" if len({*of.values()}) == 1 else None)
