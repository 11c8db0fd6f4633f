"""Parser of class names: their phrases and qualifiers, or the synset of an identifier in their place."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial

from wordnet_splits.base.errors import DataError, TaxonomyError
from wordnet_splits.base.names import printable
from wordnet_splits.wordnet.taxonomy import Taxonomy
from wordnet_splits.wordnet.taxonomy.identifiers import (
    SCHEMES,
    Identified,
    by_wordnet31,
    identify,
    is_wordnet30,
)

Words = tuple[str, ...]

_NUMBER_BEFORE = re.compile(r"^\s*\d+[\s._-]+(?=\D)")
_NUMBER_AFTER = re.compile(r"[\s_-]\d+$")
_TAXA = re.compile(r"\d+_([A-Z][a-z]+(?:_[A-Z][a-z]+){4})_([A-Z][a-z]+(?:_[\w-]+)+)")
"""A folder of iNaturalist: number, kingdom, phylum, class, order, family, and the species of two words."""
_ASIDE = re.compile(r"[(\[]([^)\]]*)[)\]]")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z][a-z])|(?<=[A-Za-z])(?=[A-Z][a-z]+[A-Z ]|$)")
MOST_UNKNOWN = 0.5
"""Share of names that are identifiers without a synset, above which a list is refused."""
HINT = "give --ids MAP.tsv: on each line an identifier, a tab, and a wnid, an ILI or a synset's name"
HINT_OF_NODES = "give --ids MAP.tsv: on each line an identifier, a tab, and the id of a node or dog#1"
WNID = re.compile(r"n\d{8}")
_NUMBER = re.compile(r"\d{6}")
"""A number in an id, such as an offset, whose words are no name."""
_SYNSET = re.compile(r"[^\s/]+\.n\.\d\d?")
_BETWEEN = re.compile(r"[\s_\-\u2010-\u2015]+")
_DROPPED = re.compile(r"[^\w']|_")
_ACCENTS = re.compile("[\u0300-\u036f]")
_QUOTES = str.maketrans({"\u2018": "'", "\u2019": "'", "`": "'"})


@dataclass(frozen=True)
class ParsedName:
    """A class name in parts, case-folded and without accents, as WordNet writes (*creme brulee*).

    ``phrases`` are its alternatives (``tench, Tinca tinca`` has two), ``asides`` its qualifiers after a slash
    or in brackets (``church/outdoor``), ``synset`` is a wnid or synset name in it, ``""`` for none.
    ``capital`` if every word of the name begins with a capital letter.
    """

    name: str
    phrases: tuple[Words, ...]
    asides: tuple[Words, ...]
    synset: str
    capital: bool

    @property
    def number(self) -> bool:
        """Whether the name has no letter: it is more often a position in a list than a number of things."""
        return not self.synset and not any(map(str.isalpha, self.name))

    @property
    def content(self) -> tuple[tuple[Words, ...], tuple[Words, ...], str, bool]:
        """All but the name itself; names of equal content have equal meanings."""
        return self.phrases, self.asides, self.synset, self.capital


def parse_name(name: str, *, numbered: bool = False) -> ParsedName:
    """Return the parts of a class name as its publisher writes it.

    A number before it (``001.ak47``) or after it (``airplanes-101``; not if ``numbered``) is dropped, and so
    is a first folder of one letter (``/a/airfield`` in Places365); ``&`` is read as *and*. In a folder name
    of iNaturalist, the species is the name, and the family and the ranks above it are qualifiers.
    """
    if taxa := _TAXA.fullmatch(name.strip()):
        ranks, species = taxa.groups()
        name_of_species = parse_name(species)
        return replace(
            name_of_species, name=name, asides=tuple(_words(rank) for rank in reversed(ranks.split("_")))
        )
    text = _NUMBER_BEFORE.sub("", name.translate(_QUOTES).replace("&", " and ").strip())
    synset = WNID.search(text) or _SYNSET.fullmatch(text)
    if synset:
        text = text.replace(synset[0], " ").strip(" _-.:") if WNID.search(text) else synset[0].split(".")[0]
    asides = [words for part in _ASIDE.findall(text) if (words := _words(part))]
    parts = _ASIDE.sub(" ", text).strip("/ ").split("/")
    alternatives, *qualifiers = parts[1:] if len(parts) > 1 and len(parts[0]) == 1 else parts
    names = [part if numbered else _NUMBER_AFTER.sub("", part) for part in alternatives.split(",")]
    phrases = [words for part in names if (words := _words(part))]
    asides += [words for part in qualifiers if (words := _words(part))]
    letters = [word for word in _BETWEEN.split(alternatives) if word[:1].isalpha()]
    return ParsedName(
        name=name,
        phrases=tuple(dict.fromkeys(phrases)),
        asides=tuple(asides),
        synset=synset[0] if synset else "",
        capital=bool(letters) and all(word[0].isupper() for word in letters),
    )


def _words(text: str) -> Words:
    spaced = _CAMEL.sub(" ", text) if text != text.upper() else text
    words = (_DROPPED.sub("", part).strip("'") for part in _BETWEEN.split(without_accents(spaced.casefold())))
    return tuple(word for word in words if word)


def without_accents(text: str) -> str:
    """Return a text without the accents of Latin and Greek letters; other scripts keep their marks."""
    return unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFD", text)))


@lru_cache(maxsize=2)
def names_of_nodes(taxonomy: Taxonomy) -> Mapping[str, tuple[str, ...]]:
    """Return the names in a custom hierarchy, also without accents and punctuation -> their nodes.

    The words of an id (*crane b* of ``crane-b``) count where no name takes them, unless it holds a number.
    """
    index: Mapping[str, tuple[str, ...]] = taxonomy.lemma_index()
    names = {lemma: dict.fromkeys(nodes) for lemma, nodes in index.items()}
    for lemma, nodes in index.items():
        if words := _words(lemma):
            names.setdefault("_".join(words), {}).update(dict.fromkeys(nodes))
    ids: dict[str, dict[str, None]] = {}
    for node in taxonomy:
        if (text := "_".join(_words(node))) and text not in names and not _NUMBER.search(node):
            ids.setdefault(text, {})[node] = None
    names |= ids
    return {name: tuple(nodes) for name, nodes in names.items()}


def name_of_node(text: str, taxonomy: Taxonomy) -> str:
    """Return a text as a key of `names_of_nodes`, ``""`` if it is none."""
    keys = re.sub(r"[\s_]+", "_", text.strip()).lower(), "_".join(_words(text))
    return next((key for key in keys if key in names_of_nodes(taxonomy)), "")


def _parse_name_of_node(name: str, taxonomy: Taxonomy) -> ParsedName:
    """Return the parts of a class name in a custom hierarchy: the id or a name of a node is not divided."""
    text = name.strip()
    synset = text if text in taxonomy else ""
    if not synset and ("#" in text or ".n." in text):
        with suppress(TaxonomyError):
            synset = taxonomy.from_name(text)
    whole = tuple(tuple(key.split("_")) for key in [name_of_node(text, taxonomy)] if key)
    parsed = parse_name(name, numbered=True)
    return replace(parsed, phrases=whole, asides=(), synset=synset) if synset or whole else parsed


def parse_names(
    names: Sequence[str], taxonomy: Taxonomy, ids: Mapping[str, str] | None = None
) -> list[tuple[ParsedName, Identified | None]]:
    """Return the parts of all names of a list; an identifier has no words, but its synset if known.

    In a custom hierarchy, the id and the names of a node are not divided, and numbers after a name count.

    ``ids`` : name or identifier -> wnid, before all schemes. Wnids are read as WordNet 3.1's if one of the
    list is not in the taxonomy and all are in that.
    """
    held = {name: match[0] for name in names if (match := WNID.search(name))}
    later: dict[str, str] = {}
    if is_wordnet30(taxonomy) and any(wnid not in taxonomy for wnid in held.values()):
        later = {name: by_wordnet31(wnid[1:], taxonomy) or "" for name, wnid in held.items()}
        later = later if all(later.values()) else {}
    parse = parse_name if taxonomy.is_wordnet else partial(_parse_name_of_node, taxonomy=taxonomy)
    parsed: list[tuple[ParsedName, Identified | None]] = []
    for name in names:
        if wnid := later.get(name):
            parsed.append((replace(parse_name(name), synset=wnid), Identified("WordNet 3.1", wnid)))
        elif known := identify(name.strip(), taxonomy, ids or {}):
            parsed.append((ParsedName(name, (), (), known.wnid, capital=False), known))
        else:
            parsed.append((parse(name), None))
    unknown = [(name.name, known.scheme) for name, known in parsed if known and not known.wnid]
    _check_known(unknown, len(names), taxonomy)
    return parsed


def _check_known(unknown: Sequence[tuple[str, str]], names: int, taxonomy: Taxonomy) -> None:
    if len(unknown) <= MOST_UNKNOWN * names:
        return
    scheme, _ = Counter(scheme for _, scheme in unknown).most_common(1)[0]
    example = next(name for name, of in unknown if of == scheme)
    table = next((each.table for each in SCHEMES if each.name == scheme and each.table), "")
    raise DataError(
        f"{len(unknown):,} of {names:,} names are identifiers without a known synset ({scheme}, such as "
        f"{printable(example)!r})",
        where="names",
        hint="; ".join(filter(None, (HINT, table))) if taxonomy.is_wordnet else HINT_OF_NODES,
    )
