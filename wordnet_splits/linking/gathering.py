"""The candidates of a name, with the features that depend on the name and the route to each candidate."""

from __future__ import annotations

import math
import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from wordnet_splits.base.errors import TaxonomyError
from wordnet_splits.benchmark.rules.keywords import stopwords
from wordnet_splits.linking.candidates import MOST_TOLD, WHOLE, Lemmas, Route, routes
from wordnet_splits.linking.class_names import ParsedName
from wordnet_splits.wordnet.taxonomy import Taxonomy

WORD = re.compile(r"[a-z]{3,}")
"""A word of a definition or of a superclass."""


STEM_LETTERS = 6
"""Letters of the stems of topics: microscope and microscopic have one stem."""
SAMPLED_EVERY = 16
"""Distance of the nouns whose definitions are counted for the shares of words."""


class Graphs:
    """Data of a taxonomy for the features; every method caches its results."""

    def __init__(self, taxonomy: Taxonomy) -> None:
        self.taxonomy = taxonomy
        graph = taxonomy.graph
        share = np.ones(len(graph))
        degree = np.diff(graph.parent_indptr)
        for node in graph.order[::-1].tolist():  # children before parents; a child of two counts half in each
            for parent in graph.parents(node):
                share[parent] += share[node] / degree[node]
        self.size = share
        self.information = np.log(len(graph) / share)
        self.text = cache(self._text)
        self.kin_words = cache(self._kin_words)
        self.compounds = cache(self._compounds)
        self.mentions = cache(self._mentions)
        self.ancestors = cache(lambda node: list(graph.ancestors(node)))
        self.tokens = cache(self._tokens)
        self.topic_words = cache(self._topic_words)
        self.word_shares = cache(self._word_shares)

    def _text(self, node: int) -> set[str]:
        """Return the words of a synset's definition and lemmas, and of its parents' and wholes' lemmas."""
        wholes = map(self.taxonomy.index, self.taxonomy.wholes(self.taxonomy.wnid(node)))
        nodes = (node, *self.taxonomy.graph.parents(node), *wholes)
        return set(self.tokens(node)).union(*map(self.lemma_words, nodes))

    def kinship(self, word: str, text: set[str]) -> float:
        """Return the information, 0 to 1, of the rarest lemma above the senses of a word that a text has."""
        shares = self.kin_words(word)
        return max((shares[w] for w in shares.keys() & text), default=0.0)

    def _kin_words(self, word: str) -> dict[str, float]:
        """Return the single-word lemmas at most three edges above the senses of a word, with information.

        The information of a lemma is its synset's, as a share of the greatest possible.
        """
        shares: dict[str, float] = {}
        for wnid in self.taxonomy.senses(word)[:4]:
            for above, edges in self.taxonomy.ancestor_nodes(wnid).items():
                if edges <= 3 and self.information[above] > 4:
                    share = float(self.information[above] / np.log(len(self.information)))
                    for lemma in self.taxonomy.lemmas(self.taxonomy.wnid(above)):
                        if "_" not in lemma:
                            key = stem(lemma.lower())
                            shares[key] = max(share, shares.get(key, 0.0))
        shares.pop(stem(word), None)
        return shares

    def _compounds(self, word: str, lemmas: Lemmas) -> dict[int, int]:
        """Return, per synset, the number of lemmas ending in a word that lie at or below it."""
        counts: dict[int, int] = {}
        for lemma in lemmas.parts.get(word, ()):
            if lemma.endswith(f"_{word}"):
                for node in {n for sense in lemmas.nodes(lemma) for n in self.ancestors(sense)}:
                    counts[node] = counts.get(node, 0) + 1
        return counts

    def _mentions(self, node: int) -> dict[str, list[int]]:
        """Return word -> the synsets at most two edges below whose definition or lemma contains it."""
        mentions: dict[str, list[int]] = {}
        graph = self.taxonomy.graph
        below = dict.fromkeys(graph.children(node))
        below |= dict.fromkeys(n for child in list(below) for n in graph.children(child))
        for kind in below:
            for word in {*self.tokens(kind), *self.lemma_words(kind)}:
                mentions.setdefault(word, []).append(kind)
        return mentions

    def lemma_words(self, node: int) -> set[str]:
        """Return the words of a synset's lemmas without plain plural endings."""
        lemmas = self.taxonomy.lemmas(self.taxonomy.wnid(node))
        return {stem(w) for lemma in lemmas for w in re.split("[_-]", lemma.lower())}

    def _topic_words(self, node: int) -> list[str]:
        """Return the stems of the words of a synset's first definition."""
        definition = self.taxonomy.first_definition(self.taxonomy.wnid(node)).lower()
        return list(dict.fromkeys(map(topic_stem, WORD.findall(definition))))

    def _word_shares(self) -> dict[str, float]:
        """Return stem -> share of the definitions that have it, in a sample of the nouns."""
        nodes = range(0, len(self.taxonomy), SAMPLED_EVERY)
        counts = Counter(word for node in nodes for word in self.topic_words(node))
        return {word: count / len(nodes) for word, count in counts.items()}

    def _tokens(self, node: int) -> list[str]:
        """Return the words of a synset's first definition without plain plural endings."""
        definition = self.taxonomy.first_definition(self.taxonomy.wnid(node)).lower()
        return list(dict.fromkeys(stem(w) for w in WORD.findall(definition)))


