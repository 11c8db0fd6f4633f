"""Explain class roles: evidence, margin, path to the nearest ID class, and roles in other benchmarks."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from wordnet_splits.base.digests import sampling_key
from wordnet_splits.base.errors import SplitsError, UnknownNameError, unknown
from wordnet_splits.base.names import counted, same_spelling
from wordnet_splits.base.tabular import Tabular, markdown_table, write_csv
from wordnet_splits.benchmark.hierarchies import taxonomy_of
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.benchmark.manifest.loading import manifest_names
from wordnet_splits.benchmark.manifest.nearness import nearer_ood_classes
from wordnet_splits.benchmark.recipe import Recipe, load_recipe
from wordnet_splits.benchmark.resolve import find_recipe, load_manifest
from wordnet_splits.benchmark.rules import ClassRule
from wordnet_splits.benchmark.rules.operators.similarity import bounds_in
from wordnet_splits.benchmark.rules.syntax import Expression
from wordnet_splits.wordnet.similarity import pairs as similarity
from wordnet_splits.wordnet.similarity.measures import constants_of
from wordnet_splits.wordnet.taxonomy import Taxonomy

TableRow = dict[str, Any]
LATEX_ESCAPES = {
    **{mark: f"\\{mark}" for mark in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}
ROLES = ("id", "csid", "near", "far", "external", "excluded")
"""Order of several classes with the same name."""


@dataclass(frozen=True)
class Explanation(Tabular):
    """The classes that match a name, or all classes of a benchmark, with their evidence.

    ``classes`` are rows of the class table with more keys, see `explain_class` and `explain_benchmark`.
    """

    benchmark: str
    classes: Sequence[TableRow]

    def rows(self) -> Sequence[TableRow]:
        """Return one row for each class, as a paper's appendix shows it."""
        return [
            {
                "source": r["source"],
                "class": r["class_id"],
                "name": str(r["name"]).replace("_", " "),
                "role": r["role"],
                "group": r["group"],
                "nearest_id_class": r["nearest_name"],
                "meeting_synset": r["lcs"],
                "edges": r["distance"],
                "nearer_ood_classes": r["nearer_ood"],
                "evidence": r["evidence"],
            }
            for r in self.classes
        ]

    def to_text(self, kind: str) -> str:
        """Return the rows as ``csv``, ``md`` or ``latex``; UnknownNameError for another kind."""
        return format_rows(self.rows(), kind)


def explain_class(benchmark: str | Path, class_name: str, *, manifests: Path | None = None) -> Explanation:
    """Return the classes of a name: ID first, excluded last.

    Rows have the columns of the class table and: ``nearest_name``; ``gloss`` and ``nearest_gloss`` (None
    where there is none); the number of ``ood_classes`` and how many are ``nearer_ood``; the path ``up`` to
    the least common subsumer and ``down`` to the nearest ID class; the ``margin`` of the rule's decision and
    the ``change`` that would give another role; the ``hierarchy`` (None for WordNet) and its ``constants``
    that the measures use; the roles ``elsewhere``, in other benchmarks; and the ``draw_key`` (hex) that the
    seeded draw sorts by, None for a class that was not drawn from.

    Parameters
    ----------
    benchmark : a frozen benchmark's name, the folder of a build, or a recipe.
    class_name : class_id, name or synset, with ``source:`` before it where several sources have it.

    Raises
    ------
    UnknownNameError : no such benchmark or class; similar names are suggested.

    Examples
    --------
    >>> row = explain_class("unknown-imagenet", "axolotl").classes[0]
    >>> row["role"], row["nearest_name"], row["distance"]
    ('near', 'European fire salamander', 3)
    """
    manifest = manifest_of(benchmark, manifests)
    taxonomy, recipe = taxonomy_of(manifest), load_recipe(manifest)
    rows = find_class(manifest, class_name, taxonomy)
    nearness = _nearness_columns(manifest)
    classes = [_with_path({**row, **nearness[row["source"], row["class_id"]]}, taxonomy) for row in rows]
    others = {
        name: load_manifest(name, manifests, check="classes")
        for name in manifest_names(manifests)
        if name != manifest.name
    }
    for row in classes:
        rules = _rules_of(row, recipe)
        row["margin"], row["change"] = margin(row, rules, taxonomy)
        row["hierarchy"] = None if taxonomy.is_wordnet else taxonomy.title
        measures = ("mean", "lch", *(bound.measure for bound in bounds_in(tuple(rules))))
        row["constants"] = constants_of(measures, taxonomy) if row["up"] else ""
        row["elsewhere"] = _elsewhere(row, others)
        drawn = any(via["relation"] == "draw" for via in row["via"])
        key = sampling_key(recipe.draw, manifest.data.seed, row["source"], row["class_id"])
        row["draw_key"] = key.hex() if drawn else None
    return Explanation(manifest.name, classes)


