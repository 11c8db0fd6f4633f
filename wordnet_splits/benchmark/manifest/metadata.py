"""Schema of ``manifest.json``: typed fields that do not contradict each other."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, model_validator

from wordnet_splits.base.about import About
from wordnet_splits.base.errors import ManifestError
from wordnet_splits.base.text_formats import (
    BenchmarkName,
    Count,
    Counted,
    Name,
    Role,
    Sha256,
    Split,
    StrictModel,
    Version,
    validate,
)

SCHEMA = 1
ChannelValues = Annotated[list[float], Field(min_length=3, max_length=3)]


class PartRow(StrictModel):
    """The image table of a (split, group): its number of rows and its fingerprints."""

    split: Split
    group: Name
    rows: Count
    images: Sha256
    pixels: Sha256 | None


class SourceRow(StrictModel):
    """A declared dataset that the manifest carries: SHA-256 of its files."""

    name: Name
    declaration: Sha256
    catalog: Sha256
    inventory: Sha256 | None


class PairTableRow(StrictModel):
    """A table of pairs of images that the manifest carries: its name in the recipe, and its SHA-256."""

    name: Annotated[str, Field(min_length=1)]
    sha256: Sha256


class HierarchyRow(StrictModel):
    """A hierarchy in place of WordNet that the manifest carries: SHA-256 of its files."""

    tree: Sha256
    nodes: Sha256


class Carried(StrictModel):
    """SHA-256 of the files that a manifest or an export carries."""

    sources: list[SourceRow] = Field(default_factory=list)
    pair_tables: list[PairTableRow] = Field(default_factory=list)
    hierarchy: HierarchyRow | None = None


class Fingerprints(Carried):
    """SHA-256 of the tables and carried files; the totals are None if the images of a group are
    unknown.

    ``evaluation`` covers the other inputs of an evaluation: transforms, normalise, roles, views.
    """

    classes: Sha256
    explanation: Sha256
    evaluation: Sha256
    images: list[PartRow]
    images_in_all: Sha256 | None
    pixels_in_all: Sha256 | None


class GroupRow(StrictModel):
    """The classes of a group, or its images of a split.

    Attributes
    ----------
    published, expected, actual : counts; None if not published or not known yet.
    status : ``complete``, ``awaiting SOURCE``, ``missing N``, or ``not frozen`` in a listing.
    reason : why a source is awaited or images are left out, or which far classes are nearer than near ones.
    population : number of images that a local draw chose from.
    """

    group: Name
    role: Role
    source: str
    view: str
    split: Counted
    published: Count | None
    expected: Count | None
    actual: Count | None
    status: Annotated[str, Field(pattern=r"^(complete|awaiting [a-z0-9-]+|missing [0-9,]+|not frozen)$")]
    note: str
    reason: str
    population: Count | None

    @property
    def awaits(self) -> bool:
        """Return whether the image ids are not known yet."""
        return self.status.startswith("awaiting ")


class LeakRow(StrictModel):
    """Leak between ``group:NAME``, or ``source:NAME`` for the classes that no group took, and another."""

    kind: Literal["class", "ancestry", "sibling", "digest", "near-duplicate"]
    a: str
    b: str
    count: Count
    examples: list[list[str]]
    severity: str
    reason: str

    @property
    def sentence(self) -> str:
        """The leak in words."""
        why = f" ({self.reason})" if self.reason else ""
        return f"{self.kind}: {self.count:,} between {self.a} and {self.b}{why}"


class MissingRow(StrictModel):
    """An image that was missing under a root, damaged or altered."""

    kind: str
    source: str
    class_id: str | None
    image_id: str | None
    detail: str


class Channels(StrictModel):
    """Mean and standard deviation per channel, of pixels in [0, 1]."""

    mean: ChannelValues
    sd: ChannelValues


class Declared(StrictModel):
    """The recipe in a manifest, with the keys that readers of manifests need.

    Other keys are not validated; `wordnet_splits.benchmark.recipe.load_recipe` returns all as a `Recipe`.
    """

    model_config = ConfigDict(extra="allow")

    name: Name
    title: str = ""
    paper: str = ""
    draw: str = ""
    transforms: dict[str, str] = Field(default_factory=dict)
    normalise: Channels | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the recipe as in ``manifest.json``."""
        return self.model_dump(exclude_unset=True)


