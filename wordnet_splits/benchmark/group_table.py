"""The table of the groups of benchmarks on a terminal, and the problems that their images have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from wordnet_splits.base.errors import Problem
from wordnet_splits.base.terminal.output import print_lines, print_table, to_stderr, to_stdout

if TYPE_CHECKING:
    from wordnet_splits.benchmark.checks.verification import Verification
    from wordnet_splits.benchmark.construct import Build
    from wordnet_splits.benchmark.manifest import GroupRow


COLUMNS = ("benchmark", "group", "role", "source", "split", "published", "ours", "status")
COUNTS = ("published", "ours")
EXAMPLES = 3
"""Images or problems named in a message."""


def print_groups(benchmarks: Sequence[tuple[str, Sequence[GroupRow], Sequence[str] | None]]) -> None:
    """Print a table of the groups of benchmarks, then the reasons why published and our counts differ.

    Each benchmark is given by its name, its groups and, after `verify`, the comparison made for each group.
    """
    rows = []
    notes: dict[str, str] = {}
    for name, groups, compared in benchmarks:
        for n, g in enumerate(groups):
            status = g.status
            if compared is not None and not (g.awaits and compared[n].startswith("ids")):
                status = compared[n]
            rows.append(group_row(name, g, status))
            differs = g.published is not None and g.published != g.expected
            if g.note and (differs or g.expected is None):
                notes.setdefault(f"{g.group}: {g.note}", name)
        for (group, reason), splits in _reasons(groups).items():
            notes.setdefault(f"{group} {' and '.join(splits)}: {reason}", name)
    print_table(COLUMNS, rows, right=COUNTS)
    if notes:
        to_stdout()
        to_stdout("Where published and ours differ, a source is awaited, or far is nearer than near:")
        print_lines(f"  {name}: {note}" for note, name in notes.items())


def group_row(benchmark: str, group: GroupRow, status: str) -> tuple[object, ...]:
    """Return the cells of a group in the table of `COLUMNS`; a count in brackets is only expected."""
    count: object = group.actual
    if group.actual is None and group.expected is not None:
        count = f"({group.expected:,})"
    return benchmark, group.group, group.role, group.source, group.split, group.published, count, status


def _reasons(groups: Sequence[GroupRow]) -> dict[tuple[str, str], list[str]]:
    """Return the splits without a source or with missing images, by (group, reason)."""
    splits: dict[tuple[str, str], list[str]] = {}
    for g in groups:
        if g.reason:
            reason = f"awaiting {g.source}: {g.reason}" if g.awaits else g.reason
            splits.setdefault((g.group, reason), []).append(g.split)
    return splits


def print_problems(result: Build | Verification) -> None:
    """Print a line for each kind of problem of a source (--json has every image)."""
    by_kind: dict[tuple[str, str], list[Problem]] = {}
    for problem in result.problems:
        by_kind.setdefault((problem.source, problem.kind), []).append(problem)
    for (source, kind), problems in by_kind.items():
        ids = [p.image_id for p in problems if p.image_id][:EXAMPLES]
        if ids:
            ellipsis = ", ..." if len(problems) > EXAMPLES else ""
            to_stderr(f"  {source}: {len(problems):,} images {kind}: {', '.join(ids)}{ellipsis}")
        if kind != "missing" or not ids:
            for problem in problems[: 1 if ids else EXAMPLES]:
                to_stderr(f"  {kind}: {problem.detail}")
    for source, names in result.unexpected.items():
        examples = ", ".join(list(names)[:EXAMPLES])
        to_stderr(f"  {source}: {sum(names.values()):,} files under no known name, such as {examples}")
    for source, reason in result.unread.items():
        to_stderr(f"  {source}: no image was read: {reason}")
