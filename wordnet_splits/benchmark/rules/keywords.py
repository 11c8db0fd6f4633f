"""Keywords of a class name, and the synsets they reach (Kim et al. 2023, section 3.2 and table 4).

A name such as ``childs_room`` or ``251.airplanes-101`` is split into words, varied in grammar and spelling,
and looked up among the lemmas of WordNet. A keyword reaches a synset when it equals one of its
lemmas or, with ``match="token"``, one of the parts of a lemma between ``_`` and ``-``, case folded.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from wordnet_splits.base.errors import unknown
from wordnet_splits.base.text_formats import read_rows

if TYPE_CHECKING:
    from wordnet_splits.wordnet.taxonomy import Taxonomy

DATA = files("wordnet_splits") / "data"
Words = tuple[str, ...]
MatchBy = Literal["token", "lemma"]
Qualifiers = Literal["drop", "keep"]
Compounds = Literal["whole", "split"]

KINDS = ("tokens", "plural", "spacing", "apostrophe", "abbreviation")
"""The kinds of variants that can be switched off; the name itself always is a keyword.

``tokens``: each word of a name of several. ``plural``: singular (WordNet's morphy; inflect) and plural
(inflect). ``spacing``: neighbouring words joined or underscored (head-phones -> headphones), and a word
cut in two where WordNet has the two-word lemma (barndoor -> barn_door). ``apostrophe``: the possessive
of a modifier (childs room, child room -> child's room). ``abbreviation``: the long form of a
clipping or of initials (chimp -> chimpanzee)."""

SHORTEST_PART = 3
"""Fewest letters of each part of a compound: ``in``, ``at`` and ``as`` are nouns of WordNet too."""


class Keyword(NamedTuple):
    """One keyword: case-folded, underscores between words.

    ``kind`` is its first origin: ``name``, one of `KINDS`, ``qualifiers`` or ``compounds``.
    """

    text: str
    kind: str


class Match(NamedTuple):
    """A synset that a keyword reaches, and the matching lemma (lower case, underscored)."""

    keyword: str
    kind: str
    wnid: str
    lemma: str


def variants(
    name: str,
    *,
    qualifiers: Qualifiers = "drop",
    compounds: Compounds = "whole",
    kinds: Collection[str] = KINDS,
    taxonomy: Taxonomy | None = None,
) -> tuple[Keyword, ...]:
    """Return the keywords of a class name, the name itself first, each once.

    Parameters
    ----------
    name : a class name as its publisher writes it; a leading ``001.``, a trailing ``-101`` and other bare
        numbers are dropped, alternatives may be separated by commas.
    qualifiers : whether the text after ``/`` makes keywords, too (``church/outdoor``).
    compounds : ``split`` also takes both parts of each cut of a word into two lemmas (fishpond: fish, pond).
    kinds : the `KINDS` of variants to make.
    taxonomy : the source of lemmas; the embedded WordNet by default.

    Raises
    ------
    UnknownNameError : a kind that does not exist.
    """
    for kind in kinds:
        if kind not in KINDS:
            raise unknown("kind of keyword", kind, KINDS)
    index = lemma_index(taxonomy)
    kind_of: dict[str, str] = {}
    names, qualifying = _split_name(name)
    for words in names:
        for keyword in _keywords_of(words, kinds, compounds, index):
            kind_of.setdefault(keyword.text, keyword.kind)
    if qualifiers == "keep":
        for words in qualifying:
            for keyword in _keywords_of(words, kinds, compounds, index):
                kind_of.setdefault(keyword.text, "qualifiers")
    return tuple(Keyword(text, kind) for text, kind in kind_of.items() if _can_match(text))


def matches(
    name: str,
    *,
    match: MatchBy = "token",
    qualifiers: Qualifiers = "drop",
    compounds: Compounds = "whole",
    kinds: Collection[str] = KINDS,
    taxonomy: Taxonomy | None = None,
) -> tuple[Match, ...]:
    """Return every (keyword, synset) pair of a class name: keywords in their order, lemmas sorted.

    Takes the parameters of `variants`. With ``match = "lemma"`` a keyword must equal a lemma; with
    ``"token"`` it may also equal a part of a lemma.
    """
    index = lemma_index(taxonomy)
    options: dict[str, Any] = {"qualifiers": qualifiers, "compounds": compounds, "kinds": kinds}
    return tuple(
        Match(keyword.text, keyword.kind, wnid, lemma)
        for keyword in variants(name, taxonomy=index.taxonomy, **options)
        for lemma in index.lemmas_reached(keyword.text, match)
        for wnid in index.senses(lemma)
    )


def folded_lemma(lemma: str) -> str:
    """Return a lemma as keywords and lemmas are compared: case folded, ``-`` as ``_``."""
    return lemma.casefold().replace("-", "_")


def folded_name(name: str) -> str:
    """Return the name of a class as it is compared with lemmas and other names."""
    return folded_lemma(name.replace(" ", "_"))


class LemmaLookup:
    """The lemmas of a taxonomy and their parts, for looking keywords up.

    ``spellings`` maps each lemma (case-folded, ``-`` as ``_``) to its spellings in the taxonomy; ``parts``
    maps each part of a lemma of several to the sorted lemmas that contain it.
    """

    def __init__(self, taxonomy: Taxonomy) -> None:
        self.taxonomy = taxonomy
        self.spellings: dict[str, Words] = {}
        for lemma in taxonomy.lemma_index():
            key = folded_lemma(lemma)  # t-shirt and t_shirt are the same
            self.spellings[key] = (*self.spellings.get(key, ()), lemma)
        self.parts: dict[str, list[str]] = {}
        for lemma in sorted(self.spellings):
            if "_" in lemma:
                for part in dict.fromkeys(lemma.split("_")):
                    self.parts.setdefault(part, []).append(lemma)

    def senses(self, lemma: str) -> tuple[str, ...]:
        """Return the synsets of a lemma in all its spellings."""
        index = self.taxonomy.lemma_index()
        return tuple(dict.fromkeys(wnid for spelling in self.spellings[lemma] for wnid in index[spelling]))

    def lemmas_reached(self, keyword: str, match: MatchBy) -> tuple[str, ...]:
        """Return the lemmas that a keyword reaches: the equal one, then those that contain it, sorted."""
        equal = (keyword,) if keyword in self.spellings else ()
        return equal + tuple(self.parts.get(keyword, ())) if match == "token" else equal

    def singulars(self, word: str) -> Words:
        """Return the singulars of a word by morphy and inflect; none when it is not a plural."""
        if not word.isalpha():
            return ()
        forms = (self.taxonomy.morphy(word) or "", _inflected_singular(word))
        return tuple(dict.fromkeys(form for form in forms if form and form != word))

    def plurals(self, word: str) -> Words:
        """Return the plurals of a word, or of its singulars when it is a plural already."""
        if not word.isalpha():
            return ()
        bases = self.singulars(word) or (word,)
        return tuple(p for p in dict.fromkeys(map(_inflected_plural, bases)) if p and p != word)


def lemma_index(taxonomy: Taxonomy | None = None) -> LemmaLookup:
    """Return the lemma index of a taxonomy (the embedded one by default), built once per taxonomy."""
    if taxonomy is None:
        from wordnet_splits.wordnet.taxonomy import Taxonomy

        taxonomy = Taxonomy.embedded()
    return _index_of(taxonomy)


@lru_cache(maxsize=4)
def _index_of(taxonomy: Taxonomy) -> LemmaLookup:
    return LemmaLookup(taxonomy)


def _split_name(name: str) -> tuple[list[Words], list[Words]]:
    """Return the words of each alternative of a name, and the words of each qualifier."""
    folded = re.sub(r"^\s*\d+\.", "", name.casefold().replace("’", "'"))
    alternatives, *qualifiers = folded.strip("/").split("/")
    names = map(_words, alternatives.split(","))
    return [w for w in names if w], [w for w in map(_words, qualifiers) if w]


def _words(text: str) -> Words:
    words = (re.sub(r"[^\w']|_", "", part).strip("'") for part in re.split(r"[\s_-]+", text))
    return tuple(w for w in words if w and not w.isdigit())


@dataclass(frozen=True)
class _Word:
    """A word of a name and its forms; forms of a kind that is switched off are empty."""

    text: str
    singulars: Words = ()
    plurals: Words = ()
    possessives: Words = ()
    long_forms: Words = ()


def _vary(word: str, modifies: bool, kinds: Collection[str], index: LemmaLookup) -> _Word:
    """Return the forms of a word; ``modifies`` if another word of the name follows it."""
    if not _can_match(word):
        return _Word(word)
    singulars = index.singulars(word) if "plural" in kinds else ()
    long_forms = (abbreviations().get(short) for short in (word, *singulars))
    return _Word(
        word,
        singulars,
        index.plurals(word) if "plural" in kinds else (),
        possessives(word) if "apostrophe" in kinds and modifies else (),
        tuple(long for long in long_forms if long) if "abbreviation" in kinds else (),
    )


def _keywords_of(
    words: Words, kinds: Collection[str], compounds: Compounds, index: LemmaLookup
) -> Iterator[Keyword]:
    varied = [_vary(word, n < len(words) - 1, kinds, index) for n, word in enumerate(words)]
    phrases: dict[Words, str] = {}
    for phrase, kind in _phrases(varied):
        phrases.setdefault(phrase, kind)
    for phrase, kind in phrases.items():
        yield Keyword("_".join(phrase), kind)
    if "tokens" in kinds:
        for phrase, kind in phrases.items():
            for word in phrase:
                yield Keyword(word, "tokens" if kind == "name" else kind)
        for form in (form for word in varied for form in word.plurals):
            yield Keyword(form, "plural")
    if "spacing" in kinds:
        for phrase in phrases:
            for text in _respaced(phrase, index):
                yield Keyword(text, "spacing")
    if compounds == "split":
        for phrase in phrases:
            for part in (part for word in phrase for part in _parts(word, index)):
                yield Keyword(part, "compounds")


def _phrases(words: list[_Word]) -> Iterator[tuple[Words, str]]:
    """Yield the name, then its variants that change a single word, then the name with all words singular.

    Only the last word of a compound takes the plural (cup_cakes, not cups_cakes). A long form of several
    words is not split: its words are not words of the name.
    """
    texts = tuple(word.text for word in words)
    yield texts, "name"
    for n, word in enumerate(words):
        plurals = word.plurals if n == len(words) - 1 else ()
        for kind, forms in (
            ("plural", word.singulars + plurals),
            ("apostrophe", word.possessives),
            ("abbreviation", word.long_forms),
        ):
            for form in forms:
                yield (*texts[:n], form, *texts[n + 1 :]), kind
    yield tuple(next(iter(word.singulars), word.text) for word in words), "plural"


def possessives(word: str) -> Words:
    """Return the forms of a modifier with or without its possessive ending."""
    if word.endswith("'s"):
        return (word[:-2],)
    if word.endswith("s") and len(word) > SHORTEST_PART:
        return (f"{word[:-1]}'s", f"{word}'")
    return (f"{word}'s",) if word.isalpha() else ()


def _respaced(phrase: Words, index: LemmaLookup) -> Iterator[str]:
    """Yield runs of neighbouring words joined and underscored, and words cut into a lemma of two."""
    for start in range(len(phrase)):
        for stop in range(start + 2, len(phrase) + 1):
            run = phrase[start:stop]
            if run[0] not in stopwords() and run[-1] not in stopwords():
                yield "".join(run)
                yield "_".join(run)
    for word in phrase:
        for cut in range(1, len(word)):
            if (spaced := f"{word[:cut]}_{word[cut:]}") in index.spellings:
                yield spaced


def _parts(word: str, index: LemmaLookup) -> Iterator[str]:
    """Yield both parts of every cut of a word into two lemmas."""
    for cut in range(SHORTEST_PART, len(word) - SHORTEST_PART + 1):
        parts = word[:cut], word[cut:]
        if all(part in index.spellings and part not in stopwords() for part in parts):
            yield from parts


def _can_match(keyword: str) -> bool:
    return len(keyword) > 1 and not keyword.isdigit() and keyword not in stopwords()


@cache
def stopwords() -> frozenset[str]:
    """Return the words that never match alone."""
    text = (DATA / "stopwords.txt").read_text(encoding="utf-8")
    return frozenset(line for line in text.splitlines() if line and not line.startswith("#"))


@cache
def abbreviations() -> dict[str, str]:
    """Return short form -> long form (underscored)."""
    return {short: long for short, long, _ in read_rows(DATA / "abbreviations.tsv")}


@cache
def inflected() -> dict[str, tuple[str, str]]:
    """Return inflect's forms of the words of the shipped catalogs: word -> (singular or "", plural).

    The forms are stored because inflect takes a second to import, and because a new version of inflect could
    change a frozen class.
    """
    return {word: (singular, plural) for word, singular, plural in read_rows(DATA / "inflected.tsv")}


@cache
def _inflect() -> Any:
    import inflect  # slow to import, needed only here

    return inflect.engine()


@lru_cache(maxsize=1 << 16)
def _inflected_singular(word: str) -> str:
    # inflect takes any -s for a plural: gas -> ga, iris -> iri, cactus -> cactu, tennis -> tenni
    if len(word) <= SHORTEST_PART or word.endswith(("ss", "us", "is")):
        return ""
    return inflected()[word][0] if word in inflected() else singular_by_inflect(word)


@lru_cache(maxsize=1 << 16)
def _inflected_plural(word: str) -> str:
    return inflected()[word][1] if word in inflected() else plural_by_inflect(word)


def singular_by_inflect(word: str) -> str:
    """Return the singular of a word, "" where it is not a plural."""
    return _inflect().singular_noun(word) or ""


def plural_by_inflect(word: str) -> str:
    """Return the plural of a singular word."""
    return str(_inflect().plural_noun(word))
