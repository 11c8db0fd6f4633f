"""What the rules of a benchmark say in another world: another hierarchy, another WordNet, other senses.

A draw is no matter of WordNet: where a rule that looks at WordNet draws among the classes it accepts, each of
these counts as taken, so that a class is compared with what it was a candidate for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from typing import Any

from wordnet_splits.base.errors import TaxonomyError
from wordnet_splits.catalog import Catalog, CatalogClass, load_catalog
from wordnet_splits.catalog.lists import find_list
from wordnet_splits.making.leaks import KEPT_FIRST, trains
from wordnet_splits.recipe import Group, Recipe
from wordnet_splits.rules import ClassRule, Context, Expression, Key, decide
from wordnet_splits.rules.keywords import are_same_class
from wordnet_splits.rules.model import Hierarchy, expand_clear_of, operands
from wordnet_splits.rules.registry import registered_operators
from wordnet_splits.taxonomy import Taxonomy
from wordnet_splits.taxonomy.other_wordnets import OtherWordNet

EXCLUDED = "excluded"
Rewrite = Callable[[Group, ClassRule, list[str], Context], ClassRule]


@dataclass(frozen=True, eq=False)
class World:
    """The hierarchy that rules follow, and the synsets of catalogs and recipes in it.

    ``synset`` gives what a synset of WordNet 3.0 is there, None where it is not.
    """

    taxonomy: Taxonomy
    hierarchy: Hierarchy = "wordnet"
    synset: Callable[[str], str | None] = field(default=lambda wnid: wnid)

    @cached_property
    def catalog(self) -> Callable[[str], Catalog]:
        """The catalog of a source, with the synsets that its classes have here."""
        return cache(self._catalog)

    def _catalog(self, source: str) -> Catalog:
        catalog = load_catalog(source)
        there = ((item, tuple(filter(None, map(self.synset, item.wnids)))) for item in catalog)
        return replace(catalog, classes=tuple(replace(item, wnids=wnids) for item, wnids in there))

    def rule(self, rule: ClassRule, source: str, ours: Taxonomy) -> ClassRule:
        """Return a rule with the synsets that it names.

        Raises
        ------
        TaxonomyError : one of them is not here.
        """
        if self.taxonomy.version == ours.version:
            return rule
        catalog = load_catalog(source)

        def there(name: str) -> str:
            wnid = ours.find(name)
            if (synset := self.synset(wnid)) is None:
                raise TaxonomyError(f"{ours.name(wnid)} ({wnid}), which a rule names, is not in it")
            return synset

        def walk(key: str, value: Any) -> Any:
            if isinstance(value, dict):
                return {name: walk(name, part) for name, part in value.items()}
            if key in ("all", "any"):
                return [walk("", part) for part in value]
            if isinstance(value, list | tuple) and key != "at":
                return [v if key != "of" and v in catalog else there(v) for v in value]
            return value

        return as_rule(walk("", _data(rule)))


def original(recipe: Recipe, ours: Taxonomy) -> World:
    """Return the world that a recipe is of."""
    return World(ours, recipe.hierarchy)


def other_hierarchy(recipe: Recipe, ours: Taxonomy) -> World:
    """Return the tree where a recipe follows the graph, and the graph where it follows the tree.

    In the tree instances have no place: synsets without a way up to its root are in no catalog.
    """
    if recipe.hierarchy != "wordnet":
        return World(ours)
    tree = ours.tree()
    placed = tree.descendants(tree.root)
    return World(tree, synset=lambda wnid: wnid if wnid in placed else None)


def other_wordnet(other: OtherWordNet) -> World:
    """Return another WordNet's graph."""
    return World(other.taxonomy, synset=cache(other.synset))


def as_rule(test: Expression | Mapping[str, Any]) -> ClassRule:
    """Return an operator as the rule of a group."""
    return ClassRule.model_validate(_data(test) if isinstance(test, Expression) else test)


def _data(test: Expression) -> dict[str, Any]:
    return test.model_dump(by_alias=True, exclude_unset=True)


def operators(test: Expression) -> Iterator[str]:
    """Yield the operators of a rule, at any depth; for ``clear_of`` those that it stands for."""
    if test.operator == "clear_of":
        test = expand_clear_of(test)
    yield test.operator
    for part in test.value if test.operator in ("all", "any") else ():
        yield from operators(part)
    if test.operator == "not":
        yield from operators(test.value)


def kinds_read(recipe: Recipe) -> dict[str, frozenset[str]]:
    """Return for each group the kinds of readings that its rule, or that of a group it names, depends on."""
    kinds: dict[str, frozenset[str]] = {}
    registered = registered_operators()
    for group in recipe.group:
        reads = (registered[name].reads for name in operators(group.classes) if name in registered)
        operand_reads = (kinds[o.name] for o in operands(group.classes) if o.kind == "group")
        kinds[group.name] = frozenset().union(*reads, *operand_reads)
    return kinds


