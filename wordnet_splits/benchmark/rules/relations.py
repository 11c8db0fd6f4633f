"""Relations of classes by their synsets: which known classes a class equals, is below or is above.

`thresholds`, audits, leaks, `robust` and the operator ``overlaps`` use `KnownClasses`.

A class *equals* a known class if both have the same synset, unless catalogs map both to a synset wider than
their names: *ramen* and *pho*, both mapped to soup, are equal only by name. A class is *below* a known class
that has a hypernym of its synset, and *above* a known class that has a hyponym. A class that is mapped to a
wider synset is never above another: *office chair*, mapped to chair, is not above *barber chair*. It is below
the hypernyms of that synset.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

from wordnet_splits.benchmark.rules.keywords import folded_name

if TYPE_CHECKING:
    from wordnet_splits.wordnet.taxonomy import Taxonomy

EQUAL, BELOW, ABOVE = "equal", "below", "above"
KINDS = (EQUAL, BELOW, ABOVE)
"""Relations of a class to a known class, the closest first."""
Id = TypeVar("Id", str, tuple[str, str])
"""A class id, or a source and a class id."""


class MappedClass(Protocol):
    """A class as a catalog or a list maps it to synsets."""

    @property
    def name(self) -> str:
        """The publisher's name."""

    @property
    def wnids(self) -> tuple[str, ...]:
        """The synsets of the class."""

    @property
    def covers(self) -> tuple[str, ...]:
        """The synsets whose hyponyms all belong to this class; empty where they are wider than the class."""


class Mapped(NamedTuple):
    """A class that no catalog holds, such as a synset that a rule names."""

    name: str
    wnids: tuple[str, ...]
    covers: tuple[str, ...]


def synsets_alone(item: MappedClass) -> Mapped:
    """Return a class as if its name meant exactly the synsets that it is mapped to."""
    return Mapped(item.name, item.wnids, item.wnids)


def are_same_class(a: MappedClass, b: MappedClass) -> bool:
    """Return whether two classes that share a synset are the same class.

    They are not where both are mapped to a synset wider than their names mean, and the names differ.
    """
    return bool(a.covers or b.covers) or folded_name(a.name) == folded_name(b.name)


@dataclass(frozen=True)
class Kin(Generic[Id]):
    """A known class that a class equals, is below or is above, and their synsets, ``edges`` apart."""

    edges: int
    relation: str
    known: Id
    wnid: str
    known_wnid: str

    @property
    def order(self) -> tuple[int, int, Id, str, str]:
        """Sort key, the closest relation first."""
        return self.edges, KINDS.index(self.relation), self.known, self.wnid, self.known_wnid

    def path(self, taxonomy: Taxonomy) -> tuple[str, ...]:
        """Return the wnids from the class to the known one."""
        if self.relation == ABOVE:
            return taxonomy.path_up(self.known_wnid, self.wnid)[::-1]
        return taxonomy.path_up(self.wnid, self.known_wnid)


class KnownClasses(Generic[Id]):
    """Classes by id, to find the relations of another class to them."""

    def __init__(self, classes: Mapping[Id, MappedClass], taxonomy: Taxonomy) -> None:
        self._classes: Mapping[Id, MappedClass] = classes
        self._taxonomy = taxonomy
        self._having: dict[str, list[Id]] = {}
        self._covering: dict[str, list[Id]] = {}
        self._below: dict[str, list[tuple[int, str]]] = {}  # synset -> known synsets strictly below it
        for class_id, item in classes.items():
            for wnid in item.wnids:
                self._having.setdefault(wnid, []).append(class_id)
            for wnid in item.covers:
                self._covering.setdefault(wnid, []).append(class_id)
        for wnid in self._having:
            for above, edges in taxonomy.ancestors(wnid).items():
                if edges:
                    self._below.setdefault(above, []).append((edges, wnid))

    def __bool__(self) -> bool:
        """Return whether any of the classes has a synset."""
        return bool(self._having)

    def kin(self, item: MappedClass) -> list[Kin[Id]]:
        """Return all relations of a class to known classes, the closest first."""
        found = []
        for wnid in item.wnids:
            for known in self._having.get(wnid, ()):
                if are_same_class(item, self._classes[known]):
                    found.append(Kin(0, EQUAL, known, wnid, wnid))
            for up, edges in self._taxonomy.ancestors(wnid).items() if self._covering else ():
                if edges:
                    found += [Kin(edges, BELOW, known, wnid, up) for known in self._covering.get(up, ())]
        for wnid in item.covers:
            for edges, down in self._below.get(wnid, ()):
                found += [Kin(edges, ABOVE, known, wnid, down) for known in self._having[down]]
        return sorted(found, key=lambda kin: kin.order)
