"""One parent per synset: the tree that ImageNet's former is-a file makes of WordNet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files

import numpy as np

from wordnet_splits.base.errors import TaxonomyError
from wordnet_splits.taxonomy.graph import Graph

CHOICES = files("wordnet_splits") / "data" / "wordnet" / "imagenet_tree.tsv"


@cache
def imagenet_choices() -> dict[str, str]:
    """Return child -> the parent it keeps, for every synset of WordNet 3.0 that has several hypernyms."""
    text = CHOICES.read_text("utf-8")
    rows = (line.split("\t") for line in text.splitlines() if line and not line.startswith("#"))
    next(rows)  # column names
    return {child: parent for child, parent, *_ in rows}


def tree(graph: Graph, choices: Mapping[int, int], wnid: Callable[[int], str]) -> Graph:
    """Return ``graph`` without instance edges and with at most one parent for each node.

    Parameters
    ----------
    graph : the full graph of n nodes.
    choices : node -> the parent it keeps, where it has several. A node of several hypernyms without a
        choice loses them all and is marked ``unresolved``.
    wnid : names a node in error messages.

    Raises
    ------
    TaxonomyError : a chosen parent is not a hypernym of its child.
    """
    n = len(graph)
    owner = np.repeat(np.arange(n, dtype=np.int32), np.diff(graph.parent_indptr))
    keep = ~graph.instance
    hypernyms = np.bincount(owner[keep], minlength=n)
    chosen = np.full(n, -1, np.int32)
    for child, parent in choices.items():
        if parent not in graph.parents(child):
            raise TaxonomyError(f"{wnid(parent)} is not a hypernym of {wnid(child)}", where="tree choices")
        chosen[child] = parent
    several = hypernyms > 1
    keep &= ~several[owner] | (chosen[owner] == graph.parent_indices)
    indptr = np.zeros(n + 1, np.int32)
    np.cumsum(np.bincount(owner[keep], minlength=n), out=indptr[1:])
    unresolved = several & (chosen < 0)
    if graph.unresolved is not None:
        unresolved |= graph.unresolved
    return Graph(indptr, graph.parent_indices[keep], graph.instance[keep], unresolved)