@dataclass(frozen=True)
class Clash:
    """What leaks with the classes of other groups: what equals one, lies below or lies above one."""

    by_wnid: Mapping[str, Sequence[CatalogClass]] = field(default_factory=dict)
    below: frozenset[str] = frozenset()
    above: frozenset[str] = frozenset()

    def leaks(self, item: CatalogClass) -> bool:
        """Say whether a class leaks."""
        return (
            any(are_same_class(item, earlier) for w in item.wnids for earlier in self.by_wnid.get(w, ()))
            or not self.below.isdisjoint(item.wnids)
            or not self.above.isdisjoint(item.covers)
        )


@dataclass
class Decided:
    """The classes of each group in a world, and ``clashes``: what leaks with other groups.

    ``groups`` are before ``drop_leaks`` took any out, ``asked`` the groups that each class was offered to,
    ``idle`` the groups whose rule a reading cannot change.
    """

    recipe: Recipe
    world: World
    groups: dict[str, list[str]] = field(default_factory=dict)
    asked: dict[Key, list[str]] = field(default_factory=dict)
    clashes: dict[str, Clash] = field(default_factory=dict)
    dropped: set[Key] = field(default_factory=set)
    idle: set[str] = field(default_factory=set)

    @cached_property
    def places(self) -> dict[Key, Group]:
        """The first group of each class that one has taken, dropped or not."""
        places: dict[Key, Group] = {}
        for group in self.recipe.group:
            for class_id in self.groups[group.name]:
                places.setdefault((group.source, class_id), group)
        return places

    def role(self, key: Key) -> str:
        """Return the role of a class."""
        return EXCLUDED if key in self.dropped or key not in self.places else self.places[key].role


def undrawn(recipe: Recipe, group: Group) -> ClassRule:
    """Return a group's rule, without its draw where it looks at WordNet."""
    if group.classes.draw is None or not kinds_read(recipe)[group.name]:
        return group.classes
    return as_rule({k: v for k, v in _data(group.classes).items() if k not in ("draw", "within")})


def context_of(recipe: Recipe, world: World) -> Context:
    """Return what the rules of a recipe look at in a world."""
    published = partial(find_list, beside=recipe.folder)
    roles = {group.name: group.role for group in recipe.group}
    return Context(
        world.taxonomy,
        world.hierarchy,
        roles=roles,
        draw=recipe.draw,
        seed=recipe.seed,
        catalog=world.catalog,
        published=published,
    )


def decide_in(recipe: Recipe, world: World, ours: Taxonomy, rewrite: Rewrite | None = None) -> Decided:
    """Return the classes of each group in a world; ``rewrite`` changes each rule before it is asked.

    A group may be left without classes here.

    Raises
    ------
    TaxonomyError : the recipe names a synset that this world lacks.
    """
    decided, context = Decided(recipe, world), context_of(recipe, world)
    taken_keys: set[Key] = set()
    for group in recipe.group:
        rule = world.rule(undrawn(recipe, group), group.source, ours)
        offered = [item.class_id for item in world.catalog(group.source)]
        if not group.reuse:
            offered = [c for c in offered if (group.source, c) not in taken_keys]
        if rewrite is not None:
            rule = rewrite(group, rule, offered, context)
        verdicts = decide(rule, group.source, offered, context)
        for class_id in offered:
            decided.asked.setdefault((group.source, class_id), []).append(group.name)
        decided.groups[group.name] = [c for c in offered if verdicts[c].accepted]
        context.groups[group.name] = [(group.source, c) for c in decided.groups[group.name]]
        taken_keys.update(context.groups[group.name])
    if recipe.drop_leaks:
        _drop_leaks(decided)
    return decided


def _drop_leaks(decided: Decided) -> None:
    """Note what ``drop_leaks`` takes out: of two kin the one whose role stands later in `KEPT_FIRST`.

    The same as `build.leaks.drop_leaking`, said of one class at a time: a test holds it to the manifests.
    """
    recipe, world = decided.recipe, decided.world
    remaining: list[tuple[Group, Sequence[CatalogClass]]] = []
    ranked = sorted((g for g in recipe.group if g.role != "csid"), key=lambda g: KEPT_FIRST.index(g.role))
    for group in ranked:
        earlier = [item for other_group, items in remaining if trains(other_group, group) for item in items]
        clash = decided.clashes[group.name] = _clash(earlier, world.taxonomy)
        same = {(item.source, item.class_id) for item in earlier}
        left = []
        for class_id in decided.groups[group.name]:
            item = world.catalog(group.source)[class_id]
            if (group.source, class_id) in same or clash.leaks(item):
                decided.dropped.add((group.source, class_id))
            else:
                left.append(item)
        remaining.append((group, left))


def _clash(earlier: Sequence[CatalogClass], taxonomy: Taxonomy) -> Clash:
    by_wnid: dict[str, list[CatalogClass]] = {}
    for item in earlier:
        for wnid in item.wnids:
            by_wnid.setdefault(wnid, []).append(item)
    below = taxonomy.descendants(*{wnid for item in earlier for wnid in item.covers})
    above = frozenset(up for wnid in by_wnid for up in taxonomy.ancestors(wnid))
    return Clash(by_wnid, frozenset(below), above)
