"""Commands on WordNet itself: wordnet search, tree and compare."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.terminal.options import Json, WordNet
from wordnet_splits.base.terminal.output import (
    DONE,
    print_lines,
    print_result,
    print_table,
    to_stderr,
    to_stdout,
)
from wordnet_splits.cli.main import app
from wordnet_splits.wordnet.taxonomy import Taxonomy, load

HierarchyOption = Annotated[str, typer.Option(help="wordnet (the full graph) or imagenet-tree.")]
Synset = "A wnid (n02084071), a synset (dog.n.01) or a noun."
HIERARCHIES = ("wordnet", "imagenet-tree")
MEASURES = ("distance", "path", "wup", "wup_wn", "wup_perl", "lch", "lch_perl", "mean", "mean2")
MEASURES_OF_INFORMATION = ("res", "lin", "jcn")


app.group("wordnet", "Synsets of WordNet: search, what lies below one, how alike two are.", heading="Data")


@app.command(
    "wordnet search",
    examples=[
        "wordnet-splits wordnet search crane",
        "wordnet-splits wordnet search 'sea lion' --json",
    ],
)
def search_synsets(
    word: Annotated[str, typer.Argument(help="A noun, or a phrase.")],
    wordnet: WordNet = None,
    json: Json = False,
) -> int:
    """Search the synsets of a word, with their meanings and the number of synsets below each."""
    from wordnet_splits.wordnet.taxonomy.identifiers import find_synsets

    rows = find_synsets(word, load(wordnet)).rows()
    print_result(
        {"word": word, "synsets": rows},
        json,
        lambda: print_table(tuple(rows[0]), [tuple(row.values()) for row in rows], right=("below",)),
    )
    return DONE


@app.command(
    "wordnet tree",
    examples=[
        "wordnet-splits wordnet tree dog",
        "wordnet-splits wordnet tree animal.n.01 --source imagenet1k --depth 2",
    ],
)
def draw_subtree(
    root: Annotated[str | None, typer.Argument(help=f"{Synset} By default the root.")] = None,
    depth: Annotated[int, typer.Option(min=1, help="Levels to show.")] = 2,
    source: Annotated[
        str | None, typer.Option(help="Only branches that hold classes of this source.")
    ] = None,
    wordnet: WordNet = None,
    hierarchy: HierarchyOption = "wordnet",
    json: Json = False,
) -> int:
    """Draw WordNet below a synset, with the number of a source's classes in each branch."""
    taxonomy = _load_hierarchy(wordnet, hierarchy)
    classes = _nodes_of_classes(source, taxonomy) if source else None
    top = taxonomy.root if root is None else _find_synset(root, taxonomy)
    tree = _subtree(top, taxonomy, classes, depth)
    kind = "class" if source else "synset" if taxonomy.is_wordnet else "node"
    print_result(tree, json, lambda: print_lines(_tree_lines(tree, kind)))
    return DONE


@app.command(
    "wordnet compare",
    examples=[
        "wordnet-splits wordnet compare dog cat",
        "wordnet-splits wordnet compare n02084071 cat.n.01 --json",
    ],
)
def compare_synsets(
    x: Annotated[str, typer.Argument(help=Synset)],
    y: Annotated[str, typer.Argument(help="The synset to compare it with.")],
    wordnet: WordNet = None,
    hierarchy: HierarchyOption = "wordnet",
    json: Json = False,
) -> int:
    """Measure how alike two synsets are: distance, path, Wu-Palmer, Leacock-Chodorow, information, mean."""
    from wordnet_splits.wordnet.similarity import pairs as similarity
    from wordnet_splits.wordnet.similarity.information import information_of
    from wordnet_splits.wordnet.similarity.measures import constants, height

    taxonomy = _load_hierarchy(wordnet, hierarchy)
    a, b = (_find_synset(text, taxonomy) for text in (x, y))
    measures = asdict(similarity.compare_synsets(a, b, taxonomy))
    shown_as = (taxonomy.version, hierarchy) if taxonomy.is_wordnet else (taxonomy.title, "own")
    result: dict[str, Any] = {"a": a, "b": b, "wordnet": shown_as[0], "hierarchy": shown_as[1]}
    shown = (*MEASURES, *MEASURES_OF_INFORMATION)
    result |= {key: measures[key] for key in ("lcs", *shown)}
    content = information_of(taxonomy)
    result["constants"] = {"height": height(taxonomy), "information": content.source, "N": content.total}

    def print_measures() -> None:
        up, _, down = similarity.path_between(a, b, taxonomy)
        names = {wnid: taxonomy.name(wnid) for wnid in (*up, *down, result["lcs"])}
        named = {wnid: wnid if wnid == name else f"{name} ({wnid})" for wnid, name in names.items()}
        pair = f"{named[a]} and {named[b]}"
        to_stdout(", ".join([pair, taxonomy.title, *([hierarchy] if taxonomy.is_wordnet else [])]))
        to_stdout(f"  least common subsumer  {named[result['lcs']]}")
        to_stdout(f"  {' > '.join(names[w] for w in up)} | {' > '.join(names[w] for w in down)}")
        print_lines(f"  {key:9} {result[key] + 0:<9.6g} {constants(key, taxonomy)}".rstrip() for key in shown)

    print_result(result, json, print_measures)
    return DONE


def _find_synset(text: str, taxonomy: Taxonomy) -> str:
    """Return the wnid of a wnid, a synset name or a noun; a noun's other senses are named on stderr."""
    wnid = taxonomy.find(text)
    senses = taxonomy.senses(text.replace(" ", "_"))
    if len(senses) > 1:
        others = ", ".join(taxonomy.name(w) for w in senses[1:6])
        to_stderr(f"{text}: first sense {taxonomy.name(wnid)} taken; others: {others}")
    return wnid


def _load_hierarchy(wordnet: str | None, hierarchy: str) -> Taxonomy:
    from wordnet_splits.base.errors import unknown

    if hierarchy not in HIERARCHIES:
        near = [f"--wordnet {hierarchy}"] if hierarchy.endswith(".tsv") else []
        raise unknown("hierarchy", hierarchy, HIERARCHIES, where="--hierarchy", near=near)
    taxonomy = load(wordnet)
    return taxonomy if hierarchy == "wordnet" else taxonomy.tree()


def _nodes_of_classes(source: str, taxonomy: Taxonomy) -> set[str]:
    from wordnet_splits.datasets.catalog import load_catalog
    from wordnet_splits.datasets.catalog.own_hierarchy import place_classes

    catalog = load_catalog(source)
    catalog = catalog if taxonomy.is_wordnet else place_classes(catalog, taxonomy)
    nodes = {wnid for item in catalog for wnid in item.wnids}
    if not (taxonomy.is_wordnet or any(node in taxonomy for node in nodes)):
        raise DataError(f"no class of {source} is at a node of {taxonomy.title}", where="--source")
    return nodes


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


def _tree_lines(node: dict[str, Any], kind: str, joint: str = "", indent: str = "") -> list[str]:
    """Return the lines of a tree, with ``joint`` before the first line and ``indent`` before the others."""
    from wordnet_splits.base.names import counted

    count = counted(node["classes" if "classes" in node else "synsets"], kind)
    names = "  ".join(dict.fromkeys((node["name"], node["wnid"])))
    lines = [f"{joint}{names}  {count}"]
    *others, last = node["children"] or [None]
    for child in others:
        lines += _tree_lines(child, kind, f"{indent}|- ", f"{indent}|  ")
    return lines if last is None else lines + _tree_lines(last, kind, f"{indent}`- ", f"{indent}   ")
