"""Leaks of a finished manifest, computed again from its tables, with every pair.

`build` refuses a leak that its recipe does not name, and records counts and examples of other leaks. Here the
leaks are computed from the class table and the digests, and compared with the recorded ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any, ClassVar

from wordnet_splits.base.jsonable import Jsonable
from wordnet_splits.base.tabular import Tabular
from wordnet_splits.benchmark.construct.classes import Membership, class_leaks
from wordnet_splits.benchmark.construct.leak_kinds import (
    Leak,
    digest_leaks,
    near_duplicate_leaks,
    near_duplicate_pairs,
)
from wordnet_splits.benchmark.hierarchies import taxonomy_of
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.benchmark.manifest.metadata import LeakRow
from wordnet_splits.benchmark.recipe import Recipe, load_recipe

AS_RECORDED, NEW, CHANGED, GONE = "as recorded", "not recorded", "count differs", "recorded, not found"


@dataclass(frozen=True)
class ComparedLeak(Jsonable):
    """Leak of a kind between two groups: ``pairs`` are image ids for leaks between images, else class ids.

    ``distances`` has the distance of each pair of near-duplicates, and is empty for other kinds.

    ``status`` is "as recorded", "not recorded", "count differs" or "recorded, not found"; ``severity`` and
    ``reason`` are as recorded ("known" with the recipe's reason, or "recorded").
    """

    derived: ClassVar = ("count",)

    kind: str
    a: str
    b: str
    pairs: list[tuple[str, str]]
    recorded: int | None
    severity: str
    reason: str
    status: str
    distances: Sequence[str] = ()

    @property
    def count(self) -> int:
        """The number of pairs."""
        return len(self.pairs)


@dataclass(frozen=True)
class LeakReport(Tabular):
    """The leaks of a manifest; ``unchecked`` are the sets without all digests."""

    name: str
    leaks: Sequence[ComparedLeak]
    unchecked: Sequence[dict[str, Any]]

    @property
    def ok(self) -> bool:
        """Whether the leaks are those recorded."""
        return all(leak.status == AS_RECORDED for leak in self.leaks)

    @property
    def exact(self) -> int:
        """The number of pairs of all leaks but near-duplicates."""
        return sum(leak.count for leak in self.leaks if leak.kind != "near-duplicate")

    @property
    def groups_not_compared(self) -> int:
        """The number of groups with images that were not compared."""
        return len({row["group"] for row in self.unchecked})

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each pair."""
        shared = ("kind", "a", "b", "severity", "status", "reason")
        return [
            {**{name: getattr(leak, name) for name in shared}, "first": a, "second": b, "distance": distance}
            for leak in self.leaks
            for (a, b), distance in zip(leak.pairs, leak.distances or repeat(None), strict=False)
        ]

    def as_dict(self) -> dict[str, Any]:
        """Return the report as ``audit leaks --json`` prints it."""
        return {
            "name": self.name,
            "ok": self.ok,
            "leaks": [leak.as_dict() for leak in self.leaks],
            "exact": self.exact,
            "groups_not_compared": self.groups_not_compared,
            "unchecked": list(self.unchecked),
        }


def report_leaks(manifest: Manifest | str | Path) -> LeakReport:
    """Find the leaks between the groups of a manifest, and compare them with those that it records.

    Raises
    ------
    ManifestError : the recipe in ``manifest.json`` is malformed.
    RecipeError, DataError : the table of near-duplicates is absent or malformed.
    """
    from wordnet_splits.benchmark.resolve import load_manifest

    manifest = load_manifest(manifest)
    recipe = load_recipe(manifest)
    leaks_now = class_leaks(_membership(manifest, recipe), taxonomy_of(manifest))
    tables = [read_table() for read_table in manifest.parts.values()]
    leaks_now += digest_leaks(recipe, tables)
    leaks_now += near_duplicate_leaks(recipe, near_duplicate_pairs(recipe), tables)
    recorded: dict[tuple[str, str, str], LeakRow] = {
        (row.kind, row.a.removeprefix("group:"), row.b.removeprefix("group:")): row
        for row in manifest.data.leaks
    }
    leaks = [_compared(leak, recorded.pop((leak.kind, leak.a, leak.b), None)) for leak in leaks_now]
    for (kind, a, b), row in recorded.items():
        leaks.append(ComparedLeak(kind, a, b, [], row.count, row.severity, row.reason, GONE))
    return LeakReport(manifest.name, leaks, _unchecked(manifest))


def _compared(leak: Leak, row: LeakRow | None) -> ComparedLeak:
    recorded, severity, reason = (row.count, row.severity, row.reason) if row else (None, "not recorded", "")
    status = NEW if row is None else AS_RECORDED if recorded == len(leak.pairs) else CHANGED
    compared = recorded, severity, reason, status, leak.distances
    return ComparedLeak(leak.kind, leak.a, leak.b, leak.pairs, *compared)


def _membership(manifest: Manifest, recipe: Recipe) -> Membership:
    groups: dict[str, list[str]] = {group.name: [] for group in recipe.group}
    columns = (manifest.classes.column(c).to_pylist() for c in ("group", "class_id"))
    for group, class_id in zip(*columns, strict=True):
        if group in groups:
            groups[group].append(class_id)
    return Membership(recipe, groups)


def _unchecked(manifest: Manifest) -> list[dict[str, Any]]:
    """Return the sets with unknown images or digests."""
    rows = []
    for row in manifest.groups:
        part = (row.split, row.group)
        if row.split == "classes":
            continue
        if part not in manifest.parts:
            why = row.status
        else:
            table = manifest.parts[part]()
            unknown = table.column("digest").null_count
            why = f"{unknown:,} of {table.num_rows:,} digests unknown" if unknown else ""
        if why:
            rows.append({"group": row.group, "split": row.split, "source": row.source, "why": why})
    return rows
