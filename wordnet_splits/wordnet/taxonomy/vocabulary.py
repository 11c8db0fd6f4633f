"""The nodes of a taxonomy by id, name and word, and their glosses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from wordnet_splits.base.errors import TaxonomyError
from wordnet_splits.base.names import printable
from wordnet_splits.wordnet.taxonomy import wndb
from wordnet_splits.wordnet.taxonomy.graph import Ints
from wordnet_splits.wordnet.taxonomy.lexicon import LemmaIndex, Lexicon

_NUMBERED = re.compile(r".+#[1-9]\d{0,2}")
_WNID = re.compile(r"n\d{8}")
_NAME = re.compile(r".+\.n\.\d+")
DIGEST = re.compile(r"[0-9a-f]{12}")
"""Version of a hierarchy that has none of its own: the first digits of its SHA-256."""


class Glosses(Protocol):
    """The gloss of each node."""

    def __getitem__(self, node: int, /) -> str:
        """Return the gloss of ``node``."""


class Vocabulary:
    """The ids, words and glosses of n nodes, in the ascending order of their ids."""

    def __init__(
        self,
        version: str,
        ids: npt.NDArray[np.uint32] | tuple[str, ...],
        lexicon: Lexicon,
        glosses: Glosses | None,
        own_name: str,
    ) -> None:
        if version:
            self.version = version
        self.own_name = own_name
        self._ids = ids  # offsets in data.noun, or the ids themselves
        self._words = lexicon
        self._glosses = glosses

    @property
    def digest(self) -> str:
        """SHA-256 of the content, in hex."""
        raise NotImplementedError

    @cached_property
    def version(self) -> str:
        """The version that was given; of a custom hierarchy without one, the start of its `digest`."""
        return self.digest[:12]

    @property
    def is_wordnet(self) -> bool:
        """Whether the nodes are synsets under wnids; False for hierarchies of files and lexicons of `wn`."""
        return not self.own_name

    @property
    def title(self) -> str:
        """Name and version, as sentences give them: ``WordNet 3.0``, ``birds 2``, ``tree.tsv``."""
        if self.own_name and DIGEST.fullmatch(self.version):
            return self.own_name
        return f"{self.own_name or 'WordNet'} {self.version}"

    @property
    def called(self) -> str:
        """Name in sentences without the version of WordNet: ``WordNet``, ``birds 2``."""
        return "WordNet" if self.is_wordnet else self.title

    @property
    def noun(self) -> str:
        """The word for a node: ``synset`` in WordNet, ``node`` in others."""
        return "synset" if self.is_wordnet else "node"

    def label(self, wnid: str) -> str:
        """Return first name and id of a node, ``toy dog (n02085374)``; the id alone if both are equal."""
        name = self.lemmas(wnid)[0].replace("_", " ")
        return wnid if name == wnid else f"{name} ({wnid})"

    def __len__(self) -> int:
        return len(self._ids)

    @cached_property
    def wnids(self) -> tuple[str, ...]:
        """Every wnid, ascending: the wnid of node i at i."""
        return self._ids if isinstance(self._ids, tuple) else wndb.wnids(self._ids)

    @cached_property
    def _node_of(self) -> dict[str, int]:
        return dict(zip(self.wnids, range(len(self)), strict=True))

    def __contains__(self, wnid: object) -> bool:
        return wnid in self._node_of

    def __iter__(self) -> Iterator[str]:
        return iter(self.wnids)

    def index(self, wnid: str) -> int:
        """Return the node of ``wnid``."""
        try:
            return self._node_of[wnid]
        except KeyError:
            raise self._no_synset(wnid) from None

    def indices(self, wnids: Iterable[str]) -> Ints:
        """Return the nodes of ``wnids``: (len,) int32 in their order."""
        return np.array([self.index(wnid) for wnid in wnids], np.int32)

    def wnid(self, node: int) -> str:
        """Return the wnid of ``node``."""
        return self.wnids[node]

    def _no_synset(self, wnid: str) -> TaxonomyError:
        near: Sequence[str] = ()
        if self._words.is_lemma(wnid.lower()):  # a word instead of a wnid
            near = self.senses(wnid)[:3]
        hint = "a wnid is n and the 8-digit offset in WordNet 3.0; other versions have other offsets"
        return self._absent(wnid, "noun synset", hint, near)

    def _absent(self, text: str, kind: str, hint: str, near: Iterable[str] = ()) -> TaxonomyError:
        """Return the error for a text that names nothing; ``kind`` and ``hint`` are those in WordNet."""
        if not self.is_wordnet:
            kind, hint = "node", "give the id of a node or one of its names"
        return TaxonomyError(f"{printable(text)!r} is not a {kind} of {self.title}", near=near, hint=hint)

    def lemmas(self, wnid: str) -> tuple[str, ...]:
        """Return the words of ``wnid`` as the database spells them, underscores for spaces."""
        return self._words.lemmas(self.index(wnid))

    def gloss(self, wnid: str) -> str:
        """Return definition and examples of ``wnid``; the first call unpacks the database's text (0.2 s)."""
        text = self._gloss(wnid)
        if text is None:
            raise TaxonomyError("this taxonomy has no glosses", where=wnid)
        return text

    def _gloss(self, wnid: str) -> str | None:
        node = self.index(wnid)
        return None if self._glosses is None else self._glosses[node]

    def definition(self, wnid: str) -> str:
        """Return the gloss of ``wnid`` without its examples, as NLTK; empty in a taxonomy without glosses."""
        return wndb.split_gloss(self._gloss(wnid) or "")[0]

    def first_definition(self, wnid: str) -> str:
        """Return the first definition of ``wnid``, up to a semicolon outside parentheses."""
        return wndb.first_definition(self.definition(wnid))

    def examples(self, wnid: str) -> tuple[str, ...]:
        """Return the quoted examples of ``wnid``'s gloss; none in a taxonomy without glosses."""
        return wndb.split_gloss(self._gloss(wnid) or "")[1]

    def name(self, wnid: str) -> str:
        """Return NLTK's name of ``wnid``, its first lemma and the number of its sense: ``dog.n.01``.

        In custom hierarchies, the first name as nodes.tsv has it, with underscores: ``dog#1``.
        """
        node = self.index(wnid)
        if self.is_wordnet:
            return self._words.name(node)
        return self._words.numbered(self._words.lemmas(node)[0], node)

    def nltk_name(self, wnid: str) -> str:
        """Return ``dog.n.01`` in any hierarchy: NLTK's Wu-Palmer breaks ties by it."""
        return self._words.name(self.index(wnid))

    def from_name(self, name: str) -> str:
        """Return the wnid of an NLTK name, with the first lemma or another one (``domestic_dog.n.01``).

        In custom hierarchies, ``dog#1`` is such a name, too.
        """
        text = name.lower().replace(" ", "_")
        lemma, _, rest = text.rpartition(".n." if self.is_wordnet or ".n." in text else "#")
        nodes = self._words.nodes(lemma)
        if rest.isascii() and rest.isdigit() and 0 < int(rest) <= len(nodes):
            return self.wnids[nodes[int(rest) - 1]]
        hint = f"{lemma!r} has {len(nodes)} senses" if nodes else "a name is LEMMA.n.NUMBER, as dog.n.01"
        raise self._absent(name, "noun synset", hint, [] if nodes else self._words.similar(lemma))

    def find(self, text: str) -> str:
        """Return the wnid for a wnid, a name (``dog.n.01``) or a noun, whose first sense is taken.

        Raises
        ------
        TaxonomyError : the synset does not exist; the error offers synsets of similar nouns.
        """
        if text in self._node_of:
            return text
        if senses := self.senses(text.replace(" ", "_")):
            return senses[0]
        if _NAME.fullmatch(text) or (_NUMBERED.fullmatch(text) and not self.is_wordnet):
            return self.from_name(text)
        if _WNID.fullmatch(text) and self.is_wordnet:
            raise self._no_synset(text)
        similar = self._words.similar(text.lower().replace(" ", "_"))
        hint = "give a wnid, a synset such as dog.n.01, or a noun (see `wordnet-splits wordnet search`)"
        near = [f"{lemma}.n.01" for lemma in similar] if self.is_wordnet else similar
        raise self._absent(text, "noun", hint, near)

    def senses(self, word: str) -> tuple[str, ...]:
        """Return the synsets of ``word`` and of its base forms, the most frequent first.

        As NLTK's ``wordnet.synsets(word, "n")``: case is folded, spaces must be underscores.
        """
        forms = self._words.base_forms(word.lower())
        return tuple(self.wnids[node] for form in forms for node in self._words.nodes(form))

    def morphy(self, word: str) -> str | None:
        """Return the first base form of ``word`` that is a lemma, as NLTK's ``morphy(word, "n")``."""
        return next(iter(self._words.base_forms(word)), None)

    def lemma_index(self) -> Mapping[str, tuple[str, ...]]:
        """Return lower-case lemma (underscores for spaces) -> its synsets, the most frequent first."""
        return LemmaIndex(self._words, self.wnids)