def explain_benchmark(benchmark: str | Path, *, manifests: Path | None = None) -> Explanation:
    """Return every class of a benchmark, in the order of the class table; parameters as `explain_class`.

    Examples
    --------
    >>> print(explain_benchmark("digits").to_text("csv").splitlines()[1][:40])
    gaussian,all,gaussian noise,far,gaussian
    """
    manifest = manifest_of(benchmark, manifests)
    nearness = _nearness_columns(manifest)
    rows = manifest.classes.to_pylist()
    return Explanation(manifest.name, [{**r, **nearness[r["source"], r["class_id"]]} for r in rows])


def _nearness_columns(manifest: Manifest) -> dict[tuple[str, str], TableRow]:
    rows = manifest.classes.to_pylist()
    names = {r["class_id"]: r["name"].replace("_", " ") for r in rows if r["role"] == "id"}
    nearer, ood = nearer_ood_classes(rows)
    return {
        (r["source"], r["class_id"]): {
            "nearest_name": names.get(r["nearest_id"]),
            "nearer_ood": ahead,
            "ood_classes": ood,
        }
        for r, ahead in zip(rows, nearer, strict=True)
    }


def _rules_of(row: TableRow, recipe: Recipe) -> list[ClassRule]:
    """Return the rule of the group that has the class, or all rules of its source."""
    return [g.classes for g in recipe.group if row["group"] in ("", g.name) and g.source == row["source"]]


def _elsewhere(row: TableRow, benchmarks: Mapping[str, Manifest]) -> list[TableRow]:
    """Return the roles of the class in other benchmarks."""
    roles = []
    for name, manifest in benchmarks.items():
        classes = manifest.classes
        same = pc.and_(
            pc.equal(classes["source"], row["source"]), pc.equal(classes["class_id"], row["class_id"])
        )
        for role in classes.filter(same).select(["role", "group"]).to_pylist():
            roles.append({"benchmark": name, **role})
    return roles


def manifest_of(benchmark: Recipe | Manifest | str | Path, manifests: Path | None) -> Manifest:
    """Return a frozen manifest or a build, else build the recipe."""
    if not isinstance(benchmark, Recipe):
        try:
            return load_manifest(benchmark, manifests)
        except UnknownNameError:
            benchmark = find_recipe(benchmark, manifests)
    from wordnet_splits.benchmark.construct import build_benchmark

    return build_benchmark(benchmark).manifest


def find_class(manifest: Manifest, class_name: str, taxonomy: Taxonomy) -> list[TableRow]:
    """Return the rows of the class table that match a class_id, a name or a synset, ordered by role."""
    rows: list[TableRow] = manifest.classes.to_pylist()
    sources = {r["source"] for r in rows}
    source, colon, rest = class_name.partition(":")
    query, within = (rest, {source}) if colon and source in sources else (class_name, sources)
    offered = [r for r in rows if r["source"] in within]
    folded = same_spelling(query).casefold()
    matches = (
        [r for r in offered if _is_called(r, query, exact=True)]
        or [r for r in offered if _is_called(r, folded, exact=False)]
        or _with_synset(offered, query, taxonomy)
    )
    if matches:
        return sorted(matches, key=lambda r: ROLES.index(r["role"]))
    names = {n for r in offered for n in (r["class_id"], r["name"])}
    error = unknown("class", query, names, where=manifest.name)
    raise UnknownNameError(
        error.what, where=error.where, near=error.near, hint=f"of {', '.join(sorted(within))}"
    )


def _with_synset(rows: Sequence[TableRow], query: str, taxonomy: Taxonomy) -> list[TableRow]:
    try:
        wnid = taxonomy.find(query)
    except SplitsError:
        return []
    return [r for r in rows if wnid in r["wnids"]]


def _is_called(row: TableRow, query: str, *, exact: bool) -> bool:
    if exact:
        return query in (row["class_id"], row["name"])
    names = (row["class_id"], row["name"], *row["name"].split(", "))
    return query in {same_spelling(n).casefold() for n in names}


