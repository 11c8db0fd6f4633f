"""Selection of the images of each split: a published list, a draw from a population, or generated noise.

A split's plan is its publisher's splits and the number of images of each class, or its published list.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from wordnet_splits.base.digests import order_images, share_total
from wordnet_splits.base.errors import RecipeError, SplitsError
from wordnet_splits.base.progress import Progress
from wordnet_splits.benchmark.construct.population import Awaiting, Most, Populations, Roles, expand
from wordnet_splits.benchmark.manifest import Part
from wordnet_splits.benchmark.manifest.tables import CUT_ORDER
from wordnet_splits.benchmark.recipe import Group, ImageRule, Recipe
from wordnet_splits.datasets.catalog import load_catalog
from wordnet_splits.datasets.catalog.declarations import Sources
from wordnet_splits.datasets.catalog.image_pairs import PairRow, duplicate_images, read_pairs
from wordnet_splits.datasets.catalog.inventory import find_list
from wordnet_splits.datasets.sources import Source, source_class
from wordnet_splits.datasets.sources.built_in import noise_ids

ListedImages = Mapping[tuple[str, str], Sequence[str]]
"""Images of a published list by (source, class id)."""


@dataclass(frozen=True)
class SplitPlan:
    """Plan of the images of a split.

    Attributes
    ----------
    classes : the group's class ids.
    pool : the publisher's splits to draw from; empty for listed and generated images.
    quota : number of images of each class to draw; None for all that remain.
    listed : the images of the published list; empty without a list.
    """

    group: Group
    split: str
    where: str
    classes: Sequence[str]
    pool: tuple[str, ...] = ()
    quota: Mapping[str, int | None] = field(default_factory=dict)
    listed: ListedImages = field(default_factory=dict)

    @property
    def rule(self) -> ImageRule:
        """Return the recipe's rule for the split."""
        return self.group.images[self.split]


def plan_images(recipe: Recipe, seed: int, classes: Mapping[str, Sequence[str]]) -> list[SplitPlan]:
    """Return the plan of every split, in file order and cut order."""
    lists: dict[str, ListedImages] = {}
    plans = []
    for group, split in ((g, s) for g in recipe.group for s in CUT_ORDER if s in g.images):
        rule, members = group.images[split], classes[group.name]
        where = f"{recipe.location(group.name)}, {split}"
        try:
            pool = expand(group.source, rule.from_ or (), recipe.datasets)
            if rule.list_ is not None and rule.list_ not in lists:
                lists[rule.list_] = _by_class(rule.list_, recipe.folder)
        except SplitsError as error:
            raise error.within(where) from None
        quota: Mapping[str, int | None] = dict.fromkeys(members, rule.per_class)
        if rule.total is not None and members:
            quota = {**share_total(rule.total, recipe.draw, seed, group.source, members)}
        listed = lists[rule.list_] if rule.list_ is not None else {}
        plans.append(SplitPlan(group, split, where, members, pool, quota if pool else {}, listed))
    for name, listed in lists.items():
        users = [r for r in plans if r.rule.list_ == name]
        if recipe.drop_leaks:  # the list may have images of the classes that were dropped
            break
        for source, class_id in listed.keys() - {(r.group.source, c) for r in users for c in r.classes}:
            raise RecipeError(
                f"image {listed[source, class_id][0]} of class {class_id} belongs to no group",
                where=f"{recipe.name}: list {name}",
                hint="let a group take the class, or use another list",
            )
    return plans


def _by_class(name: str, beside: Path | None) -> ListedImages:
    images: dict[tuple[str, str], list[str]] = defaultdict(list)
    table = find_list(name, beside)
    columns = (table.column(c).to_pylist() for c in ("source", "class_id", "image_id"))
    for source, class_id, image_id in zip(*columns, strict=True):
        images[source, class_id].append(image_id)
    return images


