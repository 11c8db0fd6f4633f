"""A benchmark's classes: role, evidence, figures, and the way to the nearest ID class."""

from __future__ import annotations

from typing import Any, get_args

from wordnet_splits.base.schemas import Role
from wordnet_splits.manifest import Manifest
from wordnet_splits.similarity import similarity
from wordnet_splits.site.columns import Columns, columns
from wordnet_splits.site.synsets import Synsets
from wordnet_splits.site.tree import class_tree

ROLES = (*get_args(Role), "excluded")
PLAIN = ("source", "class_id", "name", "group", "label", "evidence", "nearest_id", "distance")
FIGURES = ("path", "wup", "lch", "mean")


def benchmark_page(manifest: Manifest, synsets: Synsets) -> dict[str, Any]:
    """Return the class table and the class tree of a benchmark."""
    rows = manifest.classes.to_pylist()
    table = columns((*PLAIN, *FIGURES), rows)
    rules = list(dict.fromkeys(row["rule"] for row in rows))
    table["rule"] = [rules.index(row["rule"]) for row in rows]
    table["role"] = [ROLES.index(row["role"]) for row in rows]
    table["synset"] = [synsets.number(row["own_wnid"]) for row in rows]
    table["lcs"] = [synsets.number(row["lcs"]) for row in rows]
    table["nearest"] = _nearest_rows(rows)
    ways = [_way(row, synsets) for row in rows]
    table["way"] = [way for way, _ in ways]
    table["lcs_at"] = [at for _, at in ways]
    return {
        "name": manifest.name,
        "rules": rules,
        "classes": table,
        "tree": class_tree([row["own_wnid"] for row in rows], synsets),
    }


def _nearest_rows(rows: list[dict[str, Any]]) -> list[int | None]:
    """Return the row of each class's nearest ID class: the one of that id, and of that synset if several."""
    known: dict[str, list[int]] = {}
    for number, row in enumerate(rows):
        if row["role"] == "id":
            known.setdefault(row["class_id"], []).append(number)
    found: list[int | None] = []
    for row in rows:
        of_id = known.get(row["nearest_id"], [])
        exact = [n for n in of_id if row["nearest_wnid"] in rows[n]["wnids"]]
        found.append(next(iter(exact or of_id), None))
    return found


def _way(row: dict[str, Any], synsets: Synsets) -> tuple[list[int] | None, int | None]:
    """Return the synsets from a class up to the least common subsumer and down, and the place of that one."""
    own, other = row["own_wnid"], row["nearest_wnid"]
    if own is None or other is None:
        return None, None
    up, lcs, down = similarity.path_between(own, other, synsets.taxonomy)
    climb = list(dict.fromkeys((*up, lcs)))
    descent = list(dict.fromkeys((lcs, *reversed(down))))[1:]
    return synsets.numbers([*climb, *descent]), len(climb) - 1


def search_page(manifests: list[Manifest], synsets: Synsets) -> dict[str, Any]:
    """Return every class of every source once, with the benchmarks that have it."""
    names = [manifest.name for manifest in manifests]
    sources: dict[str, int] = {}
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for at, manifest in enumerate(manifests):
        for number, row in enumerate(manifest.classes.to_pylist()):
            one = found.setdefault(
                (row["source"], row["class_id"]),
                {
                    "source_at": sources.setdefault(row["source"], len(sources)),
                    "class_id": row["class_id"],
                    "name": row["name"],
                    "synset": synsets.number(row["own_wnid"]),
                    "in": [],
                },
            )
            one["in"].append([at, number, ROLES.index(row["role"])])
    table: Columns = columns(("source_at", "class_id", "name", "synset", "in"), found.values())
    return {"benchmark": names, "source": list(sources), **table}