def _with_path(row: TableRow, taxonomy: Taxonomy) -> TableRow:
    row = {**row, "up": [], "down": [], "gloss": None, "nearest_gloss": None}
    if row["own_wnid"] is None or row["nearest_wnid"] is None:
        return row
    up, lcs, down = similarity.path_between(row["own_wnid"], row["nearest_wnid"], taxonomy)
    row["up"] = [_node(w, taxonomy) for w in dict.fromkeys((*up, lcs))]
    row["gloss"], row["nearest_gloss"] = (_gloss(row[k], taxonomy) for k in ("own_wnid", "nearest_wnid"))
    row["down"] = [_node(w, taxonomy) for w in dict.fromkeys((lcs, *reversed(down)))]
    return row


def _node(wnid: str, taxonomy: Taxonomy) -> TableRow:
    return {"wnid": wnid, "name": taxonomy.name(wnid), "gloss": _gloss(wnid, taxonomy)}


def _gloss(wnid: str, taxonomy: Taxonomy) -> str | None:
    return (None if "glosses" in taxonomy.lacks else taxonomy.gloss(wnid)) or None


def draw_tree(row: Mapping[str, Any]) -> list[str]:
    """Return the path as lines: the LCS on top, the class and the nearest ID class as its two branches."""
    if not row["up"]:
        return ["no path: the class has no synset, or there is no other ID class"]
    top = row["up"][-1]
    class_branch = row["up"][-2::-1]
    id_branch = row["down"][1:]
    lines = [f"{top['name']}  (least common subsumer)"]
    own_end = f"  <- {row['name']}"
    id_end = f"  <- nearest ID class {row['nearest_name'] or row['nearest_id']}"
    if not class_branch:
        lines[0] += own_end
    if not id_branch:
        lines[0] += id_end
    lines += _branch(class_branch, own_end, last=not id_branch)
    lines += _branch(id_branch, id_end, last=True)
    return lines


def _branch(nodes: list[TableRow], end: str, *, last: bool) -> list[str]:
    lines = []
    for depth, node in enumerate(nodes):
        indent = ("   " if last else "|  ") + "   " * (depth - 1) if depth else ""
        joint = ("`- " if last else "|- ") if depth == 0 else "`- "
        lines.append(indent + joint + node["name"] + (end if depth == len(nodes) - 1 else ""))
    return lines


def format_rows(rows: Sequence[TableRow], kind: str) -> str:
    """Return rows as a table for a paper's appendix: ``csv``, ``md`` or ``latex``; else UnknownNameError."""
    if kind not in FORMATS:
        raise unknown("format", kind, FORMATS, where="--format")
    return FORMATS[kind](rows)


def _csv(rows: Sequence[TableRow]) -> str:
    text = io.StringIO()
    write_csv(text, [rows[0].keys(), *(row.values() for row in rows)])
    return text.getvalue()


def _markdown(rows: Sequence[TableRow]) -> str:
    return markdown_table(list(rows[0]), [list(row.values()) for row in rows])


def _latex(rows: Sequence[TableRow]) -> str:
    def line(cells: Sequence[str]) -> str:
        return " & ".join("".join(LATEX_ESCAPES.get(c, c) for c in cell) for cell in cells) + " \\\\\n"

    columns = "l" * (len(rows[0]) - 1) + r"p{.4\textwidth}"
    body = "".join(line(["" if v is None else str(v) for v in row.values()]) for row in rows)
    head = line([name.replace("_", " ") for name in rows[0]])
    return (
        f"\\begin{{longtable}}{{{columns}}}\n\\toprule\n{head}\\midrule\n\\endhead\n"
        f"{body}\\bottomrule\n\\end{{longtable}}\n"
    )


FORMATS: dict[str, Callable[[Sequence[TableRow]], str]] = {"csv": _csv, "md": _markdown, "latex": _latex}


KIN = ("equal", "ancestor", "descendant")


def margin(row: TableRow, rules: Sequence[ClassRule], taxonomy: Taxonomy) -> tuple[str, str]:
    """Return the margin of the decision about a row of a class table, and what would change its role.

    ``rules`` has the rule of the group that took the class, or the rules that refused it, in order.
    """
    distance, condition = _margin_and_condition(row, rules, taxonomy)
    return distance, f"would not be {row['role']} {condition}"


