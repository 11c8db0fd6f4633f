"""Candidates for the meaning of a class name: lemmas, and the routes from its words to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files

from wordnet_splits.base.text_formats import read_rows
from wordnet_splits.benchmark.rules.keywords import (
    SHORTEST_PART,
    abbreviations,
    possessives,
    stopwords,
)
from wordnet_splits.linking.class_names import ParsedName, Words, names_of_nodes
from wordnet_splits.wordnet.lexicons import sense_counts
from wordnet_splits.wordnet.taxonomy import Taxonomy
from wordnet_splits.wordnet.taxonomy.identifiers import is_wordnet30

SUPPLEMENT = files("wordnet_splits") / "data" / "supplement.tsv"
ADJECTIVES = files("wordnet_splits") / "data" / "wordnet" / "adjectives.tsv"

KINDS = (
    "synset",
    "exact",
    "variant",
    "qualified",
    "related",
    "within",
    "apposed",
    "head",
    "holding",
    "told",
    "part",
    "modifier",
    "aside",
    "spelling",
    "longer",
)
"""Kinds of routes from a name to a lemma, the surest first.

``synset``: the name holds the wnid. ``exact``: the name is the lemma, with any separator between its words.
``variant``: after plural, possessive, joining, cutting in two or expanding an abbreviation. ``qualified``:
with the words of its aside (stadium/football is football stadium). ``related``: the first words stay, and the
last is replaced by a word of a neighbouring synset (mountain path, mountain trail). ``within``: the lemma has
all words of the name and more. ``apposed``: its first words, which are a kind of its last (maple tree).
``head``: the last words of the name. ``holding``: the lemma has the last word, which is not a lemma
by itself, and words that the name lacks (beef tartare, steak tartare). ``told``: a kind of these whose
definition or lemma has its other words (stadium/baseball is a ballpark). ``part``: the end of its only word
(videostore). ``modifier``: its first words. ``aside``: the aside alone. ``spelling``: an unknown word with
one letter changed. ``longer``: as ``within``, though the name itself is a lemma."""

WHOLE = ("synset", "exact", "variant", "qualified")
"""Kinds that use the whole name."""

LONGEST = 8
"""Most words of a name that are used."""
MOST_TOLD = 8
"""Most kinds of a noun that match the other words of a name; if there are more, none is a candidate."""
MOST_WITHIN = 12
"""Most lemmas that contain all words of a name; if there are more, none is a candidate."""
SLACK = 4
"""Largest excess of a word's length over its form in a lemma, in letters."""
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True)
class Route:
    """A route from a name to a lemma: its kind, and the number of words of the name that it leaves out.

    ``added`` if the lemma or this sense comes from the supplement to WordNet.
    """

    lemma: str
    kind: str
    left_out: int
    added: bool = False


