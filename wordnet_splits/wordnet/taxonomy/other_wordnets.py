"""Other WordNets: WNDB folders and lexicons of `wn`, with their synsets mapped to WordNet 3.0.

Sense keys (``dog%1:05:00::``: lemma, part of speech, lexicographer's file, number in it) identify senses
across versions, offsets do not (senseidx(5WN)). A synset is mapped to the synset with most of its senses, and
to none where no sense key is left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from wordnet_splits.base.errors import TaxonomyError
from wordnet_splits.base.lazy import need
from wordnet_splits.wordnet.taxonomy import wndb
from wordnet_splits.wordnet.taxonomy.synsets import Taxonomy

if TYPE_CHECKING:
    from wn import Synset

NOUN = 1
"""Part of speech of nouns in a sense key."""
POINTERS = {
    "hypernym": "@",
    "instance_hypernym": "@i",
    "holo_member": "#m",
    "holo_substance": "#s",
    "holo_part": "#p",
}
"""Relations of `wn` that are read -> their symbols in WNDB."""
KEYED_LEXICONS = ("oewn", "omw-en31", "ewn")
"""Lexicons, except for WordNet 3.0, whose senses have sense keys."""
HINT = "python -m wn download oewn:2024"


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
    folder = Path(location)
    if folder.is_dir():
        texts = wndb.directory_texts(folder, without=() if (folder / "noun.exc").exists() else ("noun.exc",))
        keys, name = sense_keys(texts["data.noun"]), ""
    elif ":" in str(location):
        texts, keys = read_lexicon(str(location))
        name = str(location).replace(":", "-")
    else:
        hint = "a folder that holds data.noun and index.noun, or a lexicon of wn such as oewn:2024"
        raise TaxonomyError(f"{str(location)!r} is not a WordNet", where="--wordnet", hint=hint)
    exceptions = {} if "noun.exc" in texts else {"noun.exc": wndb.ShippedTexts()["noun.exc"]}
    taxonomy = Taxonomy.from_texts({**texts, **exceptions}, str(location))
    return OtherWordNet(name or f"wordnet-{taxonomy.version}", taxonomy, keys)


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


def installed_lexicons() -> tuple[str, ...]:
    """Return the lexicons of `KEYED_LEXICONS` that are installed for `wn`, sorted; none without `wn`."""
    if find_spec("wn") is None:
        return ()
    wn = import_module("wn")
    if not wn.config.database_path.is_file():  # listing would create it
        return ()
    return tuple(
        sorted(lexicon.specifier() for lexicon in wn.lexicons(lang="en") if lexicon.id in KEYED_LEXICONS)
    )


def read_lexicon(specifier: str) -> tuple[dict[str, bytes], dict[str, str]]:
    """Return a lexicon's nouns as the texts of a WNDB folder, and sense key -> wnid in them.

    Raises
    ------
    TaxonomyError : `wn` has no such lexicon, or one without sense keys. MissingPackageError : no `wn`.
    """
    need("wn", "wn", where=f"lexicon {specifier}")
    import wn
    from wn.compat.sensekey import sense_key_getter

    try:
        lexicon = wn.Wordnet(specifier, expand="")
        key_of = sense_key_getter(specifier)
    except (wn.Error, ValueError) as error:
        raise TaxonomyError(f"wn: {error}", where=specifier, hint=HINT) from error
    synsets = {synset.id: synset for synset in lexicon.synsets(pos="n")}
    if not synsets:
        raise TaxonomyError("the lexicon has no nouns", where=specifier, hint=HINT)
    keys: dict[str, str] = {}
    words: dict[str, list[str]] = {}
    for name, synset in synsets.items():
        words[name] = []
        for sense in synset.senses():
            words[name].append(sense.word().lemma().replace(" ", "_"))
            if key := key_of(sense):
                keys[key.lower()] = name
    pointers = {name: list(_pointers(synset, synsets)) for name, synset in synsets.items()}
    offsets, data = _data(synsets, words, pointers)
    senses: dict[str, dict[str, None]] = {}
    for word in lexicon.words(pos="n"):
        lemma = word.lemma().replace(" ", "_").lower()
        senses.setdefault(lemma, {}).update({s.id: None for s in word.synsets() if s.id in synsets})
    index = "".join(
        f"{lemma} n {len(ids)} 0 {len(ids)} 0 {' '.join(f'{offsets[i]:08d}' for i in ids)}\n"
        for lemma, ids in sorted(senses.items())
        if ids
    )
    wnids = {key: f"n{offsets[name]:08d}" for key, name in keys.items()}
    return {"data.noun": data.encode(), "index.noun": index.encode()}, wnids


def _pointers(synset: Synset, synsets: Mapping[str, Synset]) -> Iterator[tuple[str, str]]:
    """Yield (symbol, synset) of each pointer to a noun of the lexicon."""
    for relation, targets in synset.relations(*POINTERS).items():
        yield from ((POINTERS[relation], target.id) for target in targets if target.id in synsets)


def _data(
    synsets: Mapping[str, Synset],
    words: Mapping[str, list[str]],
    pointers: Mapping[str, list[tuple[str, str]]],
) -> tuple[dict[str, int], str]:
    """Return the offset of each synset, and ``data.noun``; offsets have a fixed width, so lines do."""

    def line(name: str, offsets: Mapping[str, int]) -> str:
        lemmas = "".join(f"{word} 0 " for word in words[name])
        above = "".join(f"{sign} {offsets.get(to, 0):08d} n 0000 " for sign, to in pointers[name])
        gloss = " ".join((synsets[name].definition() or "").split())
        head = f"{offsets.get(name, 0):08d} 03 n {len(words[name]):02x} "
        return f"{head}{lemmas}{len(pointers[name]):03d} {above}| {gloss}  \n"

    offsets: dict[str, int] = {}
    at = 0
    for name in synsets:
        offsets[name] = at
        at += len(line(name, {}).encode())
    return offsets, "".join(line(name, offsets) for name in synsets)
