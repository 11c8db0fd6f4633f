"""Joint reading of all names of a dataset: every candidate is measured by the other names' meanings.

Each name spreads one vote over its candidates, and each candidate hands its share to every synset above it
and to every word of its definition. A candidate is then measured by the votes of the *other* names at its
own ancestors and words, in time linear in the number of candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from wordnet_splits.datasets.catalog import load_catalog
from wordnet_splits.linking.candidates import WHOLE, Lemmas, routes
from wordnet_splits.linking.class_names import ParsedName, parse_name
from wordnet_splits.linking.gathering import Graphs, topic_stem
from wordnet_splits.linking.languages import ForeignLemmas, ForeignNouns
from wordnet_splits.linking.pool import CATEGORIES, Floats, Indices, Keys, Pool, make_pool
from wordnet_splits.wordnet.taxonomy import Taxonomy

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
"""Features of a candidate that depend on the other names.

``density``: log density of the votes around it (each vote is spread evenly below every ancestor).
``alike``: expected information (Resnik) that it shares with another name. ``nearest``: the greatest
information that it shares with another name. ``claimed``: the votes of whole names for the same synset,
since classes are distinct. ``category``: log share of the names whose meaning has its category. ``topic``:
whether the words of its definition are commoner in the other names and their voted definitions than in all
nouns and their definitions. The last three use only the names in the same superclass, and whether the
candidate is below a synset of the superclass's name."""
FULL_PRIOR = 99
"""Number of other names from which every category gets a whole vote more, as a prior. With a dozen names, a
category gets a tenth of a vote, so that 19 categories do not outweigh the names; with one or two names, which
decide little, it gets more."""
SMOOTHING = 0.5
"""Votes that are added to the voted and to the expected number of names that have a word."""
WITH_IMAGES = ("imagenet21k", "imagenet1k")
"""Sources whose synsets have images; synsets of the second source are also common in datasets."""


class Votes:
    """Votes of groups of names on keys (synsets or words); each entry is a key of a candidate."""

    def __init__(self, of: Indices, key: Indices, group: Indices, weight: Floats) -> None:
        self.of = of  # candidate of each entry
        self.key = key
        self.group = group
        self.weight = weight
        width = int(key.max(initial=0)) + 1
        self._pair = np.unique(group[of] * width + key, return_inverse=True)[1]
        self._width = width

    def of_other_groups(self, shares: Floats) -> Floats:
        """Return, per entry, the votes for its key from all groups except its candidate's."""
        votes = (shares * self.weight)[self.of]
        total = np.bincount(self.key, votes, self._width)
        same_group = np.bincount(self._pair, votes)
        difference: Floats = np.maximum(total[self.key] - same_group[self._pair], 0.0)
        return difference

    def sum(self, values: Floats, candidates: int) -> Floats:
        """Return the sum of the entries' values, per candidate."""
        return np.bincount(self.of, values, candidates).astype(np.float64)

    def most(self, values: Floats, candidates: int) -> Floats:
        """Return the greatest of the entries' values, per candidate; 0 without entries."""
        greatest = np.zeros(candidates)
        np.maximum.at(greatest, self.of, values)
        return greatest


def joint_features(
    pool: Pool, graphs: Graphs, superclasses: Sequence[str], superclass_nodes: Callable[[str], list[int]]
) -> Callable[[Floats], Floats]:
    """Return the function from shares of candidates to their joint features, (m, ``len(JOINT)``)."""
    m = len(pool.owner)
    group = pool.group[pool.owner]
    members = np.bincount(pool.group)
    weight = 1.0 / members[group]
    groups = max(len(members) - 1, 1)
    prior = min(max(groups / FULL_PRIOR, 1 / groups), 1.0)
    of_node, above = pool.above.expanded(pool.row)
    nodes = Votes(of_node, above, group, weight)
    gain = _gains(graphs)[nodes.key]
    size, information = graphs.size[nodes.key], graphs.information[nodes.key]
    topics = _Topics(pool, graphs, group, weight)
    categories = Votes(np.arange(m), pool.category, group, weight)
    whole = np.array([route.kind in WHOLE for route in pool.routes], np.float64)
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
        votes = nodes.of_other_groups(shares)
        table[:, 0] = np.log(nodes.sum(votes / groups / size, m) + 1.0 / len(graphs.size))
        table[:, 1] = nodes.sum(votes / groups * gain, m)
        table[:, 2] = nodes.most(information * np.minimum(votes, 1.0), m)
        claims = nodes.of_other_groups(shares * whole)
        table[:, 3] = whole * np.minimum(nodes.sum(claims * (nodes.key == pool.node[nodes.of]), m), 1.0)
        voted_for = categories.sum(categories.of_other_groups(shares), m)
        table[:, 4] = np.log((voted_for + prior) / (groups + prior * len(CATEGORIES)))
        table[:, 5] = topics.shared(shares)
        if same:
            family = families.of_other_groups(shares)
            table[:, 6] = np.log(
                families.sum(family / of_family[families.of] / graphs.size[above], m) + 1.0 / n_nodes
            )
            table[:, 7] = families.sum(family / of_family[families.of] * gain, m)
            table[:, 8] = below
        return table

    return features