class Lemmas:
    """The lemmas of a taxonomy and of the supplement, looked up by words in any joining."""

    english = True

    def __init__(self, taxonomy: Taxonomy, *, supplemented: bool = True) -> None:
        self.taxonomy = taxonomy
        self.added: Mapping[str, Sequence[int]] = added_to(taxonomy) if supplemented else {}
        self.lexicon = "WordNet" if taxonomy.is_wordnet else taxonomy.title
        self.index = taxonomy.lemma_index() if taxonomy.is_wordnet else names_of_nodes(taxonomy)
        self._senses: dict[str, list[int]] = {}
        self._neighbours: dict[str, set[str]] = {}

    def __contains__(self, lemma: str) -> bool:
        return lemma in self.index or lemma in self.added

    def of(self, words: Words) -> tuple[str, ...]:
        """Return the lemmas that are these words, joined by underscores or hyphens."""
        text = "_".join(words)
        hyphenated = self._hyphenated.get(text, ())
        return (text, *hyphenated) if text in self else hyphenated

    def nodes(self, lemma: str) -> list[int]:
        """Return WordNet's senses of a lemma as nodes, the most frequent first."""
        if lemma not in self._senses:
            self._senses[lemma] = [self.taxonomy.index(w) for w in self.index.get(lemma, ())]
        return self._senses[lemma]

    @cached_property
    def _hyphenated(self) -> dict[str, tuple[str, ...]]:
        """Lemma with underscores for hyphens -> the lemmas with hyphens, in descending order."""
        lemmas: dict[str, tuple[str, ...]] = {}
        for lemma in sorted(lemma for lemma in self.index if "-" in lemma):
            text = lemma.replace("-", "_")
            lemmas[text] = (lemma, *lemmas.get(text, ()))
        return lemmas

    def has_word(self, word: str) -> bool:
        """Return whether a word is a lemma or part of a lemma, in singular or plural."""
        return self.noun(word) or word in self.parts

    @cached_property
    def parts(self) -> dict[str, list[str]]:
        """Word -> WordNet's lemmas of several words that contain it."""
        lemmas: dict[str, list[str]] = {}
        for lemma in self.index:
            if "_" in lemma:
                for part in dict.fromkeys(lemma.replace("-", "_").split("_")):
                    lemmas.setdefault(part, []).append(lemma)
        return lemmas

    @cached_property
    def longest(self) -> int:
        """Length of the longest lemma in letters."""
        return max(map(len, (*self.index, *self.added)), default=0)

    def too_long(self, words: Words) -> bool:
        """Return whether words are too long to be a form of a lemma."""
        return sum(map(len, words)) > self.longest + SLACK * len(words)

    def counts(self, lemma: str) -> tuple[int, ...]:
        """Return how often each sense of a lemma occurs in tagged texts, without zeros at the end."""
        return sense_counts().get(lemma, ()) if is_wordnet30(self.taxonomy) else ()

    def noun(self, word: str) -> bool:
        """Return whether a word is a lemma, in singular or plural."""
        singular = word.removesuffix("s")
        return word in self or singular in self.added or bool(self.taxonomy.morphy(word))

    def proper(self, word: str) -> bool:
        """Return whether WordNet writes a word in all its senses with a capital letter."""
        written = [
            lemma
            for wnid in self.index.get(word, ())
            for lemma in self.taxonomy.lemmas(wnid)
            if lemma.lower() == word
        ]
        return bool(written) and all(lemma[0].isupper() for lemma in written)

    def singular(self, word: str) -> str:
        """Return the base form of a plural, else the word."""
        if not word.endswith("s") or word.endswith("ss"):
            return word
        return self.forms(word)[0]

    def neighbours(self, word: str) -> set[str]:
        """Return the lemmas of the synsets of a word and of their parents and children."""
        if word not in self._neighbours:
            lemmas: set[str] = set()
            for wnid in self.taxonomy.senses(word):
                wnids = {wnid, *self.taxonomy.parents(wnid), *self.taxonomy.children(wnid)}
                lemmas |= {lemma.lower() for w in wnids for lemma in self.taxonomy.lemmas(w)}
            self._neighbours[word] = lemmas
        return self._neighbours[word]

    def forms(self, word: str) -> list[str]:
        """Return the base forms of a word, and its plain plural, without the word itself."""
        plural = f"{word}es" if word.endswith(("s", "x", "z", "ch", "sh")) else f"{word}s"
        base = self.taxonomy.morphy(word)
        forms = [base] if base else []
        if word.endswith("s") and len(word) > SHORTEST_PART and not word.endswith("ss"):
            forms.append(word[:-1])
        return [form for form in dict.fromkeys([*forms, plural]) if form != word]


@cache
def adjectives() -> frozenset[str]:
    """Return the lemmas that WordNet's authors tagged as adjectives or adverbs more often than as nouns."""
    return frozenset(lemma for (lemma,) in read_rows(ADJECTIVES))


@cache
def supplement() -> Mapping[str, tuple[str, ...]]:
    """Return name -> the synsets (``noodle.n.01``) that it means or is a kind of, the likeliest first.

    The names are of things to photograph that WordNet 3.0, of 2006, lacks (ramen, smartphone, skatepark), in
    lower case, without accents, underscores between words.
    """
    return {
        name: tuple(synsets.split()) for synsets, names in read_rows(SUPPLEMENT) for name in names.split()
    }


def added_to(taxonomy: Taxonomy) -> Mapping[str, Sequence[int]]:
    """Return name -> its synsets as nodes of a taxonomy; empty for another hierarchy than WordNet 3.0."""
    if not is_wordnet30(taxonomy):
        return {}
    return {
        name: [taxonomy.index(taxonomy.from_name(synset)) for synset in synsets]
        for name, synsets in supplement().items()
    }


def routes(name: ParsedName, lemmas: Lemmas) -> list[Route]:
    """Return the routes from a name to lemmas, the surest first, one for each lemma."""
    by_lemma: dict[str, Route] = {}
    for lemma, kind, left_out in _all_routes(name, lemmas):
        by_lemma.setdefault(lemma, Route(lemma, kind, left_out))
    return list(by_lemma.values())


def _all_routes(name: ParsedName, lemmas: Lemmas) -> Iterator[tuple[str, str, int]]:
    phrases = [phrase[:LONGEST] for phrase in name.phrases]
    for phrase in phrases:
        for lemma in lemmas.of(phrase):
            yield lemma, "exact", 0
    for phrase in phrases:
        for lemma in _variants(phrase, lemmas):
            yield lemma, "variant", 0
    for aside in name.asides:
        for phrase in phrases:
            for words in (aside + phrase, phrase + aside):
                for lemma in spelt(words, lemmas):
                    yield lemma, "qualified", 0
    whole = any(lemma in lemmas.index for phrase in phrases for lemma in spelt(phrase, lemmas))
    for phrase in phrases:
        if not whole:
            yield from ((lemma, "related", 0) for lemma in _related(phrase, lemmas))
        for lemma, left_out in _within(phrase, lemmas):
            yield lemma, "longer" if whole else "holding" if left_out else "within", left_out
        yield from _shorter(phrase, lemmas, whole)
    if not whole:
        for aside in name.asides:
            for start in range(len(aside)):
                for lemma in spelt(aside[start:], lemmas):
                    yield lemma, "aside", 1 + start


