"""All candidates of all names as arrays, with the features of each by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from wordnet_splits.linking.candidates import KINDS, Lemmas, Route
from wordnet_splits.linking.class_names import ParsedName, Words
from wordnet_splits.linking.gathering import ROUTE_FEATURES, Gatherer, Graphs
from wordnet_splits.wordnet.taxonomy import Taxonomy
from wordnet_splits.wordnet.taxonomy.graph import Ints, gather

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

CATEGORIES = {
    "person": "n00007846",
    "animal": "n00015388",
    "plant": "n00017222",
    "food": "n00021265",
    "foodstuff": "n07555863",
    "artifact": "n00021939",
    "natural object": "n00019128",
    "geological formation": "n09287968",
    "location": "n00027167",
    "substance": "n00020090",
    "body part": "n05220461",
    "group": "n00031264",
    "event": "n00029378",
    "attribute": "n00024264",
    "communication": "n00033020",
    "psychological feature": "n00023100",
    "measure": "n00033615",
    "relation": "n00031921",
    "physical entity": "n00001930",
}


@dataclass(frozen=True, eq=False)
class Keys:
    """Keys (synsets or words) of n items; item i has the keys ``values[indptr[i]:indptr[i + 1]]``."""

    indptr: Ints
    values: Ints

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]]) -> Keys:
        """Return the keys of each row."""
        indptr = np.cumsum([0, *map(len, rows)], dtype=np.int32)
        return cls(indptr, np.fromiter((k for row in rows for k in row), np.int32, int(indptr[-1])))

    def expanded(self, rows: Indices) -> tuple[Indices, Indices]:
        """Return the keys of the items in ``rows``, which may recur: positions in ``rows``, and keys."""
        counts = np.diff(self.indptr)[rows]
        values = gather(self.indptr, self.values, rows.astype(np.int32))
        return np.repeat(np.arange(len(rows)), counts), values.astype(np.int64)


@dataclass(frozen=True, eq=False)
class Pool:
    """The candidates of n names, m in all, name by name.

    Parameters
    ----------
    owner : (m,) the name of each candidate, ascending.
    node : (m,) its synset.
    nodes : the distinct synsets.
    row : (m,) their index for each candidate.
    above : they and their ancestors.
    group : (n,) names of the same phrases form a group and share a vote.
    unary : (m, features) features of each candidate by itself, columns as `UNARY`.
    category : (m,) the first of `CATEGORIES` above each candidate; ``len(CATEGORIES)`` for none.
    """

    taxonomy: Taxonomy
    names: tuple[ParsedName, ...]
    routes: tuple[Route, ...]
    owner: Indices
    node: Indices
    nodes: Indices
    row: Indices
    above: Keys
    group: Indices
    unary: Floats
    category: Indices

    @cached_property
    def starts(self) -> Indices:
        """(n + 1,) the candidates of name i are ``starts[i]:starts[i + 1]``."""
        return np.searchsorted(self.owner, np.arange(len(self.names) + 1)).astype(np.int64)

    @cached_property
    def things(self) -> Flags:
        """(m,) whether each candidate is a living thing, food, or an artifact other than a structure."""
        artifacts = self._below("n00021939") & ~self._below("n04341686")
        return artifacts | self.living | self._below("n00021265") | self._below("n07555863")

    @cached_property
    def living(self) -> Flags:
        """(m,) whether each candidate is a living thing."""
        return self._below("n00004258")

    def _below(self, wnid: str) -> Flags:
        """Return whether each candidate is a synset or below it, (m,)."""
        flags = np.zeros(len(self.nodes), bool)
        if wnid in self.taxonomy:
            of, above = self.above.expanded(np.arange(len(self.nodes)))
            flags[of[above == self.taxonomy.index(wnid)]] = True
        return flags[self.row]

    def softmax(self, scores: Floats) -> Floats:
        """Return scores of candidates as probabilities among the candidates for the same name."""
        if not len(scores):
            return scores
        filled = np.unique(self.owner, return_index=True)[1]
        highest = np.maximum.reduceat(scores, filled)
        rows = np.searchsorted(self.owner[filled], self.owner)
        powers = np.exp(scores - highest[rows])
        shares: Floats = powers / np.add.reduceat(powers, filled)[rows]
        return shares


UNARY = (
    *(f"kind {kind}" for kind in KINDS if kind != "exact"),
    *ROUTE_FEATURES,
    "instance",
    "imagenet",
    "common",
    "size",
    *CATEGORIES,
)


def make_pool(
    names: Sequence[ParsedName],
    superclasses: Sequence[str],
    lemmas: Lemmas,
    graphs: Graphs,
    with_images: Sequence[frozenset[str]],
) -> Pool:
    """Return the candidates of all names; ``with_images``: synsets with images, and the common ones."""
    gatherer = Gatherer(lemmas, graphs)
    groups: dict[tuple[Words, ...], int] = {}
    per_name = [gatherer.candidates(name, above) for name, above in zip(names, superclasses, strict=True)]
    candidates = [candidate for row in per_name for candidate in row]
    node = np.array([candidate.node for candidate in candidates], np.int64)
    nodes, row = np.unique(node, return_inverse=True)
    above = Keys.of([graphs.ancestors(n) for n in nodes.tolist()])
    categories = _categories(above, lemmas.taxonomy)
    kind = np.array([KINDS.index(candidate.route.kind) for candidate in candidates], np.int64)
    route_features = np.array([candidate.features for candidate in candidates], np.float64)
    columns = (
        np.eye(len(KINDS))[kind][:, _KIND_COLUMNS],
        route_features.reshape(len(candidates), len(ROUTE_FEATURES)),
        _synset_features(nodes, graphs, with_images)[row],
        categories[row],
    )
    return Pool(
        taxonomy=lemmas.taxonomy,
        names=tuple(names),
        routes=tuple(candidate.route for candidate in candidates),
        owner=np.repeat(np.arange(len(names)), list(map(len, per_name))).astype(np.int64),
        node=node,
        nodes=nodes,
        row=row.astype(np.int64),
        above=above,
        group=np.array([groups.setdefault(name.phrases, len(groups)) for name in names], np.int64),
        category=np.hstack([categories, np.ones((len(nodes), 1))]).argmax(axis=1).astype(np.int64)[row],
        unary=np.hstack(columns) if candidates else np.zeros((0, len(UNARY))),
    )


_KIND_COLUMNS = [n for n, kind in enumerate(KINDS) if kind != "exact"]


def _categories(above: Keys, taxonomy: Taxonomy) -> Floats:
    """Return whether each synset belongs to each of `CATEGORIES`; ``above`` are its ancestors."""
    column = np.full(len(taxonomy), -1)
    for n, wnid in enumerate(CATEGORIES.values()):
        if wnid in taxonomy:
            column[taxonomy.index(wnid)] = n
    count = len(above.indptr) - 1
    flags = np.zeros((count, len(CATEGORIES)))
    of, columns = np.repeat(np.arange(count), np.diff(above.indptr)), column[above.values]
    flags[of[columns >= 0], columns[columns >= 0]] = 1.0
    return flags


def _synset_features(nodes: Indices, graphs: Graphs, sets: Sequence[frozenset[str]]) -> Floats:
    """Return for each synset: is it an instance, has it images, is it common; and the log of its size."""
    graph, taxonomy = graphs.taxonomy.graph, graphs.taxonomy
    child = np.repeat(np.arange(len(graph)), np.diff(graph.parent_indptr))
    instance = np.bincount(child[graph.instance], minlength=len(graph)) > 0
    wnids = [taxonomy.wnid(node) for node in nodes.tolist()]
    with_images = [np.array([wnid in synsets for wnid in wnids], np.float64) for synsets in sets]
    columns = (instance[nodes].astype(np.float64), *with_images, np.log(graphs.size[nodes]))
    return np.stack(columns, axis=1)
