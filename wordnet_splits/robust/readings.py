"""Readings of a benchmark's rules: other senses of a class's name, another measure at the same share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from wordnet_splits.catalog import CatalogClass, load_catalog
from wordnet_splits.recipe import Group, Recipe
from wordnet_splits.robust.alternatives import (
    EXCLUDED,
    Clash,
    Decided,
    Rewrite,
    as_rule,
    context_of,
    decide_in,
    kinds_read,
    operators,
    original,
    undrawn,
)
from wordnet_splits.rules import ClassRule, Context, Expression, Key, Operand, decide
from wordnet_splits.rules.model import operand_value
from wordnet_splits.rules.registry import SENSE
from wordnet_splits.taxonomy import Taxonomy

FAMILIES = {
    "path": ("distance", "path", "lch", "lch_perl"),
    "wup": ("wup", "wup_wn", "wup_perl"),
    "mean": ("mean", "mean_nltk", "mean2"),
}
"""Measures that order pairs alike, or nearly so, stand for one reading: path and lch by distance alone."""
STANDS_FOR = {"path": "path", "wup": "wup_wn", "mean": "mean"}
"""The measure of each reading."""
FAR_WHEN_TRUE = ("clear_of",)
OF_NEARNESS = (
    "similarity",
    "below_parent_of",
    "shares_parent_with",
    "overlaps",
    "keyword_overlap",
    "clear_of",
)
"""Operators that say how near a class is to those of one operand, which a measure can say instead."""
Leaf = Callable[[Expression, list[str]], Expression]
BELOW_ALL, ABOVE_ALL = -1e9, 1e9


def other_senses(item: CatalogClass, taxonomy: Taxonomy) -> tuple[str, ...]:
    """Return the noun synsets of a class's name that are not its own, the most frequent first."""
    return tuple(w for w in taxonomy.senses(item.name.replace(" ", "_")) if w not in item.wnids)


def roles_by_sense(decided: Decided, taxonomy: Taxonomy) -> dict[Key, list[tuple[str, str]]]:
    """Return, of each class with other senses, (synset, role) under each of them; all others as they are."""
    senses = {
        key: senses_of_class
        for key in decided.asked
        if (senses_of_class := other_senses(load_catalog(key[0])[key[1]], taxonomy))
    }
    roles: dict[Key, list[tuple[str, str]]] = {}
    for number in range(max(map(len, senses.values()), default=0)):
        judged = {key: tuple(wnids[number : number + 1]) for key, wnids in senses.items() if wnids[number:]}
        for key, role in _judged(decided, judged):
            roles.setdefault(key, []).append((judged[key][0], role))
    return roles


def _judged(decided: Decided, judged: dict[Key, tuple[str, ...]]) -> Iterator[tuple[Key, str]]:
    """Yield the role of each class under the synsets given, no other class being changed."""
    recipe = decided.recipe
    groups = {g.name: [(g.source, c) for c in decided.groups[g.name]] for g in recipe.group}
    context = context_of(recipe, decided.world)
    context = replace(context, groups=groups, replaced_synsets=judged)
    kinds, left = kinds_read(recipe), dict.fromkeys(judged)
    for group in recipe.group:
        offered = [key[1] for key in left if key[0] == group.source]
        if not offered:
            continue
        rule, accepted = undrawn(recipe, group), set(decided.groups[group.name])
        if SENSE in kinds[group.name] or rule.draw is None:
            verdicts = decide(rule, group.source, offered, context)
            accepted = {c for c in offered if verdicts[c].accepted}
        clash = decided.clashes.get(group.name, Clash())
        for class_id in offered:
            if class_id in accepted:
                key = (group.source, class_id)
                del left[key]
                item = replace(decided.world.catalog(group.source)[class_id], wnids=judged[key])
                yield key, EXCLUDED if clash.leaks(item) else group.role
    yield from ((key, EXCLUDED) for key in left)


def measures_for(recipe: Recipe) -> tuple[str, ...]:
    """Return the readings by measure that a recipe allows: all but its own measure's, and none without."""
    used = {name for g in recipe.group for name in operators(g.classes) if name in OF_NEARNESS}
    own_measures = {
        leaf.value.measure
        for g in recipe.group
        for leaf in _leaves(g.classes)
        if leaf.operator == "similarity"
    }
    return tuple(name for name, alike in FAMILIES.items() if used and own_measures.isdisjoint(alike))


