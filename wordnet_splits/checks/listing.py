"""What benchmarks there are, and how far each is frozen."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wordnet_splits.base.schemas import COUNTED
from wordnet_splits.base.tabular import Tabular
from wordnet_splits.catalog.lists import available_lists
from wordnet_splits.finding import load_manifest, manifest_names
from wordnet_splits.manifest import GroupRow
from wordnet_splits.recipe import Recipe, load_recipe, recipe_names
from wordnet_splits.rules import lists_used


def awaited_lists(recipe: Recipe) -> tuple[str, ...]:
    """Return the lists a recipe names that are not at hand, sorted."""
    used = {r.list_ for g in recipe.group for r in g.images.values() if r.list_ is not None}
    used |= {name for g in recipe.group for name in lists_used(g.classes)}
    return tuple(sorted(used - set(available_lists(recipe.folder))))


def buildable() -> tuple[str, ...]:
    """Return the shipped benchmarks that ``--all`` builds: those whose lists are all at hand."""
    return tuple(n for n in recipe_names() if not awaited_lists(load_recipe(n)))


@dataclass(frozen=True)
class ListedBenchmark:
    """One benchmark; ``fingerprint`` is None where it is not frozen, or awaits a source."""

    name: str
    version: int
    title: str
    paper: str
    groups: tuple[GroupRow, ...]
    fingerprint: str | None

    def as_dict(self) -> dict[str, Any]:
        """Return the benchmark as ``list --json`` prints it."""
        return {**vars(self), "groups": [row.model_dump() for row in self.groups]}


@dataclass(frozen=True)
class Listing(Tabular):
    """Every benchmark; `rows` has one row for the classes and each split of every group."""

    benchmarks: tuple[ListedBenchmark, ...]

    def rows(self) -> list[dict[str, Any]]:
        """Return benchmark, version and the fields of `GroupRow`."""
        return [
            {"benchmark": benchmark.name, "version": benchmark.version, **row.model_dump()}
            for benchmark in self.benchmarks
            for row in benchmark.groups
        ]


def list_benchmarks(manifests: Path | None = None) -> Listing:
    """Return every shipped or frozen benchmark with its groups, as its manifest states them.

    Examples
    --------
    >>> [row["actual"] for row in list_all().rows() if row["group"] == "digits-6-9"]
    [4, 714]
    """
    frozen = manifest_names(manifests)
    names = sorted({*recipe_names(), *frozen})
    return Listing(tuple(_frozen(n, manifests) if n in frozen else _unfrozen(load_recipe(n)) for n in names))


def _frozen(name: str, manifests: Path | None) -> ListedBenchmark:
    manifest = load_manifest(name, manifests, check="none")
    declared = manifest.data.recipe
    groups = tuple(manifest.groups)
    return ListedBenchmark(
        manifest.name, manifest.version, declared.title, declared.paper, groups, manifest.fingerprint
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
