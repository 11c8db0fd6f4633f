"""Which images each split of a group takes: a published list, a cut of a population, or generated noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from wordnet_splits import sampling
from wordnet_splits.build.population import Awaiting, Populations
from wordnet_splits.catalog import load_catalog
from wordnet_splits.catalog.inventory import inventory_splits, load_inventory, load_list
from wordnet_splits.errors import RecipeError, SplitsError
from wordnet_splits.manifest.tables import CUT_ORDER
from wordnet_splits.recipe import Group, ImageRule, Recipe
from wordnet_splits.sources.noise import NoiseId


@dataclass
class Selection:
    """The images of one (group, split), or what they wait for."""

    group: Group
    split: str
    expected: int | None
    images: dict[str, list[str]] = field(default_factory=dict)
    digests: dict[str, bytes] = field(default_factory=dict)
    awaiting: Awaiting | None = None
    local: bool = False
    population: int | None = None

    @property
    def count(self) -> int:
        """Return the number of images taken."""
        return sum(map(len, self.images.values()))


def select_images(
    recipe: Recipe, seed: int, classes: Mapping[str, Sequence[str]], populations: Populations
) -> list[Selection]:
    """Return a selection for every split of every group, in file order and cut order.

    Parameters
    ----------
    classes : class ids of each group.
    """
    check_lists(recipe, classes)
    taken: dict[str, set[str]] = {source: set() for source in recipe.sources}
    chosen: list[Selection] = []
    # what a list or an `all` names is fixed whatever the draws: it goes first, so that `rest` excludes it
    pairs = [(g, s) for g in recipe.group for s in CUT_ORDER if s in g.images]
    for group, split in sorted(pairs, key=lambda p: _rank(p[0].images[p[1]])):
        rule = group.images[split]
        members = list(classes[group.name])
        if rule.list_ is not None:
            selection = _from_list(group, split, rule.list_, members)
        elif rule.generate is not None:
            selection = _generated(group, split, rule.generate)
        else:
            selection = _cut(recipe, seed, group, split, members, populations, taken[group.source])
        if selection.awaiting is None:
            taken[group.source].update(i for ids in selection.images.values() for i in ids)
        chosen.append(selection)
    order = {(g.name, s): n for n, (g, s) in enumerate(pairs)}
    return sorted(chosen, key=lambda s: order[s.group.name, s.split])


def _rank(rule: ImageRule) -> int:
    return 0 if rule.list_ is not None else 2 if rule.rest else 1


def _from_list(group: Group, split: str, name: str, members: Sequence[str]) -> Selection:
    table = load_list(name)
    wanted = set(members)
    images: dict[str, list[str]] = {}
    for source, image_id, class_id in zip(
        *(table.column(c).to_pylist() for c in ("source", "image_id", "class_id")), strict=True
    ):
        if source == group.source and class_id in wanted:
            images.setdefault(class_id, []).append(image_id)
    selection = Selection(group, split, None, images)
    selection.expected = selection.count
    return selection


def check_lists(recipe: Recipe, classes: Mapping[str, Sequence[str]]) -> None:
    """Raise RecipeError where a listed image belongs to none of the groups that name the list."""
    users: dict[str, set[tuple[str, str]]] = {}
    for group in recipe.group:
        for rule in group.images.values():
            if rule.list_ is not None:
                users.setdefault(rule.list_, set()).update((group.source, c) for c in classes[group.name])
    for name, covered in users.items():
        try:
            table = load_list(name)
        except SplitsError as error:
            raise error.within(recipe.name) from None
        for source, image_id, class_id in zip(
            *(table.column(c).to_pylist() for c in ("source", "image_id", "class_id")), strict=True
        ):
            if (source, class_id) not in covered:
                raise RecipeError(
                    f"image {image_id} of class {class_id} belongs to no group",
                    where=f"{recipe.name}: list {name}",
                    hint="let a group take the class, or use another list",
                )


def _generated(group: Group, split: str, count: int) -> Selection:
    assert group.noise is not None
    ids = [str(NoiseId(group.noise.shape, group.noise.seed, n)) for n in range(count)]
    return Selection(group, split, count, {"all": ids})


def _cut(
    recipe: Recipe,
    seed: int,
    group: Group,
    split: str,
    members: Sequence[str],
    populations: Populations,
    taken: set[str],
) -> Selection:
    rule = group.images[split]
    assert rule.from_ is not None
    where = f"{recipe.name}: group {group.name}, {split}"
    try:
        population = populations.of(group.source, rule.from_)
    except RecipeError as error:
        raise error.within(where) from None
    if isinstance(population, Awaiting):
        expected = expected_count(group, split, members, populations)
        return Selection(group, split, expected, awaiting=population)
    available = {c: [i for i in population.images.get(c, ()) if i not in taken] for c in members}
    if rule.all and any(len(available[c]) != len(population.images.get(c, ())) for c in members):
        raise RecipeError(
            "`all` asks for images that another split has already taken", where=where, hint="use `rest`"
        )
    if rule.all or rule.rest:
        images = available
    else:
        quota = _quota(rule, recipe.draw, seed, group.source, members)
        images = {}
        for class_id in members:
            if quota[class_id] > len(available[class_id]):
                raise RecipeError(
                    f"{quota[class_id]} images of class {class_id!r} asked for, "
                    f"{len(available[class_id])} left in {' + '.join(rule.from_)}",
                    where=where,
                    hint="ask for fewer, or add a split to `from`",
                )
            in_order = sampling.ordered(recipe.draw, seed, group.source, class_id, available[class_id])
            images[class_id] = in_order[: quota[class_id]]
    digests = population.digests
    kept = {i: digests[i] for ids in images.values() for i in ids if i in digests}
    selection = Selection(group, split, None, images, kept, local=population.local)
    selection.population = sum(len(population.images.get(c, ())) for c in members)
    selection.expected = selection.count
    return selection


def _quota(rule: ImageRule, draw: str, seed: int, source: str, members: Sequence[str]) -> dict[str, int]:
    if rule.total is not None:
        return sampling.share_total(rule.total, draw, seed, source, members)
    assert rule.per_class is not None
    return dict.fromkeys(members, rule.per_class)


def expected_count(group: Group, split: str, members: Sequence[str], populations: Populations) -> int | None:
    """Return how many images a split will hold, from published counts alone; None where they are not known.

    ``rest`` counts what the group's other splits leave of the same pool.
    """
    rule = group.images[split]
    if rule.generate is not None:
        return rule.generate
    if rule.per_class is not None:
        return rule.per_class * len(members)
    if rule.total is not None:
        return rule.total
    if rule.from_ is None:
        return None
    pool = _pool_size(group.source, populations.expand(group.source, rule.from_), members)
    if pool is None or rule.all:
        return pool
    for other, other_rule in group.images.items():
        if other_rule.list_ is not None:
            pool -= _listed_in_pool(group, other, other_rule.list_, members, rule.from_)
        elif other != split and other_rule.from_ == rule.from_:
            taken = expected_count(group, other, members, populations)
            if taken is None:
                return None
            pool -= taken
    return pool


def _listed_in_pool(group: Group, split: str, name: str, members: Sequence[str], pool: Sequence[str]) -> int:
    """Count a list's images that come from ``pool``: those in no inventory of another publisher's split."""
    elsewhere: set[str] = set()
    for other in inventory_splits(group.source):
        if other not in pool and (table := load_inventory(group.source, other)) is not None:
            elsewhere.update(table.column("image_id").to_pylist())
    listed = _from_list(group, split, name, members)
    return sum(i not in elsewhere for ids in listed.images.values() for i in ids)


def _pool_size(source: str, splits: Sequence[str], members: Sequence[str]) -> int | None:
    catalog = load_catalog(source)
    total, wanted = 0, set(members)
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
            if any(c.class_id not in wanted for c in catalog if c.count_group == name):
                return None  # only part of a sum is asked for
            total += catalog.group_counts(split)[name]
    return total
