"""Nouns of other languages, as names of classes are looked up in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from wordnet_splits.linking.candidates import Lemmas
from wordnet_splits.linking.class_names import parse_name
from wordnet_splits.wordnet.lexicons import ENGLISH, frequency, read_nouns
from wordnet_splits.wordnet.taxonomy import Taxonomy


@dataclass(frozen=True, eq=False)
class ForeignNouns:
    """Nouns of another language: lemma (as `parse_name` has it, underscores between words) -> its wnids.

    The wnids whose English words occur most often in tagged texts come first.
    """

    lexicon: str
    senses: Mapping[str, tuple[str, ...]]


class ForeignLemmas(Lemmas):
    """The lemmas of another language, looked up as they are written: its inflection is not known."""

    english = False

    def __init__(self, taxonomy: Taxonomy, nouns: ForeignNouns) -> None:
        super().__init__(taxonomy, supplemented=False)
        self.index = nouns.senses
        self.lexicon = nouns.lexicon

    def counts(self, lemma: str) -> tuple[int, ...]:
        """Return how often the English words of each sense of a lemma occur in tagged texts."""
        return tuple(frequency(wnid, self.taxonomy) for wnid in self.index.get(lemma, ()))

    def noun(self, word: str) -> bool:
        """Return whether a word is a lemma."""
        return word in self

    def singular(self, word: str) -> str:
        """Return the word."""
        return word

    def neighbours(self, word: str) -> set[str]:
        """Return no lemmas."""
        return set()

    def forms(self, word: str) -> list[str]:
        """Return no forms."""
        return []


def load_language(language: str, taxonomy: Taxonomy) -> ForeignNouns | None:
    """Return the nouns of a language, None for English.

    ``language`` : code such as ``fr``, for all its lexicons that are installed for `wn`; or a WN-LMF file.
    """
    if language == ENGLISH:
        return None
    lexicon, nouns = read_nouns(language, taxonomy)
    wnids: dict[str, set[str]] = {}
    for lemma, wnid in nouns:
        for phrase in parse_name(lemma.replace("/", " ").replace(",", " ")).phrases:
            wnids.setdefault("_".join(phrase), set()).add(wnid)
    return ForeignNouns(
        lexicon,
        {
            lemma: tuple(sorted(senses, key=lambda wnid: (-frequency(wnid, taxonomy), wnid)))
            for lemma, senses in sorted(wnids.items())
        },
    )