def topic_stem(word: str) -> str:
    """Return the first letters of a word."""
    return word[:STEM_LETTERS]


def stem(word: str) -> str:
    """Return a word without the ending of a plain plural."""
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 3 else word


ROUTE_FEATURES = (
    "left out",
    "rank",
    "first sense",
    "position",
    "capital",
    "plural",
    "count share",
    "shadowed",
    "headed",
    "productive",
    "context",
    "kin context",
    "head first",
    "outdoors",
    "aside tells",
    "strange",
    "added",
    "added rank",
    "added sense",
    "added elsewhere",
)
"""The features of a `RoutedSynset`."""

OUTSIDE = frozenset({"outdoor", "outdoors", "exterior", "outside"})
"""Qualifiers for a place seen from outside: a building rather than a room."""
INSIDE = frozenset({"indoor", "indoors", "interior", "inside"})
"""Qualifiers for a place seen from inside; like `OUTSIDE` they do not name a kind of place."""
BUILDING, ROOM = "n02913152", "n04105893"

MOST_SENSES = 4
"""Most senses of a noun whose kinds are candidates."""


@dataclass(frozen=True, slots=True)
class RoutedSynset:
    """A candidate of a name: its synset, the route to it, and its `ROUTE_FEATURES`."""

    node: int
    route: Route
    features: tuple[float, ...]


