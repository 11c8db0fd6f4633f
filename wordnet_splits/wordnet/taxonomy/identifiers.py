"""Identifiers of synsets: offsets in wordnets, ILI ids, and identifiers that a user's table maps."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from wordnet_splits.base.errors import DataError, TaxonomyError
from wordnet_splits.base.names import printable
from wordnet_splits.base.tabular import Tabular
from wordnet_splits.base.text_formats import read_rows
from wordnet_splits.base.untrusted import read_text
from wordnet_splits.wordnet.taxonomy import wn_lexicons, wndb
from wordnet_splits.wordnet.taxonomy.synsets import Taxonomy, load

NOUN = 1
"""Part of speech of nouns in a sense key."""


@dataclass(frozen=True, eq=False)
class OtherWordNet:
    """The nouns of another WordNet. ``keys`` maps its sense keys to its wnids."""

    name: str
    taxonomy: Taxonomy
    keys: Mapping[str, str]

    def synset(self, wnid: str) -> str | None:
        """Return the synset that has most senses of a synset of WordNet 3.0, the first of equals, if any."""
        votes = Counter(self.keys[key] for key in _wordnet30_keys().get(wnid, ()) if key in self.keys)
        return max(votes, key=votes.__getitem__, default=None)


def load_other_wordnet(location: str | Path) -> OtherWordNet:
    """Return the WordNet of a folder of WNDB files, or of a lexicon of `wn` such as ``oewn:2024``.

    A folder without ``noun.exc``, which some editions leave out, is read with the irregular plurals of 3.0.

    Raises
    ------
    TaxonomyError : the location is not a WNDB folder or a lexicon, or is malformed.
    MissingPackageError : it is a lexicon, and `wn` is not installed.
    """
    folder, spec = Path(location), str(location)
    if not folder.is_dir() and ":" not in spec:
        hint = "a folder that holds data.noun and index.noun, or a lexicon of wn such as oewn:2024"
        raise TaxonomyError(f"{spec!r} is not a WordNet", where="--wordnet", hint=hint)
    if not folder.is_dir():
        taxonomy = Taxonomy.from_lexicon(spec, root="")
        return OtherWordNet(spec.replace(":", "-"), taxonomy, wn_lexicons.sense_keys(spec))
    texts = wndb.directory_texts(folder, without=() if (folder / "noun.exc").exists() else ("noun.exc",))
    exceptions = {} if "noun.exc" in texts else {"noun.exc": wndb.ShippedTexts()["noun.exc"]}
    taxonomy = Taxonomy.from_texts({**texts, **exceptions}, spec)
    return OtherWordNet(f"wordnet-{taxonomy.version}", taxonomy, sense_keys(texts["data.noun"]))


def sense_keys(text: bytes) -> dict[str, str]:
    """Return sense key -> wnid of the synsets of a ``data.noun``."""
    keys = {}
    for line, _ in wndb.records(text):
        offset, file, _, count, *words = line.partition("|")[0].split()
        for at in range(0, 2 * int(count, 16), 2):
            keys[f"{words[at].lower()}%{NOUN}:{file}:{int(words[at + 1], 16):02d}::"] = f"n{offset}"
    return keys


@cache
def _wordnet30_keys() -> dict[str, tuple[str, ...]]:
    """Return the sense keys of each synset of WordNet 3.0, in the order of its words."""
    keys_of: dict[str, list[str]] = {}
    for key, wnid in sense_keys(wndb.ShippedTexts()["data.noun"]).items():
        keys_of.setdefault(wnid, []).append(key)
    return {wnid: tuple(keys) for wnid, keys in keys_of.items()}


OF_WORDNET31 = files("wordnet_splits") / "data" / "wordnet" / "wordnet31.tsv"
VERSION = "3.0"
"""The version of WordNet whose wnids the schemes are joined to."""
FIRST_ILI = 35545
"""Number of the first noun in the Collaborative Interlingual Index, which numbers the nouns of WordNet 3.0 in
the order of their offsets."""


@dataclass(frozen=True)
class Scheme:
    """A scheme of identifiers: its name, the pattern of a whole identifier, and its lookup.

    ``find`` returns the wnid in WordNet 3.0 for the first group of the pattern. If only a user's table
    resolves the scheme, ``find`` stays None and ``table`` names the origin of such a table.
    """

    name: str
    pattern: re.Pattern[str]
    find: Callable[[str, Taxonomy], str | None] | None = None
    table: str = ""


@dataclass(frozen=True)
class Identified:
    """A class name that is an identifier: its scheme, and its synset, ``""`` for none."""

    scheme: str
    wnid: str


def _by_ili(number: str, taxonomy: Taxonomy) -> str | None:
    node = int(number) - FIRST_ILI
    return taxonomy.wnid(node) if 0 <= node < len(taxonomy) else None


def by_wordnet31(offset: str, taxonomy: Taxonomy) -> str | None:
    """Return the wnid in WordNet 3.0 for an offset of WordNet 3.1, None for an unmapped offset."""
    firsts, shifts = _runs()
    run = bisect_right(firsts, int(offset)) - 1
    wnid = f"n{int(offset) + int(shifts[run]):08d}" if run >= 0 and shifts[run] else ""
    return wnid if wnid in taxonomy else None


@cache
def _keys() -> dict[str, str]:
    return sense_keys(wndb.ShippedTexts()["data.noun"])


SCHEMES = (
    Scheme("ILI", re.compile(r"(?:ili:|cili\.)?i(\d{5,6})"), _by_ili),
    Scheme("Open English WordNet", re.compile(r"o?ewn-(\d{8})-n"), by_wordnet31),
    Scheme("WordNet 3.1", re.compile(r"(?:omw-en31-|p?wn31[-:])(\d{8})-?n"), by_wordnet31),
    Scheme(
        "OMW", re.compile(r"(?:omw-[a-z]+-|p?wn30[-:]|wn:)?(\d{8})-?n"), lambda offset, taxonomy: f"n{offset}"
    ),
    Scheme("sense key", re.compile(r"(\S+%1:\d\d:\d\d::)"), lambda key, _: _keys().get(key.lower())),
    Scheme("Wikidata item", re.compile(r"(?:wd:)?(Q[1-9]\d*)"), table="Wikidata's P5063 is an item's ILI"),
    Scheme(
        "Open Images or Freebase MID",
        re.compile(r"(/?[mg][/._][01][0-9a-z_]{2,})"),
        table="Wikidata has MIDs as P646 and P2671, and the ILI of an item as P5063",
    ),
    Scheme(
        "BabelNet synset",
        re.compile(r"(bn:\d{8}[nvar])"),
        table="BabelNet gives the WordNet offsets of its synsets",
    ),
    Scheme("wnid that WordNet 3.0 lacks", re.compile(r"(n\d{8})")),
)
"""The schemes, in order of precedence: the first match counts."""


def is_wordnet30(taxonomy: Taxonomy) -> bool:
    """Return whether a taxonomy is WordNet 3.0, to which the schemes and our word lists are joined."""
    return taxonomy.is_wordnet and taxonomy.version == VERSION


def identify(text: str, taxonomy: Taxonomy, ids: Mapping[str, str]) -> Identified | None:
    """Return the scheme and the synset of a text that is an identifier, None for any other text."""
    if text in ids:
        return Identified("--ids", ids[text])
    if text in taxonomy or (not taxonomy.is_wordnet and taxonomy.senses(text)):
        return None
    for scheme in SCHEMES:
        if match := scheme.pattern.fullmatch(text):
            wnid = ids.get(_as_published(match[1]))
            if wnid is None and scheme.find and is_wordnet30(taxonomy):
                found = scheme.find(match[1], taxonomy)
                wnid = found if found in taxonomy else None
            return Identified(scheme.name, wnid or "")
    return None


def _as_published(identifier: str) -> str:
    """Return an identifier as its publisher writes it; folders cannot have the slashes of a MID."""
    return re.sub(r"^/?([mg])[/._]", r"/\1/", identifier)


def read_ids(path: Path, taxonomy: Taxonomy) -> dict[str, str]:
    """Return identifier -> wnid of a table of two columns, separated by a tab.

    The second column holds a wnid, a synset's name (``dog.n.01``) or an identifier of `SCHEMES`; rows of
    verbs, adjectives and adverbs (``00001740-a``) are passed over, and so are comments and a heading in the
    first line. An identifier with several synsets is ambiguous and maps to ``""``.

    Raises DataError if the table is absent or malformed, or a synset is not in the taxonomy.
    """
    ids: dict[str, str] = {}
    first = True
    for number, line in enumerate(read_text(path).splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        identifier, *cells = (cell.strip() for cell in line.split("\t"))
        synset = cells[0] if cells else ""
        where = f"{path}, line {number}"
        if len(cells) != 1 or not identifier:
            raise DataError("has no two columns", where=where, hint="an identifier, a tab, and a wnid")
        if re.fullmatch(r"\d{8}-[vars]", synset):
            continue
        is_heading, first = first and not re.search(r"\d", synset), False
        wnid = _synset(synset, taxonomy)
        if wnid is not None:
            ids[identifier] = wnid if ids.get(identifier, wnid) == wnid else ""
        elif not is_heading:
            raise DataError(f"{printable(synset)!r} is not a noun of {taxonomy.title}", where=where)
    if not ids:
        raise DataError("names no synset", where=str(path), hint="an identifier, a tab, and a wnid")
    return ids


def _synset(text: str, taxonomy: Taxonomy) -> str | None:
    if text in taxonomy:
        return text
    if ".n." in text or not taxonomy.is_wordnet:
        with suppress(TaxonomyError):
            return taxonomy.from_name(text)
    known = identify(text, taxonomy, {})
    return known.wnid or None if known else None


@cache
def _runs() -> tuple[list[int], list[str]]:
    """Return the runs of offsets of WordNet 3.1: the first of each, and the way from there to 3.0's."""
    rows = read_rows(OF_WORDNET31)
    return [int(first) for first, _ in rows], [shift for _, shift in rows]


