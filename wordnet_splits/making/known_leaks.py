"""Comparison of the leaks of a build with the known leaks of its recipe."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from wordnet_splits.base.errors import RecipeError
from wordnet_splits.base.names import counted
from wordnet_splits.making.leaks import PICTURE_KINDS, Leak, as_operand, inside_id, trains
from wordnet_splits.recipe import Group, KnownLeak, Recipe, recipe_names


def set_severities(
    recipe: Recipe, leaks: Sequence[Leak], *, unknown_digests: Collection[str], strict: bool = True
) -> None:
    """Set each leak's severity and reason. Raises RecipeError for a leak that the recipe must name.

    Parameters
    ----------
    unknown_digests : groups with unknown digests, whose named leaks of pictures may not be found yet.
    strict : compare with the leaks that the recipe names. False for another draw, or one with images left
        out, which the recipe's author did not see: there an unnamed leak is only marked ``unnamed``. So is
        always a picture that a shipped benchmark has twice in ID.
    """
    groups = {g.name: g for g in recipe.group}
    leaks_by_entry: dict[int, list[Leak]] = {n: [] for n in range(len(recipe.known_leak))}
    for leak in leaks:
        at = next((n for n, entry in enumerate(recipe.known_leak) if _matches(entry, leak, groups)), None)
        if at is not None:
            leaks_by_entry[at].append(leak)
            leak.severity, leak.reason = "known", recipe.known_leak[at].reason
        elif not _serious(groups, leak):
            continue
        elif recipe.reproduces:
            leak.severity, leak.reason = "known", "as in the benchmark reproduced"
        elif not strict or (leak.a == leak.b and recipe.name in recipe_names()):
            leak.severity = "unnamed"
        else:
            raise RecipeError(_unnamed(leak), where=recipe.name, hint=_remedy(recipe, leak))
    for n, matching in leaks_by_entry.items() if strict else ():
        _check_extent(recipe, recipe.known_leak[n], matching, groups, unknown_digests)


def _unnamed(leak: Leak) -> str:
    if leak.a == leak.b and leak.kind == "digest":
        subject = f"{len(leak.pairs):,} " + ("picture is" if len(leak.pairs) == 1 else "pictures are")
        return f"{subject} in two splits or classes of the ID group {leak.a!r}: {leak.shown()}"
    between = f"within group {leak.a!r}" if leak.a == leak.b else f"between groups {leak.a!r} and {leak.b!r}"
    return f"{counted(len(leak.pairs), f'{leak.kind} leak')} {between}: {leak.shown()}"


def _remedy(recipe: Recipe, leak: Leak) -> str:
    entry = f'kind = "{leak.kind}", a = "{as_operand(leak.a)}", b = "{as_operand(leak.b)}"'
    change = "remove the copies" if leak.kind in PICTURE_KINDS else "change the rule"
    drop = "" if recipe.drop_leaks else ", set drop_leaks = true,"  # it has already removed all that it can
    return f"{change}{drop} or name them in [[known_leak]]: {entry}, count = {len(leak.pairs)}, and a reason"


def _serious(groups: Mapping[str, Group], leak: Leak) -> bool:
    a, b = groups.get(leak.a), groups.get(leak.b)
    if a is None or b is None or leak.kind == "sibling":
        return False
    if inside_id(a, b):
        return leak.kind in PICTURE_KINDS
    if not trains(a, b):
        return False
    near_by_design = {a.role, b.role} == {"id", "near"} and a.source == b.source
    return not (leak.kind == "ancestry" and near_by_design)


def _covers(operand: str, name: str, groups: Mapping[str, Group]) -> bool:
    """Say whether an operand of a known leak means a set: by its name or by its source."""
    of_source = name in groups and operand == f"source:{groups[name].source}"
    return operand in (name, as_operand(name)) or of_source


def _matches(entry: KnownLeak, leak: Leak, groups: Mapping[str, Group]) -> bool:
    return entry.kind == leak.kind and bool(_orders(entry, leak, groups))


def _orders(entry: KnownLeak, leak: Leak, groups: Mapping[str, Group]) -> list[bool]:
    """Return the orders in which an entry's ``a`` and ``b`` fit a leak: False as they are, True swapped."""
    ends = ((leak.a, leak.b, False), (leak.b, leak.a, True))
    return [s for a, b, s in ends if _covers(entry.a, a, groups) and _covers(entry.b, b, groups)]


def _check_extent(
    recipe: Recipe,
    entry: KnownLeak,
    leaks: Sequence[Leak],
    groups: Mapping[str, Group],
    unknown_digests: Collection[str],
) -> None:
    """Raise RecipeError if a known leak has other pairs, or another number, than were found.

    Fewer may be found while digests of the groups are unknown, and in a variant that drops leaks.
    """
    between = f"{entry.a} and {entry.b}"
    may_be_fewer = recipe.drop_leaks or (
        entry.kind in PICTURE_KINDS
        and any(_covers(o, name, groups) for o in (entry.a, entry.b) for name in unknown_digests)
    )
    if not leaks and not may_be_fewer:
        raise RecipeError(
            f"known_leak {entry.kind} between {between} matches nothing",
            where=recipe.name,
            hint="remove the entry",
        )
    pairs = {p[::-1] if _orders(entry, leak, groups)[0] else p for leak in leaks for p in leak.pairs}
    if entry.count is not None:
        if len(pairs) > entry.count or (len(pairs) < entry.count and not may_be_fewer):
            raise RecipeError(
                f"{counted(len(pairs), f'{entry.kind} leak')} between {between}, "
                f"the recipe names {entry.count}",
                where=recipe.name,
                hint="correct the count, or the rule",
            )
        return
    named_pairs = set(entry.classes or ())
    unnamed, idle = sorted(pairs - named_pairs), sorted(named_pairs - pairs)
    if unnamed or (idle and not may_be_fewer):
        reason = f"{unnamed[0]} is not named" if unnamed else f"{idle[0]} matches nothing"
        raise RecipeError(
            f"known_leak {entry.kind} between {between}: {reason}",
            where=recipe.name,
            hint="name exactly the leaks there are",
        )
