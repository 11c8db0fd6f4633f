"""Pages of tables: distances of sets, published lists audited, fidelity to the papers, ImageNet-21K."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wordnet_splits.audit.thresholds import thresholds
from wordnet_splits.base.errors import DataError
from wordnet_splits.base.parquet import read_table
from wordnet_splits.benchmark.explain.distance import distance
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.datasets.catalog import load_catalog
from wordnet_splits.explorer.columns import SynsetNumbers, rounded, to_columns
from wordnet_splits.explorer.tree import reduced_tree
from wordnet_splits.studies.fidelity.figures import fidelity_rows

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
    rows, conclusions = [], {}
    for manifest in manifests:
        for measure in MEASURES:
            distances = distance(manifest, measure=measure)
            rows += [{"measure": measure, "benchmark": manifest.name, **row} for row in distances.rows()]
            conclusions[manifest.name] = distances.conclusions()[1:]
    return {
        "about": MEASURED,
        "measures": list(MEASURES),
        "rows": to_columns(("measure", "benchmark", *BOX), rows),
        "conclusions": {name: lines for name, lines in conclusions.items() if lines},
    }


def fidelity_page() -> dict[str, Any]:
    """Return every figure of the papers next to ours."""
    return {"rows": to_columns(("paper", "what", "published", "ours", "why"), fidelity_rows().rows())}


def audit_page(path: Path) -> dict[str, Any]:
    """Return the counts of every audited list, and its leaks.

    Raises
    ------
    DataError : the file is not what ``make audit`` writes.
    """
    table = read_table(path)
    if missing := sorted({"list", "origin", "licence", "against", *LEAK} - set(table.schema.names)):
        raise DataError(f"has no column {missing[0]}", where=str(path), hint="give docs/audit.parquet")
    lists: dict[str, dict[str, Any]] = {}
    leaks = []
    for row in table.to_pylist():
        about = {name: row[name] for name in ("list", "against", "origin", "licence")}
        entry = lists.setdefault(row["list"], {**about, "classes": 0, **dict.fromkeys(RELATIONS, 0)})
        entry["classes"] += 1
        if row["relation"] in RELATIONS:
            entry[row["relation"]] += 1
            leaks.append({**row, "list": list(lists).index(row["list"])})
    for entry in lists.values():
        if entry["classes"] == sum(entry[name] for name in RELATIONS) and entry["licence"] == "none stated":
            entry["classes"] = None  # the licence allows only its leaks to be shown
    return {
        "about": AUDITED,
        "lists": to_columns(("list", "against", "classes", *RELATIONS, "origin", "licence"), lists.values()),
        "leaks": to_columns(("list", *LEAK), leaks),
    }


def imagenet21k_page(synsets: SynsetNumbers) -> dict[str, Any]:
    """Return the tree of ImageNet-21K, each class with its nearest class of ImageNet-1K."""
    nearness = thresholds("imagenet21k", "imagenet1k", measure="mean", taxonomy=synsets.taxonomy)
    unknown_classes = {row["class_id"]: row for row in nearness.rows()}
    known_classes = {item.class_id for item in load_catalog("imagenet1k")}
    page: dict[str, list[Any]] = {
        name: [] for name in ("synset", "parent", "mean", "nearest", "kin", "known", "class")
    }
    for wnid, parent in reduced_tree([*unknown_classes, *known_classes], synsets.taxonomy):
        row = unknown_classes.get(wnid)
        page["synset"].append(synsets.number(wnid))
        page["parent"].append(parent)
        page["mean"].append(None if row is None else rounded(row["value"]))
        page["nearest"].append(None if row is None else synsets.number(row["nearest"]))
        page["kin"].append("equal" if wnid in known_classes else "" if row is None else row["relation"] or "")
        page["known"].append(wnid in known_classes)
        page["class"].append(row is not None or wnid in known_classes)
    return dict(page)