OWN = "own"
"""Value of ``taxonomy.hierarchy`` for a hierarchy that the manifest carries."""


class TaxonomyRow(StrictModel):
    """The noun graph, or the hierarchy in its place, that decided the classes."""

    name: str
    version: str
    hierarchy: str


class ManifestData(StrictModel):
    """The content of ``manifest.json``. No fingerprint covers ``about``."""

    schema_: Literal[1] = Field(alias="schema")
    name: BenchmarkName
    version: Version
    recipe: Declared
    seed: int
    taxonomy: TaxonomyRow
    groups: list[GroupRow]
    fingerprint: Sha256 | None
    fingerprints: Fingerprints
    leaks: list[LeakRow]
    complete: bool
    missing: list[MissingRow]
    awaiting: list[str]
    provenance: dict[str, str]
    about: About = About()

    @model_validator(mode="after")
    def _nothing_contradicts(self) -> ManifestData:
        if self.recipe.name != self.name.partition("@")[0]:
            raise ValueError(f"the recipe is that of {self.recipe.name!r}, not of {self.name!r}")
        twice = Counter((row.split, row.group) for row in self.groups)
        if repeated := [part for part, count in twice.items() if count > 1]:
            raise ValueError(f"group {repeated[0][1]} has two rows for {repeated[0][0]}")
        listed = [(row.split, row.group) for row in self.groups if row.split != "classes" and not row.awaits]
        stored = [(row.split, row.group) for row in self.fingerprints.images]
        if sorted(listed) != sorted(stored):
            odd = min(set(listed) ^ set(stored), default=stored[0] if stored else ("", ""))
            raise ValueError(f"groups and fingerprints disagree on {odd[0]}/{odd[1]}")
        carried = [row.name for row in self.fingerprints.sources]
        if carried != sorted(set(carried)):
            raise ValueError("the carried datasets are not sorted, or one is repeated")
        if (self.taxonomy.hierarchy == OWN) != (self.fingerprints.hierarchy is not None):
            raise ValueError("taxonomy.hierarchy and fingerprints.hierarchy contradict each other")
        if self.awaiting != sorted({row.source for row in self.groups if row.awaits}):
            raise ValueError("awaiting differs from the sources that the groups await")
        if self.complete != (not self.missing and not self.awaiting):
            raise ValueError("complete must be true exactly if nothing is missing or awaited")
        if self.fingerprint != self.fingerprints.images_in_all:
            raise ValueError("fingerprint differs from images_in_all")
        if (self.fingerprint is None) != bool(self.awaiting):
            raise ValueError("fingerprint must be null exactly if a group awaits its source")
        return self

    def as_dict(self) -> dict[str, Any]:
        """Return the content of the file."""
        data = {**self.model_dump(by_alias=True, exclude={"about"}), "recipe": self.recipe.as_dict()}
        if self.about.as_dict():
            data["about"] = self.about.as_dict()
        for name in Carried.model_fields:  # left out if nothing is carried
            if not data["fingerprints"][name]:
                del data["fingerprints"][name]
        return data


def check_data(data: object, where: str) -> ManifestData:
    """Return the content of a ``manifest.json`` if it has the schema that this version reads.

    Raises
    ------
    ManifestError : another schema, or a key that is missing, unknown, of another type, or contradictory.
    """
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise ManifestError(
            f"manifest.json is not of schema {SCHEMA}", where=where, hint="build it with this version"
        )
    return validate(ManifestData, data, where=where, error=ManifestError, hint="build it again")