def _margin_and_condition(row: TableRow, rules: Sequence[ClassRule], taxonomy: Taxonomy) -> tuple[str, str]:
    via, rule = list(row["via"]), rules[-1] if rules else None
    draw_evidence = [v for v in via if v["relation"] == "draw"]
    if draw_evidence:
        return _of_draw(int(draw_evidence[-1]["value"]), [r.draw for r in rules if r.draw is not None][-1])
    if rule is not None and rule.operator == "slice" and via and via[0]["relation"] == "ancestor":
        position = f"position {via[0]['value']:.0f} of the sorted classes below {_synset(via[0], taxonomy)}"
        return position, "with more or fewer classes before it in that order"
    if not via:
        nearest = "no distance" if row["distance"] is None else counted(row["distance"], "edge")
        if rule is not None and rule.operator == "rest":
            return f"no earlier group takes it; {nearest} to ID", "if an earlier group took it"
        return f"the rule does not match it; {nearest} to ID", "with a rule that matches it"
    by_bound = row["role"] == "excluded" and via[-1]["relation"] == "threshold"
    if by_bound and rule is not None and _refuses_kin(rule):  # then no bound would take kin of an ID class
        by_bound = via[0]["relation"] not in KIN
    return _of_relation(via, (via[-1] if by_bound else via[0])["relation"], rule, taxonomy)


def _refuses_kin(rule: Expression) -> bool:
    """Return whether a rule combines its bound with ``{ not = { overlaps = ... } }``."""
    return rule.operator == "all" and any(
        part.operator == "not" and part.value.operator == "overlaps" for part in rule.value
    )


def _of_draw(position: int, count: int) -> tuple[str, str]:
    if position <= count:
        spare = counted(count - position, "rank")
        fewer = f"in a draw of fewer than {counted(position, 'class')}"
        return f"selected with {spare} to spare", fewer if position > 1 else "with another seed (rank 1)"
    missed = counted(position - count, "rank")
    return f"not selected by {missed}", f"in a draw of {counted(position, 'class')} or more"


def _of_relation(
    via: list[TableRow], relation: str, rule: ClassRule | None, taxonomy: Taxonomy
) -> tuple[str, str]:
    """Return the margin and the condition of evidence whose decisive relation is given."""
    alike = [v for v in via if v["relation"] == relation]
    synset, edges = _synset(alike[0], taxonomy), counted(int(alike[0]["value"] or 0), "edge")
    if relation == "keyword":
        synsets = counted(len({v["wnid"] for v in alike}), f"related {taxonomy.noun}")
        return f"its keywords match {synsets}", "with another name, or a narrower keyword rule"
    if relation in ("name", "gloss", "named-in-gloss"):
        classes = counted(len({(v["other_source"], v["other_class"]) for v in alike}), "class")
        kind = "names" if relation == "name" else "definitions"
        return f"{kind} match {classes}", f"with another name, or another {taxonomy.noun}"
    if relation in ("part", "whole"):
        return f"a pointer to {synset}, {edges} up", f"without that pointer in {taxonomy.called}"
    if relation == "list":
        return "none: it is listed by name", "if removed from the list"
    if relation == "threshold":
        bounds = [b for pair in bounds_in(rule) for b in (pair.above, pair.below) if b is not None]
        return _of_bound(float(via[-1]["value"]), bounds)
    if relation == "unrelated":
        nearest = min(alike, key=lambda v: v["value"])
        edges = counted(int(nearest["value"]), "edge")
        where = f"{edges} from {_synset(nearest, taxonomy)}, the nearest {taxonomy.noun} in the rule"
        return where, f"if the rule named its {taxonomy.noun}, or one above"
    others = len({v["wnid"] for v in alike}) - 1
    more = f" and {counted(others, f'other {taxonomy.noun}')}" if others else ""
    return f"{edges} from {synset}", f"without {synset}{more} in the rule"


def _of_bound(value: float, bounds: Sequence[float]) -> tuple[str, str]:
    if not bounds:
        return f"a score of {value:.4g}", "with another threshold"
    bound = min(bounds, key=lambda b: abs(b - value))
    if value >= bound:
        return f"{value - bound:.4g} above the threshold {bound:g}", f"with a threshold above {value:.4g}"
    return f"{bound - value:.4g} below the threshold {bound:g}", f"with a threshold of at most {value:.4g}"


def _synset(via: TableRow, taxonomy: Taxonomy) -> str:
    return f"no {taxonomy.noun}" if via["wnid"] is None else taxonomy.label(via["wnid"])
