"""All candidates of all names as arrays, with what each is by itself."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from wordnet_splits.propose.candidates import KINDS, WHOLE, Lemmas, Route, routes
from wordnet_splits.propose.words import ParsedName, Words
from wordnet_splits.rules.keywords import stopwords
from wordnet_splits.taxonomy import Taxonomy

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
class Pool:
    """The candidates of n names, m in all, name by name.

    Parameters
    ----------
    owner : (m,) the name of each candidate, ascending. node : (m,) its synset.
    group : (n,) names of the same phrases are one group, that votes once.
    unary : (m, features) what each candidate is by itself, columns as `UNARY`.
    category : (m,) the first of `CATEGORIES` that lies above each candidate; their number where none does.
    """

    taxonomy: Taxonomy
    names: tuple[ParsedName, ...]
    routes: tuple[Route, ...]
    owner: Indices
    node: Indices
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
                    for node in {
                        n for w in lemmas.index[lemma] for n in self.ancestors(self.taxonomy.index(w))
                    }:
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
    gatherer = _Gatherer(lemmas, graphs, pictured)
    groups: dict[tuple[Words, ...], int] = {}
    per_name = [gatherer.of(name, above) for name, above in zip(names, superclasses, strict=True)]
    rows = [row for found in per_name for _, _, row in found]
    return Pool(
        taxonomy=lemmas.taxonomy,
        names=tuple(names),
        routes=tuple(route for found in per_name for _, route, _ in found),
        owner=np.repeat(np.arange(len(names)), [len(found) for found in per_name]).astype(np.int64),
        node=np.array([node for found in per_name for node, _, _ in found], np.int64),
        group=np.array([groups.setdefault(name.phrases, len(groups)) for name in names], np.int64),
        category=_categories(rows),
        unary=np.array(rows, np.float64).reshape(len(rows), len(UNARY)),
    )


class _Gatherer:
    """Finds the candidates of names one by one; names of the same words are looked up once."""

    def __init__(self, lemmas: Lemmas, graphs: Graphs, pictured: frozenset[str]) -> None:
        self._lemmas = lemmas
        self._graphs = graphs
        self._pictured = pictured
        taxonomy = lemmas.taxonomy
        self._category_of = {taxonomy.index(w): n for n, w in enumerate(CATEGORIES.values()) if w in taxonomy}
        self._known: dict[tuple[object, ...], list[tuple[int, Route, list[float]]]] = {}
        self._about: dict[int, tuple[list[float], tuple[str, ...]]] = {}

    def of(self, name: ParsedName, superclass: str) -> list[tuple[int, Route, list[float]]]:
        """Return node, route and features (`UNARY`) of every candidate of a name."""
        key = (name.phrases, name.asides, name.synset, name.capital, superclass)
        if key not in self._known:
            self._known[key] = self._gather(name, superclass)
        return self._known[key]

    def _gather(self, name: ParsedName, superclass: str) -> list[tuple[int, Route, list[float]]]:
        taxonomy = self._lemmas.taxonomy
        seen: dict[int, tuple[Route, int]] = {}
        if name.synset and (wnid := _of_synset(name.synset, taxonomy)):
            seen[taxonomy.index(wnid)] = (Route(taxonomy.lemmas(wnid)[0].lower(), "synset", 0), 0)
        for route in routes(name, self._lemmas):
            for rank, wnid in enumerate(self._lemmas.index[route.lemma]):
                seen.setdefault(taxonomy.index(wnid), (route, rank))
        headed = any(route.kind == "head" for route, _ in seen.values())
        whole = any(route.kind in WHOLE for route, _ in seen.values())
        above = {stem(w) for w in _WORD.findall(superclass.lower())}
        found = []
        for node, (route, rank) in seen.items():
            if node not in self._about:
                self._about[node] = _about(node, self._graphs, self._category_of, self._pictured)
            fixed, words = self._about[node]
            between = [
                float(whole and route.kind not in WHOLE),
                float(headed and route.kind in ("modifier", "aside")),
                *self._context(node, route, name, above),
            ]
            found.append((node, route, [*_unary(route, rank, words, name), *fixed[:3], *between, *fixed[3:]]))
        return found

    def _context(self, node: int, route: Route, name: ParsedName, above: set[str]) -> list[float]:
        """Return how a synset fits the words of the name that did not lead to it, and its superclass."""
        graphs, text = self._graphs, self._graphs.text(node)
        used = re.split("[_-]", route.lemma)
        others = [w for p in name.phrases for w in p if w not in used and w not in stopwords()]
        others += [w for aside in name.asides for w in aside]
        around = above | {stem(w) for aside in name.asides for w in aside} | {stem(w) for w in others}
        kin = set[str]().union(*(graphs.around(w) for w in others))
        return [
            float(np.log1p(graphs.productive(used[-1], self._lemmas).get(node, 0))),
            float(min(len((around - stopwords()) & text), 2)),
            float(bool(kin & text)),
        ]


def _categories(rows: list[list[float]]) -> Indices:
    last = len(CATEGORIES)
    flags = np.array([[*row[-last:], 1.0] for row in rows]).reshape(len(rows), last + 1)
    first: Indices = flags.argmax(axis=1).astype(np.int64)
    return first


def _of_synset(text: str, taxonomy: Taxonomy) -> str | None:
    if text in taxonomy:
        return text
    lemma, dot, number = text.rpartition(".n.")
    senses = taxonomy.lemma_index().get(lemma.lower(), ()) if dot else ()
    return senses[int(number) - 1] if dot and 0 < int(number) <= len(senses) else None


def _about(
    node: int, graphs: Graphs, category_of: Mapping[int, int], picturable: frozenset[str]
) -> tuple[list[float], tuple[str, ...]]:
    taxonomy = graphs.taxonomy
    categories = [0.0] * len(CATEGORIES)
    for above in graphs.ancestors(node):
        if above in category_of:
            categories[category_of[above]] = 1.0
    graph = taxonomy.graph
    start, stop = graph.parent_indptr[node], graph.parent_indptr[node + 1]
    wnid = taxonomy.wnid(node)
    fixed = [
        float(graph.instance[start:stop].any()),
        float(wnid in picturable),
        float(np.log(graphs.size[node])),
        *categories,
    ]
    return fixed, taxonomy.lemmas(wnid)


def _unary(route: Route, rank: int, words: tuple[str, ...], name: ParsedName) -> list[float]:
    spelt = [word.lower() for word in words]
    position = spelt.index(route.lemma) if route.lemma in spelt else len(spelt)
    written = words[position] if position < len(words) else ""
    kinds = [float(route.kind == kind) for kind in KINDS if kind != "exact"]
    length = max((len(phrase) for phrase in name.phrases), default=1)
    return [
        *kinds,
        route.left_out / max(length, 1),
        float(np.log1p(rank)),
        float(rank == 0),
        float(np.log1p(position)),
        float(written[:1].isupper() and not name.capital),
    ]
