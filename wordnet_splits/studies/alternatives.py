"""Re-evaluate the rules of a benchmark under another hierarchy, WordNet, sense or measure.

Random draws do not depend on WordNet: a rule that draws is treated as taking all classes that it accepts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from typing import Any

from wordnet_splits.base.errors import TaxonomyError
from wordnet_splits.benchmark.construct.classes import KEPT_FIRST
from wordnet_splits.benchmark.construct.leak_kinds import trains
from wordnet_splits.benchmark.recipe import Group, Recipe
from wordnet_splits.benchmark.rules import ClassRule, Context, Expression, Key, Operand, decide
from wordnet_splits.benchmark.rules.context import Hierarchy, operand_value
from wordnet_splits.benchmark.rules.registry import OPERATORS, SENSE
from wordnet_splits.benchmark.rules.relations import KnownClasses
from wordnet_splits.benchmark.rules.syntax import expand_clear_of, operands
from wordnet_splits.datasets.catalog import Catalog, CatalogClass, load_catalog
from wordnet_splits.datasets.catalog.declarations import LOCAL, Sources
from wordnet_splits.datasets.catalog.inventory import find_list
from wordnet_splits.wordnet.taxonomy import Taxonomy
from wordnet_splits.wordnet.taxonomy.identifiers import OtherWordNet

EXCLUDED = "excluded"
FAMILIES = {
    "path": ("distance", "path", "lch", "lch_perl"),
    "wup": ("wup", "wup_wn", "wup_perl"),
    "mean": ("mean", "mean_nltk", "mean2"),
}
"""Reading -> measures that give (nearly) the same order of pairs; path and lch use only the distance."""
MEASURE_OF = {"path": "path", "wup": "wup_wn", "mean": "mean"}
"""Reading -> the measure used for it."""
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
Rewrite = Callable[[Group, ClassRule, list[str], Context], ClassRule]


@dataclass(frozen=True, eq=False)
class Alternative:
    """A taxonomy to apply rules to, and the mapping of synsets into it.

    ``synset`` maps a synset of WordNet 3.0 to a synset of the taxonomy, None if it has no counterpart.
    """

    taxonomy: Taxonomy
    hierarchy: Hierarchy = "wordnet"
    synset: Callable[[str], str | None] = field(default=lambda wnid: wnid)
    datasets: Sources = LOCAL

    @cached_property
    def catalog(self) -> Callable[[str], Catalog]:
        """The catalog of a source with mapped synsets, by name."""

        @cache
        def catalog(source: str) -> Catalog:
            found = load_catalog(source, self.datasets)
            mapped = ((item, tuple(filter(None, map(self.synset, item.wnids)))) for item in found)
            return replace(found, classes=tuple(replace(item, wnids=wnids) for item, wnids in mapped))

        return catalog

    def rule(self, rule: ClassRule, source: str, wordnet: Taxonomy) -> ClassRule:
        """Return a rule with its synsets mapped into this taxonomy.

        Raises
        ------
        TaxonomyError : a synset has no counterpart.
        """
        if self.taxonomy.version == wordnet.version:
            return rule
        catalog = load_catalog(source, self.datasets)

        def map_synset(name: str) -> str:
            wnid = wordnet.find(name)
            if (synset := self.synset(wnid)) is None:
                raise TaxonomyError(f"{wordnet.name(wnid)} ({wnid}), which the rule names, is missing")
            return synset

        def walk(key: str, value: Any) -> Any:
            if isinstance(value, dict):
                return {name: walk(name, part) for name, part in value.items()}
            if key in ("all", "any"):
                return [walk("", part) for part in value]
            if isinstance(value, list | tuple) and key != "at":
                return [v if key != "of" and v in catalog else map_synset(v) for v in value]
            return value

        return ClassRule.model_validate(walk("", _data(rule)))


def original(recipe: Recipe, wordnet: Taxonomy) -> Alternative:
    """Return the taxonomy that a recipe itself uses."""
    return Alternative(wordnet, recipe.edges, datasets=recipe.datasets)


def other_hierarchy(recipe: Recipe, wordnet: Taxonomy) -> Alternative:
    """Return ImageNet's tree for a recipe that uses the graph, and the graph for one that uses the tree.

    Instances are not in the tree: synsets without a path to its root are removed from catalogs.
    """
    if recipe.edges != "wordnet":
        return Alternative(wordnet, datasets=recipe.datasets)
    tree = wordnet.tree()
    in_tree = tree.descendants(tree.root)
    return Alternative(tree, synset=lambda wnid: wnid if wnid in in_tree else None, datasets=recipe.datasets)


def other_wordnet(recipe: Recipe, other: OtherWordNet) -> Alternative:
    """Return the graph of another WordNet."""
    return Alternative(other.taxonomy, synset=cache(other.synset), datasets=recipe.datasets)


def as_rule(test: Expression) -> ClassRule:
    """Return an expression as the rule of a group."""
    return ClassRule.model_validate(_data(test))


def _data(test: Expression) -> dict[str, Any]:
    return test.model_dump(by_alias=True, exclude_unset=True)


def leaves(test: Expression) -> Iterator[Expression]:
    """Yield the operators of a rule that `all`, `any` and `not` combine, at any depth."""
    if test.operator in ("all", "any", "not"):
        for part in (test.value,) if test.operator == "not" else test.value:
            yield from leaves(part)
    else:
        yield test


def readings_used(recipe: Recipe) -> dict[str, frozenset[str]]:
    """Return group -> kinds of readings that its rule depends on, directly or through other groups."""
    kinds: dict[str, frozenset[str]] = {}
    for group in recipe.group:
        parts = leaves(group.classes)
        expanded = (leaves(expand_clear_of(p)) if p.operator == "clear_of" else [p] for p in parts)
        reads = (OPERATORS[p.operator].reads for ps in expanded for p in ps if p.operator)
        operand_reads = (kinds[o.name] for o in operands(group.classes) if o.kind == "group")
        kinds[group.name] = frozenset().union(*reads, *operand_reads)
    return kinds


@dataclass
class Outcome:
    """The classes of each group under an alternative.

    Attributes
    ----------
    groups : classes by group, before ``drop_leaks``.
    offered_to : class -> the groups that it was offered to.
    leak_indexes : group -> the classes of other groups that its classes may leak with.
    dropped : classes that ``drop_leaks`` removes.
    idle : groups whose rule the reading cannot change.
    """

    recipe: Recipe
    alternative: Alternative
    groups: dict[str, list[str]] = field(default_factory=dict)
    offered_to: dict[Key, list[str]] = field(default_factory=dict)
    leak_indexes: dict[str, KnownClasses[Key]] = field(default_factory=dict)
    dropped: set[Key] = field(default_factory=set)
    idle: set[str] = field(default_factory=set)

    @cached_property
    def first_groups(self) -> dict[Key, Group]:
        """Class -> the first group that took it, whether dropped later or not."""
        first_groups: dict[Key, Group] = {}
        for group in self.recipe.group:
            for class_id in self.groups[group.name]:
                first_groups.setdefault((group.source, class_id), group)
        return first_groups

    def role(self, key: Key) -> str:
        """Return the role of a class."""
        group = self.first_groups.get(key)
        return EXCLUDED if group is None or key in self.dropped else group.role


def without_draw(recipe: Recipe, group: Group) -> ClassRule:
    """Return a group's rule, without its draw if it depends on WordNet."""
    if group.classes.draw is None or not readings_used(recipe)[group.name]:
        return group.classes
    return group.classes.model_copy(update={"draw": None, "within": None})


