"""The benchmarks at hand, and how far each is frozen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wordnet_splits.base.tabular import Tabular
from wordnet_splits.base.text_formats import COUNTED
from wordnet_splits.benchmark.manifest import GroupRow, Manifest, read_manifest
from wordnet_splits.benchmark.manifest.loading import frozen_folders
from wordnet_splits.benchmark.recipe import Recipe, awaited_lists, load_recipe, recipe_names
from wordnet_splits.benchmark.resolve import find_manifest


def benchmark_folders(manifests: Path | None = None, names: Sequence[str] = ()) -> dict[str, Path | None]:
    """Return the frozen folder of each benchmark by name, sorted; None for a recipe that is not frozen.

    An earlier version that `freeze` kept is ``NAME@v1``. ``names`` : only these, also paths and addresses.
    """
    folders = {**dict.fromkeys(recipe_names()), **frozen_folders(manifests, earlier=True)}
    found = {name: folders[name] if name in folders else find_manifest(name, manifests) for name in names}
    return found or dict(sorted(folders.items()))


@dataclass(frozen=True)
class ListedBenchmark:
    """A benchmark; without ``fingerprint`` if it is not frozen or a source is missing.

    Attributes
    ----------
    name, version, title, paper : as in the recipe.
    groups : the classes and each split of every group.
    fingerprint : of the manifest.
    classes : role -> number of distinct classes, of which several groups may have one; None if not frozen.
    """

    name: str
    version: int
    title: str
    paper: str
    groups: tuple[GroupRow, ...]
    fingerprint: str | None
    classes: Mapping[str, int] | None = None

    @property
    def awaits(self) -> str | None:
        """The sources that its groups await, or another state; None if every group is complete."""
        states = dict.fromkeys(row.status for row in self.groups if row.status != "complete")
        return ", ".join(state.removeprefix("awaiting ") for state in states) or None

    def count_classes(self, role: str) -> int | None:
        """Return the number of distinct classes of a role; None if unknown, 0 without groups of it."""
        if self.classes is None:
            return None if any(row.role == role for row in self.groups) else 0
        return self.classes.get(role, 0)

    def count_images(self, split: str) -> int | None:
        """Return the number of images of a split in all groups; None if unknown."""
        counts = [
            row.expected if row.actual is None else row.actual for row in self.groups if row.split == split
        ]
        return None if None in counts else sum(filter(None, counts))

    def as_dict(self) -> dict[str, Any]:
        """Return the benchmark as ``list --json`` prints it."""
        return {**vars(self), "groups": [row.model_dump() for row in self.groups]}


@dataclass(frozen=True)
class Listing(Tabular):
    """The benchmarks; a row is the classes or one split of a group."""

    benchmarks: tuple[ListedBenchmark, ...]

    def rows(self) -> list[dict[str, Any]]:
        """Return benchmark, version and the fields of `GroupRow`."""
        return [
            {"benchmark": benchmark.name, "version": benchmark.version, **row.model_dump()}
            for benchmark in self.benchmarks
            for row in benchmark.groups
        ]


def list_benchmarks(manifests: Path | None = None, names: Sequence[str] = ()) -> Listing:
    """Return the shipped and frozen benchmarks, with the groups as their manifests state them.

    Parameters
    ----------
    manifests, names : folder of frozen manifests; benchmarks by name, path or address. All by default.

    Examples
    --------
    >>> [row["actual"] for row in list_benchmarks().rows() if row["group"] == "digits-6-9"]
    [4, 714]
    """
    folders = benchmark_folders(manifests, names)
    return Listing(
        tuple(
            _unfrozen(load_recipe(name)) if folder is None else _frozen(name, read_manifest(folder))
            for name, folder in folders.items()
        )
    )


def _frozen(name: str, manifest: Manifest) -> ListedBenchmark:
    declared = manifest.data.recipe
    columns = (manifest.classes[key].to_pylist() for key in ("role", "source", "class_id"))
    return ListedBenchmark(
        name,
        manifest.version,
        declared.title,
        declared.paper,
        tuple(manifest.groups),
        manifest.fingerprint,
        Counter(role for role, _, _ in set(zip(*columns, strict=True))),
    )


def _unfrozen(recipe: Recipe) -> ListedBenchmark:
    status = "awaiting list" if awaited_lists(recipe) else "not frozen"
    groups = tuple(
        GroupRow(
            group=group.name,
            role=group.role,
            source=group.source,
            view=group.view,
            split=split,
            published=group.published.get(split),
            expected=None,
            actual=None,
            status=status,
            note=group.note,
            reason="",
            population=None,
        )
        for group in recipe.group
        for split in COUNTED
        if split == "classes" or split in group.images
    )
    return ListedBenchmark(recipe.name, recipe.version, recipe.title, recipe.paper, groups, None)