class Gatherer:
    """Finder of the candidates of names; names of the same words are looked up once."""

    def __init__(self, lemmas: Lemmas, graphs: Graphs) -> None:
        self._lemmas = lemmas
        self._graphs = graphs
        self._cache: dict[tuple[object, ...], list[RoutedSynset]] = {}

    def candidates(self, name: ParsedName, superclass: str) -> list[RoutedSynset]:
        """Return the candidates of a name."""
        key = (*name.content, superclass)
        if key not in self._cache:
            self._cache[key] = self._gather(name, superclass)
        return self._cache[key]

    def _gather(self, name: ParsedName, superclass: str) -> list[RoutedSynset]:
        taxonomy = self._lemmas.taxonomy
        senses: dict[int, tuple[Route, int]] = {}  # node -> the surest route, the rank of the sense
        if name.synset and (wnid := _parse_synset(name.synset, taxonomy)):
            senses[taxonomy.index(wnid)] = (Route(taxonomy.lemmas(wnid)[0].lower(), "synset", 0), 0)
        all_routes = routes(name, self._lemmas)
        for route in all_routes:
            for rank, node in enumerate(self._lemmas.nodes(route.lemma)):
                senses.setdefault(node, (route, rank))
            for rank, node in enumerate(self._lemmas.added.get(route.lemma, ())):
                senses.setdefault(node, (replace(route, added=True), rank))
        self._mark_apposed(senses, name)
        self._add_told(senses, name)
        nouns = [route.lemma for route in all_routes if route.kind == "head" or route.kind in WHOLE]
        heads = {node for lemma in nouns for node in self._lemmas.nodes(lemma)}
        headed = any(route.kind == "head" for route, _ in senses.values())
        whole = any(route.kind in WHOLE and not route.added for route, _ in senses.values())
        above = {stem(w) for w in WORD.findall(superclass.lower())}
        strange = 0.0 if whole else self._strange(name)
        headless = not any(self._lemmas.noun(phrase[-1]) for phrase in name.phrases)
        telling = any(not set(aside) <= OUTSIDE | INSIDE for aside in name.asides)
        candidates = []
        for node, (route, rank) in senses.items():
            features = (
                *_by_route(route, rank, taxonomy.lemmas(taxonomy.wnid(node)), name),
                _plural(route.lemma, name),
                self._count_share(route, rank),
                float(whole and route.kind not in WHOLE),
                float(headed and route.kind in ("modifier", "aside")),
                *self._context(node, route, name, above),
                float(headless and route.kind == "modifier"),
                self._outdoors(node, name),
                float(telling and route.kind == "told"),
                strange,
                *self._added(node, route, rank, heads),
            )
            candidates.append(RoutedSynset(node, route, features))
        return candidates

    def _mark_apposed(self, senses: dict[int, tuple[Route, int]], name: ParsedName) -> None:
        """Mark the first words of a name that are a kind of all its other words: maple tree."""
        words = {len(phrase) for phrase in name.phrases}
        for node, (route, rank) in list(senses.items()):
            if route.kind == "modifier":
                above = set(self._graphs.ancestors(node)) - {node}
                heads = [r for n, (r, _) in senses.items() if r.kind == "head" and n in above]
                if any(r.left_out + route.left_out in words for r in heads):
                    senses[node] = (Route(route.lemma, "apposed", 0), rank)

    def _add_told(self, senses: dict[int, tuple[Route, int]], name: ParsedName) -> None:
        """Add the kinds of a name's noun that match its remaining words: stadium/baseball."""
        if not name.asides and any(r.kind in WHOLE and not r.added for r, _ in senses.values()):
            return  # the noun uses all words
        matching: dict[int, Route] = {}
        for node, (route, rank) in senses.items():
            remaining = self._unused_words(route, name) if route.kind in ("head", *WHOLE) else []
            if rank < MOST_SENSES and remaining:
                kinds = self._graphs.mentions(node)
                for word in remaining:
                    for kind in kinds.get(stem(word), ()):
                        lemma = self._lemmas.taxonomy.lemmas(self._lemmas.taxonomy.wnid(kind))[0].lower()
                        matching.setdefault(kind, Route(lemma, "told", route.left_out))
        if len(matching) <= MOST_TOLD:
            for kind, route in matching.items():
                senses.setdefault(kind, (route, 0))

    def _added(self, node: int, route: Route, rank: int, heads: set[int]) -> tuple[float, ...]:
        """Return the features of a synset of the supplement; they are 0 for WordNet's synsets.

        A name is a kind of its head noun: a synset not at or below a sense of the head noun is rarely right.
        """
        if not route.added:
            return 0.0, 0.0, 0.0, 0.0
        sense = route.lemma in self._lemmas.index
        elsewhere = bool(heads) and not sense and heads.isdisjoint(self._graphs.ancestors(node))
        return 1.0, math.log1p(rank), float(node in heads), float(elsewhere)

    def _unused_words(self, route: Route, name: ParsedName) -> list[str]:
        """Return the words of a name that are not in the lemma of a route."""
        used = re.split("[_-]", route.lemma)
        unused = [w for p in name.phrases for w in p if w not in used and stem(w) not in used]
        unused += [w for aside in name.asides for w in aside]
        return [w for w in unused if w not in stopwords()]

    def _strange(self, name: ParsedName) -> float:
        """Return the share of a name's words that WordNet lacks, even as a part of a lemma."""
        words = [word for phrase in name.phrases for word in phrase]
        return sum(not self._lemmas.has_word(word) for word in words) / max(len(words), 1)

    def _outdoors(self, node: int, name: ParsedName) -> float:
        """Return 1 for a building and -1 for a room where the name's qualifier means outside, else 0."""
        if not any(word in OUTSIDE for aside in name.asides for word in aside):
            return 0.0
        above = {self._lemmas.taxonomy.wnid(n) for n in self._graphs.ancestors(node)}
        return float(BUILDING in above) - float(ROOM in above)

    def _count_share(self, route: Route, rank: int) -> float:
        """Return the log share of a sense in tagged texts, with half an occurrence added to every sense."""
        counts = self._lemmas.counts(route.lemma)
        senses = len(self._lemmas.nodes(route.lemma)) + len(self._lemmas.added.get(route.lemma, ()))
        count = counts[rank] if rank < len(counts) and not route.added else 0
        return math.log((count + 0.5) / (sum(counts) + 0.5 * senses))

    def _context(self, node: int, route: Route, name: ParsedName, above: set[str]) -> tuple[float, ...]:
        """Return how a synset fits the words of the name that its route leaves out, and the superclass."""
        graphs = self._graphs
        unused = self._unused_words(route, name)
        last = re.split("[_-]", route.lemma)[-1]
        productive = math.log1p(graphs.compounds(last, self._lemmas).get(node, 0))
        if not unused and not above:
            return productive, 0.0, 0.0
        text = graphs.text(node)
        context = above | {stem(w) for aside in name.asides for w in aside} | {stem(w) for w in unused}
        kinship = max((graphs.kinship(w, text) for w in unused), default=0.0)
        return productive, float(min(len((context - stopwords()) & text), 2)), kinship


def _plural(lemma: str, name: ParsedName) -> float:
    """Return 1 where a lemma is the plural of a word that the name has in the singular: rings, bars."""
    last = re.split("[_-]", lemma)[-1]
    words = {word for phrase in name.phrases for word in phrase}
    singulars = {last[:-1], last[:-2]} if last.endswith("s") else set()
    return float(last not in words and bool(singulars & words))


def _parse_synset(text: str, taxonomy: Taxonomy) -> str | None:
    with suppress(TaxonomyError):
        return text if text in taxonomy else taxonomy.from_name(text)
    return None


def _by_route(route: Route, rank: int, words: tuple[str, ...], name: ParsedName) -> tuple[float, ...]:
    spelt = [word.lower() for word in words]
    position = spelt.index(route.lemma) if route.lemma in spelt and not route.added else 0
    written = words[position] if route.lemma in spelt and not route.added else ""
    length = max((len(phrase) for phrase in name.phrases), default=1)
    return (
        route.left_out / max(length, 1),
        0.0 if route.added else math.log1p(rank),
        float(rank == 0 and not route.added),
        math.log1p(position),
        float(written[:1].isupper() and not name.capital),
    )
