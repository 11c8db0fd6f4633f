"""All candidates of all names as arrays, with what each is by itself."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from wordnet_splits.propose.candidates import KINDS, WHOLE, Lemmas, Route, routes
from wordnet_splits.propose.words import ParsedName, Words
from wordnet_splits.rules.keywords import stopwords
from wordnet_splits.taxonomy import Taxonomy
from wordnet_splits.taxonomy.graph import Ints, gather

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

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
_WORD = re.compile(r"[a-z]{3,}")


@dataclass(frozen=True, eq=False)
class Keys:
    """Some keys (synsets, words) of each of n things: those of i are ``values[indptr[i]:indptr[i + 1]]``."""

    indptr: Ints
    values: Ints

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]]) -> Keys:
        """Return the keys of each row."""
        indptr = np.cumsum([0, *map(len, rows)], dtype=np.int32)
        return cls(indptr, np.fromiter((k for row in rows for k in row), np.int32, int(indptr[-1])))

    def expanded(self, rows: Indices) -> tuple[Indices, Indices]:
        """Return, for things that may recur, whose each key is (a position in ``rows``), and the keys."""
        counts = np.diff(self.indptr)[rows]
        values = gather(self.indptr, self.values, rows.astype(np.int32))
        return np.repeat(np.arange(len(rows)), counts), values.astype(np.int64)


@dataclass(frozen=True, eq=False)
class Pool:
    """The candidates of n names, m in all, name by name.

    Parameters
    ----------
    owner : (m,) the name of each candidate, ascending. node : (m,) its synset.
    nodes : the distinct synsets. row : (m,) which of them each candidate is. above : theirs and all above.
    group : (n,) names of the same phrases are one group, that votes once.
    unary : (m, features) what each candidate is by itself, columns as `UNARY`.
    category : (m,) the first of `CATEGORIES` that lies above each candidate; their number where none does.
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

    def softmax(self, scores: Floats) -> Floats:
        """Return scores of candidates as probabilities among those of the same name."""
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
    "left out",
    "rank",
    "first sense",
    "position",
    "capital",
    "instance",
    "imagenet",
    "size",
    "shadowed",
    "headed",
    "productive",
    "context",
    "kin context",
    *CATEGORIES,
)


class Graphs:
    """What the features need of a taxonomy: ancestors, sizes, glosses; kept between calls."""

    def __init__(self, taxonomy: Taxonomy) -> None:
        self.taxonomy = taxonomy
        graph = taxonomy.graph
        share = np.ones(len(graph))
        degree = np.diff(graph.parent_indptr)
        for node in graph.order[::-1].tolist():  # children before parents; a child of two counts half in each
            parents = graph.parents(node)
            for parent in parents:
                share[parent] += share[node] / degree[node]
        self.size = share
        self.information = np.log(len(graph) / share)
        self._ancestors: dict[int, list[int]] = {}
        self._tokens: dict[int, list[str]] = {}
        self._texts: dict[int, set[str]] = {}
        self._around: dict[str, set[str]] = {}
        self._productive: dict[str, dict[int, int]] = {}

    def text(self, node: int) -> set[str]:
        """Return the words of a synset's definition, and of its lemmas and its parents'."""
        if node not in self._texts:
            nodes = (node, *self.taxonomy.graph.parents(node))
            lemmas = {
                stem(w)
                for each in nodes
                for lemma in self.taxonomy.lemmas(self.taxonomy.wnid(each))
                for w in re.split("[_-]", lemma.lower())
            }
            self._texts[node] = lemmas | set(self.tokens(node))
        return self._texts[node]

    def around(self, word: str) -> set[str]:
        """Return the lemmas of one word of what lies at most three edges above the senses of a word."""
        if word not in self._around:
            found = set()
            for wnid in self.taxonomy.senses(word)[:4]:
                for above, edges in self.taxonomy.ancestor_nodes(wnid).items():
                    if edges <= 3 and self.information[above] > 4:
                        lemmas = self.taxonomy.lemmas(self.taxonomy.wnid(above))
                        found |= {stem(lemma.lower()) for lemma in lemmas if "_" not in lemma}
            self._around[word] = found - {stem(word)}
        return self._around[word]

    def productive(self, word: str, lemmas: Lemmas) -> dict[int, int]:
        """Return, per synset, how many lemmas that end in a word lie below it."""
        if word not in self._productive:
            counts: dict[int, int] = {}
            for lemma in lemmas.parts.get(word, ()):
                if lemma.endswith(f"_{word}"):
                    for node in {n for sense in lemmas.nodes(lemma) for n in self.ancestors(sense)}:
                        counts[node] = counts.get(node, 0) + 1
            self._productive[word] = counts
        return self._productive[word]

    def ancestors(self, node: int) -> list[int]:
        """Return a node and all above it."""
        if node not in self._ancestors:
            self._ancestors[node] = list(self.taxonomy.graph.ancestors(node))
        return self._ancestors[node]

    def tokens(self, node: int) -> list[str]:
        """Return the words of a synset's definition, plain plurals cut."""
        if node not in self._tokens:
            wnid = self.taxonomy.wnid(node)
            self._tokens[node] = list(
                dict.fromkeys(stem(w) for w in _WORD.findall(self.taxonomy.definition(wnid).lower()))
            )
        return self._tokens[node]