@dataclass(frozen=True)
class SynsetSearch(Tabular):
    """The synsets of a word: its senses first, then the synsets of compound nouns that contain it."""

    word: str
    wnids: tuple[str, ...]
    taxonomy: Taxonomy

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return wnid, name, words, number of synsets below, and definition of each synset."""
        t = self.taxonomy
        return [
            {
                "wnid": wnid,
                "name": t.name(wnid),
                "words": ", ".join(lemma.replace("_", " ") for lemma in t.lemmas(wnid)),
                "below": len(t.descendants(wnid)) - 1,
                "definition": t.definition(wnid),
            }
            for wnid in self.wnids
        ]


def find_synsets(word: str, taxonomy: Taxonomy | str | None = None) -> SynsetSearch:
    """Return the synsets of a word, and the synsets of compound nouns that contain it.

    Raises
    ------
    TaxonomyError : no noun is or contains that word; the error offers synsets of similar nouns.

    Examples
    --------
    >>> find_synsets("axolotl").wnids
    ('n01632777',)
    """
    taxonomy = load(taxonomy)
    key = word.strip().lower().replace(" ", "_")
    index = taxonomy.lemma_index()
    lemmas = sorted(lemma for lemma in index if f"_{key}_" in f"_{lemma.replace('-', '_')}_")
    wnids = dict.fromkeys([*taxonomy.senses(key), *(wnid for lemma in lemmas for wnid in index[lemma])])
    return SynsetSearch(word, tuple(wnids) or (taxonomy.find(word),), taxonomy)
