"""What the features need of a taxonomy: ancestors, sizes, the words of definitions; kept between calls."""

from __future__ import annotations

import re

import numpy as np

from wordnet_splits.propose.candidates import Lemmas
from wordnet_splits.taxonomy import Taxonomy

WORD = re.compile(r"[a-z]{3,}")
"""A word of a definition or of a superclass."""


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
        self._around: dict[str, dict[str, float]] = {}
        self._productive: dict[str, dict[int, int]] = {}
        self._mentions: dict[int, dict[str, list[int]]] = {}

    def text(self, node: int) -> set[str]:
        """Return the words of a synset's definition, and of its lemmas, its parents' and its wholes'."""
        if node not in self._texts:
            wholes = map(self.taxonomy.index, self.taxonomy.wholes(self.taxonomy.wnid(node)))
            nodes = (node, *self.taxonomy.graph.parents(node), *wholes)
            self._texts[node] = set(self.tokens(node)).union(*map(self.lemma_words, nodes))
        return self._texts[node]

    def near(self, word: str, text: set[str]) -> float:
        """Return how much, 0 to 1, a text says of a word's kind: its rarest lemma above the word's senses."""
        found = self.around(word)
        return max((found[w] for w in found.keys() & text), default=0.0)

    def around(self, word: str) -> dict[str, float]:
        """Return the lemmas of one word of what lies at most three edges above the senses of a word.

        Each has the information of its synset, as a share of the most that a synset can have.
        """
        if word not in self._around:
            found: dict[str, float] = {}
            for wnid in self.taxonomy.senses(word)[:4]:
                for above, edges in self.taxonomy.ancestor_nodes(wnid).items():
                    if edges <= 3 and self.information[above] > 4:
                        share = float(self.information[above] / np.log(len(self.information)))
                        for lemma in self.taxonomy.lemmas(self.taxonomy.wnid(above)):
                            if "_" not in lemma:
                                key = stem(lemma.lower())
                                found[key] = max(share, found.get(key, 0.0))
            found.pop(stem(word), None)
            self._around[word] = found
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

    def mentions(self, node: int) -> dict[str, list[int]]:
        """Return word -> the synsets at most two edges below whose definition or lemma has it."""
        if node not in self._mentions:
            found: dict[str, list[int]] = {}
            graph = self.taxonomy.graph
            below = dict.fromkeys(graph.children(node))
            below |= dict.fromkeys(n for child in list(below) for n in graph.children(child))
            for kind in below:
                for word in {*self.tokens(kind), *self.lemma_words(kind)}:
                    found.setdefault(word, []).append(kind)
            self._mentions[node] = found
        return self._mentions[node]

    def lemma_words(self, node: int) -> set[str]:
        """Return the words of a synset's lemmas, plain plurals cut."""
        lemmas = self.taxonomy.lemmas(self.taxonomy.wnid(node))
        return {stem(w) for lemma in lemmas for w in re.split("[_-]", lemma.lower())}

    def ancestors(self, node: int) -> list[int]:
        """Return a node and all above it."""
        if node not in self._ancestors:
            self._ancestors[node] = list(self.taxonomy.graph.ancestors(node))
        return self._ancestors[node]

    def tokens(self, node: int) -> list[str]:
        """Return the words of a synset's first definition, plain plurals cut."""
        if node not in self._tokens:
            wnid = self.taxonomy.wnid(node)
            self._tokens[node] = list(
                dict.fromkeys(stem(w) for w in WORD.findall(self.taxonomy.first_definition(wnid).lower()))
            )
        return self._tokens[node]


def stem(word: str) -> str:
    """Return a word without the ending of a plain plural."""
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 3 else word