def stem(word: str) -> str:
    """Return a word without the ending of a plain plural."""
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 3 else word


def make_pool(
    names: Sequence[ParsedName],
    superclasses: Sequence[str],
    lemmas: Lemmas,
    graphs: Graphs,
    pictured: frozenset[str],
) -> Pool:
    """Return the candidates of all names; ``pictured`` are the synsets known to have pictures."""
    gatherer = _Gatherer(lemmas, graphs)
    groups: dict[tuple[Words, ...], int] = {}
    per_name = [gatherer.of(name, above) for name, above in zip(names, superclasses, strict=True)]
    found = [each for some in per_name for each in some]
    node = np.array([each.node for each in found], np.int64)
    nodes, row = np.unique(node, return_inverse=True)
    above = Keys.of([graphs.ancestors(n) for n in nodes.tolist()])
    categories = _categories(above, lemmas.taxonomy)
    kind = np.array([KINDS.index(each.route.kind) for each in found], np.int64)
    own = np.array([each.own for each in found], np.float64).reshape(len(found), _OWN)
    about = _about(nodes, graphs, pictured)
    parts = (np.eye(len(KINDS))[kind][:, _KIND_COLUMNS], own[:, :5], about[row], own[:, 5:], categories[row])
    return Pool(
        taxonomy=lemmas.taxonomy,
        names=tuple(names),
        routes=tuple(each.route for each in found),
        owner=np.repeat(np.arange(len(names)), list(map(len, per_name))).astype(np.int64),
        node=node,
        nodes=nodes,
        row=row.astype(np.int64),
        above=above,
        group=np.array([groups.setdefault(name.phrases, len(groups)) for name in names], np.int64),
        category=_first(categories)[row],
        unary=np.hstack(parts) if found else np.zeros((0, len(UNARY))),
    )


@dataclass(frozen=True, slots=True)
class _Found:
    """A candidate: its synset, the route to it, and those of `UNARY` that hang on the name and the route."""

    node: int
    route: Route
    own: tuple[float, ...]


