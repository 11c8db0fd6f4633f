"""Where a class stands: its nearest ID class, where the two meet, and how many OOD classes are nearer."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

from wordnet_splits.rules.evidence import counted
from wordnet_splits.taxonomy import Taxonomy

OOD_ROLES = ("near", "far")
"""Roles of the classes that a class's nearness is ranked among."""

TableRow = Mapping[str, Any]


def nearer_ood_classes(rows: Sequence[TableRow]) -> tuple[list[int | None], int]:
    """Return, for each row of a class table, how many OOD classes are nearer to ID, and how many there are.

    Nearness is the column ``mean``; None for a class without a distance. OOD classes without one are counted
    among all, never as nearer.
    """
    scores = sorted(r["mean"] for r in rows if r["role"] in OOD_ROLES and r["mean"] is not None)
    nearer = [None if r["mean"] is None else len(scores) - bisect_right(scores, r["mean"]) for r in rows]
    return nearer, sum(r["role"] in OOD_ROLES for r in rows)


def standings(rows: Sequence[TableRow], taxonomy: Taxonomy) -> list[str]:
    """Return what the evidence of each row adds about its nearest ID class, and where it stands."""
    names = {r["class_id"]: str(r["name"]).replace("_", " ") for r in rows if r["role"] == "id"}
    nearer, ood = nearer_ood_classes(rows)
    places: dict[str, str] = {}
    clauses = []
    for row, ahead in zip(rows, nearer, strict=True):
        if ahead is None:
            has_none = "no other ID class has a synset" if row["wnids"] else "it has no synset"
            clauses.append(f"{has_none}, so that it has no distance to ID")
            continue
        lcs = row["lcs"]
        if lcs not in places:
            places[lcs] = f"{taxonomy.lemmas(lcs)[0].replace('_', ' ')} ({lcs}{_quoted(lcs, taxonomy)})"
        nearest = names[row["nearest_id"]]
        qualifier = "other " if row["role"] == "id" else ""
        clauses.append(
            f"the nearest {qualifier}ID class is {nearest}, {counted(row['distance'], 'edge')} "
            f"away through {places[lcs]}; {_rank(row['role'], ahead, ood)}"
        )
    return clauses


def _rank(role: str, ahead: int, ood: int) -> str:
    share = f"{ahead / ood:.0%}" if ood else "0%"
    if role in OOD_ROLES:
        return f"number {ahead + 1:,} of {counted(ood, 'OOD class')} by nearness, {share} are nearer"
    verb = "is" if ahead == 1 else "are"
    return f"{ahead:,} of {counted(ood, 'OOD class')} {verb} nearer ({share})"


def _quoted(wnid: str, taxonomy: Taxonomy) -> str:
    definition = taxonomy.first_definition(wnid)
    return f": {definition}" if definition else ""
