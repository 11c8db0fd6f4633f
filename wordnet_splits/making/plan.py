"""Plans of the images of each split: published lists, publishers' splits, and number of each class."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from wordnet_splits.base import sampling
from wordnet_splits.base.errors import RecipeError, SplitsError
from wordnet_splits.catalog.lists import find_list
from wordnet_splits.making.population import expand
from wordnet_splits.manifest.tables import CUT_ORDER
from wordnet_splits.recipe import Group, ImageRule, Recipe

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
