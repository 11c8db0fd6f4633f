"""Commands on meanings: explain, similarity, distance, tree, fidelity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from wordnet_splits.base.errors import SplitsError
from wordnet_splits.sources.roots import parse_roots
from wordnet_splits.taxonomy import Taxonomy, load
from wordnet_splits.terminal.options import Json, Manifests, RootOptions, WordNet, add_command
from wordnet_splits.terminal.output import DONE, print_fields, print_json, print_table, to_stderr, to_stdout

HierarchyOption = Annotated[str, typer.Option(help="wordnet (the full graph) or imagenet-tree.")]

SIMILARITY_KEYS = ["distance", "path", "wup", "wup_wn", "wup_perl", "lch", "lch_perl", "mean", "mean2"]


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    examples = [
        "wordnet-splits explain unknown-imagenet axolotl",
        "wordnet-splits explain digits --all --format latex",
    ]
    add_command(app, "explain", explain_class, examples)
    examples = ["wordnet-splits similarity dog cat", "wordnet-splits similarity n02084071 cat.n.01 --json"]
    add_command(app, "similarity", compare_synsets, examples)
    examples = ["wordnet-splits distance unknown-imagenet", "wordnet-splits distance digits --json"]
    add_command(app, "distance", show_distance, examples)
    examples = ["wordnet-splits synsets crane", "wordnet-splits synsets 'sea lion' --json"]
    add_command(app, "synsets", search_synsets, examples)
    examples = ["wordnet-splits tree dog", "wordnet-splits tree animal.n.01 --source imagenet1k --depth 2"]
    add_command(app, "tree", show_tree, examples)
    add_command(app, "fidelity", show_fidelity, ["wordnet-splits fidelity", "wordnet-splits fidelity --json"])


def explain_class(
    benchmark: Annotated[str, typer.Argument(help="A benchmark, a manifest's folder, or a recipe file.")],
    class_name: Annotated[
        str | None,
        typer.Argument(metavar="[CLASS]", help="A class_id, name or synset; SOURCE:CLASS for one source."),
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Print every class, as --format says.")] = False,
    format_: Annotated[str, typer.Option("--format", help="With --all: csv, md or latex.")] = "md",
    root: RootOptions = None,
    manifests: Manifests = None,
    json: Json = False,
) -> int:
    """Say why a class is in-distribution, near, far, external or excluded, and how near it is."""
    from wordnet_splits.recipe import declarations_of
    from wordnet_splits.reports.explain import explain, explain_all

    if all_ == (class_name is not None):
        raise SplitsError("give either a class or --all", where="explain")
    # a dataset of one's own may be declared there
    parse_roots(root or [], declarations_of(benchmark, manifests=manifests))
    if class_name is None:
        table = explain_all(benchmark, manifests=manifests)
        if json:
            print_json({"benchmark": table.benchmark, "classes": table.classes})
        else:
            for line in table.to_text(format_).splitlines():
                to_stdout(line)
        return DONE
    rows = explain(benchmark, class_name, manifests=manifests).classes
    if json:
        print_json({**rows[0], "also": rows[1:]})
        return DONE
    for row in rows:
        _show_explanation(row)
    return DONE


def _show_explanation(row: Mapping[str, Any]) -> None:
    from wordnet_splits.reports.explain import draw_tree

    to_stdout(f"{row['source']}:{row['class_id']}  {row['name']}")
    fields = [
        ("role", row["role"] + (f" (group {row['group']})" if row["group"] else "")),
        ("evidence", row["evidence"]),
        ("rule", row["rule"]),
        ("margin", row["margin"]),
        ("to change", row["change"]),
        ("synsets", ", ".join(row["wnids"]) or "none"),
    ]
    if row["nearest_id"] is not None:
        named = "" if row["nearest_name"] == row["nearest_id"] else f" ({row['nearest_name']})"
        measures = (
            f"mean {row['mean']:.4f}, path {row['path']:.4f}, wup {row['wup']:.4f}, lch {row['lch']:.4f}"
        )
        edges = _counted(row["distance"], "edge", "edges")
        fields += [
            ("nearest", f"{row['nearest_id']}{named}: {measures}, {edges}"),
            ("meaning", row["gloss"]),
            ("nearest's", row["nearest_gloss"]),
        ]
    for other in row["elsewhere"]:
        group = f" (group {other['group']})" if other["group"] else ""
        fields.append(("elsewhere", f"{other['benchmark']}: {other['role']}{group}"))
    print_fields(fields)
    for line in draw_tree(row):
        to_stdout(f"    {line}")


def compare_synsets(
    x: Annotated[str, typer.Argument(help="A wnid (n02084071), a synset (dog.n.01) or a noun.")],
    y: Annotated[str, typer.Argument(help="Another.")],
    wordnet: WordNet = None,
    hierarchy: HierarchyOption = "wordnet",
    json: Json = False,
) -> int:
    """Measure how alike two synsets are: distance, LCS, path, Wu-Palmer, Leacock-Chodorow, mean."""
    from wordnet_splits.similarity import similarity

    taxonomy = _taxonomy(wordnet, hierarchy)
    a, b = (find_synset(text, taxonomy) for text in (x, y))
    found = asdict(similarity.compare(a, b, taxonomy))
    up, _, down = similarity.path_between(a, b, taxonomy)
    result = {"a": a, "b": b, "wordnet": taxonomy.version, "hierarchy": hierarchy, "lcs": found["lcs"]}
    result |= {k: found[k] for k in SIMILARITY_KEYS}
    if json:
        print_json(result)
        return DONE
    to_stdout(
        f"{taxonomy.name(a)} ({a}) and {taxonomy.name(b)} ({b}), WordNet {taxonomy.version}, {hierarchy}"
    )
    to_stdout(f"  least common subsumer  {taxonomy.name(found['lcs'])} ({found['lcs']})")
    to_stdout(f"  {' > '.join(taxonomy.name(w) for w in up)} | {' > '.join(taxonomy.name(w) for w in down)}")
    for key in SIMILARITY_KEYS:
        to_stdout(f"  {key:9} {result[key]:.6g}")
    return DONE


def show_distance(
    benchmark: Annotated[str, typer.Argument(help="A benchmark, a manifest's folder, or a recipe file.")],
    measure: Annotated[
        str, typer.Option(help="distance (edges), path, wup, lch or mean, of which greater is nearer.")
    ] = "distance",
    plot: Annotated[Path | None, typer.Option(help="Write a box a set, as .svg, .png or .pdf.")] = None,
    manifests: Manifests = None,
    json: Json = False,
) -> int:
    """Say how far each set of a benchmark lies from its ID classes, and whether near is nearer than far."""
    from wordnet_splits.reports.distance import distance

    found = distance(benchmark, measure=measure, manifests=manifests)
    if plot is not None:
        found.plot(plot)
        to_stderr(f"written to {plot}")
    if json:
        print_json(found.as_dict())
        return DONE
    columns = tuple(found.rows()[0])
    print_table(columns, [tuple(row.values()) for row in found.rows()], right=columns[2:])
    to_stdout()
    for line in found.conclusions():
        to_stdout(line)
    return DONE


def show_tree(
    root: Annotated[str, typer.Argument(help="A wnid, a synset name or a noun.")] = "entity.n.01",
    depth: Annotated[int, typer.Option(min=1, help="Levels to show.")] = 2,
    source: Annotated[
        str | None, typer.Option(help="Only branches that hold classes of this source.")
    ] = None,
    wordnet: WordNet = None,
    hierarchy: HierarchyOption = "wordnet",
    json: Json = False,
) -> int:
    """Draw WordNet below a synset, with how many classes of a source each branch holds."""
    from wordnet_splits.catalog import load_catalog

    taxonomy = _taxonomy(wordnet, hierarchy)
    classes = {w for c in load_catalog(source) for w in c.wnids} if source else None
    tree = _subtree(find_synset(root, taxonomy), taxonomy, classes, depth)
    if json:
        print_json(tree)
        return DONE
    for line in _tree_lines(tree, "", ""):
        to_stdout(line)
    return DONE


def show_fidelity(json: Json = False) -> int:
    """Print what the papers publish beside what our rules give, with each keyword switch in turn."""
    from wordnet_splits.fidelity.fidelity import fidelity
    from wordnet_splits.fidelity.keyword_switches import keyword_switches, switch_table

    rows, switches = fidelity(), keyword_switches()
    if json:
        print_json({"rows": [asdict(r) for r in rows], "switches": [asdict(s) for s in switches]})
        return DONE
    print_table(
        ("paper", "what", "published", "ours"),
        [(r.paper, r.what, r.published, r.ours) for r in rows],
        right=("published", "ours"),
    )
    to_stdout()
    to_stdout("Where they differ, and how to read them:")
    for why in dict.fromkeys(r.why for r in rows if r.why):
        to_stdout(f"  {'; '.join(r.what for r in rows if r.why == why)}: {why}")
    to_stdout()
    to_stdout("Far-OOD classes (and images) kept with each switch of the keyword rule in turn:")
    for line in switch_table(switches).splitlines():
        to_stdout(line)
    return DONE


def find_synset(text: str, taxonomy: Taxonomy) -> str:
    """Return the wnid that a wnid, a synset name or a noun stands for, and say which sense is taken."""
    wnid = taxonomy.find(text)
    senses = taxonomy.senses(text.replace(" ", "_"))
    if len(senses) > 1:
        others = ", ".join(taxonomy.name(w) for w in senses[1:6])
        to_stderr(f"{text}: first sense {taxonomy.name(wnid)} taken; others: {others}")
    return wnid


def search_synsets(
    word: Annotated[str, typer.Argument(help="A noun, or a word of several.")],
    wordnet: WordNet = None,
    json: Json = False,
) -> int:
    """Search the synsets of a word, with what each means and how many lie below it."""
    from wordnet_splits.taxonomy.search import find_synsets

    rows = find_synsets(word, load(wordnet)).rows()
    if json:
        print_json({"word": word, "synsets": rows})
        return DONE
    print_table(tuple(rows[0]), [tuple(row.values()) for row in rows], right=("below",))
    return DONE


def _taxonomy(wordnet: str | None, hierarchy: str) -> Taxonomy:
    from wordnet_splits.base.errors import unknown

    if hierarchy not in ("wordnet", "imagenet-tree"):
        raise unknown("hierarchy", hierarchy, ("wordnet", "imagenet-tree"), where="--hierarchy")
    taxonomy = load(wordnet)
    return taxonomy if hierarchy == "wordnet" else taxonomy.tree()


def _subtree(wnid: str, taxonomy: Taxonomy, classes: set[str] | None, depth: int) -> dict[str, Any]:
    below = taxonomy.descendants(wnid)
    node: dict[str, Any] = {"wnid": wnid, "name": taxonomy.name(wnid), "synsets": len(below)}
    if classes is not None:
        node["classes"] = len(below & classes)
    children = taxonomy.children(wnid) if depth else ()
    node["children"] = [
        _subtree(c, taxonomy, classes, depth - 1)
        for c in children
        if classes is None or taxonomy.descendants(c) & classes
    ]
    return node


def _tree_lines(node: dict[str, Any], first: str, rest: str) -> list[str]:
    if "classes" in node:
        count = _counted(node["classes"], "class", "classes")
    else:
        count = _counted(node["synsets"], "synset", "synsets")
    lines = [f"{first}{node['name']}  {node['wnid']}  {count}"]
    children = node["children"]
    for n, child in enumerate(children):
        last = n == len(children) - 1
        lines += _tree_lines(child, rest + ("`- " if last else "|- "), rest + ("   " if last else "|  "))
    return lines


def _counted(count: int, one: str, more: str) -> str:
    return f"{count} {one if count == 1 else more}"
