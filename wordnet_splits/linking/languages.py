"""Nouns of other languages, whose synsets are joined to WordNet 3.0 by ILI or offset.

They are read from the lexicons that a user has downloaded with the package `wn`, such as the Open
Multilingual Wordnet's, or from a WN-LMF file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wordnet_splits.base.errors import TaxonomyError
from wordnet_splits.base.lazy import need
from wordnet_splits.base.untrusted import MiB, check_file
from wordnet_splits.linking.candidates import Lemmas, sense_counts
from wordnet_splits.linking.class_names import parse_name
from wordnet_splits.wordnet.taxonomy import Taxonomy
from wordnet_splits.wordnet.taxonomy.identifiers import VERSION, identify

ENGLISH = "en"
LARGEST_LEXICON = 512 * MiB
"""Largest file of WN-LMF, in bytes (FinnWordNet's has 100 MB)."""
WHERE = "--language"

Entry = tuple[str, str, str]
"""A lemma as its lexicon writes it, and the id and the ILI of a synset (``""`` for none)."""


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
        return tuple(_frequency(wnid, self.taxonomy) for wnid in self.index.get(lemma, ()))

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
    if taxonomy.version != VERSION:
        hint = "leave out --wordnet"
        raise TaxonomyError(f"other languages need WordNet {VERSION}", where=WHERE, hint=hint)
    path = Path(language)
    lexicon, entries = _of_file(path) if path.suffix == ".xml" else _installed(language)
    wnids: dict[str, set[str]] = {}
    for lemma, synset, ili in entries:
        if wnid := _wnid(synset, ili, taxonomy):
            for phrase in parse_name(lemma.replace("/", " ").replace(",", " ")).phrases:
                wnids.setdefault("_".join(phrase), set()).add(wnid)
    if not wnids:
        raise TaxonomyError("no noun has an ILI or an id of OMW", where=lexicon)
    return ForeignNouns(
        lexicon,
        {
            lemma: tuple(sorted(senses, key=lambda wnid: (-_frequency(wnid, taxonomy), wnid)))
            for lemma, senses in sorted(wnids.items())
        },
    )


def _wnid(synset: str, ili: str, taxonomy: Taxonomy) -> str:
    for text in filter(None, (ili, synset if synset.startswith("omw-") else "")):
        if (known := identify(text, taxonomy, {})) and known.wnid:
            return known.wnid
    return ""


def _frequency(wnid: str, taxonomy: Taxonomy) -> int:
    """Return how often the commonest English word of a synset occurs in tagged texts in its sense."""
    index, frequency = taxonomy.lemma_index(), 0
    for lemma in map(str.lower, taxonomy.lemmas(wnid)):
        counts, sense = sense_counts().get(lemma, ()), index[lemma].index(wnid)
        frequency = max(frequency, counts[sense] if sense < len(counts) else 0)
    return frequency


def _installed(language: str) -> tuple[str, Iterator[Entry]]:
    """Return the lexicons of a language that are installed for `wn`, and their nouns."""
    wn = need("wn", "wn", where=f"{WHERE} {language}")
    exists = wn.config.database_path.is_file()  # listing would create it
    lexicons = [x.specifier() for x in wn.lexicons() if _matches(x.language, language)] if exists else []
    if not lexicons:
        codes = {name: project.get("language") or "mul" for name, project in wn.config.index.items()}
        names = [name for name, code in codes.items() if _matches(code, language)]
        downloads = [f"{name}:{next(iter(wn.config.index[name]['versions']))}" for name in names]
        others = sorted({code.partition("-")[0] for code in codes.values()} - {ENGLISH, "mul"})
        hint = f"python -m wn download {downloads[0]}" if downloads else f"one of {', '.join(others)}"
        raise TaxonomyError(f"wn has no lexicon of {language!r} on this machine", where=WHERE, hint=hint)

    def entries() -> Iterator[Entry]:
        for specifier in lexicons:
            for word in wn.Wordnet(specifier, expand="").words(pos="n"):
                for synset in word.synsets():
                    yield word.lemma(), synset.id, str(getattr(synset.ili, "id", synset.ili) or "")

    return ", ".join(lexicons), entries()


def _matches(code: str, language: str) -> bool:
    return language in (code, code.partition("-")[0])


def _of_file(path: Path) -> tuple[str, Iterator[Entry]]:
    """Return the lexicons of a file of WN-LMF, and their nouns."""
    lmf = need("wn.lmf", "wn", where=f"{WHERE} {path}")
    check_file(path, largest=LARGEST_LEXICON, error=TaxonomyError)
    try:
        lexicons = lmf.load(path, progress_handler=None)["lexicons"]
        entries = [entry for lexicon in lexicons for entry in _of_lexicon(lexicon)]
    except (lmf.LMFError, SyntaxError, KeyError, ValueError, AssertionError) as error:
        # SyntaxError for XML; wn asserts that an element has its attributes
        reason = str(error) or "an element lacks an attribute"
        raise TaxonomyError(f"is not WN-LMF: {reason}", where=str(path)) from error
    return ", ".join(f"{x['id']}:{x['version']}" for x in lexicons), iter(entries)


def _of_lexicon(lexicon: Mapping[str, Any]) -> Iterator[Entry]:
    """Yield the nouns of a lexicon, as `wn.lmf` reads it. Raises KeyError where something is missing."""
    ilis = {synset["id"]: synset.get("ili", "") for synset in lexicon.get("synsets", [])}
    for entry in lexicon.get("entries", []):
        lemma = entry.get("lemma") or {}  # an extension of another lexicon may have none
        if lemma.get("partOfSpeech") == "n":
            for sense in entry.get("senses", []):
                yield lemma["writtenForm"], sense["synset"], ilis.get(sense["synset"], "")
