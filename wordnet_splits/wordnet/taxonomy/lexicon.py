"""The words of the nouns: lemmas of a node, nodes of a lemma, base forms by WordNet's morphy as in NLTK."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from wordnet_splits.wordnet.taxonomy.graph import Ints

SUFFIXES: tuple[tuple[str, str], ...] = (
    ("s", ""),
    ("ses", "s"),
    ("ves", "f"),
    ("xes", "x"),
    ("zes", "z"),
    ("ches", "ch"),
    ("shes", "sh"),
    ("men", "man"),
    ("ies", "y"),
)
"""Noun endings and their replacements: morphy(7WN), and NLTK's rule for "ves"."""

_NUMBER = re.compile(r"#\d+\Z")


@dataclass(frozen=True, eq=False)
class Lexicon:
    """Words of n nodes.

    Parameters
    ----------
    lemma_counts : (n,) uint8, lemmas per node.
    lemma_text : the lemmas of all nodes as written (``Band_Aid``), node by node, newline after each.
    index_text : the lower-case lemmas in ascending order, newline after each.
    index_counts : (lemmas,) uint8, senses per lemma.
    index_nodes : (senses,) int32, the node of each sense, the most frequent sense first.
    exceptions_text : the content of ``noun.exc``.
    """

    lemma_counts: npt.NDArray[np.uint8]
    lemma_text: str
    index_text: str
    index_counts: npt.NDArray[np.uint8]
    index_nodes: Ints
    exceptions_text: str

    @cached_property
    def _lemmas(self) -> tuple[list[str], list[int]]:
        return self.lemma_text.split("\n"), _starts(self.lemma_counts)

    @cached_property
    def _index(self) -> tuple[dict[str, int], list[int], list[int]]:
        keys = self.index_text.split("\n")[:-1]
        return (
            dict(zip(keys, range(len(keys)), strict=True)),
            _starts(self.index_counts),
            self.index_nodes.tolist(),
        )

    @cached_property
    def _exceptions(self) -> dict[str, tuple[str, ...]]:
        return parse_exceptions(self.exceptions_text)

    def lemmas(self, node: int) -> tuple[str, ...]:
        """Return the lemmas of ``node``, in the database's order and spelling."""
        words, starts = self._lemmas
        return tuple(words[starts[node] : starts[node + 1]])

    def is_lemma(self, word: str) -> bool:
        """Return whether ``word`` (lower case, underscores) is a lemma."""
        return word in self._index[0]

    def nodes(self, lemma: str) -> list[int]:
        """Return the senses of ``lemma``, the most frequent first; empty for an unknown word."""
        positions, starts, nodes = self._index
        at = positions.get(lemma)
        return [] if at is None else nodes[starts[at] : starts[at + 1]]

    @property
    def keys(self) -> list[str]:
        """Every lower-case lemma, ascending."""
        return list(self._index[0])

    def similar(self, word: str) -> list[str]:
        """Return up to three lemmas spelt similarly to ``word`` (lower case), the most similar first."""
        same_initial = [key for key in self.keys if key[:1] == word[:1]]
        return difflib.get_close_matches(word, same_initial, n=3, cutoff=0.75)

    @cached_property
    def _names(self) -> dict[int, str]:
        return {}

    def name(self, node: int) -> str:
        """Return NLTK's name of ``node``: its first lemma and the number of its sense."""
        name = self._names.get(node)
        if name is None:
            lemma = self.lemmas(node)[0].lower()
            name = self._names[node] = f"{lemma}.n.{self.nodes(lemma).index(node) + 1:02d}"
        return name

    @cached_property
    def shared(self) -> dict[str, list[int]]:
        """Lemmas of several nodes -> these, the most frequent sense first."""
        _, starts, nodes = self._index
        several = np.flatnonzero(self.index_counts > 1).tolist()
        keys = self.keys
        return {keys[at]: nodes[starts[at] : starts[at + 1]] for at in several}

    def numbered(self, lemma: str, node: int) -> str:
        """Return a lemma of ``node`` with the number of its sense if several nodes share it: ``dog#1``."""
        nodes = self.shared.get(lemma.lower())
        if nodes is not None:
            return f"{lemma}#{nodes.index(node) + 1}"
        return f"{lemma}#1" if "#" in lemma and _NUMBER.search(lemma) else lemma

    def base_forms(self, form: str) -> tuple[str, ...]:
        """Return the lemmas that ``form`` can be inflected from, itself first."""
        return base_forms(form, self.is_lemma, self._exceptions)

    def __getstate__(self) -> dict[str, object]:  # without derived tables
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


