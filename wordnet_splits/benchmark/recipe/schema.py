"""The schema of a recipe: one TOML file declares one benchmark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, PrivateAttr, Tag, model_validator

from wordnet_splits.base.about import About
from wordnet_splits.base.errors import RecipeError
from wordnet_splits.base.tabular import html_table
from wordnet_splits.base.text_formats import Count, Name, Role, Sha256, Version
from wordnet_splits.base.untrusted import path_below
from wordnet_splits.benchmark.rules.context import Hierarchy, Yes
from wordnet_splits.benchmark.rules.syntax import ClassRule, operands, rule_text
from wordnet_splits.datasets.catalog.declarations import Declaration, Sources
from wordnet_splits.datasets.catalog.own_hierarchy import OwnHierarchy

SplitKey = Annotated[str, Field(pattern="^(train|val|test)$")]
CountedKey = Annotated[str, Field(pattern="^(classes|train|val|test)$")]
NoiseSide = Annotated[int, Field(gt=0, le=4096, strict=True)]
Transform = Literal["none", "resize-32", "resize-32-crop-32", "resize-256-crop-224"]


class RecipePart(BaseModel):
    """A part of a recipe: frozen, and strict about its keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


NamedOrOwn = Annotated[
    Annotated[Hierarchy, Tag("[name]")] | Annotated[OwnHierarchy, Tag("[table]")],
    Discriminator(lambda value: "[name]" if isinstance(value, str) else "[table]"),
]
"""A hierarchy by name or as a table; the tags, which no key has, stay out of errors."""
MOST_GROUPS = 100
MOST_NOISE = 4 << 30
"""Most bytes of pixels that one group generates; 10,000 images of 224 x 224 are 1.5 GB."""


class PairTable(RecipePart):
    """A table of images to leave out.

    Attributes
    ----------
    pictures : a ``duplicates.tsv`` below the folder of the recipe; a row counts unless its verdict is
        ``different`` or ``keep``.
    """

    pictures: Annotated[str, Field(min_length=1)]


class ImageRule(RecipePart):
    """The images of a split: a published list, a part of publishers' splits, or generated noise.

    Attributes
    ----------
    list : a published list of images, ``"openset-imagenet/p3_val"``, limited to the group's classes.
    from : a publisher's split, an array of splits, or ``"all"``; requires ``per_class``, ``total``, ``half``,
        ``all`` or ``rest``.
    per_class : number of images of each class, the first in the order of the draw.
    total : number of images in all, equally many of each class.
    half : half the images of each class, the first in the order of the draw.
    all : every image.
    rest : every image that no other split or group of the benchmark took.
    generate : number of generated images; the group needs ``noise``.
    clear_of : images that are left out afterwards; none takes their place.
    """

    list_: str | None = Field(default=None, alias="list")
    from_: Annotated[tuple[str, ...], Field(min_length=1)] | None = Field(default=None, alias="from")
    per_class: Annotated[int, Field(gt=0, strict=True)] | None = None
    total: Annotated[int, Field(gt=0, strict=True)] | None = None
    half: Yes | None = None
    all: Yes | None = None
    rest: Yes | None = None
    generate: Annotated[int, Field(gt=0, le=100_000, strict=True)] | None = None  # five digits number them
    clear_of: PairTable | None = None

    @model_validator(mode="before")
    @classmethod
    def _wrap_single_split(cls, data: Any) -> Any:
        if isinstance(data, dict) and isinstance(data.get("from"), str):
            return {**data, "from": (data["from"],)}
        return data

    @model_validator(mode="after")
    def _check_keys(self) -> ImageRule:
        amounts = [k for k in ("per_class", "total", "half", "all", "rest") if getattr(self, k) is not None]
        origins = [k for k in ("list_", "from_", "generate") if getattr(self, k) is not None]
        if len(origins) != 1:
            raise ValueError("give exactly one of list, from, generate")
        if (self.from_ is not None) != (len(amounts) == 1) or len(amounts) > 1:
            raise ValueError("`from` goes with exactly one of per_class, total, half, all, rest")
        return self


class Noise(RecipePart):
    """Parameters of the images of a generated source.

    Attributes
    ----------
    shape : ``[height, width, channels]``, 1 or 3 channels.
    seed : of the generator.
    """

    shape: tuple[NoiseSide, NoiseSide, Literal[1, 3]]
    seed: Count = 0


