"""Groups of ID classes in a hierarchy, each with its own softmax in MOS.

The graph, WordNet's or the benchmark's own, is cut from the top: while there are fewer groups than
``target``, the largest is split into the subtrees below its synset. Subtrees of a single class are joined.
"""

from __future__ import annotations

from math import isqrt
from typing import Any

from wordnet_splits.benchmark.hierarchies import taxonomy_of
from wordnet_splits.wordnet.taxonomy import Taxonomy

Cluster = tuple[str, dict[int, str], bool]
"""Synset, label -> synset of its classes, and whether it may be split."""


def groups_of(manifest: Any, classes: int, target: int = 0) -> dict[str, Any]:
    """Return ``groups``, the group of each label, and ``group_names``.

    Parameters
    ----------
    manifest : the benchmark. Without a benchmark, if a class lacks a synset, or if all classes are in the
        same subtree, groups consist of consecutive labels.
    target : approximate number of groups, by default the square root of the number of classes.
    """
    target = target or max(isqrt(classes), 2)
    synsets = {} if manifest is None else _synsets(manifest)
    taxonomy = taxonomy_of(manifest) if len(synsets) == classes else None
    clusters = [] if taxonomy is None else _clusters(synsets, target, taxonomy)
    if taxonomy is None or len(clusters) < 2:
        size = -(-classes // target)
        groups = [label // size for label in range(classes)]
        return {"groups": groups, "group_names": [f"labels from {n * size}" for n in range(groups[-1] + 1)]}
    group_by_label = {label: n for n, (_, labels, _) in enumerate(clusters) for label in labels}
    return {
        "groups": [group_by_label[label] for label in range(classes)],
        "group_names": [taxonomy.name(synset) for synset, _, _ in clusters],
    }


def _synsets(manifest: Any) -> dict[int, str]:
    """Return the first synset of each label that has one."""
    rows = manifest.classes.select(["role", "label", "wnids"]).to_pylist()
    return {
        row["label"]: row["wnids"][0]
        for row in rows
        if row["role"] == "id" and row["label"] is not None and row["label"] >= 0 and row["wnids"]
    }


def _clusters(synsets: dict[int, str], target: int, taxonomy: Taxonomy) -> list[Cluster]:
    """Return about ``target`` groups, ordered by their first label."""
    clusters: list[Cluster] = [(taxonomy.root, synsets, True)]
    while len(clusters) < target and any(splittable for _, _, splittable in clusters):
        largest = max((c for c in clusters if c[2]), key=lambda c: (len(c[1]), -min(c[1])))
        clusters.remove(largest)
        clusters += _split(largest[0], largest[1], taxonomy)
    return sorted(clusters, key=lambda cluster: min(cluster[1]))


def _split(synset: str, labels: dict[int, str], taxonomy: Taxonomy) -> list[Cluster]:
    """Return the subtrees below a synset that have two classes or more, and a group of all other classes."""
    children = sorted(taxonomy.children(synset))
    below: dict[str, dict[int, str]] = {}
    for label, wnid in labels.items():
        above = taxonomy.ancestors(wnid)
        below.setdefault(next((c for c in children if c in above), synset), {})[label] = wnid
    parts = {child: part for child, part in below.items() if len(part) > 1 and child != synset}
    rest = {
        label: wnid for label, wnid in labels.items() if not any(label in part for part in parts.values())
    }
    clusters = [(child, part, True) for child, part in sorted(parts.items())]
    return [*clusters, (synset, rest, False)] if rest else clusters