def context_of(recipe: Recipe, alternative: Alternative) -> Context:
    """Return the context of a recipe's rules under an alternative."""
    published = partial(find_list, recipe_folder=recipe.folder)
    roles = {group.name: group.role for group in recipe.group}
    return Context(
        alternative.taxonomy,
        alternative.hierarchy,
        roles=roles,
        draw=recipe.draw,
        seed=recipe.seed,
        catalog=alternative.catalog,
        published=published,
    )


def decide_in(
    recipe: Recipe, alternative: Alternative, wordnet: Taxonomy, rewrite: Rewrite | None = None
) -> Outcome:
    """Return the classes of each group under an alternative; ``rewrite`` changes rules before they apply.

    Groups may be empty.

    Raises
    ------
    TaxonomyError : the recipe names a synset without a counterpart.
    """
    outcome, context = Outcome(recipe, alternative), context_of(recipe, alternative)
    taken_keys: set[Key] = set()
    for group in recipe.group:
        rule = alternative.rule(without_draw(recipe, group), group.source, wordnet)
        offered = [item.class_id for item in alternative.catalog(group.source)]
        if not group.reuse:
            offered = [c for c in offered if (group.source, c) not in taken_keys]
        if rewrite is not None:
            rule = rewrite(group, rule, offered, context)
        verdicts = decide(rule, group.source, offered, context)
        for class_id in offered:
            outcome.offered_to.setdefault((group.source, class_id), []).append(group.name)
        outcome.groups[group.name] = [c for c in offered if verdicts[c].accepted]
        context.groups[group.name] = [(group.source, c) for c in outcome.groups[group.name]]
        taken_keys.update(context.groups[group.name])
    if recipe.drop_leaks:
        _drop_leaks(outcome)
    return outcome


