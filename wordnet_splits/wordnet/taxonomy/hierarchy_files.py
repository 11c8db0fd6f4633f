"""Custom hierarchies as files: ``tree.tsv`` holds the edges, ``nodes.tsv`` the names of nodes and glosses.

``tree.tsv`` has the columns ``child``, ``parent`` and, if need be, ``kind``: ``is-a`` (the default),
``instance``, or the child is a ``part``, ``member`` or ``substance`` of the parent. ``nodes.tsv`` has
``node``, ``names`` and, if need be, ``gloss`` and ``count``. Names are separated by ``|``; a name that
several nodes share has the number of its sense in each: ``dog#1|domestic dog``. A node without names is
called by its id.

The order of rows is without effect: nodes are sorted by id, and ties go to the smaller one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, repeat
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from wordnet_splits.base.errors import TaxonomyError
from wordnet_splits.base.names import counted, is_one_line, listed, printable
from wordnet_splits.base.untrusted import MiB, read_text
from wordnet_splits.wordnet.taxonomy import graph, wndb
from wordnet_splits.wordnet.taxonomy.graph import Graph, PartGraph
from wordnet_splits.wordnet.taxonomy.lexicon import Lexicon

TREE: Final = ("child", "parent", "kind")
NODES: Final = ("node", "names", "gloss", "count")
REQUIRED: Final = 2
"""Number of columns, of either file, that must be there."""
KINDS: Final = {"is-a": 0, "instance": 1, "member": 2, "part": 3, "substance": 4}
"""Kinds of edges; from `FIRST_PART` on in the order of `graph.KINDS`."""
FIRST_PART: Final = 2
LARGEST: Final = 64 * MiB
"""Largest size of a file in bytes (WordNet's nouns: 11 MB)."""
MOST: Final = 255
"""Largest numbers of parents and of names of a node, and of nodes that share a name."""
LONGEST_ID: Final = 200
"""Longest id of a node, in letters."""
LONGEST_NAME: Final = 256
"""Longest name of a node, in letters (WordNet's have up to 71)."""

_ID_RULE = "an id has 1 to 200 printable characters, without blanks and |, and does not begin with #"
_SENSE = re.compile(r"(.+)#([1-9]\d{0,2})")
_UNFIT = re.compile(r"[|\t ]|\n\n|\A\n")
_OUTER = re.compile(r"^_|_(?=#\d+$|$)", re.MULTILINE)
_COUNT = re.compile(r"\d{1,12}")  # a sum over a million nodes is a 64-bit integer

_Name = tuple[int, int, str]
"""Sense number of a name, 0 for none, its node and its spelling."""


@dataclass(frozen=True, eq=False)
class Content:
    """The content of a taxonomy of n nodes.

    ``ids`` ascending; ``glosses`` and ``counts`` (int64) of each node, None where there are none.
    """

    ids: tuple[str, ...]
    graph: Graph
    lexicon: Lexicon
    parts: PartGraph
    glosses: tuple[str, ...] | None
    counts: npt.NDArray[np.int64] | None


@dataclass(frozen=True)
class Rows:
    """The rows of a table by columns; ``lines`` has their numbers in the file ``where``."""

    where: str
    columns: Mapping[str, Sequence[str]]
    lines: Sequence[int] | None = None

    def error(self, row: int, problem: str, hint: str | None = None) -> TaxonomyError:
        """Return the error for a row, at its line or, without lines, its first cell; for -1 of the table."""
        place = next(iter(self.columns.values()))[row] if self.lines is None else f"line {self.lines[row]}"
        return TaxonomyError(problem, where=f"{self.where}, {place}" if row >= 0 else self.where, hint=hint)

    def in_order(self, column: str, rows: Sequence[int], default: str = "") -> list[str]:
        """Return the cells of ``rows``, ``default`` for row -1; nothing for a column that is not there."""
        cells = [*self.columns.get(column, ()), default]
        return [cells[row] for row in rows] if len(cells) > 1 else []


def read(tree: Path, nodes: Path | None = None, *, root: str | None = None) -> Content:
    """Return the hierarchy of two files; the nodes' ids are their names where ``nodes`` is None.

    Parameters
    ----------
    root : id of the node to be made above several roots and nodes without edges; ``""`` leaves these as they
        are.

    Raises
    ------
    TaxonomyError : a file is absent, too large or malformed, or the edges are not those of a directed acyclic
        graph with a single root; the error names the line.
    """
    return assemble(_read_rows(tree, TREE), None if nodes is None else _read_rows(nodes, NODES), root=root)


def _read_rows(path: Path, headings: Sequence[str]) -> Rows:
    lines = read_text(path, largest=LARGEST, error=TaxonomyError).replace("\r\n", "\n").split("\n")
    numbers = [n for n, line in enumerate(lines, 1) if line and line[0] != "#" and not line.isspace()]
    hint = f"the columns are {', '.join(headings)}, separated by tabs; the first {REQUIRED} suffice"
    columns = lines[numbers[0] - 1].split("\t") if numbers else []
    where = f"{path}, line {numbers[0] if numbers else 1}"
    if len(columns) < REQUIRED or columns != list(headings[: len(columns)]):
        raise TaxonomyError("must begin with the names of its columns", where=where, hint=hint)
    if len(numbers) == 1:
        raise TaxonomyError("must hold at least one row", where=where, hint=hint)
    rows = [lines[number - 1] for number in numbers[1:]]
    tabs = set(map(str.count, rows, repeat("\t")))
    for number, row in zip(numbers[1:], rows, strict=True) if tabs != {len(columns) - 1} else ():
        if row.count("\t") != len(columns) - 1:
            problem = f"must have {counted(len(columns), 'column')}, got {row.count(chr(9)) + 1}"
            raise TaxonomyError(problem, where=f"{path}, line {number}", hint=hint)
    cells = "\t".join(rows).split("\t")
    for number, row in zip(numbers[1:], rows, strict=True) if not "".join(cells).isprintable() else ():
        if not is_one_line(row.replace("\t", "")):
            problem = "holds a control character or an override of the text's direction"
            raise TaxonomyError(problem, where=f"{path}, line {number}")
    return Rows(str(path), {name: cells[at :: len(columns)] for at, name in enumerate(columns)}, numbers[1:])


def assemble(tree: Rows, nodes: Rows | None = None, *, root: str | None = None) -> Content:
    """Return the hierarchy of rows with the columns `TREE` and `NODES`. Raises as `read`."""
    child, parent = list(tree.columns["child"]), list(tree.columns["parent"])
    kind = _kinds(tree)
    known = {*child, *parent}
    _check_ids(tree, TREE[:2], known)
    if nodes is not None and root is not None:
        known.update(nodes.columns["node"])
        known.discard("" if root in {*child, *parent} else root)
        _check_ids(nodes, NODES[:1], known)
    tops = sorted(known.difference(c for c, k in zip(child, kind, strict=True) if k < FIRST_PART))
    made = _new_root(tree, tops, known, root)
    if made is not None:
        child, parent, kind = child + tops, parent + [made] * len(tops), kind + [0] * len(tops)
    ids = tuple(sorted({*known, made} if made is not None else known))
    node_of = dict(zip(ids, range(len(ids)), strict=True))
    edges, parts = _graphs(tree, ids, node_of, child, parent, kind)
    if nodes is None:
        return Content(ids, edges, _words(None, ids, (), tree.where), parts, None, None)
    rows = _rows_of(nodes, tree, node_of, made)
    glosses, counts = nodes.in_order("gloss", rows), nodes.in_order("count", rows, "0")
    for row, cell in enumerate(nodes.columns.get("count", ())):
        if cell and not (_COUNT.fullmatch(cell) and cell.isascii()):
            raise nodes.error(row, f"a count must be a whole number from 0 on, got {printable(cell, 40)!r}")
    return Content(
        ids,
        edges,
        _words(nodes, ids, rows, nodes.where),
        parts,
        tuple(map(str.strip, glosses)) if any(map(str.strip, glosses)) else None,
        np.array([count or "0" for count in counts], np.int64) if counts else None,
    )


def _are_ids(ids: Collection[str]) -> bool:
    text = "\n".join(ids)
    plain = text.replace("\n", "")
    return (
        plain.isprintable()
        and " " not in plain
        and "|" not in plain
        and "\n#" not in f"\n{text}"
        and text.count("\n") == len(ids) - 1
        and 1 <= min(map(len, ids)) <= max(map(len, ids)) <= LONGEST_ID
    )


def _check_ids(rows: Rows, columns: Sequence[str], ids: set[str]) -> None:
    if not _are_ids(ids):
        for row, cells in enumerate(zip(*(rows.columns[name] for name in columns), strict=True)):
            for cell in cells:
                if not _are_ids([cell]):
                    raise rows.error(row, f"{printable(cell, 40)!r} is not an id of a node", hint=_ID_RULE)


def _kinds(tree: Rows) -> list[int]:
    given = tree.columns.get("kind") or [""] * len(tree.columns["child"])
    kinds = KINDS | {"": KINDS["is-a"]}
    for row, kind in enumerate(given) if not kinds.keys() >= set(given) else ():
        if kind not in kinds:
            raise tree.error(row, f"unknown kind {printable(kind, 40)!r}", hint=f"kinds: {', '.join(KINDS)}")
    return [kinds[kind] for kind in given]


def _new_root(tree: Rows, tops: Sequence[str], known: set[str], root: str | None) -> str | None:
    """Return the id of the root to be made, None if there is a single one or, in a cycle, none."""
    if root is None and len(tops) > 1:
        ends = zip(tree.columns["child"], tree.columns["parent"], strict=True)
        row = next(row for row, pair in enumerate(ends) if tops[1] in pair)
        problem = f"there must be one root, got {len(tops):,}: {listed(tops, 3)}"
        raise tree.error(row, problem, hint='add a common parent, or root = "NAME" to [hierarchy]')
    if not root or tops in ([], [root]):
        return None
    if len(tops) == 1:
        raise TaxonomyError(f"{tops[0]} is the only root: omit the new one", where=tree.where)
    if root in known or not _are_ids([root]):
        problem = f"the root to be made must have a new id, got {printable(root, 40)!r}"
        raise TaxonomyError(problem, where=tree.where, hint=_ID_RULE)
    return root


def _graphs(
    tree: Rows,
    ids: Sequence[str],
    node_of: Mapping[str, int],
    child: Sequence[str],
    parent: Sequence[str],
    kind: Sequence[int],
) -> tuple[Graph, PartGraph]:
    """Return both graphs of edges, checked."""
    below = np.fromiter(map(node_of.__getitem__, child), np.int32, len(child))
    above = np.fromiter(map(node_of.__getitem__, parent), np.int32, len(parent))
    kinds = np.array(kind, np.uint8)
    is_a = kinds < FIRST_PART
    for row in np.flatnonzero(below == above)[:1]:
        raise tree.error(row, f"{child[row]} is its own parent")
    edge = (below.astype(np.int64) * len(ids) + above) * len(KINDS) + np.where(is_a, 0, kinds)
    order = np.argsort(edge, kind="stable")
    if len(repeated := order[1:][np.diff(edge[order]) == 0]):
        row = int(repeated.min())
        raise tree.error(row, f"a second edge from {child[row]} to {parent[row]}")
    links = graph.from_arrays(len(ids), below[is_a], above[is_a], kinds[is_a] == KINDS["instance"])
    for node in np.flatnonzero(np.diff(links.parent_indptr) > MOST)[:1]:
        row = int(np.flatnonzero(is_a & (below == node))[MOST])
        raise tree.error(row, f"{ids[node]} must have at most {MOST} parents")
    try:
        _ = links.max_depths
    except graph.EdgeError as error:
        row = int(np.flatnonzero(is_a & (below == error.child) & (above == error.parent))[0])
        raise tree.error(row, f"{error.what}, through {child[row]} and {parent[row]}") from None
    part = ~is_a
    ends = zip(below[part].tolist(), above[part].tolist(), (kinds[part] - FIRST_PART).tolist(), strict=True)
    return links, PartGraph.from_edges(list(ends))


def _rows_of(nodes: Rows, tree: Rows, node_of: Mapping[str, int], made: str | None) -> list[int]:
    """Return the row of each node; -1 for the root that is made, if it has none."""
    given = nodes.columns["node"]
    row_of, first = dict(zip(given, range(len(given)), strict=True)), dict[str, int]()
    for row, name in enumerate(given) if len(row_of) < len(given) or row_of.keys() - node_of.keys() else ():
        if name not in node_of:
            hint = 'name the file of its own nodes in [hierarchy]: nodes = "..."'
            raise nodes.error(row, f"{printable(name, 40)!r} is not a node of {tree.where}", hint=hint)
        if first.setdefault(name, row) != row:
            raise nodes.error(row, f"a second row of {name}")
    if absent := node_of.keys() - row_of.keys() - {made}:
        ends = zip(tree.columns["child"], tree.columns["parent"], strict=True)
        row, name = next((row, end) for row, pair in enumerate(ends) for end in pair if end in absent)
        raise tree.error(row, f"{name} has no row in {nodes.where}")
    return [row_of.get(name, -1) for name in node_of]


def _words(nodes: Rows | None, ids: Sequence[str], rows: Sequence[int], where: str) -> Lexicon:
    """Return the names of each node and the order of senses, with WordNet's irregular plurals."""
    own = [f"{name}#1" if _SENSE.fullmatch(name) else name for name in ids]
    given = nodes.in_order("names", rows) if nodes else own
    cells = [cell if cell and not cell.isspace() else name for cell, name in zip(given, own, strict=True)]
    counts = [cell.count("|") + 1 for cell in cells]
    owners = np.repeat(np.arange(len(ids)), counts).tolist()
    words = [text.strip() for text in "|".join(cells).split("|")]
    numbers = [0] * len(words)
    for at in [at for at, text in enumerate(words) if "#" in text]:
        if match := _SENSE.fullmatch(words[at]):
            words[at], numbers[at] = match[1].rstrip(), int(match[2])
    if nodes and not (all(words) and max(map(len, words)) <= LONGEST_NAME and max(counts) <= MOST):
        for node, word in zip(owners, words, strict=True):
            if not 0 < len(word) <= LONGEST_NAME or counts[node] > MOST:
                problem = f"must have 1 to {MOST} names between |, of 1 to {LONGEST_NAME} letters each"
                raise nodes.error(rows[node], problem)
    text = "\n".join([*words, ""]).replace(" ", "_")
    keys = text.lower().split("\n")[:-1]
    node_of = dict(zip(keys, owners, strict=True))
    repeated = {key for key, count in Counter(keys).items() if count > 1}
    shared: dict[str, list[_Name]] = {}
    for at in [at for at, key in enumerate(keys) if numbers[at] or key in repeated]:
        shared.setdefault(keys[at], []).append((numbers[at], owners[at], words[at]))
    senses = {key: _in_sense_order(key, names, nodes, rows) for key, names in shared.items()}
    if max(map(len, senses.values()), default=0) > MOST:
        raise TaxonomyError(f"a name must be one of at most {MOST} nodes", where=where)
    index = sorted(node_of)
    index_nodes = [node for key in index for node in senses.get(key) or (node_of[key],)]
    return Lexicon(
        lemma_counts=np.array(counts, np.uint8),
        lemma_text=text,
        index_text="".join(f"{key}\n" for key in index),
        index_counts=np.array([len(senses[key]) if key in senses else 1 for key in index], np.uint8),
        index_nodes=np.array(index_nodes, np.int32),
        exceptions_text=wndb.ShippedTexts()["noun.exc"].decode("utf-8", "replace"),
    )


def _in_sense_order(key: str, names: Sequence[_Name], nodes: Rows | None, rows: Sequence[int]) -> list[int]:
    """Return the nodes of a name by its sense numbers, which must be 1, 2 and so on; without rows by id."""
    numbers: dict[int, int] = {}
    for number, node, _ in names:
        if numbers.setdefault(node, number) != number and nodes:
            raise nodes.error(rows[node], f"{key!r} has two sense numbers in one node")
    if nodes is None:
        return list(numbers)
    if len({(node, text) for _, node, text in names}) < len(names):
        raise nodes.error(rows[names[-1][1]], f"{key!r} is a name of a node twice")
    ordered = sorted(numbers, key=lambda node: (numbers[node], rows[node]))
    for expected, node in enumerate(ordered, 1):
        if numbers[node] != expected and (len(numbers) > 1 or numbers[node]):
            problem = f"{key!r} is a name of {counted(len(numbers), 'node')}: "
            problem += f"its sense number must be {expected} here, got {numbers[node] or 'none'}"
            raise nodes.error(rows[node], problem, hint=f"number its senses from 1: {key}#1, {key}#2")
    return ordered


def tables(content: Content) -> tuple[bytes, bytes]:
    """Return the canonical bytes of ``tree.tsv`` and ``nodes.tsv``, which `read` makes the same content of.

    Raises
    ------
    TaxonomyError : an id, name or gloss cannot stand in a cell, or there are no edges.
    """
    ids, links, parts = content.ids, content.graph, content.parts
    lemmas, glosses = content.lexicon.lemma_text, content.glosses or ("",) * len(ids)
    plain = "".join(glosses).isprintable() or all(map(is_one_line, glosses))
    if not (len(links.parent_indices) and _are_ids(ids) and plain) or _UNFIT.search(lemmas):
        raise TaxonomyError("the hierarchy has no edges, or ids or names that no table holds", hint=_ID_RULE)
    child = np.concatenate([np.repeat(np.arange(len(ids)), np.diff(links.parent_indptr)), parts.parts])
    parent = np.concatenate([links.parent_indices, parts.wholes])
    kind = np.concatenate([links.instance, parts.kinds + FIRST_PART])
    order = np.lexsort((kind, parent, child))
    kinds = tuple(KINDS)
    edges = zip(child[order].tolist(), parent[order].tolist(), kind[order].tolist(), strict=True)
    tree = ["\t".join(TREE), *(f"{ids[c]}\t{ids[p]}\t{kinds[k]}" for c, p, k in edges)]
    names = _cells_of_names(content.lexicon)
    cells = ["\t".join(row) for row in zip(ids, names, glosses, strict=True)]
    headings = NODES if content.counts is not None else NODES[:3]
    if content.counts is not None:
        cells = [f"{cell}\t{count}" for cell, count in zip(cells, content.counts.tolist(), strict=True)]
    return _text(tree), _text(["\t".join(headings), *cells])


def _cells_of_names(words: Lexicon) -> list[str]:
    """Return the names of each node, with blanks for underscores inside a name."""
    counts, shared = words.lemma_counts, words.shared
    owners = np.repeat(np.arange(len(counts)), counts).tolist()
    lemmas, keys = words.lemma_text.split("\n"), words.lemma_text.lower().split("\n")
    names = iter(
        [
            words.numbered(lemma, node) if key in shared or "#" in lemma else lemma
            for lemma, key, node in zip(lemmas, keys, owners, strict=False)  # both end with an empty text
        ]
    )
    cells = ["|".join(islice(names, count)) for count in counts.tolist()]
    if not _OUTER.search(words.lemma_text):
        return "\n".join(cells).replace("_", " ").split("\n")
    return ["|".join(n if _OUTER.search(n) else n.replace("_", " ") for n in c.split("|")) for c in cells]


def _text(lines: Sequence[str]) -> bytes:
    return "\n".join([*lines, ""]).encode()