class Group(RecipePart):
    """One set of a benchmark: ``[[group]]``. Groups take classes in the order of the file.

    Attributes
    ----------
    name : the name of the set.
    role : ``id``, ``near``, ``far``, ``external`` (training outliers) or ``csid`` (covariate-shifted ID).
    source : a shipped source, or a declared dataset of your own.
    view : the pixels: ``raw``, or the name of a resize spec of `fix-resize` such as ``fix``.
    classes : the rule for the classes of the source.
    images : the rules for the images of ``train``, ``val`` and ``test``.
    published : the paper's counts of ``classes``, ``train``, ``val`` and ``test``, to compare with.
    noise : parameters of the images of a generated source.
    reuse : whether classes that an earlier group took are candidates, too.
    labelled : ``false`` for ID classes that the classifier has no output for.
    note : one sentence, printed where published and actual counts differ.
    """

    name: Name
    role: Role
    source: str
    view: str = "raw"
    classes: ClassRule
    images: dict[SplitKey, ImageRule] = Field(default_factory=dict)
    published: dict[CountedKey, Count] = Field(default_factory=dict)
    noise: Noise | None = None
    reuse: bool = False
    labelled: bool = True
    note: str = ""

    @model_validator(mode="after")
    def _noise_is_generated(self) -> Group:
        generated = [s for s, rule in self.images.items() if rule.generate is not None]
        if generated and self.noise is None:
            raise ValueError("`generate` needs noise = { shape = [h, w, c], seed = 0 } in the group")
        if len(generated) > 1:
            raise ValueError("only one split of a group can be generated")
        if generated and self.noise is not None:
            height, width, _ = self.noise.shape
            size = (self.images[generated[0]].generate or 0) * height * width * 3
            if size > MOST_NOISE:
                gib, most = size / (1 << 30), MOST_NOISE >> 30
                raise ValueError(f"noise of {gib:,.1f} GiB is too large: at most {most} GiB are generated")
        if not self.labelled and self.role != "id":
            raise ValueError("labelled = false is for ID classes that the classifier has no output for")
        if not self.images and self.role != "id":
            raise ValueError("a group that is not ID needs images = { test = ... }")
        return self


class KnownLeak(RecipePart):
    """A known leak, with the reason why it stays.

    Attributes
    ----------
    kind : ``class`` (equal synsets), ``ancestry``, ``sibling`` (a far class below a parent of an ID class),
        ``digest`` (identical images) or ``near-duplicate`` (a pair of the recipe's ``near_duplicates``).
    a : ``group:NAME``, or ``source:NAME`` for all classes of a source, in a group or not.
    b : the other side, in the same form as ``a``.
    classes : the pairs of classes, each ``[of a, of b]``, in place of ``count``.
    count : the number of pairs.
    reason : why it stays.
    """

    kind: Literal["class", "ancestry", "sibling", "digest", "near-duplicate"]
    a: str
    b: str
    classes: tuple[tuple[str, str], ...] | None = None
    count: Count | None = None
    reason: Annotated[str, Field(min_length=1)]

    @model_validator(mode="after")
    def _one_extent(self) -> KnownLeak:
        if (self.classes is None) == (self.count is None):
            raise ValueError("give exactly one of classes, count")
        return self


class PublishedList(RecipePart):
    """The published class list that a recipe rebuilds, and how the recipe differs from it.

    The list itself is not stored.

    Attributes
    ----------
    origin : its address, to the commit.
    licence : its licence.
    columns : the columns of a line, joined by tabs.
    groups : the groups in the list; all by default.
    ordered : whether the order of groups and classes is published, too; else the lines are sorted.
    sha256 : SHA-256 of its lines.
    only_published : number of its classes that the recipe does not take.
    only_ours : number of classes that the list lacks.
    elsewhere : number of classes that the recipe assigns to another group or superclass.
    note : the reason for the difference.
    """

    origin: Annotated[str, Field(min_length=1)]
    licence: Annotated[str, Field(min_length=1)]
    columns: Annotated[tuple[Literal["group", "superclass", "class_id"], ...], Field(min_length=1)]
    groups: Annotated[tuple[Name, ...], Field(min_length=1)] | None = None
    ordered: bool = False
    sha256: Sha256
    only_published: Count = 0
    only_ours: Count = 0
    elsewhere: Count = 0
    note: str = ""


class Normalisation(RecipePart):
    """Normalisation of pixels in [0, 1].

    Attributes
    ----------
    mean : mean of each channel.
    sd : standard deviation of each channel.
    """

    mean: tuple[float, float, float]
    sd: tuple[float, float, float]


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
