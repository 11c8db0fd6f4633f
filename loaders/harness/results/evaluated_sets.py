"""The sets of a benchmark that an evaluation is on, and those that were not scored whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wordnet_splits.base.errors import DataError, unknown
from wordnet_splits.benchmark.manifest import GroupRow, Manifest

from .metadata import MissingSet
from .metric_rows import UNKNOWN_ROLES

ORDER = ("id", "csid", "near", "far", "external")
"""Roles, in the order that sets are scored and printed."""
NOT_CHOSEN = "not chosen"
"""Status of a missing set that the call did not ask for (``groups=``, ``--group``)."""


@dataclass(frozen=True, eq=False)
class EvaluatedSets:
    """The sets of an evaluation.

    Attributes
    ----------
    test : group -> role of the test sets, in the order of `ORDER`, then of the recipe.
    not_chosen : groups that the user did not choose.
    """

    manifest: Manifest
    test: Mapping[str, str]
    not_chosen: frozenset[str] = frozenset()

    @classmethod
    def from_manifest(
        cls, manifest: Manifest, groups: Sequence[str] | None = None, *, without: Sequence[str] = ()
    ) -> EvaluatedSets:
        """Select the ID sets and, of the OOD sets, ``groups`` (all by default).

        Parameters
        ----------
        without : groups without images, left out.
        """
        rows = sorted(_rows(manifest, "test"), key=lambda row: ORDER.index(row.role))
        names = [row.group for row in rows]
        for name in groups or ():
            if name not in names:
                raise unknown("test group", name, names, where=manifest.name)
        roles = {row.group: row.role for row in rows if ("test", row.group) in manifest.parts}
        not_chosen = {
            group for group, role in roles.items() if not (groups is None or role == "id" or group in groups)
        }
        left_out = not_chosen.union(without)
        test = {group: role for group, role in roles.items() if group not in left_out}
        if "id" not in test.values():
            raise DataError("has no ID test images", where=manifest.name, hint="build it again")
        return cls(manifest, test, frozenset(not_chosen))

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
                status=NOT_CHOSEN if row.group in self.not_chosen else row.status,
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


def validation_groups(sets: EvaluatedSets) -> tuple[list[str], list[str]]:
    """Return the ID and the OOD validation groups; the OOD groups are the external ones, if there are any."""
    ood = sets.of_role("val", "external") or sets.of_role("val", "near", "far")
    return sets.of_role("val", "id"), ood


def sweep_criterion(id_groups: Sequence[str], ood_groups: Sequence[str]) -> str:
    """Return the words for the criterion of a sweep on ID and OOD validation groups."""
    id_sets, ood_sets = (" + ".join(f"{group}/val" for group in side) for side in (id_groups, ood_groups))
    return f"auroc of {id_sets} against {ood_sets}"
