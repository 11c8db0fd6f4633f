"""Why a class has its role: the evidence, and the path to the nearest ID class drawn as a tree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from wordnet_splits.errors import UnknownNameError, unknown
from wordnet_splits.manifest import Manifest, load_manifest, manifest_names
from wordnet_splits.similarity import similarity
from wordnet_splits.taxonomy import Taxonomy, load

Row = dict[str, Any]
ROLES = ("id", "csid", "near", "far", "external", "excluded")
"""In the order in which classes of one name are told."""


def explain(benchmark: str | Path, class_name: str, *, manifests: Path | None = None) -> list[Row]:
    """Return the rows of a class, each with the way ``up`` to the LCS and ``down`` to the nearest ID class.

    The rows are those of the class table, with the ``nearest_name`` of ``nearest_id``.

    Parameters
    ----------
    benchmark : a frozen benchmark's name, the folder of a build, or a recipe.
    class_name : class_id or name, with ``source:`` before it where several sources have it.

    Raises
    ------
    UnknownNameError : no such benchmark or class; near names are offered.
    """
    manifest = _manifest(benchmark, manifests)
    taxonomy = load()
    rows = [_with_path(row, taxonomy) for row in find_class(manifest, class_name)]
    names = {r["class_id"]: r["name"] for r in manifest.classes.to_pylist() if r["role"] == "id"}
    return [{**row, "nearest_name": names.get(row["nearest_id"])} for row in rows]


def _manifest(benchmark: str | Path, manifests: Path | None) -> Manifest:
    from wordnet_splits.build import build
    from wordnet_splits.recipe import recipe_names

    frozen = str(benchmark) in manifest_names(manifests) or (Path(benchmark) / "manifest.json").is_file()
    if not frozen and (str(benchmark).endswith(".toml") or str(benchmark) in recipe_names()):
        return build(benchmark).manifest
    if not frozen:
        raise unknown("benchmark", str(benchmark), {*recipe_names(), *manifest_names(manifests)})
    return load_manifest(benchmark, manifests)


def find_class(manifest: Manifest, class_name: str) -> list[Row]:
    """Return the rows of the class table that ``class_name`` stands for, ID first, excluded last."""
    rows: list[Row] = manifest.classes.to_pylist()
    sources = {r["source"] for r in rows}
    source, colon, rest = class_name.partition(":")
    wanted, within = (rest, {source}) if colon and source in sources else (class_name, sources)
    folded = wanted.casefold().replace(" ", "_")
    for exact in (True, False):
        found = [
            r
            for r in rows
            if r["source"] in within and _is_called(r, wanted if exact else folded, exact=exact)
        ]
        if found:
            return sorted(found, key=lambda r: ROLES.index(r["role"]))
    names = {n for r in rows if r["source"] in within for n in (r["class_id"], r["name"])}
    error = unknown("class", wanted, names, where=manifest.name)
    raise UnknownNameError(
        error.what, where=error.where, near=error.near, hint=f"of {', '.join(sorted(within))}"
    )


def _is_called(row: Row, wanted: str, *, exact: bool) -> bool:
    if exact:
        return wanted in (row["class_id"], row["name"])
    names = (row["class_id"], row["name"], *row["name"].split(", "))
    return wanted in {n.casefold().replace(" ", "_") for n in names}


def _with_path(row: Row, taxonomy: Taxonomy) -> Row:
    row = {**row, "up": [], "down": []}
    if row["own_wnid"] is None or row["nearest_wnid"] is None:
        return row
    up, lcs, down = similarity.path_between(row["own_wnid"], row["nearest_wnid"], taxonomy)
    row["up"] = [_node(w, taxonomy) for w in dict.fromkeys((*up, lcs))]
    row["down"] = [_node(w, taxonomy) for w in dict.fromkeys((lcs, *reversed(down)))]
    return row


def _node(wnid: str, taxonomy: Taxonomy) -> Row:
    return {"wnid": wnid, "name": taxonomy.name(wnid), "gloss": taxonomy.gloss(wnid)}


def draw_tree(row: Row) -> list[str]:
    """Return the path as lines: the LCS on top, the class and the nearest ID class as its two branches."""
    if not row["up"]:
        return ["no path: the class has no synset, or there is no other ID class"]
    top = row["up"][-1]
    mine = row["up"][-2::-1]
    other = row["down"][1:]
    lines = [f"{top['name']}  (least common subsumer)"]
    own_end = f"  <- {row['name']}"
    id_end = f"  <- nearest ID class {row['nearest_name'] or row['nearest_id']}"
    if not mine:
        lines[0] += own_end
    if not other:
        lines[0] += id_end
    lines += _branch(mine, own_end, last=not other)
    lines += _branch(other, id_end, last=True)
    return lines


def _branch(nodes: list[Row], end: str, *, last: bool) -> list[str]:
    lines = []
    for depth, node in enumerate(nodes):
        indent = ("   " if last else "|  ") + "   " * (depth - 1) if depth else ""
        joint = ("`- " if last else "|- ") if depth == 0 else "`- "
        lines.append(indent + joint + node["name"] + (end if depth == len(nodes) - 1 else ""))
    return lines