class _Gatherer:
    """Finds the candidates of names one by one; names of the same words are looked up once."""

    def __init__(self, lemmas: Lemmas, graphs: Graphs) -> None:
        self._lemmas = lemmas
        self._graphs = graphs
        self._known: dict[tuple[object, ...], list[_Found]] = {}

    def of(self, name: ParsedName, superclass: str) -> list[_Found]:
        """Return the candidates of a name."""
        key = (*name.content, superclass)
        if key not in self._known:
            self._known[key] = self._gather(name, superclass)
        return self._known[key]

    def _gather(self, name: ParsedName, superclass: str) -> list[_Found]:
        taxonomy = self._lemmas.taxonomy
        seen: dict[int, tuple[Route, int]] = {}
        if name.synset and (wnid := _of_synset(name.synset, taxonomy)):
            seen[taxonomy.index(wnid)] = (Route(taxonomy.lemmas(wnid)[0].lower(), "synset", 0), 0)
        for route in routes(name, self._lemmas):
            for rank, node in enumerate(self._lemmas.nodes(route.lemma)):
                seen.setdefault(node, (route, rank))
        headed = any(route.kind == "head" for route, _ in seen.values())
        whole = any(route.kind in WHOLE for route, _ in seen.values())
        above = {stem(w) for w in _WORD.findall(superclass.lower())}
        found = []
        for node, (route, rank) in seen.items():
            own = (
                *_by_route(route, rank, taxonomy.lemmas(taxonomy.wnid(node)), name),
                float(whole and route.kind not in WHOLE),
                float(headed and route.kind in ("modifier", "aside")),
                *self._context(node, route, name, above),
            )
            found.append(_Found(node, route, own))
        return found

    def _context(self, node: int, route: Route, name: ParsedName, above: set[str]) -> tuple[float, ...]:
        """Return how a synset fits the words of the name that did not lead to it, and its superclass."""
        graphs = self._graphs
        used = re.split("[_-]", route.lemma)
        others = [w for p in name.phrases for w in p if w not in used and w not in stopwords()]
        others += [w for aside in name.asides for w in aside]
        productive = math.log1p(graphs.productive(used[-1], self._lemmas).get(node, 0))
        if not others and not above:
            return productive, 0.0, 0.0
        text = graphs.text(node)
        around = above | {stem(w) for aside in name.asides for w in aside} | {stem(w) for w in others}
        kin = set[str]().union(*(graphs.around(w) for w in others))
        return productive, float(min(len((around - stopwords()) & text), 2)), float(bool(kin & text))


_OWN = 10
_KIND_COLUMNS = [n for n, kind in enumerate(KINDS) if kind != "exact"]


def _categories(above: Keys, taxonomy: Taxonomy) -> Floats:
    """Return whether each synset is of each of `CATEGORIES`, given what lies above it."""
    column = np.full(len(taxonomy), -1)
    for n, wnid in enumerate(CATEGORIES.values()):
        if wnid in taxonomy:
            column[taxonomy.index(wnid)] = n
    count = len(above.indptr) - 1
    flags = np.zeros((count, len(CATEGORIES)))
    of, columns = np.repeat(np.arange(count), np.diff(above.indptr)), column[above.values]
    flags[of[columns >= 0], columns[columns >= 0]] = 1.0
    return flags


def _first(flags: Floats) -> Indices:
    """Return the first column of each row that is set; their number where none is."""
    first: Indices = np.hstack([flags, np.ones((len(flags), 1))]).argmax(axis=1).astype(np.int64)
    return first


def _of_synset(text: str, taxonomy: Taxonomy) -> str | None:
    if text in taxonomy:
        return text
    lemma, dot, number = text.rpartition(".n.")
    senses = taxonomy.lemma_index().get(lemma.lower(), ()) if dot else ()
    return senses[int(number) - 1] if dot and 0 < int(number) <= len(senses) else None


def _about(nodes: Indices, graphs: Graphs, pictured: frozenset[str]) -> Floats:
    """Return what synsets are by themselves: an instance, known to have pictures, how much lies below."""
    graph, taxonomy = graphs.taxonomy.graph, graphs.taxonomy
    child = np.repeat(np.arange(len(graph)), np.diff(graph.parent_indptr))
    instance = np.bincount(child[graph.instance], minlength=len(graph)) > 0
    known = np.array([taxonomy.wnid(node) in pictured for node in nodes.tolist()], np.float64)
    return np.stack([instance[nodes].astype(np.float64), known, np.log(graphs.size[nodes])], axis=1)


def _by_route(route: Route, rank: int, words: tuple[str, ...], name: ParsedName) -> tuple[float, ...]:
    spelt = [word.lower() for word in words]
    position = spelt.index(route.lemma) if route.lemma in spelt else len(spelt)
    written = words[position] if position < len(words) else ""
    length = max((len(phrase) for phrase in name.phrases), default=1)
    return (
        route.left_out / max(length, 1),
        math.log1p(rank),
        float(rank == 0),
        math.log1p(position),
        float(written[:1].isupper() and not name.capital),
    )
