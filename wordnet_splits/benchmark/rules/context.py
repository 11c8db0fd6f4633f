"""What rules judge: operands, the values that operators share, and the candidate classes."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, PlainValidator

from wordnet_splits.base.errors import RecipeError, TaxonomyError, unknown
from wordnet_splits.benchmark.rules.relations import Mapped, MappedClass
from wordnet_splits.datasets.catalog import Catalog, CatalogClass, load_catalog

if TYPE_CHECKING:
    import pyarrow as pa

    from wordnet_splits.wordnet.taxonomy import Taxonomy

Key = tuple[str, str]
"""A class: (source, class_id)."""
OPERANDS = ("group", "source", "split", "list")
Hierarchy = Literal["wordnet", "imagenet-tree"]
Half = Literal["first", "second"]
Measure = Literal[  # the keys of wordnet_splits.wordnet.similarity.pairs.MEASURES; a test compares both
    "distance",
    "path",
    "lch",
    "lch_perl",
    "wup",
    "wup_wn",
    "wup_perl",
    "mean",
    "mean_nltk",
    "mean2",
    "res",
    "lin",
    "jcn",
]


@dataclass(frozen=True)
class Operand:
    """The classes that an operator refers to, given as an earlier group, a source, a publisher's split
    (``split:SOURCE/SPLIT``), a published list or an array of ids."""

    kind: Literal["group", "source", "split", "list", "ids"]
    name: str = ""
    ids: tuple[str, ...] = ()

    def __str__(self) -> str:
        return json.dumps(list(self.ids)) if self.kind == "ids" else f'"{self.kind}:{self.name}"'


def parse_operand(value: Any) -> Operand:
    """Return the operand of a text such as ``group:NAME``, one of `OPERANDS`, or of an array of ids."""
    if isinstance(value, Operand):
        return value
    if isinstance(value, str):
        kind, colon, name = value.partition(":")
        if colon and name and kind in OPERANDS:
            return Operand(kind, name)  # type: ignore[arg-type]  # one of OPERANDS, checked above
        near = difflib.get_close_matches(kind, OPERANDS, n=1)
        meant = f"; did you mean '{near[0]}:{name or 'NAME'}'?" if near else ""
        raise ValueError(
            f"{value!r} is not an operand: group:NAME, source:NAME, split:SOURCE/SPLIT, list:NAME or an array"
            f"{meant}"
        )
    if isinstance(value, list | tuple) and value and all(isinstance(v, str) for v in value):
        if repeated := [v for v in value if value.count(v) > 1]:
            raise ValueError(f"{repeated[0]!r} occurs twice in the array")
        return Operand("ids", ids=tuple(value))
    forms = ", ".join(f"{kind}:NAME" for kind in OPERANDS)
    raise ValueError(f"an operand is {forms} or a non-empty array of class ids")


def operand_value(operand: Operand) -> str | list[str]:
    """Return an operand as the value of a key in a recipe."""
    return list(operand.ids) if operand.kind == "ids" else f"{operand.kind}:{operand.name}"


OperandField = Annotated[Operand, PlainValidator(parse_operand), PlainSerializer(operand_value)]
Synsets = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(min_length=1)]
"""Wnids, names such as ``dog.n.01``, or nouns."""


class RuleTable(BaseModel):
    """Base of the tables in a rule."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class KeywordOverlap(RuleTable):
    """True where a keyword of the class's name reaches a class of ``with`` or one of its relatives.

    Attributes
    ----------
    with : an operand.
    nodes : ``subtree`` lets a keyword reach only synsets of the operand's classes and their ancestors.
    match : ``token``: a word of a lemma is enough; ``lemma``: the keyword is the lemma.
    qualifiers : whether the text after ``/`` in a name (``church/outdoor``) makes keywords.
    compounds : ``split`` adds both parts of a compound (fishpond: fish, pond).
    """

    with_: OperandField = Field(alias="with")
    nodes: Literal["all", "subtree"] = "all"
    match: Literal["token", "lemma"] = "token"
    qualifiers: Literal["drop", "keep"] = "drop"
    compounds: Literal["whole", "split"] = "whole"


def _plainly_true(value: object) -> object:
    if value is not True:  # 1 equals True
        raise ValueError("the only value is `true`")
    return value


Yes = Annotated[Literal[True], BeforeValidator(_plainly_true)]
"""``true``, not a value that equals it."""


ClassesBySynset = dict[str, tuple[Key, ...]]
"""wnid -> its classes, sorted, at least one."""

WORDNET = "wordnet"
"""Source of a wnid that a rule names directly, not through a class of a catalog."""


def _load_list(name: str) -> pa.Table:
    from wordnet_splits.datasets.catalog.inventory import load_list

    return load_list(name)


@dataclass
class Context:
    """The benchmark whose classes the rules judge, with everything that operators read.

    Parameters
    ----------
    taxonomy : the full noun graph.
    hierarchy : the edges that subtree, slice and parent rules follow.
    groups : the classes of each group decided so far; the caller adds to it.
    roles : role of each group, for sentences only.
    draw, seed : key of the draws.
    catalog, published : functions that load catalogs and published lists.
    replaced_synsets : synsets of candidates that replace their catalog's. Classes of an operand keep the
        synsets of their catalog.
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

    @property
    def unplaced(self) -> str:
        """What a class lacks for an operator that reads the hierarchy, in words."""
        return f"no {self.taxonomy.noun}, and the rule reads {self.taxonomy.called}"

    @cached_property
    def graph(self) -> Taxonomy:
        """The hierarchy that subtree, slice and parent rules follow."""
        return self.taxonomy if self.hierarchy == "wordnet" else self.taxonomy.tree()


@dataclass(frozen=True)
class Candidates:
    """Candidate classes from a single source, which operators judge in sequence."""

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

    def require(self, reads: frozenset[str], operator: str) -> None:
        """Raise RecipeError if an operator reads parts, glosses or names that the hierarchy lacks."""
        taxonomy = self.taxonomy
        if lacking := [] if taxonomy.is_wordnet else [name for name in taxonomy.lacks if name in reads]:
            raise RecipeError(
                f"{operator} reads {' and '.join(lacking)}, which the hierarchy {taxonomy.title} lacks",
                hint="add them to its files, or use another operator",
            )

    def key(self, class_id: str) -> Key:
        """Return a candidate as (source, class_id)."""
        return self.source, class_id

    def wnids(self, class_id: str) -> tuple[str, ...]:
        """Return a candidate's synsets: its replaced synsets if it has any, else its catalog's."""
        replaced = self.context.replaced_synsets
        return (replaced and replaced.get((self.source, class_id))) or self.catalog[class_id].wnids

    def mapped(self, class_id: str) -> CatalogClass:
        """Return a candidate with the synsets that rules apply to."""
        return replace(self.catalog[class_id], wnids=self.wnids(class_id))

    def all_wnids(self) -> list[str]:
        """Return the synsets of all candidates, sorted."""
        return sorted({wnid for class_id in self.class_ids for wnid in self.wnids(class_id)})

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

        An array may mix wnids with class ids of the group's own source; each wnid is a class of the source
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
