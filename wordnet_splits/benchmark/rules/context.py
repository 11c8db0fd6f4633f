"""Candidates of a group, and what rules may read: catalogs, lists, the hierarchy, the earlier groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from wordnet_splits.base.errors import TaxonomyError, unknown
from wordnet_splits.benchmark.rules.relations import Mapped, MappedClass
from wordnet_splits.benchmark.rules.rule_values import Hierarchy, Key, Operand
from wordnet_splits.datasets.catalog import Catalog, CatalogClass, load_catalog

if TYPE_CHECKING:
    import pyarrow as pa

    from wordnet_splits.wordnet.taxonomy import Taxonomy

ClassesBySynset = dict[str, tuple[Key, ...]]
"""wnid -> its classes, sorted, at least one."""

WORDNET = "wordnet"
"""Source of a wnid that a rule names directly, not through a class of a catalog."""


def _load_list(name: str) -> pa.Table:
    from wordnet_splits.datasets.catalog.inventory import load_list

    return load_list(name)


@dataclass
class Context:
    """The benchmark for which rules decide.

    Parameters
    ----------
    taxonomy : the full noun graph.
    hierarchy : the edges that subtree, slice and parent rules follow.
    groups : the classes of each group decided so far; the caller adds to it.
    roles : role of each group, for sentences only.
    draw, seed : key of the draws.
    catalog, published : functions that load catalogs and published lists.
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
class Candidates:
    """Classes of one source, to be judged by one operator after the other."""

    source: str
    class_ids: tuple[str, ...]
    context: Context
    _operand_classes: dict[Operand, tuple[Key, ...]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def taxonomy(self) -> Taxonomy:
        """The full noun graph."""
        return self.context.taxonomy

    @cached_property
    def catalog(self) -> Catalog:
        """The catalog of the candidates' source."""
        return self.context.catalog(self.source)

    def select(self, class_ids: Iterable[str]) -> Candidates:
        """Return some of the candidates."""
        return replace(self, class_ids=tuple(class_ids))

    def key(self, class_id: str) -> Key:
        """Return a candidate as (source, class_id)."""
        return self.source, class_id

    def wnids(self, class_id: str) -> tuple[str, ...]:
        """Return the synsets under which a candidate is judged: those of its catalog unless replaced."""
        return self.context.replaced_synsets.get(self.key(class_id)) or self.catalog[class_id].wnids

    def mapped(self, class_id: str) -> CatalogClass:
        """Return a candidate with the synsets that rules apply to."""
        return replace(self.catalog[class_id], wnids=self.wnids(class_id))

    def all_wnids(self) -> list[str]:
        """Return the synsets of all candidates, sorted."""
        return sorted({wnid for class_id in self.class_ids for wnid in self.wnids(class_id)})

    def has_replaced_synsets(self, class_id: str) -> bool:
        """Return whether a candidate is judged under other synsets than those of its catalog."""
        return self.key(class_id) in self.context.replaced_synsets

    def classes(self, operand: Operand) -> tuple[Key, ...]:
        """Return the classes of an operand, sorted.

        Raises
        ------
        UnknownNameError : the group, source, split, list or class does not exist, or the group comes later.
        """
        if operand not in self._operand_classes:
            self._operand_classes[operand] = tuple(sorted(self._classes(operand)))
        return self._operand_classes[operand]

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
        return [(self.source, self._find_class(text)) for text in operand.ids]

    def _find_class(self, text: str) -> str:
        """Return the class_id of an entry of an array: a class id, the name of a synset or a noun."""
        if text not in self.catalog:
            try:
                wnid = self.taxonomy.find(text)
            except TaxonomyError:
                wnid = ""
            if wnid in self.catalog:
                return wnid
        return self.catalog[text].class_id

    def items(self, operand: Operand) -> Iterable[tuple[Key, CatalogClass]]:
        """Yield the classes of an operand with their catalog rows, sorted."""
        for key in self.classes(operand):
            yield key, self.context.catalog(key[0])[key[1]]

    def synsets(self, operand: Operand) -> ClassesBySynset:
        """Return the synsets of an operand's classes, as their catalogs have them, in the order of classes.

        An array may hold wnids beside class ids of the group's own source; they are classes of the source
        `WORDNET`.
        """
        return self.by_synset(
            (wnid, key) for key, item in self.mapped_classes(operand).items() for wnid in item.wnids
        )

    def mapped_classes(self, operand: Operand) -> dict[Key, MappedClass]:
        """Return the classes of an operand and the wnids in an array, as in `synsets`."""
        if operand.kind != "ids":
            return dict(self.items(operand))
        wnids = [self.taxonomy.find(text) for text in operand.ids if text not in self.catalog]
        return {
            **{self.key(text): self.mapped(text) for text in operand.ids if text in self.catalog},
            **{(WORDNET, wnid): Mapped(wnid, (wnid,), (wnid,)) for wnid in wnids},
        }

    @staticmethod
    def by_synset(pairs: Iterable[tuple[str, Key]]) -> ClassesBySynset:
        """Collect (wnid, class) pairs by wnid."""
        keys_of: dict[str, set[Key]] = {}
        for wnid, key in pairs:
            keys_of.setdefault(wnid, set()).add(key)
        return {wnid: tuple(sorted(keys)) for wnid, keys in keys_of.items()}
