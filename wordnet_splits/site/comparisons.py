"""Pages of tables: distances of sets, published lists audited, fidelity to the papers, ImageNet-21K."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wordnet_splits.audit.thresholds import thresholds
from wordnet_splits.base.errors import DataError
from wordnet_splits.base.parquet import read_table
from wordnet_splits.catalog import load_catalog
from wordnet_splits.fidelity.fidelity import fidelity_rows
from wordnet_splits.manifest import Manifest
from wordnet_splits.reports.distance import distance
from wordnet_splits.site.columns import columns, shown
from wordnet_splits.site.synsets import Synsets
from wordnet_splits.site.tree import kept_nodes

MEASURES = ("distance", "mean")
BOX = ("group", "role", "classes", "unmapped", "min", "q1", "median", "q3", "max")
LEAK = ("class_id", "name", "relation", "known", "known_name", "edges", "path", "gloss", "known_gloss")
RELATIONS = ("equal", "below", "above", "namesake")
MEASURED = (
    "Every class by its nearest ID class: in edges, or by the similarity `mean`, of which more is nearer."
)
AUDITED = (
    "A class of a list that equals a known class, lies below it or above it. A class above a known one leaks "
    "only where its images show the known one. A namesake is none of these, but bears the name of a known "
    "class, or is defined by one."
)


def distances_page(manifests: Sequence[Manifest]) -> dict[str, Any]:
    """Return quartiles of the nearness of every set to the ID classes, by two measures."""
    rows, said = [], {}
    for manifest in manifests:
        for measure in MEASURES:
            found = distance(manifest, measure=measure)
            rows += [{"measure": measure, "benchmark": manifest.name, **row} for row in found.rows()]
            said[manifest.name] = found.conclusions()[1:]
    return {
        "about": MEASURED,
        "measures": list(MEASURES),
        "rows": columns(("measure", "benchmark", *BOX), rows),
        "conclusions": {name: lines for name, lines in said.items() if lines},
    }


def fidelity_page() -> dict[str, Any]:
    """Return every figure of the papers beside ours."""
    return {"rows": columns(("paper", "what", "published", "ours", "why"), fidelity_rows().rows())}


def audit_page(path: Path) -> dict[str, Any]:
    """Return the counts of every audited list, and its leaks.

    Raises
    ------
    DataError : the file is not what ``make audit`` writes.
    """
    table = read_table(path)
    lacks = sorted({"list", "origin", "licence", "against", *LEAK} - set(table.schema.names))
    if lacks:
        raise DataError(f"has no column {lacks[0]}", where=str(path), hint="give docs/audit.parquet")
    lists: dict[str, dict[str, Any]] = {}
    leaks = []
    for row in table.to_pylist():
        named = {"list": row["list"], "against": row["against"], "origin": row["origin"]}
        one = lists.setdefault(
            row["list"], {**named, "licence": row["licence"], "classes": 0, **dict.fromkeys(RELATIONS, 0)}
        )
        one["classes"] += 1
        if row["relation"] in RELATIONS:
            one[row["relation"]] += 1
            leaks.append({**row, "list": list(lists).index(row["list"])})
    for one in lists.values():
        if one["classes"] == sum(one[name] for name in RELATIONS) and one["licence"] == "none stated":
            one["classes"] = None  # only its leaks may be shown
    return {
        "about": AUDITED,
        "lists": columns(("list", "against", "classes", *RELATIONS, "origin", "licence"), lists.values()),
        "leaks": columns(("list", *LEAK), leaks),
    }


def imagenet21k_page(synsets: Synsets) -> dict[str, Any]:
    """Return the tree of ImageNet-21K, each class with its nearest class of ImageNet-1K."""
    found = thresholds("imagenet21k", "imagenet1k", measure="mean", taxonomy=synsets.taxonomy)
    others = {row["class_id"]: row for row in found.rows()}
    known = {item.class_id for item in load_catalog("imagenet1k")}
    page: dict[str, list[Any]] = {
        name: [] for name in ("synset", "parent", "mean", "nearest", "kin", "known", "class")
    }
    for wnid, parent in kept_nodes([*others, *known], synsets.taxonomy):
        row = others.get(wnid)
        page["synset"].append(synsets.number(wnid))
        page["parent"].append(parent)
        page["mean"].append(None if row is None else shown(row["value"]))
        page["nearest"].append(None if row is None else synsets.number(row["nearest"]))
        page["kin"].append("equal" if wnid in known else "" if row is None else row["relation"] or "")
        page["known"].append(wnid in known)
        page["class"].append(row is not None or wnid in known)
    return dict(page)