def _leaves(test: Expression) -> Iterator[Expression]:
    if test.operator in ("all", "any"):
        for part in test.value:
            yield from _leaves(part)
    elif test.operator == "not":
        yield from _leaves(test.value)
    elif test.operator in OF_NEARNESS:
        yield test


def by_measure(recipe: Recipe, measure: str, taxonomy: Taxonomy) -> Decided:
    """Return the classes of each group where a measure says what is near, at the share that the rules give.

    Each operator of nearness is replaced by a bound on the similarity to its operand, at the value that makes
    as many of the classes it judges near as it does itself: the closest number where several are equally
    alike, the smaller of two as close. Classes without a synset are not counted. A rule that calls none of
    them near, or all, is ``idle``: any measure would do the same.
    """
    shares: dict[str, list[int]] = {}
    judged: dict[str, list[int]] = {}

    def count(group: Group, rule: ClassRule, offered: list[str], context: Context) -> ClassRule:
        shares[group.name], judged[group.name] = [], []

        def leaf(test: Expression, classes: list[str]) -> Expression:
            shares[group.name].append(len(_near(test, group.source, classes, context)))
            catalog = context.catalog(group.source)
            judged[group.name].append(sum(bool(catalog[c].wnids) for c in classes))
            return test

        return _with_leaves(rule, group.source, offered, context, leaf)

    def change(group: Group, rule: ClassRule, offered: list[str], context: Context) -> ClassRule:
        counts = iter(shares[group.name])

        def leaf(test: Expression, classes: list[str]) -> Expression:
            return _at_share(test, next(counts), measure, group.source, classes, context)

        return _with_leaves(rule, group.source, offered, context, leaf)

    world = original(recipe, taxonomy)
    rewrites: Sequence[Rewrite] = (count, change)
    *_, decided = (decide_in(recipe, world, taxonomy, rewrite) for rewrite in rewrites)
    for name, counts in shares.items():
        if counts and all(near in (0, of) for near, of in zip(counts, judged[name], strict=True)):
            decided.idle.add(name)
    return decided


def _with_leaves(rule: ClassRule, source: str, offered: list[str], context: Context, leaf: Leaf) -> ClassRule:
    """Return a rule with each operator of nearness as ``leaf`` makes it of it and of what it judges."""
    if not any(name in OF_NEARNESS for name in operators(rule)):
        return rule

    def walk(test: Expression, classes: list[str]) -> Expression:
        if test.operator in OF_NEARNESS:
            return leaf(test, classes)
        if test.operator == "not":
            return Expression.model_validate({"not": walk(test.value, classes)})
        if test.operator not in ("all", "any"):
            return test
        parts, left = [], classes
        for part in test.value:
            parts.append(walk(part, left))
            verdicts = decide(as_rule(parts[-1]), source, left, context)
            left = [c for c in left if verdicts[c].accepted == (test.operator == "all")]
        return Expression.model_validate({test.operator: parts})

    return as_rule(walk(rule, offered))


def _far_when_true(test: Expression) -> bool:
    return test.operator in FAR_WHEN_TRUE or (test.operator == "similarity" and test.value.below is not None)


def _near(test: Expression, source: str, classes: list[str], context: Context) -> list[str]:
    """Return the classes with a synset that an operator calls near."""
    verdicts = decide(as_rule(test), source, classes, context)
    catalog, far = context.catalog(source), _far_when_true(test)
    return [c for c in classes if catalog[c].wnids and verdicts[c].accepted != far]


def _at_share(
    test: Expression, near: int, measure: str, source: str, classes: list[str], context: Context
) -> Expression:
    """Return a bound on a measure that calls as many classes near."""
    to = _operand(test)

    def bound(value: float) -> Expression:
        rule = {"to": operand_value(to), "measure": STANDS_FOR[measure], "above": value}
        return Expression.model_validate({"similarity": rule})

    verdicts = decide(as_rule(bound(BELOW_ALL)), source, classes, context)
    values = sorted((v.via[0].value or 0.0 for v in verdicts.values() if v.via), reverse=True)
    counts = {ABOVE_ALL: 0} | {value: at for at, value in enumerate(values, start=1)}  # the last of equals
    cut = min(counts, key=lambda value: (abs(counts[value] - near), counts[value]))
    bounded = bound(cut)
    return Expression.model_validate({"not": bounded}) if _far_when_true(test) else bounded


def _operand(test: Expression) -> Operand:
    value = test.value
    if isinstance(value, Operand):
        return value
    operand: Operand = value.to if test.operator == "similarity" else value.with_
    return operand
