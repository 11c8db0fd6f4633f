"""Explain class roles: evidence, margin, path to the nearest ID class, and roles in other benchmarks."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from wordnet_splits.base.errors import SplitsError, UnknownNameError, unknown
from wordnet_splits.base.names import counted, same_spelling
from wordnet_splits.base.tabular import Tabular, markdown_table, write_csv
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.benchmark.manifest.loading import manifest_names
from wordnet_splits.benchmark.manifest.tables import nearer_ood_classes
from wordnet_splits.benchmark.recipe import Recipe, load_recipe
from wordnet_splits.benchmark.resolve import find_recipe, load_manifest
from wordnet_splits.benchmark.rules import ClassRule
from wordnet_splits.benchmark.rules.operators.similarity import SimilarityBound
from wordnet_splits.benchmark.rules.syntax import Expression
from wordnet_splits.wordnet.similarity import pairs as similarity
from wordnet_splits.wordnet.taxonomy import Taxonomy, load

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

    Rows have the columns of the class table and: ``nearest_name``; ``gloss`` and ``nearest_gloss``; the
    number of ``ood_classes`` and how many are ``nearer_ood``; the path ``up`` to the least common subsumer
    and ``down`` to the nearest ID class; the ``margin`` of the rule's decision and the ``change`` that would
    give another role; and the roles ``elsewhere``, in other benchmarks.

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
    taxonomy, recipe = load(), load_recipe(manifest)
    rows = find_class(manifest, class_name, taxonomy)
    nearness = _nearness_columns(manifest)
    classes = [_with_path({**row, **nearness[row["source"], row["class_id"]]}, taxonomy) for row in rows]
    others = {
        name: load_manifest(name, manifests, check="classes")
        for name in manifest_names(manifests)
        if name != manifest.name
    }
    for row in classes:
        row["margin"], row["change"] = margin(row, _rules_of(row, recipe), taxonomy)
        row["elsewhere"] = _elsewhere(row, others)
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
    row["gloss"], row["nearest_gloss"] = (taxonomy.gloss(row[k]) for k in ("own_wnid", "nearest_wnid"))
    row["down"] = [_node(w, taxonomy) for w in dict.fromkeys((lcs, *reversed(down)))]
    return row


def _node(wnid: str, taxonomy: Taxonomy) -> TableRow:
    return {"wnid": wnid, "name": taxonomy.name(wnid), "gloss": taxonomy.gloss(wnid)}


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
MarginAndChange = tuple[str, str]
"""Margin, and what would change the role."""


def margin(row: TableRow, rules: Sequence[ClassRule], taxonomy: Taxonomy) -> MarginAndChange:
    """Return the margin of the decision about a row of a class table, and what would change its role.

    ``rules`` has the rule of the group that took the class, or the rules that refused it, in order.
    """
    via, rule = list(row["via"]), rules[-1] if rules else None
    draw_evidence = [v for v in via if v["relation"] == "draw"]
    if draw_evidence:
        return _of_draw(int(draw_evidence[-1]["value"]), [r.draw for r in rules if r.draw is not None][-1])
    if rule is not None and rule.operator == "slice" and via and via[0]["relation"] == "ancestor":
        position = f"place {via[0]['value']:.0f} of the sorted classes below {_synset_name(via[0], taxonomy)}"
        return position, "more or fewer classes before it in that order"
    if not via:
        nearest = "no distance" if row["distance"] is None else counted(row["distance"], "edge")
        if rule is not None and rule.operator == "rest":
            return f"no earlier group takes it; {nearest} to ID", "an earlier group that takes it"
        return (
            f"nothing of the rule touches it; {nearest} to ID",
            "a rule that touches it, or an earlier group",
        )
    by_bound = row["role"] == "excluded" and via[-1]["relation"] == "threshold"
    if by_bound and rule is not None and _refuses_kin(rule):  # then no bound would take kin of an ID class
        by_bound = via[0]["relation"] not in KIN
    decisive = via[-1] if by_bound else via[0]
    return MARGINS[decisive["relation"]](via, rule, taxonomy)


def _refuses_kin(rule: Expression) -> bool:
    """Return whether a rule combines its bound with ``{ not = { overlaps = ... } }``."""
    return rule.operator == "all" and any(
        part.operator == "not" and part.value.operator == "overlaps" for part in rule.value
    )


def _of_draw(position: int, count: int) -> MarginAndChange:
    if position <= count:
        spare = counted(count - position, "place")
        fewer = f"a draw of fewer than {counted(position, 'class')}"
        return f"drawn with {spare} to spare", fewer if position > 1 else "another seed: it is drawn first"
    missed = counted(position - count, "place")
    return f"missed the draw by {missed}", f"a draw of {counted(position, 'class')} or more"


def _of_kin(via: list[TableRow], rule: ClassRule | None, taxonomy: Taxonomy) -> MarginAndChange:
    kin = {v["wnid"] for v in via if v["relation"] == via[0]["relation"]}
    edges = counted(int(via[0]["value"]), "edge")
    others = f", and {counted(len(kin) - 1, 'other synset')} with it" if len(kin) > 1 else ""
    return (
        f"{edges} from {_synset_name(via[0], taxonomy)}",
        f"the rule without {_synset_name(via[0], taxonomy)}{others}",
    )


def _of_keywords(via: list[TableRow], rule: ClassRule | None, taxonomy: Taxonomy) -> MarginAndChange:
    reached = len({v["wnid"] for v in via if v["relation"] == "keyword"})
    return (
        f"its keywords reach {counted(reached, 'synset')} of kin",
        "another name, or a narrower keyword rule",
    )


def _of_words(via: list[TableRow], rule: ClassRule | None, taxonomy: Taxonomy) -> MarginAndChange:
    others = len({(v["other_source"], v["other_class"]) for v in via if v["relation"] == via[0]["relation"]})
    where = "its name" if via[0]["relation"] == "name" else "a definition"
    return f"{where} reaches {counted(others, 'class')}", "other words, or another mapping"


def _of_parts(via: list[TableRow], rule: ClassRule | None, taxonomy: Taxonomy) -> MarginAndChange:
    edges = counted(int(via[0]["value"]), "edge")
    return f"a pointer to {_synset_name(via[0], taxonomy)}, {edges} up", "WordNet without that pointer"


def _of_list(via: list[TableRow], rule: ClassRule | None, taxonomy: Taxonomy) -> MarginAndChange:
    return "named, so there is no margin", "its name off that list"


def _of_bound(via: list[TableRow], rule: ClassRule | None, taxonomy: Taxonomy) -> MarginAndChange:
    value, bounds = float(via[-1]["value"]), _bounds(rule)
    if not bounds:
        return f"a score of {value:.4g}", "another bound"
    bound = min(bounds, key=lambda b: abs(b - value))
    side = "above" if value >= bound else "below"
    return f"{abs(value - bound):.4g} {side} the bound {bound:g}", f"a bound on the other side of {value:.4g}"


def _bounds(rule: Any) -> list[float]:
    if isinstance(rule, SimilarityBound):
        return [b for b in (rule.above, rule.below) if b is not None]
    if isinstance(rule, tuple):
        return [b for part in rule for b in _bounds(part)]
    return _bounds(rule.value) if isinstance(getattr(rule, "operator", None), str) else []


def _of_unrelated(via: list[TableRow], rule: ClassRule | None, taxonomy: Taxonomy) -> MarginAndChange:
    nearest = min((v for v in via if v["relation"] == "unrelated"), key=lambda v: v["value"])
    edges = counted(int(nearest["value"]), "edge")
    return (
        f"{edges} from {_synset_name(nearest, taxonomy)}, the nearest the rule names",
        "its synset, or one above, named",
    )


def _synset_name(via: TableRow, taxonomy: Taxonomy) -> str:
    return f"{taxonomy.lemmas(via['wnid'])[0].replace('_', ' ')} ({via['wnid']})"


MARGINS: dict[str, Callable[[list[TableRow], ClassRule | None, Taxonomy], MarginAndChange]] = {
    **dict.fromkeys((*KIN, "sibling"), _of_kin),
    "keyword": _of_keywords,
    "list": _of_list,
    **dict.fromkeys(("name", "gloss", "named-in-gloss"), _of_words),
    **dict.fromkeys(("part", "whole"), _of_parts),
    "threshold": _of_bound,
    "unrelated": _of_unrelated,
}
