"""An English lexicon of `wn` (Open English WordNet, WordNet 3.1), as the nouns of a WNDB folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from wordnet_splits.base.errors import TaxonomyError
from wordnet_splits.base.lazy import need

if TYPE_CHECKING:
    from wn import Synset

POINTERS = {
    "hypernym": "@",
    "instance_hypernym": "@i",
    "holo_member": "#m",
    "holo_substance": "#s",
    "holo_part": "#p",
}
"""Relations of `wn` that are read, and how WNDB writes them."""
WITH_KEYS = ("oewn", "omw-en31", "ewn")
"""Lexicons other than WordNet 3.0 whose senses have sense keys."""
HINT = "python -m wn download oewn:2024"


def installed() -> tuple[str, ...]:
    """Return the lexicons of `WITH_KEYS` that this machine's `wn` has, sorted; none without `wn`."""
    if find_spec("wn") is None:
        return ()
    wn = import_module("wn")
    if not wn.config.database_path.is_file():  # asking would make one
        return ()
    return tuple(sorted(one.specifier() for one in wn.lexicons(lang="en") if one.id in WITH_KEYS))


def read(specifier: str) -> tuple[dict[str, bytes], dict[str, str]]:
    """Return the texts of a lexicon's nouns as `wndb.read` wants them, and sense key -> wnid in them.

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
    for relation, others in synset.relations(*POINTERS).items():
        yield from ((POINTERS[relation], other.id) for other in others if other.id in synsets)


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
