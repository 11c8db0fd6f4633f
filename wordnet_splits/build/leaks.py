"""Leaks between the groups of a benchmark: equal classes, ancestry in WordNet, identical pictures.

Between an ID or external group and any other a leak is an error, unless the recipe names it (or says it
``reproduces`` somebody's benchmark); near is near by design, so ancestry between ID and near of one source
is recorded only, as is anything between two OOD test groups.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import pyarrow as pa

from wordnet_splits.build.membership import Membership
from wordnet_splits.catalog import load_catalog
from wordnet_splits.errors import RecipeError
from wordnet_splits.recipe import Group, KnownLeak, Recipe
from wordnet_splits.taxonomy import Taxonomy

EXAMPLES = 5
TRAINING_ROLES = frozenset({"id", "external"})


@dataclass
class Leak:
    """What two groups share. ``pairs`` holds classes for kind class and ancestry, image ids for digest."""

    kind: str
    a: str
    b: str
    pairs: list[tuple[str, str]]
    severity: str = "recorded"
    reason: str = ""
    certain: bool = True

    def as_dict(self) -> dict[str, object]:
        """Return the leak as ``manifest.json`` holds it."""
        return {
            "kind": self.kind,
            "a": f"group:{self.a}",
            "b": f"group:{self.b}",
            "count": len(self.pairs),
            "examples": [list(p) for p in self.pairs[:EXAMPLES]],
            "severity": self.severity,
            "reason": self.reason,
        }


def class_leaks(membership: Membership, taxonomy: Taxonomy) -> list[Leak]:
    """Return the equal classes and the ancestry between every two groups, in file order."""
    synsets = {
        group.name: [(c, load_catalog(group.source)[c].wnids) for c in membership.groups[group.name]]
        for group in membership.recipe.group
    }
    above = {
        wnid: frozenset(taxonomy.ancestors(wnid))
        for members in synsets.values()
        for _, wnids in members
        for wnid in wnids
    }
    leaks = []
    for a, b in combinations(membership.recipe.group, 2):
        equal, ancestry = _shared_classes(a, b, synsets[a.name], synsets[b.name], above)
        leaks += [Leak("class", a.name, b.name, equal)] if equal else []
        leaks += [Leak("ancestry", a.name, b.name, ancestry)] if ancestry else []
    return leaks


def _shared_classes(
    a: Group,
    b: Group,
    in_a: Sequence[tuple[str, Sequence[str]]],
    in_b: Sequence[tuple[str, Sequence[str]]],
    above: Mapping[str, frozenset[str]],
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return (equal, ancestry) class pairs of two groups, sorted."""
    by_wnid: dict[str, set[str]] = defaultdict(set)
    by_ancestor: dict[str, set[str]] = defaultdict(set)
    for class_b, wnids in in_b:
        for wnid in wnids:
            by_wnid[wnid].add(class_b)
            for ancestor in above[wnid]:
                by_ancestor[ancestor].add(class_b)
    names_b = {class_b for class_b, _ in in_b}
    equal: set[tuple[str, str]] = set()
    related: set[tuple[str, str]] = set()
    for class_a, wnids in in_a:
        if a.source == b.source and class_a in names_b:
            equal.add((class_a, class_a))
        for wnid in wnids:
            equal |= {(class_a, class_b) for class_b in by_wnid[wnid]}
            related |= {(class_a, class_b) for class_b in by_ancestor[wnid]}
            related |= {(class_a, class_b) for up in above[wnid] for class_b in by_wnid.get(up, ())}
    return sorted(equal), sorted(related - equal)


def digest_leaks(recipe: Recipe, tables: Iterable[pa.Table]) -> list[Leak]:
    """Return the identical pictures between groups, and within a group across splits or classes.

    One pair per shared digest and pair of groups. A leak is not ``certain`` while a digest of either
    group is unknown.
    """
    holders: dict[bytes, list[tuple[str, str, str]]] = defaultdict(list)
    incomplete: set[str] = set()
    for table in tables:
        for group, split, image_id, digest in zip(
            *(table.column(c).to_pylist() for c in ("group", "split", "image_id", "digest")), strict=True
        ):
            if digest is None:
                incomplete.add(group)
            else:
                holders[digest].append((group, split, image_id))
    order = {g.name: n for n, g in enumerate(recipe.group)}
    found: dict[tuple[str, str], set[tuple[str, str]]] = defaultdict(set)
    for images in holders.values():
        if len(images) < 2:
            continue
        first: dict[tuple[str, str], tuple[str, str]] = {}
        for (group_a, _, a), (group_b, _, b) in combinations(sorted(images), 2):
            if order[group_a] > order[group_b]:
                group_a, a, group_b, b = group_b, b, group_a, a
            first.setdefault((group_a, group_b), (a, b))
        for groups, pair in first.items():
            found[groups].add(pair)
    return [
        Leak("digest", a, b, sorted(pairs), certain=not incomplete & {a, b})
        for (a, b), pairs in sorted(found.items(), key=lambda f: (order[f[0][0]], order[f[0][1]]))
    ]


