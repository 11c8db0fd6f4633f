"""Lexicons that the library `wn` has on this machine, such as ``oewn:2024``: their nouns as rows of files."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from wordnet_splits.base.errors import TaxonomyError
from wordnet_splits.base.lazy import need
from wordnet_splits.base.names import printable
from wordnet_splits.wordnet.taxonomy.hierarchy_files import Rows

if TYPE_CHECKING:
    from wn import Wordnet

RELATIONS: Final = {
    "instance_hypernym": "instance",
    "hypernym": "is-a",
    "holo_member": "member",
    "holo_part": "part",
    "holo_substance": "substance",
}
"""Relations of `wn` that are read -> their kinds of edges."""
KEYED_LEXICONS: Final = ("oewn", "omw-en31", "ewn")
"""Lexicons, except for WordNet 3.0, whose senses have sense keys."""
HINT: Final = "python -m wn download oewn:2024"
SPECIFIER: Final = re.compile(r"[^\s:*?\[\]]+:[^\s:*?\[\]]+")


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


def read_lexicon(specifier: str) -> tuple[Rows, Rows]:
    """Return the nouns of a lexicon as rows of edges and rows of nodes, whose ids are those of the synsets.

    Parameters
    ----------
    specifier : ``NAME:VERSION``. With an extension, the lexicons that it extends are read; relations come
        also from lexicons that it requires, if they are installed.

    Raises
    ------
    MissingPackageError : `wn` is not installed.
    TaxonomyError : `wn` lacks the lexicon, or that has no nouns or a word that no table holds.
    """
    lexicon = _open(specifier)
    synsets = {synset.id: synset for synset in lexicon.synsets(pos="n")}
    edges = {
        (child, target.id, relation.startswith("holo")): kind
        for relation, kind in RELATIONS.items()  # the last of a pair is kept: is-a
        for child, synset in synsets.items()
        for target in synset.relations(relation).get(relation, ())
        if target.id in synsets
    }
    if not edges:
        raise TaxonomyError("the lexicon has no nouns with hypernyms", where=specifier, hint=HINT)
    ends = [(child, parent, kind) for (child, parent, _), kind in edges.items()]
    words = {name: [sense.word().lemma() for sense in synset.senses()] for name, synset in synsets.items()}
    numbers = _sense_numbers(lexicon, words)
    if word := next((word for word in numbers if "|" in word), None):
        raise TaxonomyError(f"a word must be without |, got {printable(word, 40)!r}", where=specifier)
    names = [
        "|".join(f"{word}#{numbers[_key(word)][name]}" for word in dict.fromkeys(lemmas))
        for name, lemmas in words.items()
    ]
    nodes = {
        "node": list(synsets),
        "names": names,
        "gloss": [" ".join((synset.definition() or "").split()) for synset in synsets.values()],
    }
    tree = dict(zip(("child", "parent", "kind"), zip(*ends, strict=True), strict=True))
    return Rows(specifier, tree), Rows(specifier, nodes)


def _open(specifier: str) -> Wordnet:
    """Return a lexicon with those that it extends, if it is installed."""
    wn: Any = need("wn", "wn", where=f"lexicon {specifier}")
    if not SPECIFIER.fullmatch(specifier):
        raise TaxonomyError("a lexicon must be NAME:VERSION", where=specifier, hint=HINT)
    try:
        lexicons = wn.lexicons(lexicon=specifier) if wn.config.database_path.is_file() else ()
        if not lexicons:
            hint = HINT.replace("oewn:2024", specifier)
            raise TaxonomyError("wn has no such lexicon on this machine", where=specifier, hint=hint)
        with warnings.catch_warnings(category=wn.WnWarning, action="ignore"):  # a required one is missing
            bases, lexicon = [], lexicons[0]
            while (lexicon := lexicon.extends()) is not None:
                bases.append(lexicon.specifier())
            wordnet: Wordnet = wn.Wordnet(" ".join([*reversed(bases), specifier]))
            return wordnet
    except (wn.Error, ValueError) as error:
        raise TaxonomyError(f"wn: {error}", where=specifier, hint=HINT) from error


def _key(word: str) -> str:
    return word.replace(" ", "_").lower()


def _sense_numbers(lexicon: Wordnet, words: Mapping[str, Sequence[str]]) -> dict[str, dict[str, int]]:
    """Return the number of the sense of each word in each synset, in the order of the lexicon's senses."""
    synsets_of: dict[str, dict[str, None]] = {}
    for name, lemmas in words.items():
        for lemma in lemmas:
            synsets_of.setdefault(_key(lemma), {})[name] = None
    numbers: dict[str, dict[str, int]] = {key: {} for key in synsets_of}
    ordered = ((_key(word.lemma()), s.id) for word in lexicon.words(pos="n") for s in word.synsets())
    rest = ((key, name) for key, names in synsets_of.items() for name in names)
    for key, name in (*ordered, *rest):
        if name in synsets_of.get(key, ()):
            numbers[key].setdefault(name, len(numbers[key]) + 1)
    return numbers


def sense_keys(specifier: str) -> dict[str, str]:
    """Return sense key -> id of a noun's synset, in a lexicon with keys. Raises as `read_lexicon`."""
    lexicon = _open(specifier)
    from wn import Error
    from wn.compat.sensekey import sense_key_getter

    try:
        key_of = sense_key_getter(specifier)
    except Error as error:
        raise TaxonomyError(f"wn: {error}", where=specifier) from error
    return {
        key.lower(): synset.id
        for synset in lexicon.synsets(pos="n")
        for sense in synset.senses()
        if (key := key_of(sense))
    }
