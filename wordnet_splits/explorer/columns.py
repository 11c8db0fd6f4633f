"""Tables as the pages read them: objects of columns, rounded figures, synsets by number, and class trees."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from wordnet_splits.wordnet.taxonomy import Taxonomy

DIGITS = 6

Columns = dict[str, list[Any]]
Node = tuple[Taxonomy, str]
"""A hierarchy and the wnid or id of a node in it."""


def to_columns(names: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> Columns:
    """Return rows as columns, in the order of ``names``; figures are `rounded`."""
    columns: Columns = {name: [] for name in names}
    for row in rows:
        for name in names:
            columns[name].append(rounded(row[name]))
    return columns


def rounded(value: Any) -> Any:
    """Return a float rounded to six digits, None if it is not finite; other values as they are."""
    if isinstance(value, float):
        return round(value, DIGITS) if math.isfinite(value) else None
    return value


class SynsetNumbers:
    """Numbers of synsets, in order of first use: pages refer to synsets by number.

    Parameters
    ----------
    taxonomy : the hierarchy of the synsets that are numbered.
    numbered : numbers given so far, also in other hierarchies.
    """

    def __init__(self, taxonomy: Taxonomy, numbered: dict[Node, int] | None = None) -> None:
        self.taxonomy = taxonomy
        self._numbers: dict[Node, int] = {} if numbered is None else numbered

    def within(self, taxonomy: Taxonomy) -> SynsetNumbers:
        """Return the same numbers, to be continued with the nodes of another hierarchy."""
        return SynsetNumbers(taxonomy, self._numbers)

    def number(self, wnid: str | None) -> int | None:
        """Return the number of a synset, None for None."""
        return None if wnid is None else self.numbers([wnid])[0]

    def numbers(self, wnids: Iterable[str]) -> list[int]:
        """Return the numbers of synsets."""
        return [self._numbers.setdefault((self.taxonomy, wnid), len(self._numbers)) for wnid in wnids]

    def table(self) -> Columns:
        """Return wnid, words and definition (may be empty) of every numbered synset."""
        return {
            "wnid": [wnid for _, wnid in self._numbers],
            "name": [", ".join(x.replace("_", " ") for x in t.lemmas(w)) for t, w in self._numbers],
            "gloss": ["" if "glosses" in t.lacks else t.gloss(w) for t, w in self._numbers],
        }


def class_tree(wnids: Sequence[str | None], synsets: SynsetNumbers) -> Columns:
    """Return the tree over the classes of a table, given by the synset of each row.

    Its columns are ``synset``, ``label`` (for a class without synset), ``parent`` (an earlier row, -1 for the
    roots) and ``rows`` (positions of this synset in ``wnids``).
    """
    rows_of: dict[str, list[int]] = {}
    for row, wnid in enumerate(wnids):
        if wnid is not None:
            rows_of.setdefault(wnid, []).append(row)
    tree: Columns = {"synset": [], "label": [], "parent": [], "rows": []}
    for wnid, parent in reduced_tree(rows_of, synsets.taxonomy):
        tree["synset"].append(synsets.number(wnid))
        tree["label"].append(None)
        tree["parent"].append(parent)
        tree["rows"].append(rows_of.get(wnid, []))
    if without_synset := [row for row, wnid in enumerate(wnids) if wnid is None]:
        label = f"no {synsets.taxonomy.noun}"
        for name, value in (("synset", None), ("label", label), ("parent", -1), ("rows", without_synset)):
            tree[name].append(value)
    return tree


def reduced_tree(wnids: Iterable[str], taxonomy: Taxonomy) -> list[tuple[str, int]]:
    """Return synsets and the branchings above them, each with the position of its parent in the list.

    Depth first, siblings by name. A synset's parent comes from ImageNet's tree if it has a parent there; a
    node of another hierarchy than WordNet is placed below its first parent.
    """
    tree = taxonomy.tree() if taxonomy.is_wordnet else taxonomy
    classes = set(wnids)
    children: dict[str, set[str]] = {}
    roots: set[str] = set()
    for wnid in classes:
        while (parent := _parent(wnid, tree, taxonomy)) is not None:
            visited = wnid in children.setdefault(parent, set())
            children[parent].add(wnid)
            if visited:
                break
            wnid = parent
        else:
            roots.add(wnid)

    def skip_single_children(wnids: Iterable[str]) -> list[str]:
        """Return the nearest classes or branchings at or below synsets, in reverse order of their names."""
        nodes = []
        for wnid in wnids:
            while wnid not in classes and len(children[wnid]) == 1:
                (wnid,) = children[wnid]
            nodes.append(wnid)
        return sorted(nodes, key=lambda wnid: (taxonomy.name(wnid), wnid), reverse=True)

    nodes: list[tuple[str, int]] = []
    pending = [(wnid, -1) for wnid in skip_single_children(roots)]
    while pending:
        wnid, position = pending.pop()
        nodes.append((wnid, position))
        pending += [(child, len(nodes) - 1) for child in skip_single_children(children.get(wnid, ()))]
    return nodes


def _parent(wnid: str, tree: Taxonomy, taxonomy: Taxonomy) -> str | None:
    """Return a synset's parent in the tree, or its first in the graph if it has no parent in the tree."""
    parents = tree.parents(wnid) or taxonomy.parents(wnid)
    return parents[0] if parents else None
