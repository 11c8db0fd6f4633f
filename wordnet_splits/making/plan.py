"""Plans of the images of each split: published lists, publishers' splits, and number of each class."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from wordnet_splits.base import sampling
from wordnet_splits.base.errors import RecipeError, SplitsError
from wordnet_splits.catalog import load_catalog
from wordnet_splits.catalog.lists import find_list
from wordnet_splits.making.population import Populations, expand
from wordnet_splits.manifest.tables import CUT_ORDER
from wordnet_splits.recipe import Group, ImageRule, Recipe
from wordnet_splits.sources import source_class

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
    """Return the plan of every split, in file order and cut order.

    Raises
    ------
    RecipeError : a publisher's split does not exist, or an image of a list belongs to no group that uses it.
    UnknownNameError : a list does not exist.
    """
    lists: dict[str, ListedImages] = {}
    plans = []
    for group, split in ((g, s) for g in recipe.group for s in CUT_ORDER if s in g.images):
        rule, members = group.images[split], classes[group.name]
        where = f"{recipe.location(group.name)}, {split}"
        try:
            pool = expand(group.source, rule.from_ or ())
            if rule.list_ is not None and rule.list_ not in lists:
                lists[rule.list_] = _by_class(rule.list_, recipe.folder)
        except SplitsError as error:
            raise error.within(where) from None
        quota: Mapping[str, int | None] = dict.fromkeys(members, rule.per_class)
        if rule.total is not None and members:
            quota = {**sampling.share_total(rule.total, recipe.draw, seed, group.source, members)}
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
    """Return the number of images of a drawn split; None if published counts do not tell.

    ``rest`` is the pool without the images of the group's other splits in ``plans``.
    """
    rule, source = plan.rule, plan.group.source
    if rule.per_class is not None:
        return rule.per_class * len(plan.classes)
    if rule.total is not None:
        return rule.total
    if rule.half:
        sizes = [_pool_size(source, plan.pool, [c]) for c in plan.classes]
        return None if None in sizes else sum((size or 0) // 2 for size in sizes)
    left = _pool_size(source, plan.pool, plan.classes)
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


def _pool_size(source: str, splits: Sequence[str], members: Sequence[str]) -> int | None:
    if source_class(source).multilabel:
        return None  # published counts do not tell how many images show classes of one role only
    catalog = load_catalog(source)
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
