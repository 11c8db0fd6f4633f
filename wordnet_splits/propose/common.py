"""What a name may be that WordNet lacks: the synsets above the other classes that say most of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wordnet_splits.propose.graphs import Graphs
from wordnet_splits.propose.model import best
from wordnet_splits.propose.pool import UNARY, Floats
from wordnet_splits.propose.reading import Reading, graphs_of

OFFERED = 5
"""Synsets that are offered for a name that WordNet lacks."""
SHARE = 1 / 8
"""Share of the classes that lie below the first synset offered; where there is no such synset, none is."""
FEWEST = 3
"""Classes that lie below each of them."""
SAYS = 5.0
"""Information (nats) from which on a synset says something: it is above fewer than one noun in 150."""


def common_synsets(reading: Reading, shares: Floats) -> list[tuple[int, ...]]:
    """Return, per name, the nodes to be offered after its candidates; none where WordNet knows every word.

    They lie above what is chosen for the other names: for those of the same superclass, if it is given.
    """
    pool = reading.pool
    counts = np.diff(pool.starts)
    strange = np.zeros(len(counts), bool)
    strange[pool.owner] = pool.unary[:, UNARY.index("strange")] > 0
    lacking = np.flatnonzero(strange | (counts == 0)).tolist()
    found: list[tuple[int, ...]] = [()] * len(counts)
    if not lacking:
        return found
    has = np.flatnonzero((counts > 0) & ~strange)
    chosen = pool.node[best(pool, shares)[pool.starts[has]]].tolist()
    families: dict[str, list[int]] = {}
    for name, node in zip(has.tolist(), chosen, strict=True):
        families.setdefault(reading.superclasses[name], []).append(node)
    graphs = graphs_of(pool.taxonomy)
    of_family: dict[str, tuple[int, ...]] = {}
    for name in lacking:
        family = reading.superclasses[name]
        if family not in of_family:
            of_family[family] = _most_said(families.get(family, []), graphs) or _most_said(chosen, graphs)
        found[name] = of_family[family]
    return found


def _most_said(chosen: Sequence[int], graphs: Graphs) -> tuple[int, ...]:
    """Return synsets above the chosen ones: each adds most information about them, the lowest of equals."""
    below: dict[int, list[int]] = {}
    for n, node in enumerate(chosen):
        for above in graphs.ancestors(node):
            if above != node:
                below.setdefault(above, []).append(n)
    # a node says at least what those above it say, though a child of two counts half below each
    says = {node: float(graphs.information[graphs.ancestors(node)].max()) for node in below}
    below = {node: some for node, some in below.items() if len(some) >= FEWEST and says[node] >= SAYS}
    said = np.zeros(len(chosen))
    picked: list[int] = []
    while below and len(picked) < OFFERED:
        gains = {node: float(np.maximum(says[node] - said[some], 0).sum()) for node, some in below.items()}
        first = max(gains, key=lambda node: (round(gains[node], 9), len(graphs.ancestors(node)), -node))
        names = below.pop(first)
        if not picked and len(names) < SHARE * len(chosen):
            break
        said[names] = np.maximum(said[names], says[first])
        picked.append(first)
    return tuple(picked)
