"""Classes below their hypernyms: ImageNet's tree, reduced to classes and branchings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from wordnet_splits.explorer.columns import Columns, SynsetNumbers
from wordnet_splits.wordnet.taxonomy import Taxonomy

NO_SYNSET = "no synset"


def class_tree(wnids: Sequence[str | None], synsets: SynsetNumbers) -> Columns:
    """Return the tree over the classes of a table.

    Parameters
    ----------
    wnids : the synset of each row, None where it has none.

    Returns
    -------
    ``synset``, ``label`` (for a class without synset), ``parent`` (an earlier row, -1 for the roots)
    and ``rows`` (positions of this synset in ``wnids``).
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
        for name, value in (("synset", None), ("label", NO_SYNSET), ("parent", -1), ("rows", without_synset)):
            tree[name].append(value)
    return tree


def reduced_tree(wnids: Iterable[str], taxonomy: Taxonomy) -> list[tuple[str, int]]:
    """Return synsets and the branchings above them, each with the position of its parent in the list.

    Depth first, siblings by name. A synset's parent comes from ImageNet's tree if it has a parent there.
    """
    tree = taxonomy.tree()
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