def expected_count(plan: SplitPlan, plans: Sequence[SplitPlan], populations: Populations) -> int | None:
    """Return the number of images of a drawn split; None if the published counts are incomplete.

    ``rest`` is the pool without the images of the group's other splits in ``plans``.
    """
    rule, source = plan.rule, plan.group.source
    if rule.per_class is not None:
        return rule.per_class * len(plan.classes)
    if rule.total is not None:
        return rule.total
    if rule.half:
        sizes = [_pool_size(source, plan.pool, [c], populations.datasets) for c in plan.classes]
        return None if None in sizes else sum((size or 0) // 2 for size in sizes)
    left = _pool_size(source, plan.pool, plan.classes, populations.datasets)
    if left is None or rule.all:
        return left
    for other_plan in (p for p in plans if p.group.name == plan.group.name and p.split != plan.split):
        if other_plan.rule.list_ is not None:
            elsewhere = populations.listed_elsewhere(source, plan.pool)
            left -= sum(
                i not in elsewhere for c in plan.classes for i in other_plan.listed.get((source, c), ())
            )
        elif other_plan.rule.from_ == rule.from_:
            other_count = expected_count(other_plan, plans, populations)
            if other_count is None:
                return None
            left -= other_count
    return left


def _pool_size(source: str, splits: Sequence[str], members: Sequence[str], datasets: Sources) -> int | None:
    if source_class(source, datasets).multilabel:
        return None  # published counts do not tell how many images show classes of one role only
    catalog = load_catalog(source, datasets)
    total, member_ids = 0, set(members)
    for split in splits:
        shared: set[str] = set()
        for class_id in members:
            count = catalog.count(class_id, split)
            if count is not None:
                total += count
                continue
            name = catalog[class_id].count_group
            if name not in catalog.group_counts(split):
                return None
            shared.add(name)
        for name in shared:
            if any(c.class_id not in member_ids for c in catalog if c.count_group == name):
                return None  # only part of the sum is needed
            total += catalog.group_counts(split)[name]
    return total


@dataclass
class Selection:
    """The images of a (group, split), or the source that is missing.

    ``drawn_from`` is the number of images of each class to draw from, ``population`` their sum. ``mixed``
    images, which also show a class of another role, and ``copies`` of other images are left out. ``compared``
    is the set of given images that were read and have their digest.
    """

    group: Group
    split: str
    expected: int | None
    images: dict[str, list[str]] = field(default_factory=dict)
    digests: dict[str, bytes] = field(default_factory=dict)
    awaiting: Awaiting | None = None
    local: bool = False
    population: int | None = None
    drawn_from: Mapping[str, int] = field(default_factory=dict)
    mixed: int = 0
    copies: int = 0
    compared: frozenset[str] = frozenset()

    @property
    def part(self) -> Part:
        """The split and the group's name."""
        return self.split, self.group.name

    @property
    def count(self) -> int:
        """The number of selected images."""
        return sum(map(len, self.images.values()))

    def leave_out(self, copies: Collection[str]) -> None:
        """Remove images that are copies of others, and count them."""
        before = self.count
        self.images = {c: [i for i in ids if i not in copies] for c, ids in self.images.items()}
        self.copies += before - self.count
        if self.expected is not None:
            self.expected -= before - self.count


@dataclass(frozen=True)
class Shortfall:
    """A class with fewer images than a split takes."""

    group: str
    split: str
    class_id: str
    wanted: int
    taken: int


def select_images(
    recipe: Recipe,
    seed: int,
    classes: Mapping[str, Sequence[str]],
    sources: Mapping[str, Source],
    *,
    local: bool = False,
    progress: Progress | None = None,
    shortfalls: list[Shortfall] | None = None,
) -> list[Selection]:
    """Return a selection for every split of every group, in file order and cut order.

    Parameters
    ----------
    classes : class ids of each group.
    sources : opened sources with a root, by name.
    local : draw from the images of a root even if its counts are unknown or differ.
    shortfalls : list that receives the classes with too few images, all of whose images are taken; by
        default they raise.

    Raises
    ------
    RecipeError : an image rule cannot be satisfied.
    """
    plans = plan_images(recipe, seed, classes)
    most, roles = _most(plans), _roles(recipe, classes)
    populations = Populations(
        sources, recipe.draw, seed, most, roles, recipe.datasets, local=local, progress=progress
    )
    taken_ids: dict[str, set[str]] = defaultdict(set)
    selections: dict[tuple[str, str], Selection] = {}
    # the images of a list or of `all` do not depend on draws: they go first, so that `rest` excludes them
    for plan in sorted(plans, key=lambda r: 0 if r.rule.list_ is not None else 2 if r.rule.rest else 1):
        group, split = plan.group, plan.split
        already = taken_ids[group.source]
        if plan.pool:
            selection = _cut(plan, plans, recipe.draw, seed, populations, already, shortfalls)
        elif plan.rule.generate is not None:
            assert group.noise is not None
            ids = noise_ids(group.noise.shape, group.noise.seed, plan.rule.generate)
            selection = Selection(group, split, len(ids), {"all": ids})
        else:
            keys = {(group.source, class_id): class_id for class_id in plan.classes}
            images = {keys[key]: [*ids] for key, ids in plan.listed.items() if key in keys}
            selection = Selection(group, split, sum(map(len, images.values())), images)
        if selection.awaiting is None:
            already.update(i for ids in selection.images.values() for i in ids)
        selections[group.name, split] = selection
    for plan in plans:
        _leave_out(selections[plan.group.name, plan.split], plan, recipe)
    return [selections[r.group.name, r.split] for r in plans]


def _leave_out(selection: Selection, plan: SplitPlan, recipe: Recipe) -> None:
    """Remove the images of the rule's table of near-duplicates from a selection."""
    rule = plan.rule.clear_of
    if rule is None or selection.awaiting is not None:
        return
    rows = read_table(recipe, rule.pictures, plan.where)
    sources = {row[f"source_{side}"] for row in rows for side in "ab"} - {""}
    if sources and plan.group.source not in sources:
        raise RecipeError(
            f"{rule.pictures} has no picture of {plan.group.source}",
            where=plan.where,
            hint=f"it compares {', '.join(sorted(sources))}",
        )
    duplicates = duplicate_images(rows)
    selection.leave_out({image_id for source, image_id in duplicates if source == plan.group.source})


def read_table(recipe: Recipe, name: str, where: str) -> list[PairRow]:
    """Return the rows of a table of pairs that a recipe names. Raises SplitsError."""
    try:
        return read_pairs(recipe.table_path(name, where))
    except SplitsError as error:
        raise error.within(where) from None


def _roles(recipe: Recipe, classes: Mapping[str, Sequence[str]]) -> Roles:
    roles_by_class: dict[tuple[str, str], set[str]] = defaultdict(set)
    for group in recipe.group:
        for class_id in classes[group.name]:
            roles_by_class[group.source, class_id].add(group.role)
    return {key: frozenset(roles) for key, roles in roles_by_class.items()}


def _most(plans: Sequence[SplitPlan]) -> Most:
    """Return the number of images that all plans together can need of each class.

    Listed images count, too: a draw passes over them.
    """
    listed: Counter[tuple[str, str]] = Counter()
    for images in {r.rule.list_: r.listed for r in plans}.values():
        listed.update({key: len(ids) for key, ids in images.items()})
    most: dict[str, dict[str, dict[str, int | None]]] = {}
    for plan in plans:
        source = plan.group.source
        for publisher in plan.pool:
            of_split = most.setdefault(source, {}).setdefault(publisher, {})
            for class_id, count in plan.quota.items():
                before = of_split.get(class_id, listed[source, class_id])
                of_split[class_id] = None if before is None or count is None else before + count
    return most


def _cut(
    plan: SplitPlan,
    plans: Sequence[SplitPlan],
    draw: str,
    seed: int,
    populations: Populations,
    taken_ids: set[str],
    shortfalls: list[Shortfall] | None,
) -> Selection:
    group, split, members = plan.group, plan.split, plan.classes
    population = populations.of(group.source, plan.pool)
    if isinstance(population, Awaiting):
        expected = expected_count(plan, plans, populations)
        return Selection(group, split, expected, awaiting=population)
    available = {c: [i for i in population.images.get(c, ()) if i not in taken_ids] for c in members}
    if plan.rule.all and any(len(available[c]) != population.counts[c] for c in members):
        raise RecipeError(
            "`all` asks for images that another split has already taken",
            where=plan.where,
            hint="use `rest`",
        )
    images = {}
    for class_id, quota in plan.quota.items():
        ids = available[class_id]
        count = population.counts[class_id] // 2 if plan.rule.half else quota
        if count is None:
            images[class_id] = ids
            continue
        if count > len(ids) and shortfalls is None:
            mixed = population.mixed[class_id]
            besides = f", without {mixed} for showing a class of another role besides" if mixed else ""
            left = f"{len(ids)} left in {' + '.join(plan.pool)}{besides}"
            raise RecipeError(
                f"{count} images of class {class_id!r} wanted, {left}",
                where=plan.where,
                hint="ask for fewer, or add a split to `from`",
            )
        if count > len(ids) and shortfalls is not None:
            shortfalls.append(Shortfall(group.name, split, class_id, count, len(ids)))
        images[class_id] = order_images(draw, seed, group.source, class_id, ids)[:count]
    digests = population.digests
    known_digests = {i: digests[i] for ids in images.values() for i in ids if i in digests}
    selection = Selection(group, split, None, images, known_digests, local=population.local)
    selection.drawn_from = {c: population.counts[c] for c in members}
    selection.mixed = sum(population.mixed[c] for c in members)
    selection.population = sum(selection.drawn_from.values())
    selection.expected = selection.count
    return selection
