"""Alternative readings of a benchmark's rules: other senses of class names, or another measure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from wordnet_splits.benchmark.recipe import Group, Recipe
from wordnet_splits.benchmark.rules import ClassRule, Context, Expression, Key, Operand, decide
from wordnet_splits.benchmark.rules.context import operand_value
from wordnet_splits.benchmark.rules.registry import SENSE
from wordnet_splits.datasets.catalog import CatalogClass, load_catalog
from wordnet_splits.studies.robust.alternatives import (
    EXCLUDED,
    Outcome,
    Rewrite,
    as_rule,
    context_of,
    decide_in,
    operators,
    original,
    readings_used,
    without_draw,
)
from wordnet_splits.wordnet.taxonomy import Taxonomy

FAMILIES = {
    "path": ("distance", "path", "lch", "lch_perl"),
    "wup": ("wup", "wup_wn", "wup_perl"),
    "mean": ("mean", "mean_nltk", "mean2"),
}
"""Reading -> measures that give (nearly) the same order of pairs; path and lch use only the distance."""
MEASURE_OF = {"path": "path", "wup": "wup_wn", "mean": "mean"}
"""Reading -> the measure used for it."""
ACCEPTS_FAR = ("clear_of",)
NEARNESS_OPERATORS = (
    "similarity",
    "below_parent_of",
    "shares_parent_with",
    "overlaps",
    "keyword_overlap",
    "clear_of",
)
"""Operators that judge the nearness of a class to one operand, and that a measure can replace."""
Leaf = Callable[[Expression, list[str]], Expression]
BELOW_ALL, ABOVE_ALL = -1e9, 1e9


def other_senses(item: CatalogClass, taxonomy: Taxonomy) -> tuple[str, ...]:
    """Return the other noun synsets of a class's name, the most frequent first."""
    return tuple(w for w in taxonomy.senses(item.name.replace(" ", "_")) if w not in item.wnids)


def roles_by_sense(outcome: Outcome, taxonomy: Taxonomy) -> dict[Key, list[tuple[str, str]]]:
    """Return class -> (synset, role) pairs for each other sense of its name, other classes unchanged."""
    datasets = outcome.recipe.datasets
    senses = {
        key: senses_of_class
        for key in outcome.offered_to
        if (senses_of_class := other_senses(load_catalog(key[0], datasets)[key[1]], taxonomy))
    }
    roles: dict[Key, list[tuple[str, str]]] = {}
    for number in range(max(map(len, senses.values()), default=0)):
        replaced = {key: tuple(wnids[number : number + 1]) for key, wnids in senses.items() if wnids[number:]}
        for key, role in _roles_with(outcome, replaced):
            roles.setdefault(key, []).append((replaced[key][0], role))
    return roles


def _roles_with(outcome: Outcome, replaced: dict[Key, tuple[str, ...]]) -> Iterator[tuple[Key, str]]:
    """Yield the role of each class with its synsets replaced, all other classes unchanged."""
    recipe = outcome.recipe
    groups = {g.name: [(g.source, c) for c in outcome.groups[g.name]] for g in recipe.group}
    context = context_of(recipe, outcome.alternative)
    context = replace(context, groups=groups, replaced_synsets=replaced)
    kinds, left = readings_used(recipe), dict.fromkeys(replaced)
    for group in recipe.group:
        offered = [key[1] for key in left if key[0] == group.source]
        if not offered:
            continue
        rule, accepted = without_draw(recipe, group), set(outcome.groups[group.name])
        if SENSE in kinds[group.name] or rule.draw is None:
            verdicts = decide(rule, group.source, offered, context)
            accepted = {c for c in offered if verdicts[c].accepted}
        leak_index = outcome.leak_indexes.get(group.name)
        for class_id in offered:
            if class_id in accepted:
                key = (group.source, class_id)
                del left[key]
                item = replace(outcome.alternative.catalog(group.source)[class_id], wnids=replaced[key])
                yield key, EXCLUDED if leak_index and leak_index.kin(item) else group.role
    yield from ((key, EXCLUDED) for key in left)


