"""Data of a taxonomy for the features: ancestors, sizes, words of definitions; cached between calls."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

import numpy as np

from wordnet_splits.linking.candidates import Lemmas
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
        self.ancestors = cache(self._ancestors)
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

    def _ancestors(self, node: int) -> list[int]:
        """Return a node and all above it."""
        return list(self.taxonomy.graph.ancestors(node))

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