class LemmaIndex(Mapping[str, tuple[str, ...]]):
    """Lower-case lemma (underscores for spaces) -> the wnids of its senses, most frequent first."""

    def __init__(self, lexicon: Lexicon, wnids: tuple[str, ...]) -> None:
        self._lexicon = lexicon
        self._wnids = wnids

    def __getitem__(self, lemma: str) -> tuple[str, ...]:
        nodes = self._lexicon.nodes(lemma)
        if not nodes:
            raise KeyError(lemma)
        return tuple(self._wnids[node] for node in nodes)

    def __contains__(self, lemma: object) -> bool:
        return isinstance(lemma, str) and self._lexicon.is_lemma(lemma)

    def __iter__(self) -> Iterator[str]:
        return iter(self._lexicon.keys)

    def __len__(self) -> int:
        return len(self._lexicon.index_counts)


def from_lemma_lists(lemmas: list[list[str]]) -> Lexicon:
    """Return the lexicon of ``lemmas[i]``, the lemmas of node i; senses are ordered by node."""
    senses: dict[str, list[int]] = {}
    for node, words in enumerate(lemmas):
        for word in dict.fromkeys(word.lower() for word in words):
            senses.setdefault(word, []).append(node)
    return from_index(lemmas, senses, "")


def from_index(lemmas: list[list[str]], senses: Mapping[str, list[int]], exceptions_text: str) -> Lexicon:
    """Return the lexicon of ``lemmas[i]`` and of ``senses``, lower-case lemma -> nodes in sense order."""
    keys = sorted(senses)
    return Lexicon(
        lemma_counts=np.array([len(words) for words in lemmas], np.uint8),
        lemma_text="".join(f"{word}\n" for words in lemmas for word in words),
        index_text="".join(f"{key}\n" for key in keys),
        index_counts=np.array([len(senses[key]) for key in keys], np.uint8),
        index_nodes=np.array([node for key in keys for node in senses[key]], np.int32),
        exceptions_text=exceptions_text,
    )


def _starts(counts: npt.NDArray[np.uint8]) -> list[int]:
    return [0, *np.cumsum(counts, dtype=np.int64).tolist()]


def base_forms(
    form: str, is_lemma: Callable[[str], bool], exceptions: Mapping[str, tuple[str, ...]]
) -> tuple[str, ...]:
    """Return the lemmas that ``form`` can be inflected from, itself first, in NLTK's order.

    An exception (``noun.exc``) replaces the suffix rules; the rules are applied once.

    Parameters
    ----------
    form : a lower-case word, spaces as underscores.
    is_lemma : whether a string is a lemma of the database.
    exceptions : irregular form -> its base forms.
    """
    candidates = exceptions.get(form)
    if candidates is None:
        candidates = tuple(form[: -len(old)] + new for old, new in SUFFIXES if form.endswith(old))
    return tuple(dict.fromkeys(word for word in (form, *candidates) if is_lemma(word)))


def parse_exceptions(text: str) -> dict[str, tuple[str, ...]]:
    """Return the content of ``noun.exc``: irregular form -> base forms."""
    lines = (line.split() for line in text.splitlines())
    return {words[0]: tuple(words[1:]) for words in lines if words}
