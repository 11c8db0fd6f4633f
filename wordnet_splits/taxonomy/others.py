"""Other WordNets: their nouns, and which of their synsets is which of WordNet 3.0's, by sense keys.

A sense key (``dog%1:05:00::``: lemma, part of speech, lexicographer's file, number in it) stays with a sense
from one version to the next where offsets do not (senseidx(5WN)). A synset is the one that most of its senses
are in; one of which no key is left is not mapped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from wordnet_splits.base.errors import TaxonomyError
from wordnet_splits.taxonomy import shipped, wn_lexicon, wndb
from wordnet_splits.taxonomy.taxonomy import Taxonomy

NOUN = 1
"""The part of speech of nouns in a sense key."""


@dataclass(frozen=True, eq=False)
class OtherWordNet:
    """The nouns of another WordNet. ``keys`` maps its sense keys to its wnids."""

    name: str
    taxonomy: Taxonomy
    keys: Mapping[str, str]

    def synset(self, wnid: str) -> str | None:
        """Return the synset here that has most senses of one of WordNet 3.0, the first of equals, if any."""
        votes = Counter(self.keys[key] for key in _own_keys().get(wnid, ()) if key in self.keys)
        return max(votes, key=votes.__getitem__, default=None)


def other_wordnet(given: str | Path) -> OtherWordNet:
    """Return the WordNet of a folder of WNDB files, or of a lexicon of `wn` such as ``oewn:2024``.

    A folder without ``noun.exc``, which some editions leave out, is read with the irregular plurals of 3.0.

    Raises
    ------
    TaxonomyError : neither. MissingPackageError : a lexicon, and `wn` is not installed.
    """
    folder = Path(given)
    if folder.is_dir():
        texts = wndb.directory_texts(folder, without=() if (folder / "noun.exc").exists() else ("noun.exc",))
        keys, name = sense_keys(texts["data.noun"]), ""
    elif ":" in str(given):
        texts, keys = wn_lexicon.read(str(given))
        name = str(given).replace(":", "-")
    else:
        hint = "a folder that holds data.noun and index.noun, or a lexicon of wn such as oewn:2024"
        raise TaxonomyError(f"{str(given)!r} is no WordNet", where="--wordnet", hint=hint)
    exceptions = {} if "noun.exc" in texts else {"noun.exc": shipped.ShippedTexts()["noun.exc"]}
    taxonomy = Taxonomy.from_texts({**texts, **exceptions}, str(given))
    return OtherWordNet(name or f"wordnet-{taxonomy.version}", taxonomy, keys)


def sense_keys(text: bytes) -> dict[str, str]:
    """Return sense key -> wnid of the synsets of a ``data.noun``."""
    found = {}
    for line, _ in wndb.records(text):
        offset, file, _, count, *words = line.partition("|")[0].split()
        for at in range(0, 2 * int(count, 16), 2):
            found[f"{words[at].lower()}%{NOUN}:{file}:{int(words[at + 1], 16):02d}::"] = f"n{offset}"
    return found


@cache
def _own_keys() -> dict[str, tuple[str, ...]]:
    """Return the sense keys of each synset of WordNet 3.0, in the order of its words."""
    found: dict[str, list[str]] = {}
    for key, wnid in sense_keys(shipped.ShippedTexts()["data.noun"]).items():
        found.setdefault(wnid, []).append(key)
    return {wnid: tuple(keys) for wnid, keys in found.items()}
