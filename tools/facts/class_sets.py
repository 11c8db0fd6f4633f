"""The published lists that our class sets rebuild, read from the facts.

``python -m tools.facts.class_sets FACTS`` prints the SHA-256 of each as its recipe has to state it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from tools.facts.published import Published

Line = tuple[str, ...]
Row = dict[str, str]


def _rows(facts: Path, name: str) -> list[Row]:
    return list(Published(facts / "field" / name).records())


def _imagenet_x(facts: Path) -> list[Line]:
    rows = _rows(facts, "imagenet_x/classes.tsv")
    rows.sort(key=lambda r: (r["role"], int(r["position_in_file"])))
    return [(r["role"], r["wnid"]) for r in rows]


def _robustness(group: str, balanced: bool) -> Callable[[Path], list[Line]]:
    def lines(facts: Path) -> list[Line]:
        return [
            (r["superclass_wnid"], r["wnid"])
            for r in _rows(facts, "robustness_groups/computed_classes.tsv")
            if r["group"] == group and (not balanced or r["in_balanced_version"] == "1")
        ]

    return lines


def _columns(name: str, *columns: str, **where: str) -> Callable[[Path], list[Line]]:
    """Return a reader of some columns of a table, of the rows that have a value in another."""

    def lines(facts: Path) -> list[Line]:
        rows = [r for r in _rows(facts, name) if all(r[column] == value for column, value in where.items())]
        return [tuple(r[column] for column in columns) for r in rows]

    return lines


def _breeds(dataset: str) -> Callable[[Path], list[Line]]:
    """Return a reader of the ImageNet classes below each superclass on the edited tree."""

    def lines(facts: Path) -> list[Line]:
        children: dict[str, list[str]] = {}
        for row in _rows(facts, "breeds/modified_hierarchy_edges.tsv"):
            children.setdefault(row["parent"], []).append(row["child"])

        def leaves(node: str) -> set[str]:
            below = children.get(node, [])
            return {leaf for child in below for leaf in leaves(child)} if below else {node}

        rows = [r for r in _rows(facts, "breeds/superclasses.tsv") if r["dataset"] == dataset]
        assert all(len(leaves(r["node"])) == int(r["imagenet_classes_below"]) for r in rows)
        return [(r["node"], leaf) for r in rows for leaf in sorted(leaves(r["node"]))]

    return lines


GROUPS = ("living_9", "mixed_10", "mixed_13", "geirhos_16", "big_12", "mid_12")
BREEDS = ("entity13", "entity30", "living17", "nonliving26")
LISTS: dict[str, Callable[[Path], list[Line]]] = {
    "imagenet-x": _imagenet_x,
    "meta-dataset-imagenet": _columns("meta_dataset_ilsvrc/ilsvrc_2012.tsv", "split", "wnid"),
    "tiered-imagenet": _columns("tiered_imagenet/classes.tsv", "split", "category", "wnid"),
    "imagenet-30": _columns("imagenet30/classes.tsv", "wnid"),
    "imagenet-100-cmc": _columns("imagenet100_cmc/classes.tsv", "wnid"),
    "imagenet-100-gcd": _columns("gcd_imagenet100/classes.tsv", "role", "wnid"),
    "imagenette": _columns("imagenette/classes.tsv", "wnid", set="imagenette"),
    "imagewoof": _columns("imagenette/classes.tsv", "wnid", set="imagewoof"),
    "prohoc-imagenet": _columns("simple_hier_imagenet/classes.tsv", "role", "wnid"),
    "geirhos-16": _columns("geirhos16/classes.tsv", "category", "wnid"),
    "imagenet-ood": _columns("imagenet_ood/classes.tsv", "wnid"),
    **{f"breeds-{name}": _breeds(name) for name in BREEDS},
    **{f"robustness-{g.replace('_', '-')}": _robustness(g, False) for g in GROUPS},
    **{f"robustness-{g.replace('_', '-')}-balanced": _robustness(g, True) for g in GROUPS},
}
"""Reads the lines of each set, in the order published."""


if __name__ == "__main__":
    from wordnet_splits.benchmark.recipe import load_recipe
    from wordnet_splits.studies.class_sets import list_sha256

    for name, read in LISTS.items():
        told = load_recipe(name).published_list
        assert told is not None
        print(name, list_sha256(read(Path(sys.argv[1])), ordered=told.ordered))