class _Topics:
    """Words that the definition of a candidate shares with the other names and their definitions."""

    def __init__(self, pool: Pool, graphs: Graphs, group: Indices, weight: Floats) -> None:
        vocabulary: dict[str, int] = {}
        rows = [
            [vocabulary.setdefault(t, len(vocabulary)) for t in graphs.topic_words(node)]
            for node in pool.nodes.tolist()
        ]
        self._words = words = Votes(*Keys.of(rows).expanded(pool.row), group, weight)
        self._lengths = np.maximum(np.bincount(words.of, minlength=len(group)), 1)
        shares, groups = graphs.word_shares(), int(pool.group.max(initial=0))
        self._expected = np.array([groups * shares.get(word, 0.0) for word in vocabulary])[words.key]
        in_names = {
            (int(g), vocabulary[stem])
            for g, name in zip(pool.group, pool.names, strict=True)
            for stem in (topic_stem(word) for phrase in name.phrases for word in phrase)
            if stem in vocabulary
        }
        named = np.bincount([key for _, key in in_names], minlength=len(vocabulary))[words.key]
        of_own = [pair in in_names for pair in zip(group[words.of].tolist(), words.key.tolist(), strict=True)]
        self._named = named - np.array(of_own, np.float64)

    def shared(self, shares: Floats) -> Floats:
        """Return, per candidate, how much oftener the other names have its words than nouns do, in logs."""
        votes = self._words.of_other_groups(shares) + self._named
        surprise = np.log((votes + SMOOTHING) / (self._expected + SMOOTHING))
        total: Floats = self._words.sum(np.maximum(surprise, 0.0), len(shares))
        return total / np.sqrt(self._lengths)


def _gains(graphs: Graphs) -> Floats:
    graph = graphs.taxonomy.graph
    indptr = graph.parent_indptr
    sums = np.add.reduceat(np.append(graphs.information[graph.parent_indices], 0.0), indptr[:-1])
    degree = np.diff(indptr)
    mean = np.where(degree > 0, sums / np.maximum(degree, 1), 0.0)
    gains: Floats = graphs.information - mean
    return gains


@dataclass(frozen=True, eq=False)
class Reading:
    """The candidates of the names of a dataset.

    ``joint`` is the function from shares of the candidates, (m,), to their joint features, (m, features).
    """

    pool: Pool
    joint: Callable[[Floats], Floats]
    superclasses: tuple[str, ...]
    lemmas: Lemmas

    def table(self, shares: Floats) -> Floats:
        """Return all features for shares of the candidates, (m, len(UNARY) + len(JOINT))."""
        return np.hstack([self.pool.unary, self.joint(shares)])


def read_names(
    names: Sequence[str], superclasses: Sequence[str], taxonomy: Taxonomy, *, supplemented: bool = True
) -> Reading:
    """Return the candidates of all names of a dataset; see `read_parsed`."""
    return read_parsed(list(map(parse_name, names)), superclasses, taxonomy, supplemented=supplemented)


def read_parsed(
    names: Sequence[ParsedName],
    superclasses: Sequence[str],
    taxonomy: Taxonomy,
    *,
    supplemented: bool = True,
    nouns: ForeignNouns | None = None,
) -> Reading:
    """Return the candidates of all names of a dataset.

    ``supplemented`` : whether names that WordNet lacks are also looked up in the supplement to it.
    """
    lemmas, graphs = _lookups(taxonomy, supplemented)
    if nouns is not None:
        lemmas = ForeignLemmas(taxonomy, nouns)
    catalogs = map(load_catalog, WITH_IMAGES)
    with_images = [frozenset(wnid for item in catalog for wnid in item.wnids) for catalog in catalogs]
    pool = make_pool(names, superclasses, lemmas, graphs, with_images)

    def senses(superclass: str) -> list[int]:
        sure = [r for r in routes(parse_name(superclass), lemmas) if r.left_out == 0 or r.kind == "head"]
        return [n for r in sure for n in (*lemmas.nodes(r.lemma), *lemmas.added.get(r.lemma, ()))]

    joint = joint_features(pool, graphs, superclasses, senses)
    return Reading(pool, joint, tuple(superclasses), lemmas)


def graphs_of(taxonomy: Taxonomy) -> Graphs:
    """Return the data of a taxonomy for the features."""
    return _lookups(taxonomy, True)[1]


@lru_cache(maxsize=2)
def _lookups(taxonomy: Taxonomy, supplemented: bool) -> tuple[Lemmas, Graphs]:
    return Lemmas(taxonomy, supplemented=supplemented), Graphs(taxonomy)
