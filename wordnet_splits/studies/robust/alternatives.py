"""Re-evaluate the rules of a benchmark under another hierarchy or another WordNet.

Random draws do not depend on WordNet: a rule that draws from the classes it accepts is treated as taking all
classes, so that classes are compared by the group they are candidates for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from typing import Any

from wordnet_splits.base.errors import TaxonomyError
from wordnet_splits.benchmark.construct.classes import KEPT_FIRST
from wordnet_splits.benchmark.construct.leak_kinds import trains
from wordnet_splits.benchmark.recipe import Group, Recipe
from wordnet_splits.benchmark.rules import ClassRule, Context, Expression, Key, decide
from wordnet_splits.benchmark.rules.context import Hierarchy
from wordnet_splits.benchmark.rules.registry import OPERATORS
from wordnet_splits.benchmark.rules.relations import KnownClasses
from wordnet_splits.benchmark.rules.syntax import expand_clear_of, operands
from wordnet_splits.datasets.catalog import Catalog, CatalogClass, load_catalog
from wordnet_splits.datasets.catalog.declarations import LOCAL, Sources
from wordnet_splits.datasets.catalog.inventory import find_list
from wordnet_splits.wordnet.taxonomy import Taxonomy
from wordnet_splits.wordnet.taxonomy.identifiers import OtherWordNet

EXCLUDED = "excluded"
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
        return cache(self._catalog)

    def _catalog(self, source: str) -> Catalog:
        catalog = load_catalog(source, self.datasets)
        mapped = ((item, tuple(filter(None, map(self.synset, item.wnids)))) for item in catalog)
        return replace(catalog, classes=tuple(replace(item, wnids=wnids) for item, wnids in mapped))

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
                raise TaxonomyError(f"{wordnet.name(wnid)} ({wnid}), which a rule names, is not in it")
            return synset

        def walk(key: str, value: Any) -> Any:
            if isinstance(value, dict):
                return {name: walk(name, part) for name, part in value.items()}
            if key in ("all", "any"):
                return [walk("", part) for part in value]
            if isinstance(value, list | tuple) and key != "at":
                return [v if key != "of" and v in catalog else map_synset(v) for v in value]
            return value

        return as_rule(walk("", _data(rule)))


def original(recipe: Recipe, wordnet: Taxonomy) -> Alternative:
    """Return the taxonomy that a recipe itself uses."""
    return Alternative(wordnet, recipe.hierarchy, datasets=recipe.datasets)


def other_hierarchy(recipe: Recipe, wordnet: Taxonomy) -> Alternative:
    """Return ImageNet's tree for a recipe that uses the graph, and the graph for one that uses the tree.

    Instances are not in the tree: synsets without a path to its root are removed from catalogs.
    """
    if recipe.hierarchy != "wordnet":
        return Alternative(wordnet, datasets=recipe.datasets)
    tree = wordnet.tree()
    in_tree = tree.descendants(tree.root)
    return Alternative(tree, synset=lambda wnid: wnid if wnid in in_tree else None, datasets=recipe.datasets)


def other_wordnet(recipe: Recipe, other: OtherWordNet) -> Alternative:
    """Return the graph of another WordNet."""
    return Alternative(other.taxonomy, synset=cache(other.synset), datasets=recipe.datasets)


def as_rule(test: Expression | Mapping[str, Any]) -> ClassRule:
    """Return an expression as the rule of a group."""
    return ClassRule.model_validate(_data(test) if isinstance(test, Expression) else test)


def _data(test: Expression) -> dict[str, Any]:
    return test.model_dump(by_alias=True, exclude_unset=True)


def operators(test: Expression) -> Iterator[str]:
    """Yield the operators of a rule, at any depth; ``clear_of`` is expanded."""
    if test.operator == "clear_of":
        test = expand_clear_of(test)
    yield test.operator
    for part in test.value if test.operator in ("all", "any") else ():
        yield from operators(part)
    if test.operator == "not":
        yield from operators(test.value)


def readings_used(recipe: Recipe) -> dict[str, frozenset[str]]:
    """Return group -> kinds of readings that its rule depends on, directly or through other groups."""
    kinds: dict[str, frozenset[str]] = {}
    registered = OPERATORS
    for group in recipe.group:
        reads = (registered[name].reads for name in operators(group.classes) if name in registered)
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
    return as_rule({k: v for k, v in _data(group.classes).items() if k not in ("draw", "within")})


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

    Equivalent to `making.leaks.drop_leaking`, class by class; a test compares it with the manifests.
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
