"""The schema of a recipe: one TOML file declares one benchmark."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PrivateAttr, model_validator

from wordnet_splits.base.schemas import Count, Name, Role, Sha256, Version
from wordnet_splits.base.tabular import html_table
from wordnet_splits.catalog.declarations import Declaration
from wordnet_splits.manifest.tables import SPLITS
from wordnet_splits.rules.model import ClassRule, Yes, operands, rule_text

NoiseSide = Annotated[int, Field(gt=0, le=4096, strict=True)]


Transform = Literal["none", "resize-32", "resize-32-crop-32", "resize-256-crop-224"]


def _one_of(*names: str) -> AfterValidator:
    def check(value: str) -> str:
        if value not in names:
            raise ValueError(f"{value!r} is not one of {', '.join(names)}")
        return value

    return AfterValidator(check)


SplitKey = Annotated[str, _one_of(*SPLITS)]
CountedKey = Annotated[str, _one_of("classes", *SPLITS)]


class RecipePart(BaseModel):
    """A part of a recipe: frozen, and strict about its keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


MOST_GROUPS = 100
MOST_NOISE = 4 << 30
"""Bytes of pixels that one group may generate; 10,000 images of 224 x 224 are 1.5 GB."""


class ImageRule(RecipePart):
    """Which images a split takes: a published list, a cut of publishers' splits, or generated noise.

    Attributes
    ----------
    list : a published list of images, ``"openset-imagenet/p3_val"``, cut to the group's classes.
    from : a split of the publisher's, an array of them, or ``"all"``; goes with one of the five below.
    per_class : so many images of each class, the first in the order of the draw.
    total : so many images in all, equally many of each class.
    half : half the images of each class, the first in the order of the draw.
    all : every image.
    rest : every image that no other split or group of the benchmark took.
    generate : so many generated images; the group needs ``noise``.
    """

    list_: str | None = Field(default=None, alias="list")
    from_: Annotated[tuple[str, ...], Field(min_length=1)] | None = Field(default=None, alias="from")
    per_class: Annotated[int, Field(gt=0, strict=True)] | None = None
    total: Annotated[int, Field(gt=0, strict=True)] | None = None
    half: Yes | None = None
    all: Yes | None = None
    rest: Yes | None = None
    generate: Annotated[int, Field(gt=0, le=100_000, strict=True)] | None = None  # five digits number them

    @model_validator(mode="before")
    @classmethod
    def _one_pool_is_a_list_of_one(cls, data: Any) -> Any:
        if isinstance(data, dict) and isinstance(data.get("from"), str):
            return {**data, "from": (data["from"],)}
        return data

    @model_validator(mode="after")
    def _one_way_of_taking(self) -> ImageRule:
        takers = [k for k in ("per_class", "total", "half", "all", "rest") if getattr(self, k) is not None]
        ways = [k for k in ("list_", "from_", "generate") if getattr(self, k) is not None]
        if len(ways) != 1:
            raise ValueError("give exactly one of list, from, generate")
        if (self.from_ is not None) != (len(takers) == 1) or len(takers) > 1:
            raise ValueError("`from` goes with exactly one of per_class, total, half, all, rest")
        return self


class Noise(RecipePart):
    """What the images of a generated source are.

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
    name : the set's own name.
    role : ``id``, ``near``, ``far``, ``external`` (training outliers) or ``csid`` (covariate-shifted ID).
    source : a shipped source, or a declared dataset of your own.
    view : which pixels: ``raw``, or the name of a resize spec of `fix-resize` such as ``fix``.
    classes : which classes of the source.
    images : ``train``, ``val`` and ``test``, each with what it takes.
    published : the paper's counts of ``classes``, ``train``, ``val`` and ``test``, to compare with.
    noise : what a generated source generates.
    reuse : whether classes that an earlier group took are on offer, too.
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
            raise ValueError("only one split of a group can be generated: its ids start at 0")
        for split in generated if self.noise is not None else ():
            height, width, _ = self.noise.shape if self.noise else (0, 0, 0)
            size = (self.images[split].generate or 0) * height * width * 3
            if size > MOST_NOISE:
                asked, most = size / (1 << 30), MOST_NOISE >> 30
                raise ValueError(f"{split} asks for {asked:,.1f} GiB of noise, at most {most} are made")
        if not self.labelled and self.role != "id":
            raise ValueError("labelled = false is for ID classes that the classifier has no output for")
        if not self.images and self.role != "id":
            raise ValueError("a group that is not ID needs images = { test = ... }")
        return self


class KnownLeak(RecipePart):
    """A leak that is known, with the reason why it stays.

    Attributes
    ----------
    kind : ``class`` (equal synsets), ``ancestry``, ``sibling`` (a far class below a parent of an ID class) or
        ``digest`` (identical pictures).
    a : ``group:NAME``, or ``source:NAME`` for all classes of a source, in a group or not.
    b : the other one.
    classes : the pairs of classes, each ``[of a, of b]``; or
    count : how many pairs there are.
    reason : why it stays.
    """

    kind: Literal["class", "ancestry", "sibling", "digest"]
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
    """The class list that a recipe rebuilds, as published: where it is, and how the recipe differs from it.

    The list itself is not kept.

    Attributes
    ----------
    origin : where it is, to the commit.
    licence : its licence.
    columns : what a line holds, joined by tabs.
    groups : the groups that the list is of, all unless given.
    ordered : whether the order of groups and classes is published, too; else the lines are sorted.
    sha256 : of its lines.
    only_published : how many classes of it the recipe does not take.
    only_ours : how many classes the list lacks.
    elsewhere : how many classes are in another group or superclass.
    note : why they differ.
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
    """How pixels in [0, 1] are normalised.

    Attributes
    ----------
    mean : of each channel.
    sd : standard deviation of each channel.
    """

    mean: tuple[float, float, float]
    sd: tuple[float, float, float]


