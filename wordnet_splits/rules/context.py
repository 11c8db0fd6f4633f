"""What rules judge and what they may look at: catalogs, lists, the hierarchy, the groups so far."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from wordnet_splits.base.errors import TaxonomyError, unknown
from wordnet_splits.catalog import Catalog, CatalogClass, load_catalog
from wordnet_splits.rules.model import Hierarchy, Operand
from wordnet_splits.rules.verdict import Key

if TYPE_CHECKING:
    import pyarrow as pa

    from wordnet_splits.taxonomy import Taxonomy

ClassesBySynset = dict[str, tuple[Key, ...]]
"""wnid -> the classes that it stands for, sorted, at least one."""

WORDNET = "wordnet"
"""The source that a wnid given by itself is a class of."""


def _load_list(name: str) -> pa.Table:
    from wordnet_splits.catalog.inventory import load_list

    return load_list(name)


@dataclass
class Context:
    """The benchmark that rules decide for.

    Parameters
    ----------
    taxonomy : the full noun graph.
    hierarchy : which edges subtree, slice and parent rules follow.
    groups : the classes of each group decided so far; the caller adds to it.
    roles : role of each group, for sentences only.
    draw, seed : key of the draws.
    catalog, published : where catalogs and published lists come from.
    replaced_synsets : synsets under which candidates are judged instead of those of their catalog. Classes
        of an operand keep the synsets of their catalog.
    """

    taxonomy: Taxonomy
    hierarchy: Hierarchy = "wordnet"
    groups: dict[str, list[Key]] = field(default_factory=dict)
    roles: Mapping[str, str] = field(default_factory=dict)
    draw: str = ""
    seed: int = 0
    catalog: Callable[[str], Catalog] = load_catalog
    published: Callable[[str], pa.Table] = _load_list
    replaced_synsets: Mapping[Key, tuple[str, ...]] = field(default_factory=dict)

    @cached_property
    def graph(self) -> Taxonomy:
        """The hierarchy that subtree, slice and parent rules follow."""
        return self.taxonomy if self.hierarchy == "wordnet" else self.taxonomy.tree()


@dataclass(frozen=True)
class Question:
    """The candidates of one source, to be judged by one operator after the other."""

    source: str
    candidates: tuple[str, ...]
    context: Context
    _known: dict[Operand, tuple[Key, ...]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def catalog(self) -> Catalog:
        """The catalog of the candidates' source."""
        return self.context.catalog(self.source)

    def among(self, candidates: Iterable[str]) -> Question:
        """Return the same question about some of the candidates."""
        return replace(self, candidates=tuple(candidates))

    def key(self, class_id: str) -> Key:
        """Return a candidate as (source, class_id)."""
        return self.source, class_id

    def wnids(self, class_id: str) -> tuple[str, ...]:
        """Return the synsets under which a candidate is judged: those of its catalog unless replaced."""
        return self.context.replaced_synsets.get(self.key(class_id)) or self.catalog[class_id].wnids

    def has_replaced_synsets(self, class_id: str) -> bool:
        """Return whether a candidate is judged under other synsets than those of its catalog."""
        return self.key(class_id) in self.context.replaced_synsets

    def classes(self, operand: Operand) -> tuple[Key, ...]:
        """Return the classes that an operand names, sorted.

        Raises
        ------
        UnknownNameError : the group, source, split, list or class does not exist, or the group comes later.
        """
        if operand not in self._known:
            self._known[operand] = tuple(sorted(self._classes(operand)))
        return self._known[operand]

    def _classes(self, operand: Operand) -> Iterable[Key]:
        if operand.kind == "group":
            if operand.name not in self.context.groups:
                raise unknown("earlier group", operand.name, self.context.groups)
            return self.context.groups[operand.name]
        if operand.kind == "source":
            return [(operand.name, item.class_id) for item in self.context.catalog(operand.name)]
        if operand.kind == "list":
            table = self.context.published(operand.name)
            pairs = table.select(["source", "class_id"]).group_by(["source", "class_id"]).aggregate([])
            return zip(pairs["source"].to_pylist(), pairs["class_id"].to_pylist(), strict=True)
        if operand.kind == "split":
            source, _, split = operand.name.partition("/")
            catalog = self.context.catalog(source)
            return [(source, item.class_id) for item in catalog if catalog.count(item.class_id, split) != 0]
        return [(self.source, self._class_named(name)) for name in operand.ids]

    def _class_named(self, name: str) -> str:
        """Return the class_id that stands in an array, as itself, as a synset's name or as a noun."""
        if name not in self.catalog and (wnid := self._wnid(name)) in self.catalog:
            return wnid
        return self.catalog[name].class_id

    def _wnid(self, name: str) -> str:
        try:
            return self.context.taxonomy.find(name)
        except TaxonomyError:
            return ""

    def items(self, operand: Operand) -> Iterable[tuple[Key, CatalogClass]]:
        """Yield the classes that an operand names with their catalog rows, sorted."""
        for key in self.classes(operand):
            yield key, self.context.catalog(key[0])[key[1]]

    def synsets(self, operand: Operand) -> ClassesBySynset:
        """Return the synsets of an operand's classes, as their catalogs have them, in the order of classes.

        In an array a wnid may stand for itself, beside the class ids of the group's own source; it is a
        class of the source `WORDNET`.
        """
        if operand.kind != "ids":
            return self.by_synset((wnid, key) for key, item in self.items(operand) for wnid in item.wnids)
        named = [n for n in operand.ids if n in self.catalog]
        bare = [self.context.taxonomy.find(n) for n in operand.ids if n not in self.catalog]
        pairs = [(wnid, self.key(class_id)) for class_id in named for wnid in self.wnids(class_id)]
        return self.by_synset([*pairs, *((wnid, (WORDNET, wnid)) for wnid in bare)])

    @staticmethod
    def by_synset(pairs: Iterable[tuple[str, Key]]) -> ClassesBySynset:
        """Collect (wnid, class) pairs by wnid."""
        found: dict[str, set[Key]] = {}
        for wnid, key in pairs:
            found.setdefault(wnid, set()).add(key)
        return {wnid: tuple(sorted(keys)) for wnid, keys in found.items()}
