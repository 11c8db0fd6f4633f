"""The schema of a recipe: one TOML file declares one benchmark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, PrivateAttr, Tag, model_validator

from wordnet_splits.base.about import About
from wordnet_splits.base.errors import RecipeError
from wordnet_splits.base.tabular import html_table
from wordnet_splits.base.text_formats import Name, Version
from wordnet_splits.base.untrusted import path_below
from wordnet_splits.benchmark.recipe.tables import (
    Group,
    KnownLeak,
    Normalisation,
    PublishedList,
    RecipePart,
    Transform,
)
from wordnet_splits.benchmark.rules.context import Hierarchy
from wordnet_splits.benchmark.rules.syntax import operands, rule_text
from wordnet_splits.datasets.catalog.declarations import Declaration, Sources
from wordnet_splits.datasets.catalog.own_hierarchy import OwnHierarchy

NamedOrOwn = Annotated[
    Annotated[Hierarchy, Tag("[name]")] | Annotated[OwnHierarchy, Tag("[table]")],
    Discriminator(lambda value: "[name]" if isinstance(value, str) else "[table]"),
]
"""A hierarchy by name or as a table; the tags, which no key has, stay out of errors."""
MOST_GROUPS = 100


@dataclass(frozen=True)
class Origin:
    """Place that a recipe was read from, and the files next to it.

    Attributes
    ----------
    folder : the folder of the recipe's file, which may contain a user's lists; None without a file.
    declarations : the datasets declared by the recipe or by its manifest, by name.
    pair_tables : paths of the tables of pairs that its manifest carries, by name.
    lines : the file and line of each group's rule.
    hierarchy : the hierarchy of its ``[hierarchy]`` with its paths, or the one that its manifest carries.
    is_manifest : whether it was read from a manifest, which decides the hierarchy.
    where : the file, for errors.
    """

    folder: Path | None = None
    declarations: Mapping[str, Declaration] = field(default_factory=dict)
    pair_tables: Mapping[str, Path] = field(default_factory=dict)
    lines: Mapping[str, str] = field(default_factory=dict)
    hierarchy: OwnHierarchy | None = None
    is_manifest: bool = False
    where: str = ""


class Recipe(RecipePart):
    """Declaration of a benchmark: one TOML file.

    Attributes
    ----------
    schema : the version of this syntax.
    name : the name of the benchmark: small letters, digits and hyphens.
    version : raised when a frozen class, role or image changes.
    title : one line for listings.
    draw : the key of all draws, which variants of the same benchmark share.
    seed : the seed of all draws.
    paper : the key of the paper that it rebuilds.
    hierarchy : the graph that subtree, slice and parent rules follow: ``wordnet``, ``imagenet-tree``
        (ImageNet's former tree), or a table ``[hierarchy]`` with a hierarchy that takes the place of WordNet;
        by default that of its datasets, else ``wordnet``.
    transforms : the evaluation transform of each source.
    normalise : the normalisation of pixels, after the transform.
    reproduces : whether it is a benchmark as published, leaks included.
    drop_leaks : whether classes and images that leak are removed.
    near_duplicates : a ``duplicates.tsv`` below the folder of the recipe; each pair is a leak unless its
        verdict is ``different``.
    published_list : the published list of classes that it rebuilds.
    source : declared datasets, one ``[[source]]`` each; paths are relative to the recipe's file.
    group : the sets, one ``[[group]]`` each.
    known_leak : leaks that stay, one ``[[known_leak]]`` each.
    about : the author and the terms of use; not inherited by ``extends``.
    """

    schema_: Literal[1] = Field(alias="schema")
    name: Name
    version: Version = 1
    title: str = ""
    draw: str
    seed: int = 0
    paper: str = ""
    hierarchy: NamedOrOwn = "wordnet"
    transforms: dict[str, Transform] = Field(default_factory=dict)
    normalise: Normalisation | None = None
    reproduces: bool = False
    drop_leaks: bool = False
    near_duplicates: Annotated[str, Field(min_length=1)] | None = None
    published_list: PublishedList | None = None
    source: tuple[Declaration, ...] = ()
    group: Annotated[tuple[Group, ...], Field(min_length=1, max_length=MOST_GROUPS)]
    known_leak: tuple[KnownLeak, ...] = ()
    about: About = About()
    _origin: Origin = PrivateAttr(default=Origin())

    def read_at(self, origin: Origin) -> Recipe:
        """Return the recipe as read from a place."""
        recipe = self.model_copy()
        recipe._origin = origin
        return recipe

    @model_validator(mode="after")
    def _names_are_unique(self) -> Recipe:
        for kind, parts in (("group", self.group), ("source", self.source)):
            names = [part.name for part in parts]
            if repeated := [name for name in names if names.count(name) > 1]:
                raise ValueError(f"{kind} names must be unique, got {repeated[0]!r} twice")
        if not self.groups_with_role("id"):
            raise ValueError('a benchmark needs a group with role = "id"')
        if later := [number for number in self.about.version_notes if int(number) > self.version]:
            raise ValueError(
                f"about.version_notes has version {later[0]}, and this is version {self.version}"
            )
        return self

    def __eq__(self, recipe: object) -> bool:  # wherever the two were read
        return isinstance(recipe, Recipe) and self.model_dump() == recipe.model_dump()

    def location(self, group: str) -> str:
        """Return the location of a group for errors: ``mine.toml, line 7: group far``."""
        return f"{self._origin.lines.get(group, self.name)}: group {group}"

    @property
    def folder(self) -> Path | None:
        """The folder of the recipe's file, which may contain a user's lists; None without a file."""
        return self._origin.folder

    @property
    def table_names(self) -> list[str]:
        """The names of the tables of pairs in ``near_duplicates`` and ``clear_of``, in order, each once."""
        rules = [rule for group in self.group for rule in group.images.values()]
        tables = [self.near_duplicates, *(rule.clear_of.pictures for rule in rules if rule.clear_of)]
        return list(dict.fromkeys(name for name in tables if name is not None))

    def table_path(self, name: str, where: str) -> Path:
        """Return the path of a table of pairs: of the manifest that carries it, or below the recipe's folder.

        Raises
        ------
        RecipeError : the recipe was read from no file. DataError : the path leaves the folder.
        """
        if name in self._origin.pair_tables:
            return self._origin.pair_tables[name]
        if self.folder is None:
            raise RecipeError(
                f"cannot find {name}: the recipe was not read from a file",
                where=where,
                hint="load the recipe from a file, or a manifest from its folder",
            )
        return path_below(self.folder, name)

    @property
    def declarations(self) -> Mapping[str, Declaration]:
        """The datasets declared by the recipe or by its manifest, by name, over its own hierarchy, if any."""
        hierarchy = self.own_hierarchy
        return {name: each.over(hierarchy) for name, each in self._origin.declarations.items()}

    @property
    def datasets(self) -> Sources:
        """The benchmark's datasets; DataError if this machine declares another under the same name."""
        return Sources.of(self._origin.declarations, hierarchy=self.own_hierarchy)

    @property
    def own_hierarchy(self) -> OwnHierarchy | None:
        """The hierarchy that takes the place of WordNet: the recipe's, else that of its datasets, else None.

        Raises
        ------
        RecipeError : two hierarchies. DataError, TaxonomyError : one of two cannot be read.
        """
        hierarchy, owner = self._origin.hierarchy, "the recipe"
        known = Sources.of(self._origin.declarations).by_name
        if self._origin.is_manifest or not known:
            return hierarchy
        written = self.hierarchy if "hierarchy" in self.model_fields_set else None
        for name in sorted({*self._origin.declarations, *self.sources_named} & known.keys()):
            declared = known[name].hierarchy
            if declared is None:
                continue
            first = written if isinstance(written, str) else hierarchy and hierarchy.label
            if first is not None and (hierarchy is None or not hierarchy.is_same(declared)):
                raise RecipeError(
                    f"needs one hierarchy, got {first} of {owner} and {declared.label} of source {name!r}",
                    where=self._origin.where or self.name,
                    hint="give all of them the same [hierarchy]",
                )
            if hierarchy is None:
                hierarchy, owner = declared, f"source {name!r}"
        return hierarchy

    @property
    def edges(self) -> Hierarchy:
        """The edges that rules follow: ``imagenet-tree``, or ``wordnet`` for all edges of the hierarchy."""
        return self.hierarchy if isinstance(self.hierarchy, str) else "wordnet"

    def as_data(self) -> dict[str, Any]:
        """Return the data of the TOML file, variants resolved, for `Recipe.model_validate`.

        Leaves out ``[[source]]``, whose paths belong to this machine, and ``[about]``: a manifest stores both
        outside the recipe.
        """
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude={"source", "about"})

    def __repr__(self) -> str:
        lines = [f"{self.name} version {self.version}: {self.title or 'without a title'}"]
        lines += [f"  {r['name']:20} {r['role']:9} {r['source']:14} {r['rule']}"[:110] for r in self._rows()]
        return "\n".join(lines)

    __str__ = __repr__

    def _repr_html_(self) -> str:
        return f"<p>{escape(self.name)} version {self.version}</p>" + html_table(self._rows())

    def _rows(self) -> list[dict[str, Any]]:
        columns = ("name", "role", "source", "view")
        return [
            {**{name: getattr(g, name) for name in columns}, "rule": rule_text(g.classes)} for g in self.group
        ]

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources of all groups, sorted."""
        return tuple(sorted({g.source for g in self.group}))

    @property
    def sources_named(self) -> tuple[str, ...]:
        """The sources of all groups and those in their rules, sorted."""
        in_rules = {o.name for g in self.group for o in operands(g.classes) if o.kind == "source"}
        return tuple(sorted({*self.sources, *in_rules}))

    def groups_with_role(self, role: str) -> tuple[Group, ...]:
        """Return the groups with a role, in file order."""
        return tuple(g for g in self.group if g.role == role)
