"""Lexicons of other languages, whose synsets are joined to WordNet 3.0 by ILI or offset, and tagged counts.

Lexicons are those that a user has downloaded with the package `wn`, such as the Open Multilingual
Wordnet's, or a WN-LMF file.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from wordnet_splits.base.errors import TaxonomyError
from wordnet_splits.base.lazy import need
from wordnet_splits.base.text_formats import read_rows
from wordnet_splits.base.untrusted import MiB, check_file
from wordnet_splits.wordnet.taxonomy import Taxonomy
from wordnet_splits.wordnet.taxonomy.identifiers import VERSION, identify, is_wordnet30
from wordnet_splits.wordnet.taxonomy.wndb import ShippedTexts

ENGLISH = "en"
LARGEST_LEXICON = 512 * MiB
"""Largest file of WN-LMF, in bytes (FinnWordNet's has 100 MB)."""
WHERE = "--language"
COUNTS = files("wordnet_splits") / "data" / "wordnet" / "sense_counts.tsv"

Entry = tuple[str, str, str]
"""A lemma as its lexicon writes it, and the id and the ILI of a synset (``""`` for none)."""


@cache
def sense_counts() -> Mapping[str, tuple[int, ...]]:
    """Return lemma -> number of tagged occurrences of each sense in WordNet 3.0, without zeros at the end."""
    return {lemma: tuple(map(int, counts.split())) for lemma, counts in read_rows(COUNTS)}


@cache
def gloss_counts() -> Counter[str]:
    """Return how often each word, in small letters, occurs in the glosses of WordNet 3.0's nouns."""
    glosses = "".join(re.findall(r"\|.*", ShippedTexts()["data.noun"].decode("utf-8")))
    return Counter(re.findall(r"[a-z]+", glosses.lower()))


def read_nouns(language: str, taxonomy: Taxonomy) -> tuple[str, list[tuple[str, str]]]:
    """Return the name of a language's lexicons, and each of their nouns with a wnid, in their order.

    ``language`` : code such as ``fr``, for all its lexicons that are installed for `wn`; or a WN-LMF file.
    """
    if not is_wordnet30(taxonomy):
        problem = f"other languages need WordNet {VERSION}, got {taxonomy.title}"
        raise TaxonomyError(problem, where=WHERE, hint="leave out --language, or the other hierarchy")
    path = Path(language)
    lexicon, entries = _of_file(path) if path.suffix == ".xml" else _installed(language)
    nouns = [(lemma, wnid) for lemma, synset, ili in entries if (wnid := _wnid(synset, ili, taxonomy))]
    if not nouns:
        raise TaxonomyError("no noun has an ILI or an id of OMW", where=lexicon)
    return lexicon, nouns


def _wnid(synset: str, ili: str, taxonomy: Taxonomy) -> str:
    for text in filter(None, (ili, synset if synset.startswith("omw-") else "")):
        if (known := identify(text, taxonomy, {})) and known.wnid:
            return known.wnid
    return ""


def frequency(wnid: str, taxonomy: Taxonomy) -> int:
    """Return how often the commonest English word of a synset occurs in tagged texts in its sense."""
    lemmas = [lemma.lower() for lemma in taxonomy.lemmas(wnid)]
    senses = [(lemma, taxonomy.lemma_index()[lemma].index(wnid)) for lemma in lemmas]
    return max(sum(sense_counts().get(lemma, ())[sense : sense + 1]) for lemma, sense in senses)


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
    words = (word for specifier in lexicons for word in wn.Wordnet(specifier, expand="").words(pos="n"))
    pairs = ((word.lemma(), synset) for word in words for synset in word.synsets())
    entries = ((lemma, s.id, str(getattr(s.ili, "id", s.ili) or "")) for lemma, s in pairs)
    return ", ".join(lexicons), entries


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
