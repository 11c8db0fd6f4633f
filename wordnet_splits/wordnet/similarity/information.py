"""Information content of the nodes of a hierarchy, from its structure or from counts of its nodes.

From the structure (Seco, Veale and Hayes, ECAI 2004), hypo(c) the number of distinct nodes below c:

    IC(c) = 1 - ln(hypo(c) + 1) / ln N

From counts (Resnik, IJCAI 1995), with freq(c) the sum of the counts of c and of the distinct nodes below it:

    IC(c) = -ln(freq(c) / freq(root))
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from wordnet_splits.base.errors import TaxonomyError
from wordnet_splits.wordnet.similarity.allpairs import Floats, ancestors_of
from wordnet_splits.wordnet.taxonomy import Taxonomy
from wordnet_splits.wordnet.taxonomy.graph import UNREACHED, Graph

INFINITE = 1e300
"""Information of a node whose count is 0, and jcn of two nodes without a difference: NLTK's infinity, with
which sums, differences and JSON stay finite."""
CHUNK = 64
"""Number of nodes whose ancestors are in memory at a time."""


@dataclass(frozen=True, eq=False)
class Information:
    """Information content of the n nodes of a hierarchy.

    Parameters
    ----------
    values : (n,) float64, IC of each node: 0 at the root; in [0, 1] from the structure, from counts in nats.
    source : origin of the frequencies.
    total : N, the number of nodes (``structure``) or the frequency of the root (``counts``). With several
        roots, the greatest of theirs.
    """

    values: Floats
    source: Literal["structure", "counts"]
    total: int

    @property
    def words(self) -> str:
        """The source and N, for sentences."""
        return f"information content from {self.source}, N = {self.total:,}"


@lru_cache(maxsize=4)
def information_of(taxonomy: Taxonomy) -> Information:
    """Return the information content of every node, from the counts of the hierarchy if it has counts.

    Raises
    ------
    TaxonomyError : every count is 0.
    """
    counts = taxonomy.counts
    own = np.ones(len(taxonomy)) if counts is None else counts.astype(np.float64)
    frequencies = sums_below(taxonomy.graph, own)
    total = int(frequencies.max())
    if total == 0:
        raise TaxonomyError("the counts of the nodes are all 0", where=taxonomy.title)
    distinct, of_node = np.unique(frequencies, return_inverse=True)
    if counts is None:
        values = [1.0 - math.log(max(f, 1.0)) / (math.log(total) or 1.0) for f in distinct.tolist()]
    else:
        values = [0.0 - math.log(f / total) if f else INFINITE for f in distinct.tolist()]
    table = np.array(values)[of_node]
    table.setflags(write=False)
    return Information(table, "structure" if counts is None else "counts", total)


def sums_below(graph: Graph, own: Floats) -> Floats:
    """Return the sum of ``own`` over each node and its distinct descendants.

    Nodes with one parent are summed up the tree that they form. A node with several parents starts a tree of
    its own, whose sum every distinct ancestor gets once.

    Parameters
    ----------
    graph : a graph of n nodes. Nodes below an unresolved node of a tree get 0.
    own : (n,) float64.
    """
    parents = np.diff(graph.parent_indptr)
    sums = np.where(graph.max_depths == UNREACHED, 0.0, own)
    single = graph.order[(parents == 1)[graph.order] & (graph.max_depths != UNREACHED)[graph.order]]
    above = graph.parent_indices[graph.parent_indptr[single]]
    depths = graph.max_depths[single]
    for depth in range(int(depths.max(initial=0)), 0, -1):
        level = slice(*np.searchsorted(depths, [depth, depth + 1]))
        np.add.at(sums, above[level], sums[single[level]])
    several = np.flatnonzero(parents > 1).astype(np.int32)
    trees = sums.copy()
    for start in range(0, len(several), CHUNK):
        nodes = several[start : start + CHUNK]
        ancestors = ancestors_of(graph, nodes)
        weights = np.repeat(trees[nodes], np.diff(ancestors.indptr))
        weights[ancestors.edges == 0] = 0.0  # the node itself
        np.add.at(sums, ancestors.nodes, weights)
    return sums