def measures_for(recipe: Recipe) -> tuple[str, ...]:
    """Return the readings by measure: none without nearness operators, and not the recipe's own measure."""
    used = {name for g in recipe.group for name in operators(g.classes) if name in NEARNESS_OPERATORS}
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
    elif test.operator in NEARNESS_OPERATORS:
        yield test


def by_measure(recipe: Recipe, measure: str, taxonomy: Taxonomy) -> Outcome:
    """Return the classes of each group with nearness decided by a measure, at the same share of near classes.

    Each nearness operator is replaced by a bound on the similarity to its operand. The bound accepts as many
    of the offered classes as the operator does, or the closest possible number if similarities are tied, the
    smaller of two. Classes without a synset are not counted. A rule that calls none or all classes near is
    ``idle``, because no measure can change it.
    """
    shares: dict[str, list[int]] = {}
    sizes: dict[str, list[int]] = {}

    def count(group: Group, rule: ClassRule, offered: list[str], context: Context) -> ClassRule:
        shares[group.name], sizes[group.name] = [], []

        def leaf(test: Expression, classes: list[str]) -> Expression:
            shares[group.name].append(len(_near(test, group.source, classes, context)))
            catalog = context.catalog(group.source)
            sizes[group.name].append(sum(bool(catalog[c].wnids) for c in classes))
            return test

        return _with_leaves(rule, group.source, offered, context, leaf)

    def change(group: Group, rule: ClassRule, offered: list[str], context: Context) -> ClassRule:
        counts = iter(shares[group.name])

        def leaf(test: Expression, classes: list[str]) -> Expression:
            return _at_share(test, next(counts), measure, group.source, classes, context)

        return _with_leaves(rule, group.source, offered, context, leaf)

    alternative = original(recipe, taxonomy)
    rewrites: Sequence[Rewrite] = (count, change)
    *_, outcome = (decide_in(recipe, alternative, taxonomy, rewrite) for rewrite in rewrites)
    for name, counts in shares.items():
        if counts and all(near in (0, of) for near, of in zip(counts, sizes[name], strict=True)):
            outcome.idle.add(name)
    return outcome


def _with_leaves(rule: ClassRule, source: str, offered: list[str], context: Context, leaf: Leaf) -> ClassRule:
    """Return a rule with each nearness operator replaced by ``leaf(operator, offered classes)``."""
    if not any(name in NEARNESS_OPERATORS for name in operators(rule)):
        return rule

    def walk(test: Expression, classes: list[str]) -> Expression:
        if test.operator in NEARNESS_OPERATORS:
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


def _accepts_far(test: Expression) -> bool:
    return test.operator in ACCEPTS_FAR or (test.operator == "similarity" and test.value.below is not None)


def _near(test: Expression, source: str, classes: list[str], context: Context) -> list[str]:
    """Return the classes with a synset that an operator judges near."""
    verdicts = decide(as_rule(test), source, classes, context)
    catalog, far = context.catalog(source), _accepts_far(test)
    return [c for c in classes if catalog[c].wnids and verdicts[c].accepted != far]


def _at_share(
    test: Expression, near: int, measure: str, source: str, classes: list[str], context: Context
) -> Expression:
    """Return a bound on a measure that judges as many classes near."""
    to = _operand(test)

    def bound(value: float) -> Expression:
        rule = {"to": operand_value(to), "measure": MEASURE_OF[measure], "above": value}
        return Expression.model_validate({"similarity": rule})

    verdicts = decide(as_rule(bound(BELOW_ALL)), source, classes, context)
    values = sorted((v.via[0].value or 0.0 for v in verdicts.values() if v.via), reverse=True)
    counts = {ABOVE_ALL: 0} | {value: at for at, value in enumerate(values, start=1)}  # the last of ties
    cut = min(counts, key=lambda value: (abs(counts[value] - near), counts[value]))
    bounded = bound(cut)
    return Expression.model_validate({"not": bounded}) if _accepts_far(test) else bounded


def _operand(test: Expression) -> Operand:
    value = test.value
    if isinstance(value, Operand):
        return value
    operand: Operand = value.to if test.operator == "similarity" else value.with_
    return operand