def _drop_leaks(outcome: Outcome) -> None:
    """Add the classes that ``drop_leaks`` removes: of two related classes, the later role in `KEPT_FIRST`.

    A test compares the result with the manifests, which `drop_leaking` makes.
    """
    recipe, alternative = outcome.recipe, outcome.alternative
    remaining: list[tuple[Group, Sequence[CatalogClass]]] = []
    ranked = sorted((g for g in recipe.group if g.role != "csid"), key=lambda g: KEPT_FIRST.index(g.role))
    for group in ranked:
        earlier = [item for other_group, items in remaining if trains(other_group, group) for item in items]
        by_key = {(item.source, item.class_id): item for item in earlier}
        leak_index = outcome.leak_indexes[group.name] = KnownClasses(by_key, alternative.taxonomy)
        left = []
        for class_id in outcome.groups[group.name]:
            item = alternative.catalog(group.source)[class_id]
            if (group.source, class_id) in by_key or leak_index.kin(item):
                outcome.dropped.add((group.source, class_id))
            else:
                left.append(item)
        remaining.append((group, left))


def roles_by_sense(outcome: Outcome, taxonomy: Taxonomy) -> dict[Key, list[tuple[str, str]]]:
    """Return class -> (synset, role) pairs for each other sense of its name, other classes unchanged."""
    senses: dict[Key, list[str]] = {}  # the most frequent first
    for key in outcome.offered_to:
        item = load_catalog(key[0], outcome.recipe.datasets)[key[1]]
        senses[key] = [w for w in taxonomy.senses(item.name.replace(" ", "_")) if w not in item.wnids]
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
    used = [leaf for g in recipe.group for leaf in leaves(g.classes) if leaf.operator in NEARNESS_OPERATORS]
    own_measures = {leaf.value.measure for leaf in used if leaf.operator == "similarity"}
    return tuple(name for name, alike in FAMILIES.items() if used and own_measures.isdisjoint(alike))


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
    decide_in(recipe, alternative, taxonomy, count)
    outcome = decide_in(recipe, alternative, taxonomy, change)
    for name, counts in shares.items():
        if counts and all(near in (0, of) for near, of in zip(counts, sizes[name], strict=True)):
            outcome.idle.add(name)
    return outcome


def _with_leaves(rule: ClassRule, source: str, offered: list[str], context: Context, leaf: Leaf) -> ClassRule:
    """Return a rule with each nearness operator replaced by ``leaf(operator, offered classes)``."""
    if all(leaf.operator not in NEARNESS_OPERATORS for leaf in leaves(rule)):
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
    return test.operator == "clear_of" or (test.operator == "similarity" and test.value.below is not None)


def _near(test: Expression, source: str, classes: list[str], context: Context) -> list[str]:
    """Return the classes with a synset that an operator judges near."""
    verdicts = decide(as_rule(test), source, classes, context)
    catalog, far = context.catalog(source), _accepts_far(test)
    return [c for c in classes if catalog[c].wnids and verdicts[c].accepted != far]


def _at_share(
    test: Expression, near: int, measure: str, source: str, classes: list[str], context: Context
) -> Expression:
    """Return a bound on a measure that judges as many classes near."""
    value = test.value
    to = value if isinstance(value, Operand) else value.to if test.operator == "similarity" else value.with_

    def bound(value: float) -> Expression:
        rule = {"to": operand_value(to), "measure": MEASURE_OF[measure], "above": value}
        return Expression.model_validate({"similarity": rule})

    verdicts = decide(as_rule(bound(-1e9)), source, classes, context)
    values = sorted((v.via[0].value or 0.0 for v in verdicts.values() if v.via), reverse=True)
    counts = {1e9: 0} | {value: at for at, value in enumerate(values, start=1)}  # the last of ties
    cut = min(counts, key=lambda value: (abs(counts[value] - near), counts[value]))
    bounded = bound(cut)
    return Expression.model_validate({"not": bounded}) if _accepts_far(test) else bounded
