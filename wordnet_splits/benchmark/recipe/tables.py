"""The tables of a recipe: groups, the rules for their images, known leaks and the published list."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from wordnet_splits.base.text_formats import Count, Name, Role, Sha256
from wordnet_splits.benchmark.rules.context import Yes
from wordnet_splits.benchmark.rules.syntax import ClassRule

SplitKey = Annotated[str, Field(pattern="^(train|val|test)$")]
CountedKey = Annotated[str, Field(pattern="^(classes|train|val|test)$")]
NoiseSide = Annotated[int, Field(gt=0, le=4096, strict=True)]
Transform = Literal["none", "resize-32", "resize-32-crop-32", "resize-256-crop-224"]


class RecipePart(BaseModel):
    """A part of a recipe: frozen, and strict about its keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


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
    source : a shipped source, or a declared custom dataset.
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
