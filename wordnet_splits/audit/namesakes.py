"""Namesakes: classes with the name of a known class, or that WordNet defines by one, but not related to it.

WordNet has two synsets *red fox*, Vulpes vulpes and Vulpes fulva, neither above the other; ImageNet's
pictures show one animal. *Pullet*, a young hen, is below another synset *hen* than the known class. Such
classes may show a known class, although the graph has no relation between them.

Two classes share a name if they share a lemma, compared as keywords are with lemmas: case folded, hyphens as
blanks. A class mapped to something wider has its own name only.

A class is defined by another if its definition names the other as its kind and mentions or implies a sex or
an age ("an adult female hog", "a domestic hen ready to brood"), or if both definitions end in the same clause
("that carries passengers") and the class is below a hypernym of the other class.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from wordnet_splits.audit.class_list import ClassList, ListedClass
from wordnet_splits.benchmark.rules.keywords import folded_name
from wordnet_splits.wordnet.similarity.measures import no_common_ancestor
from wordnet_splits.wordnet.taxonomy import Taxonomy

SEXES = frozenset({"male", "female"})
AGES = frozenset({"young", "immature", "baby", "infant", "newborn", "adult", "mature"})
CLAUSES = frozenset({"that", "which", "who", "whose"})
ENDS = CLAUSES.union(
    [
        "of",
        "with",
        "without",
        "in",
        "on",
        "at",
        "for",
        "from",
        "to",
        "by",
        "as",
        "like",
        "near",
        "not",
        "less",
    ],
    ["and", "or", "used", "having", "usually", "especially", "ready", "when", "is", "are", "whole"],
)
"""Words that end the part of a definition that names the kind."""


@dataclass(frozen=True)
class Namesake:
    """A known class with the same name, or in WordNet's definition of a class (``by_definition``).

    ``path`` has the wnids of a shortest path from the class through a common ancestor to the known class.
    """

    known: str
    wnid: str
    known_wnid: str
    path: tuple[str, ...]
    by_definition: bool

    @property
    def edges(self) -> int:
        """Number of edges between the two."""
        return len(self.path) - 1


def namesakes(
    classes: Iterable[ListedClass], known: ClassList, taxonomy: Taxonomy
) -> dict[str, list[Namesake]]:
    """Return the namesakes of classes among the known classes, closest first; only for classes with some.

    Raises
    ------
    TaxonomyError : a class and its namesake are under different roots.
    """
    finder = _Finder(known, taxonomy)
    by_class = {item.id: finder.find(item) for item in classes if item.wnids}
    return {class_id: of_class for class_id, of_class in by_class.items() if of_class}


class _Finder:
    """Search for namesakes among known classes, by name and by definition."""

    def __init__(self, known: ClassList, taxonomy: Taxonomy) -> None:
        self._taxonomy = taxonomy
        self._named: dict[str, set[tuple[str, str]]] = {}
        self._clauses: dict[str, set[tuple[str, str]]] = {}
        self._sexed: set[tuple[str, str]] = set()
        for item in known.classes:
            for wnid in item.wnids:
                for name in _names(item, wnid, taxonomy):
                    self._named.setdefault(name, set()).add((item.id, wnid))
            for wnid in item.covers:
                definition = _Definition.of(wnid, taxonomy)
                if definition.clause:
                    self._clauses.setdefault(definition.clause, set()).add((item.id, wnid))
                if SEXES.intersection(definition.kind):
                    self._sexed.add((item.id, wnid))

    def find(self, item: ListedClass) -> list[Namesake]:
        by_name = {
            (known_id, wnid, known_wnid)
            for wnid in item.wnids
            for name in _names(item, wnid, self._taxonomy)
            for known_id, known_wnid in self._named.get(name, ())
        }
        by_definition = {
            (known_id, wnid, known_wnid)
            for wnid in item.covers
            for known_id, known_wnid in self._defining(wnid)
        } - by_name
        pairs = [(pair, False) for pair in by_name] + [(pair, True) for pair in by_definition]
        namesakes_of_class = [
            Namesake(known_id, wnid, known_wnid, _path(wnid, known_wnid, self._taxonomy), defined)
            for (known_id, wnid, known_wnid), defined in pairs
            if wnid != known_wnid
        ]
        return sorted(
            namesakes_of_class, key=lambda n: (n.by_definition, n.edges, n.known, n.wnid, n.known_wnid)
        )

    def _defining(self, wnid: str) -> set[tuple[str, str]]:
        """Return the known (class, wnid) pairs in a synset's definition."""
        definition = _Definition.of(wnid, self._taxonomy)
        phrases = ("_".join(definition.kind[n:]) for n in range(len(definition.kind)))
        named_pairs = {pair for phrase in phrases for pair in self._named.get(phrase, ())}
        if not (SEXES | AGES).intersection(definition.kind):
            named_pairs &= self._sexed  # a hen is female: "a domestic hen" is enough
        above = self._taxonomy.ancestors(wnid)
        alike = {
            pair
            for pair in self._clauses.get(definition.clause, ())
            if not above.keys().isdisjoint(self._taxonomy.parents(pair[1]))
        }
        return named_pairs | alike


@dataclass(frozen=True)
class _Definition:
    """The words of a definition that name the kind, and the relative clause that follows, "" if none does."""

    kind: tuple[str, ...]
    clause: str

    @classmethod
    def of(cls, wnid: str, taxonomy: Taxonomy) -> _Definition:
        words = re.findall(r"[a-z][a-z'-]*|[^\sa-z]", taxonomy.first_definition(wnid).casefold())
        end = next((n for n, word in enumerate(words) if word in ENDS or not word[0].isalpha()), len(words))
        rest = words[end:]
        return cls(tuple(words[:end]), " ".join(rest) if rest and rest[0] in CLAUSES else "")


def _names(item: ListedClass, wnid: str, taxonomy: Taxonomy) -> set[str]:
    names = taxonomy.lemmas(wnid) if wnid in item.covers else (item.name,)
    return {folded_name(name) for name in names}


def _path(a: str, b: str, taxonomy: Taxonomy) -> tuple[str, ...]:
    """Return a shortest path from ``a`` up to a common ancestor and down to ``b``."""
    up, down = taxonomy.ancestors(a), taxonomy.ancestors(b)
    shared = up.keys() & down.keys()
    if not shared:
        raise no_common_ancestor(taxonomy, a, b)
    top = min(shared, key=lambda wnid: (up[wnid] + down[wnid], wnid))
    return (*taxonomy.path_up(a, top), *taxonomy.path_up(b, top)[-2::-1])
