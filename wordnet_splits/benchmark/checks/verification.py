"""Verifications: the comparisons that were made of a manifest, and the problems found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from wordnet_splits.base.errors import Problem
from wordnet_splits.base.jsonable import Jsonable
from wordnet_splits.base.tabular import Tabular
from wordnet_splits.benchmark.manifest import GroupRow, Manifest, Part

IMAGE_PROBLEMS = ("image-not-by-rule", "image-changed")
"""Kinds of problems of images that a manifest holds and the rules do not give."""


@dataclass(frozen=True)
class CheckedGroup(Jsonable):
    """Counts of what was compared of a group: of its classes, or of the images of one split.

    Attributes
    ----------
    rule : classes that the rules give again, with the same label.
    ids : image ids drawn again from an inventory or a root, and equal.
    pixels : images that were read or generated and have the frozen digest.
    expected : number of images or classes to compare; None if unknown.
    problems : number of problems.
    """

    omitted: ClassVar = ("problems",)

    group: str
    split: str
    rule: int
    ids: int
    pixels: int
    expected: int | None
    problems: int


@dataclass(frozen=True)
class LocatedProblem:
    """A problem and the (split, group) that it is in; None for a problem of the whole manifest."""

    problem: Problem
    part: Part | None = None


@dataclass(frozen=True)
class Verification(Tabular):
    """Comparison of a benchmark with its rules and images; a row is a `CheckedGroup`.

    Attributes
    ----------
    groups : the groups as the manifest states them.
    unexpected : names under a root that are not ids of its source, and how often each.
    unread : sources with a root of which no image was read, and why.
    """

    name: str
    groups: Sequence[GroupRow]
    checks: Sequence[CheckedGroup]
    problems: Sequence[Problem]
    unexpected: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Say whether all comparisons agreed."""
        return not self.problems

    def rows(self) -> list[dict[str, Any]]:
        """Return the fields of `CheckedGroup`."""
        return [dict(vars(check)) for check in self.checks]

    def as_dict(self) -> dict[str, Any]:
        """Return the verification as ``verify --json`` prints it."""
        return {
            "name": self.name,
            "ok": self.ok,
            "groups": [check.as_dict() for check in self.checks],
            "problems": [problem.as_dict() for problem in self.problems],
            "unexpected": self.unexpected,
            "unread": self.unread,
        }


def count_checks(
    frozen: Manifest,
    problems: Sequence[LocatedProblem],
    compared: Mapping[Part, int] | None = None,
    pixels: Mapping[Part, int] | None = None,
    *,
    rows: Mapping[Part, int] | None = None,
) -> list[CheckedGroup]:
    """Count what was compared of each group.

    Parameters
    ----------
    compared : number of images of each part that the rules drew again; None if nothing was decided.
    pixels : number of images of each part that have their digest.
    rows : number of rows of each image table; read from the tables by default.
    """
    if rows is None:
        rows = {part: table().num_rows for part, table in frozen.parts.items()} if compared else {}
    per_part = Counter(located.part for located in problems)
    wrong_images = Counter(p.part for p in problems if p.problem.kind in IMAGE_PROBLEMS)
    classes = Counter(frozen.classes["group"].to_pylist())
    checks = []
    for group in frozen.groups:
        part = (group.split, group.group)
        by_rule = classes[group.group] - per_part["classes", group.group] if compared is not None else 0
        count = rows.get(part, 0)
        checks.append(
            CheckedGroup(
                group=group.group,
                split=group.split,
                rule=max(0, by_rule),
                ids=min((compared or {}).get(part, 0), count - wrong_images[part]),
                pixels=min(count, (pixels or {}).get(part, 0)),
                expected=group.expected,
                problems=per_part[part],
            )
        )
    return checks
