"""Classes below their hypernyms: WordNet's tree, of which only branchings and classes are kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from wordnet_splits.site.columns import Columns
from wordnet_splits.site.synsets import Synsets
from wordnet_splits.taxonomy import Taxonomy

NOWHERE = "no synset"


def class_tree(own: Sequence[str | None], synsets: Synsets) -> Columns:
    """Return the tree over the classes of a table.

    Parameters
    ----------
    own : the synset of each row, None where it has none.

    Returns
    -------
    ``synset``, ``label`` (where there is no synset), ``parent`` (a row before it, -1 for the roots) and
    ``rows`` (those of ``own`` that are this synset). A synset of one child and no class is left out.
    """
    holders: dict[str, list[int]] = {}
    for row, wnid in enumerate(own):
        if wnid is not None:
            holders.setdefault(wnid, []).append(row)
    found: Columns = {"synset": [], "label": [], "parent": [], "rows": []}
    for wnid, parent in kept_nodes(holders, synsets.taxonomy):
        found["synset"].append(synsets.number(wnid))
        found["label"].append(None)
        found["parent"].append(parent)
        found["rows"].append(holders.get(wnid, []))
    if homeless := [row for row, wnid in enumerate(own) if wnid is None]:
        for name, value in (("synset", None), ("label", NOWHERE), ("parent", -1), ("rows", homeless)):
            found[name].append(value)
    return found


def kept_nodes(held: Iterable[str], taxonomy: Taxonomy) -> list[tuple[str, int]]:
    """Return the synsets ``held`` and where their ways up part, each with the place of the one above it.

    Depth first, siblings by name; the way up is that of ImageNet's tree, where a synset has one parent.
    """
    tree = taxonomy.tree()
    own = set(held)
    children: dict[str, set[str]] = {}
    roots: set[str] = set()
    for wnid in own:
        while (above := _parent(wnid, tree, taxonomy)) is not None:
            known = wnid in children.setdefault(above, set())
            children[above].add(wnid)
            if known:
                break
            wnid = above
        else:
            roots.add(wnid)

    def kept(wnids: Iterable[str]) -> list[str]:
        """Return where the ways down from some synsets end or part, the first by name at the end."""
        ends = []
        for wnid in wnids:
            while wnid not in own and len(children[wnid]) == 1:
                (wnid,) = children[wnid]
            ends.append(wnid)
        return sorted(ends, key=lambda wnid: (taxonomy.name(wnid), wnid), reverse=True)

    found: list[tuple[str, int]] = []
    pending = [(wnid, -1) for wnid in kept(roots)]
    while pending:
        wnid, parent = pending.pop()
        found.append((wnid, parent))
        pending += [(child, len(found) - 1) for child in kept(children.get(wnid, ()))]
    return found


def _parent(wnid: str, tree: Taxonomy, taxonomy: Taxonomy) -> str | None:
    """Return a synset's parent in the tree; of instances, which have none there, the first in the graph."""
    above = tree.parents(wnid) or taxonomy.parents(wnid)
    return above[0] if above else None
