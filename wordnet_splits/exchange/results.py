"""Results of exports and imports, and the overlap of an imported with a shipped benchmark."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wordnet_splits.base.errors import Problem
from wordnet_splits.base.jsonable import to_json
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.exchange.entries import ListEntry


@dataclass
class Exported:
    """The result of `export_benchmark`.

    Attributes
    ----------
    images : number of images written.
    problems : one for each image that was left out.
    awaiting : "group split" of the parts whose images are not known yet; they are left out.
    """

    name: str
    format: str
    folder: Path
    images: int
    problems: list[Problem] = field(default_factory=list)
    awaiting: list[str] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether no image was left out."""
        return not self.problems

    def as_dict(self) -> dict[str, Any]:
        """Return what ``export --json`` prints."""
        return {
            "name": self.name,
            "format": self.format,
            "out": str(self.folder),
            "images": self.images,
            "awaiting": self.awaiting,
            "missing": to_json(self.problems),
        }


@dataclass(frozen=True)
class Unidentified:
    """Images of a set of an archive whose image ids are unknown, with the reason."""

    folder: str
    reason: str
    paths: Sequence[str] = field(repr=False)

    def __str__(self) -> str:
        number = len(self.paths)
        return f"{self.folder}: {number:,} picture{'s have' if number != 1 else ' has'} no id: {self.reason}"


@dataclass(frozen=True)
class Overlap:
    """Classes, or images in split ``of``, of a group in two manifests: in both, or in only one."""

    group: str
    of: str
    both: int
    only_a: int
    only_b: int


@dataclass
class Imported:
    """The result of `import_benchmark`.

    Attributes
    ----------
    manifest : None if no group is ID, so that only lists were written.
    recipe : the recipe file, None without a manifest.
    lists : names of the lists, as recipes refer to them.
    unmatched : entries without a known image, or classes of groups without images.
    problems : images missing from a root.
    left_out : for an archive, the ``unmatched`` images by set, with reasons.
    like, in_common : for an archive, the shipped benchmark that corresponds to it, and their overlap.
    """

    name: str
    folder: Path
    manifest: Manifest | None
    recipe: Path | None = None
    lists: list[str] = field(default_factory=list)
    unmatched: list[ListEntry] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    left_out: list[Unidentified] = field(default_factory=list)
    like: str | None = None
    in_common: list[Overlap] = field(default_factory=list)

    @property
    def fingerprint(self) -> str | None:
        """Fingerprint of the images, None if the images of a group are unknown."""
        return None if self.manifest is None else self.manifest.fingerprint

    def as_dict(self) -> dict[str, Any]:
        """Return what ``import --json`` prints."""
        result = {
            "name": self.name,
            "out": self.folder,
            "recipe": self.recipe,
            "lists": self.lists,
            "groups": [] if self.manifest is None else [g.model_dump() for g in self.manifest.groups],
            "fingerprint": self.fingerprint,
            "unmatched": [entry.name for entry in self.unmatched],
            "missing": self.problems,
            "left_out": [
                {"set": row.folder, "pictures": len(row.paths), "reason": row.reason} for row in self.left_out
            ],
            "like": self.like,
            "in_common": self.in_common,
        }
        return {key: to_json(value) for key, value in result.items()}


def count_overlap(a: Manifest, b: Manifest) -> list[Overlap]:
    """Count the classes, then the images by split, that groups of the same name have in common."""
    in_a, in_b = _members(a), _members(b)
    return [
        Overlap(*key, len(in_a[key] & in_b[key]), len(in_a[key] - in_b[key]), len(in_b[key] - in_a[key]))
        for key in dict.fromkeys([*in_a, *in_b])
    ]


def _members(manifest: Manifest) -> defaultdict[tuple[str, str], set[Any]]:
    """Return the (source, class_id) or (source, image_id) pairs by group and "classes" or split."""
    members: defaultdict[tuple[str, str], set[Any]] = defaultdict(set)
    for row in manifest.groups:
        members[row.group, "classes"] |= set()
    columns = (manifest.classes[name].to_pylist() for name in ("group", "source", "class_id"))
    for group, source, class_id in zip(*columns, strict=True):
        if group:
            members[group, "classes"].add((source, class_id))
    for split, group in manifest.parts:
        table = manifest.parts[split, group]()
        ids = (table[name].to_pylist() for name in ("source", "image_id"))
        members[group, split] |= set(zip(*ids, strict=True))
    return members