def judge(
    recipe: Recipe, leaks: Sequence[Leak], *, unknown_digests: frozenset[str], strict: bool = True
) -> None:
    """Set each leak's severity and reason; raise RecipeError for one that the recipe must name.

    Parameters
    ----------
    unknown_digests : groups of which a digest is not known, so that a named digest leak may not show yet.
    strict : compare with the leaks that the recipe names; False for another draw, or one with images left
        out, which the recipe's author did not see: there a leak not named is only marked ``unnamed``.
    """
    groups = {g.name: g for g in recipe.group}
    for leak in leaks:
        entry = _entry_for(recipe, leak)
        if not _serious(groups[leak.a], groups[leak.b], leak.kind):
            leak.reason = entry.reason if entry else ""
        elif entry is not None:
            leak.severity, leak.reason = "known", entry.reason
            if strict:
                _check_extent(recipe, leak, entry, unknown_digests)
        elif recipe.reproduces:
            leak.severity, leak.reason = "known", "as in the benchmark reproduced"
        elif not strict:
            leak.severity = "unnamed"
        else:
            shown = ", ".join(f"{a} and {b}" for a, b in leak.pairs[:EXAMPLES])
            raise RecipeError(
                f"{len(leak.pairs)} {leak.kind} leaks between groups {leak.a!r} and {leak.b!r}: {shown}",
                where=recipe.name,
                hint="change the rule, set drop_leaks = true, or name them in [[known_leak]] with a reason",
            )
    for entry in recipe.known_leak if strict else ():
        matched = any(_matches(entry, leak) for leak in leaks)
        hidden = entry.kind == "digest" and unknown_digests & {_name(entry.a), _name(entry.b)}
        if not matched and not hidden:
            raise RecipeError(
                f"known_leak {entry.kind} between {entry.a} and {entry.b} matches nothing",
                where=recipe.name,
                hint="remove the entry",
            )


def check_once(parts: Iterable[pa.Table], where: str) -> None:
    """Raise RecipeError where one (source, image_id) is in two splits or roles."""
    seen: dict[tuple[str, str], tuple[str, str, str]] = {}
    for table in parts:
        columns = (table.column(c).to_pylist() for c in ("source", "image_id", "split", "role", "group"))
        for source, image_id, split, role, group in zip(*columns, strict=True):
            place = (split, role, group)
            before = seen.setdefault((source, image_id), place)
            if before is not place and before != place:
                raise RecipeError(
                    f"image {image_id} of {source} is in {before[2]} ({before[0]}) and in {group} ({split})",
                    where=where,
                    hint="let each image be taken once",
                )


def leaking_classes(recipe: Recipe, leaks: Iterable[Leak]) -> dict[str, dict[str, str]]:
    """Return, by group, the classes that ``drop_leaks`` removes, each with the class it leaks to.

    The class goes from the group that is not ID; of two that are not, from the later one.
    """
    groups = {g.name: g for g in recipe.group}
    dropped: dict[str, dict[str, str]] = defaultdict(dict)
    for leak in leaks:
        if not _serious(groups[leak.a], groups[leak.b], leak.kind):
            continue
        for class_a, class_b in leak.pairs:
            if groups[leak.b].role == "id":
                dropped[leak.a].setdefault(class_a, class_b)
            else:
                dropped[leak.b].setdefault(class_b, class_a)
    return dict(dropped)


def _serious(a: Group, b: Group, kind: str) -> bool:
    if a.name == b.name or "csid" in (a.role, b.role) or not {a.role, b.role} & TRAINING_ROLES:
        return False
    near_by_design = {a.role, b.role} == {"id", "near"} and a.source == b.source
    return not (kind == "ancestry" and near_by_design)


def _name(operand: str) -> str:
    return operand.removeprefix("group:")


def _matches(entry: KnownLeak, leak: Leak) -> bool:
    return entry.kind == leak.kind and {_name(entry.a), _name(entry.b)} == {leak.a, leak.b}


def _entry_for(recipe: Recipe, leak: Leak) -> KnownLeak | None:
    return next((e for e in recipe.known_leak if _matches(e, leak)), None)


def _check_extent(recipe: Recipe, leak: Leak, entry: KnownLeak, unknown_digests: frozenset[str]) -> None:
    if entry.count is not None:
        open_ended = leak.kind == "digest" and bool(unknown_digests & {leak.a, leak.b})
        if len(leak.pairs) > entry.count or (len(leak.pairs) < entry.count and not open_ended):
            raise RecipeError(
                f"{len(leak.pairs)} {leak.kind} leaks between {leak.a} and {leak.b}, "
                f"the recipe names {entry.count}",
                where=recipe.name,
                hint="mend the count, or the rule",
            )
        return
    swapped = _name(entry.a) != leak.a
    named = {(b, a) if swapped else (a, b) for a, b in entry.classes or ()}
    unnamed, idle = sorted(set(leak.pairs) - named), sorted(named - set(leak.pairs))
    if unnamed or idle:
        what = f"{unnamed[0]} is not named" if unnamed else f"{idle[0]} matches nothing"
        raise RecipeError(
            f"known_leak {leak.kind} between {leak.a} and {leak.b}: {what}",
            where=recipe.name,
            hint="name exactly the leaks there are",
        )
