"""Candidates for names that WordNet lacks: the most informative synsets above the other classes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wordnet_splits.linking.graphs import Graphs
from wordnet_splits.linking.joint_reading import Reading, graphs_of
from wordnet_splits.linking.pool import UNARY, Floats
from wordnet_splits.linking.weights import ranked

OFFERED = 5
"""Most synsets that are offered for a name that WordNet lacks."""
SHARE = 1 / 8
"""Least share of the classes below the first synset that is offered; without one no synset is offered."""
FEWEST = 3
"""Fewest classes below each synset that is offered."""
INFORMATIVE = 5.0
"""Least information of a synset in nats: it is above fewer than one noun in 150."""


def common_synsets(reading: Reading, shares: Floats) -> list[tuple[int, ...]]:
    """Return, per name, the nodes to offer after its candidates; none where WordNet has every word.

    They are ancestors of the best candidates of the other names, or of other names in the superclass.
    """
    pool = reading.pool
    counts = np.diff(pool.starts)
    strange = np.zeros(len(counts), bool)
    strange[pool.owner] = pool.unary[:, UNARY.index("strange")] > 0
    unknown = np.flatnonzero(strange | (counts == 0)).tolist()
    offered: list[tuple[int, ...]] = [()] * len(counts)
    if not unknown:
        return offered
    has = np.flatnonzero((counts > 0) & ~strange)
    best = pool.node[ranked(pool, shares)[pool.starts[has]]].tolist()
    families: dict[str, list[int]] = {}
    for name, node in zip(has.tolist(), best, strict=True):
        families.setdefault(reading.superclasses[name], []).append(node)
    graphs = graphs_of(pool.taxonomy)
    of_family: dict[str, tuple[int, ...]] = {}
    for name in unknown:
        family = reading.superclasses[name]
        if family not in of_family:
            of_family[family] = _most_informative(families.get(family, []), graphs) or _most_informative(
                best, graphs
            )
        offered[name] = of_family[family]
    return offered


def _most_informative(nodes: Sequence[int], graphs: Graphs) -> tuple[int, ...]:
    """Return synsets above nodes: each adds most information about them, the lowest of equals."""
    below: dict[int, list[int]] = {}
    for n, node in enumerate(nodes):
        for above in graphs.ancestors(node):
            if above != node:
                below.setdefault(above, []).append(n)
    # at least every ancestor's, though a child of two parents counts half below each
    information = {node: float(graphs.information[graphs.ancestors(node)].max()) for node in below}
    below = {
        node: names
        for node, names in below.items()
        if len(names) >= FEWEST and information[node] >= INFORMATIVE
    }
    covered = np.zeros(len(nodes))
    synsets: list[int] = []
    while below and len(synsets) < OFFERED:
        gains = {
            node: float(np.maximum(information[node] - covered[names], 0).sum())
            for node, names in below.items()
        }
        best = max(gains, key=lambda node: (round(gains[node], 9), len(graphs.ancestors(node)), -node))
        names = below.pop(best)
        if not synsets and len(names) < SHARE * len(nodes):
            break
        covered[names] = np.maximum(covered[names], information[best])
        synsets.append(best)
    return tuple(synsets)