def spelt(words: Words, lemmas: Lemmas) -> Iterator[str]:
    """Yield the lemmas that are these words, and those after the changes of a ``variant``."""
    yield from lemmas.of(words)
    yield from _variants(words, lemmas)


def _variants(words: Words, lemmas: Lemmas) -> Iterator[str]:
    if lemmas.too_long(words):  # every cut of a very long word would be tried below
        return
    *before, last = words
    for form in lemmas.forms(last):
        yield from lemmas.of((*before, form))
    if before:
        yield from lemmas.of(tuple(map(lemmas.singular, words)))
        joined = "".join(words)
        for form in (joined, *lemmas.forms(joined)):
            yield from lemmas.of((form,))
        for n, word in enumerate(before):
            without_ing = (word[:-3], f"{word[:-3]}e") if word.endswith("ing") else ()
            for form in (*possessives(word), *without_ing):
                yield from lemmas.of((*words[:n], form, *words[n + 1 :]))
    for n, word in enumerate(words):
        long = abbreviations().get(word)
        if long:
            yield from lemmas.of((*words[:n], *long.split("_"), *words[n + 1 :]))
        for cut in range(2, len(word) - 1):
            yield from lemmas.of((*words[:n], word[:cut], word[cut:], *words[n + 1 :]))


def _related(phrase: Words, lemmas: Lemmas) -> list[str]:
    """Return the lemmas that start like a phrase and end in a neighbour of its last word."""
    *before, last = phrase
    if not before:
        return []
    neighbours = lemmas.neighbours(last)
    start = "_".join(before) + "_"
    return [
        lemma
        for lemma in lemmas.parts.get(phrase[0], ())
        if lemma.startswith(start) and lemma[len(start) :] in neighbours
    ]


def _within(phrase: Words, lemmas: Lemmas) -> list[tuple[str, int]]:
    """Return the lemmas that contain all words of a phrase, else its last word if that is not a lemma."""
    words = [lemmas.singular(word) for word in phrase if word not in stopwords()]
    for left_out, contained in ((0, words), (len(phrase) - 1, words[-1:])):
        containing = [set(lemmas.parts.get(word, ())) for word in contained]
        common = sorted(set.intersection(*containing)) if containing else []
        if common and (left_out == 0 or contained[0] not in lemmas):
            return [(lemma, left_out) for lemma in common] if len(common) <= MOST_WITHIN else []
    return []


def _shorter(phrase: Words, lemmas: Lemmas, whole: bool) -> Iterator[tuple[str, str, int]]:
    words = len(phrase)
    for start in range(1, words):
        if phrase[start] not in stopwords():
            for lemma in spelt(phrase[start:], lemmas):
                yield lemma, "head", start
    if whole:
        return
    for stop in range(words - 1, 0, -1):
        for start in range(stop):
            if phrase[start] not in stopwords() and phrase[stop - 1] not in stopwords():
                for lemma in spelt(phrase[start:stop], lemmas):
                    yield lemma, "modifier", words - stop + start
    last = phrase[-1]
    if not lemmas.has_word(last):
        for cut in range(SHORTEST_PART, min(len(last) - SHORTEST_PART, lemmas.longest) + 1):
            if last[:cut] in lemmas:
                for lemma in spelt((last[cut:],), lemmas):
                    yield lemma, "part", words
    for n, word in enumerate(phrase):
        if len(word) > SHORTEST_PART + 2 and not lemmas.too_long((word,)) and not lemmas.has_word(word):
            for similar in _one_letter_off(word):
                for start in range(n + 1):
                    for lemma in spelt((*phrase[start:n], similar, *phrase[n + 1 :]), lemmas):
                        yield lemma, "spelling", start


def _one_letter_off(word: str) -> Iterator[str]:
    """Yield the words that differ by one letter, inserted, deleted, replaced or swapped, after the first."""
    for n in range(1, len(word)):
        yield word[:n] + word[n + 1 :]
        if n + 1 < len(word):
            yield word[:n] + word[n + 1] + word[n] + word[n + 2 :]
        for letter in _LETTERS:
            yield word[:n] + letter + word[n:]
            yield word[:n] + letter + word[n + 1 :]
    for letter in _LETTERS:
        yield word + letter