class Recipe(RecipePart):
    """A benchmark, declared: one TOML file.

    Attributes
    ----------
    schema : the version of this syntax.
    name : of the benchmark: small letters, digits and hyphens.
    version : raised when a frozen class, role or image changes.
    title : one line for listings.
    draw : the key of all draws, which variants of one benchmark share.
    seed : of all draws.
    paper : the key of the paper that it rebuilds.
    hierarchy : the graph that subtree, slice and parent rules follow: WordNet's, or ImageNet's former tree.
    transforms : the evaluation transform of each source.
    normalise : of pixels, after the transform.
    reproduces : whether it is somebody's benchmark as published, leaks included.
    drop_leaks : whether classes that leak are removed.
    published_list : the published list of classes that it rebuilds.
    source : the datasets of one's own, one ``[[source]]`` each; paths are relative to the recipe's file.
    group : the sets, one ``[[group]]`` each.
    known_leak : leaks that stay, one ``[[known_leak]]`` each.
    """

    schema_: Literal[1] = Field(alias="schema")
    name: Name
    version: Version = 1
    title: str = ""
    draw: str
    seed: int = 0
    paper: str = ""
    hierarchy: Literal["wordnet", "imagenet-tree"] = "wordnet"
    transforms: dict[str, Transform] = Field(default_factory=dict)
    normalise: Normalisation | None = None
    reproduces: bool = False
    drop_leaks: bool = False
    published_list: PublishedList | None = None
    source: tuple[Declaration, ...] = ()
    group: Annotated[tuple[Group, ...], Field(min_length=1, max_length=MOST_GROUPS)]
    known_leak: tuple[KnownLeak, ...] = ()
    _lines: dict[str, str] = PrivateAttr(default_factory=dict)  # group -> the file and line of its rule
    _folder: Path | None = PrivateAttr(default=None)
    _declarations: dict[str, Declaration] = PrivateAttr(default_factory=dict)

    @model_validator(mode="after")
    def _names_are_unique(self) -> Recipe:
        seen: set[str] = set()
        for group in self.group:
            if group.name in seen:
                raise ValueError(f"two groups are called {group.name!r}")
            seen.add(group.name)
        names = [declared.name for declared in self.source]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"two sources are called {twice[0]!r}")
        if not self.groups_with_role("id"):
            raise ValueError('no group has role = "id", so nothing is in-distribution')
        return self

    def __eq__(self, other: object) -> bool:  # where it was read makes no other recipe
        return isinstance(other, Recipe) and self.model_dump() == other.model_dump()

    def place(self, group: str) -> str:
        """Return where a group is declared, for errors: ``mine.toml, line 7: group far``."""
        return f"{self._lines.get(group, self.name)}: group {group}"

    def remember_lines(self, lines: dict[str, str]) -> None:
        """Note the file and line of each group's rule, for errors."""
        self._lines.update(lines)

    @property
    def folder(self) -> Path | None:
        """Return the folder of its file, beside which lists of its own lie; None where it has none."""
        return self._folder

    def remember_folder(self, folder: Path) -> None:
        """Note where the recipe was read."""
        self._folder = folder

    @property
    def declarations(self) -> Mapping[str, Declaration]:
        """The datasets declared by the recipe or by its manifest, by name."""
        return self._declarations

    def add_declarations(self, declarations: Mapping[str, Declaration]) -> None:
        """Add datasets that the recipe or its manifest declares."""
        self._declarations.update(declarations)

    def as_data(self) -> dict[str, Any]:
        """Return the recipe as its TOML says, variants resolved; `Recipe.model_validate` reads it back.

        Without ``[[source]]``, whose paths are of this machine: a manifest carries the datasets themselves.
        """
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude={"source"})

    def __repr__(self) -> str:
        lines = [f"{self.name} version {self.version}: {self.title or 'without a title'}"]
        lines += [f"  {r['group']:20} {r['role']:9} {r['source']:14} {r['rule']}"[:110] for r in self._rows()]
        return "\n".join(lines)

    __str__ = __repr__

    def _repr_html_(self) -> str:
        return f"<p>{escape(self.name)} version {self.version}</p>" + html_table(self._rows())

    def _rows(self) -> list[dict[str, Any]]:
        return [
            {
                "group": g.name,
                "role": g.role,
                "source": g.source,
                "view": g.view,
                "rule": rule_text(g.classes),
            }
            for g in self.group
        ]

    @property
    def sources(self) -> tuple[str, ...]:
        """Return the sources of all groups, sorted."""
        return tuple(sorted({g.source for g in self.group}))

    @property
    def sources_named(self) -> tuple[str, ...]:
        """Return the sources of all groups and those that their rules name, sorted."""
        named = {o.name for g in self.group for o in operands(g.classes) if o.kind == "source"}
        return tuple(sorted({*self.sources, *named}))

    def groups_with_role(self, role: str) -> tuple[Group, ...]:
        """Return the groups of one role, in file order."""
        return tuple(g for g in self.group if g.role == role)
