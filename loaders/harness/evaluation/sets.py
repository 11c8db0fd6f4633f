"""The sets of a benchmark that an evaluation covers, and those that are missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wordnet_splits.base.errors import DataError, unknown
from wordnet_splits.manifest import GroupRow, Manifest

from .metric_rows import UNKNOWN_ROLES
from .schema import MissingSet

ORDER = ("id", "csid", "near", "far", "external")
"""Roles in the order in which sets are scored and printed."""


@dataclass(frozen=True, eq=False)
class EvaluatedSets:
    """The sets of one evaluation.

    Attributes
    ----------
    test : group -> role of the test sets, in the order of `ORDER`, then of the recipe.
    """

    manifest: Manifest
    test: Mapping[str, str]

    @classmethod
    def of(cls, manifest: Manifest, groups: Sequence[str] | None = None) -> EvaluatedSets:
        """Select the ID sets and, of the OOD sets, ``groups`` (all by default).

        Raises
        ------
        UnknownNameError : no such group in the test split. DataError : no ID test images.
        """
        rows = sorted(_rows(manifest, "test"), key=lambda row: ORDER.index(row.role))
        names = [row.group for row in rows]
        for name in groups or ():
            if name not in names:
                raise unknown("test group", name, names, where=manifest.name)
        test = {
            row.group: row.role
            for row in rows
            if ("test", row.group) in manifest.parts
            and (groups is None or row.role == "id" or row.group in groups)
        }
        if "id" not in test.values():
            raise DataError("has no ID test images", where=manifest.name, hint="build it again")
        return cls(manifest, test)

    def of_role(self, split: str, *roles: str) -> list[str]:
        """Return the groups of some roles that have images in a split, in the recipe's order."""
        rows = _rows(self.manifest, split)
        return [row.group for row in rows if row.role in roles and (split, row.group) in self.manifest.parts]

    def missing(self, scored: Mapping[str, int]) -> list[MissingSet]:
        """Return the ID, near and far sets that were not scored whole: `aurc_unknown` depends on each."""
        return [
            MissingSet(
                group=row.group,
                role=row.role,
                scored=scored.get(row.group, 0),
                expected=row.expected,
                status=row.status,
            )
            for row in _rows(self.manifest, "test")
            if row.role in ("id", *UNKNOWN_ROLES) and scored.get(row.group, 0) != row.expected
        ]

    def similarity(self) -> dict[tuple[str, str], float | None]:
        """Return (source, class_id) -> similarity of the class to its nearest ID class."""
        columns = (self.manifest.classes[name].to_pylist() for name in ("source", "class_id", "mean"))
        return {(source, class_id): mean for source, class_id, mean in zip(*columns, strict=True)}


def _rows(manifest: Manifest, split: str) -> list[GroupRow]:
    return [row for row in manifest.groups if row.split == split]
