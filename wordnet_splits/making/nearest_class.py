"""Evidence about a class's nearest ID class, their LCS, and the number of nearer OOD classes."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

from wordnet_splits.rules.evidence import counted
from wordnet_splits.taxonomy import Taxonomy

OOD_ROLES = ("near", "far")
"""Roles of the classes among which the nearness of a class is ranked."""

TableRow = Mapping[str, Any]


def nearer_ood_classes(rows: Sequence[TableRow]) -> tuple[list[int | None], int]:
    """Return the number of OOD classes nearer to ID for each row of a class table, and of all OOD classes.

    Nearness is the column ``mean``; a class without it has None, and never counts as nearer.
    """
    scores = sorted(r["mean"] for r in rows if r["role"] in OOD_ROLES and r["mean"] is not None)
    nearer = [None if r["mean"] is None else len(scores) - bisect_right(scores, r["mean"]) for r in rows]
    return nearer, sum(r["role"] in OOD_ROLES for r in rows)


def nearness_clauses(rows: Sequence[TableRow], taxonomy: Taxonomy) -> list[str]:
    """Return a clause for each row about its nearest ID class and its rank among the OOD classes."""
    names = {r["class_id"]: str(r["name"]).replace("_", " ") for r in rows if r["role"] == "id"}
    nearer, ood = nearer_ood_classes(rows)
    meeting_points: dict[str, str] = {}
    clauses = []
    for row, nearer_count in zip(rows, nearer, strict=True):
        if nearer_count is None:
            has_none = "no other ID class has a synset" if row["wnids"] else "it has no synset"
            clauses.append(f"{has_none}, so that it has no distance to ID")
            continue
        lcs = row["lcs"]
        if lcs not in meeting_points:
            meeting_points[lcs] = (
                f"{taxonomy.lemmas(lcs)[0].replace('_', ' ')} ({lcs}{_quoted(lcs, taxonomy)})"
            )
        nearest = names[row["nearest_id"]]
        qualifier = "other " if row["role"] == "id" else ""
        clauses.append(
            f"the nearest {qualifier}ID class is {nearest}, {counted(row['distance'], 'edge')} "
            f"away through {meeting_points[lcs]}; {_rank(row['role'], nearer_count, ood)}"
        )
    return clauses


def _rank(role: str, nearer_count: int, ood: int) -> str:
    share = f"{nearer_count / ood:.0%}" if ood else "0%"
    if role in OOD_ROLES:
        return f"number {nearer_count + 1:,} of {counted(ood, 'OOD class')} by nearness, {share} are nearer"
    verb = "is" if nearer_count == 1 else "are"
    return f"{nearer_count:,} of {counted(ood, 'OOD class')} {verb} nearer ({share})"


def _quoted(wnid: str, taxonomy: Taxonomy) -> str:
    definition = taxonomy.first_definition(wnid)
    return f": {definition}" if definition else ""
