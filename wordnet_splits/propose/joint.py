"""Reading all names together: every candidate is measured by what the other names may mean.

Each name spreads one vote over its candidates, and each candidate hands its share to every synset above it
and to every word of its definition. A candidate is then measured by the votes of the *other* names at its
own ancestors and words: this takes time in the number of candidates, not of their pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from wordnet_splits.propose.candidates import WHOLE
from wordnet_splits.propose.graphs import Graphs
from wordnet_splits.propose.pool import CATEGORIES, Floats, Indices, Keys, Pool

JOINT = (
    "density",
    "alike",
    "nearest",
    "claimed",
    "category",
    "topic",
    "superclass density",
    "superclass alike",
    "below superclass",
)
"""What the other names say of a candidate.

``density``: log of how thickly the votes lie around it (each vote spread evenly below every ancestor).
``alike``: expected information (Resnik) that it shares with another name. ``nearest``: the most that it
shares with any. ``claimed``: the votes for the very same synset, for classes are distinct, where the whole
names lead to it. ``category``: log share of the names that mean something of its category. ``topic``: whether
its definition has words that are commoner in the chosen definitions than in all candidates'. The last three
ask the names of the same superclass only, and whether it lies below a synset of the superclass's own name."""


class Votes:
    """Votes on keys (synsets, words): what all groups but the candidate's own gave to each of its keys."""

    def __init__(self, of: Indices, key: Indices, group: Indices, weight: Floats) -> None:
        self.of = of  # the candidate of each entry
        self.key = key
        self.group = group
        self.weight = weight
        width = int(key.max(initial=0)) + 1
        self._pair = np.unique(group[of] * width + key, return_inverse=True)[1]
        self._width = width

    def others(self, shares: Floats) -> Floats:
        """Return, per entry, the votes of the other groups at its key."""
        given = (shares * self.weight)[self.of]
        total = np.bincount(self.key, given, self._width)
        own = np.bincount(self._pair, given)
        left: Floats = np.maximum(total[self.key] - own[self._pair], 0.0)
        return left

    def sum(self, values: Floats, candidates: int) -> Floats:
        """Return the sum of the entries' values, per candidate."""
        return np.bincount(self.of, values, candidates).astype(np.float64)

    def most(self, values: Floats, candidates: int) -> Floats:
        """Return the greatest of the entries' values, per candidate; 0 where it has none."""
        found = np.zeros(candidates)
        np.maximum.at(found, self.of, values)
        return found


def joint_features(
    pool: Pool, graphs: Graphs, superclasses: Sequence[str], superclass_nodes: Callable[[str], list[int]]
) -> Callable[[Floats], Floats]:
    """Return what turns shares of candidates into their joint features, (m, ``len(JOINT)``)."""
    m = len(pool.owner)
    group = pool.group[pool.owner]
    members = np.bincount(pool.group)
    weight = 1.0 / members[group]
    groups = max(len(members) - 1, 1)
    of_node, above = pool.above.expanded(pool.row)
    nodes = Votes(of_node, above, group, weight)
    gain = _gains(graphs)[nodes.key]
    size, information = graphs.size[nodes.key], graphs.information[nodes.key]
    vocabulary: dict[str, int] = {}
    tokens = Keys.of(
        [
            [vocabulary.setdefault(t, len(vocabulary)) for t in graphs.tokens(node)]
            for node in pool.nodes.tolist()
        ]
    )
    words = Votes(*tokens.expanded(pool.row), group, weight)
    even = pool.softmax(np.zeros(m))
    evenly = words.others(even)
    categories = Votes(np.arange(m), pool.category, group, weight)
    whole = np.array([route.kind in WHOLE for route in pool.routes], np.float64)
    lengths = np.maximum(np.bincount(words.of, minlength=m), 1)
    super_ids = {s: n for n, s in enumerate(dict.fromkeys(superclasses))}
    kin = np.array([super_ids[s] for s in superclasses], np.int64)[pool.owner] if m else np.zeros(0, np.int64)
    same = len(super_ids) > 1
    if same:
        n_nodes = len(graphs.size)
        family_keys, family_of = np.unique(kin[of_node] * n_nodes + above, return_inverse=True)
        families = Votes(of_node, family_of, group, weight)
        members_of = np.unique(kin * len(members) + group) // len(members)
        of_family = np.maximum(np.bincount(members_of, minlength=len(super_ids)) - 1.0, 1.0)[kin]
        tops = [k * n_nodes + node for text, k in super_ids.items() for node in superclass_nodes(text)]
        below = families.most(np.isin(family_keys, tops)[family_of].astype(np.float64), m)

    def features(shares: Floats) -> Floats:
        table = np.zeros((m, len(JOINT)))
        votes = nodes.others(shares)
        table[:, 0] = np.log(nodes.sum(votes / groups / size, m) + 1.0 / len(graphs.size))
        table[:, 1] = nodes.sum(votes / groups * gain, m)
        table[:, 2] = nodes.most(information * np.minimum(votes, 1.0), m)
        claims = nodes.others(shares * whole)
        table[:, 3] = whole * np.minimum(nodes.sum(claims * (nodes.key == pool.node[nodes.of]), m), 1.0)
        table[:, 4] = np.log(
            (categories.sum(categories.others(shares), m) + 1.0) / (groups + len(CATEGORIES))
        )
        chosen = words.others(shares)
        table[:, 5] = words.sum(np.log((chosen + 1.0) / (evenly + 1.0)), m) / np.sqrt(lengths)
        if same:
            family = families.others(shares)
            table[:, 6] = np.log(
                families.sum(family / of_family[families.of] / graphs.size[above], m) + 1.0 / n_nodes
            )
            table[:, 7] = families.sum(family / of_family[families.of] * gain, m)
            table[:, 8] = below
        return table

    return features


def _gains(graphs: Graphs) -> Floats:
    graph = graphs.taxonomy.graph
    indptr = graph.parent_indptr
    sums = np.add.reduceat(np.append(graphs.information[graph.parent_indices], 0.0), indptr[:-1])
    degree = np.diff(indptr)
    mean = np.where(degree > 0, sums / np.maximum(degree, 1), 0.0)
    gains: Floats = graphs.information - mean
    return gains
