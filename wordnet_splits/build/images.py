"""Which images each split of a group takes: a published list, a cut of a population, or generated noise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from wordnet_splits import sampling
from wordnet_splits.build.expected import expected_count
from wordnet_splits.build.population import Awaiting, Most, Populations, expand
from wordnet_splits.catalog.inventory import load_list
from wordnet_splits.errors import RecipeError, SplitsError
from wordnet_splits.manifest.tables import CUT_ORDER
from wordnet_splits.progress import Progress
from wordnet_splits.recipe import Group, ImageRule, Recipe
from wordnet_splits.sources import Source
from wordnet_splits.sources.noise import NoiseId


@dataclass
class Selection:
    """The images of one (group, split), or what they wait for.

    ``drawn_from`` is how many images each class has to draw from, ``population`` their sum.
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

    @property
    def count(self) -> int:
        """Return the number of images taken."""
        return sum(map(len, self.images.values()))


@dataclass(frozen=True)
class Shortfall:
    """A class of which fewer images are there than a split is to take."""

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
    sources : opened source by name, where a root is at hand.
    local : draw from what a root holds where its counts are unknown or differ.
    shortfalls : where classes with too few images are noted, and taken whole, instead of raising.

    Raises
    ------
    RecipeError : an image rule cannot be kept.
    """
    check_lists(recipe, classes)
    most = _most(recipe, seed, classes)
    populations = Populations(sources, recipe.draw, seed, most, local=local, progress=progress)
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
            already = taken[group.source]
            selection = _cut(recipe, seed, group, split, members, populations, already, shortfalls)
        if selection.awaiting is None:
            taken[group.source].update(i for ids in selection.images.values() for i in ids)
        chosen.append(selection)
    order = {(g.name, s): n for n, (g, s) in enumerate(pairs)}
    return sorted(chosen, key=lambda s: order[s.group.name, s.split])


def _rank(rule: ImageRule) -> int:
    return 0 if rule.list_ is not None else 2 if rule.rest else 1


def _most(recipe: Recipe, seed: int, classes: Mapping[str, Sequence[str]]) -> Most:
    """Return the number of images that all rules together can need of each class: the listed ones, too.

    A draw passes over listed images, so that it may reach as many further.
    """
    lists = {r.list_ for g in recipe.group for r in g.images.values() if r.list_ is not None}
    listed: Counter[tuple[str, str]] = Counter()
    for name in lists:
        columns = (load_list(name).column(c).to_pylist() for c in ("source", "class_id"))
        listed.update(zip(*columns, strict=True))
    most: dict[str, dict[str, dict[str, int | None]]] = {}
    for group in recipe.group:
        for split, rule in group.images.items():
            quota = _quota(rule, recipe.draw, seed, group.source, classes[group.name])
            for publisher in _pool(recipe, group, split):
                of_split = most.setdefault(group.source, {}).setdefault(publisher, {})
                for class_id, count in quota.items():
                    before = of_split.get(class_id, listed[group.source, class_id])
                    of_split[class_id] = None if before is None or count is None else before + count
    return most


def _pool(recipe: Recipe, group: Group, split: str) -> tuple[str, ...]:
    """Return the publisher's splits that a split is cut from."""
    try:
        return expand(group.source, group.images[split].from_ or ())
    except RecipeError as error:
        raise error.within(f"{recipe.name}: group {group.name}, {split}") from None


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
    shortfalls: list[Shortfall] | None,
) -> Selection:
    rule = group.images[split]
    assert rule.from_ is not None
    where = f"{recipe.name}: group {group.name}, {split}"
    population = populations.of(group.source, _pool(recipe, group, split))
    if isinstance(population, Awaiting):
        expected = expected_count(group, split, members)
        return Selection(group, split, expected, awaiting=population)
    available = {c: [i for i in population.images.get(c, ()) if i not in taken] for c in members}
    if rule.all and any(len(available[c]) != population.counts[c] for c in members):
        raise RecipeError(
            "`all` asks for images that another split has already taken", where=where, hint="use `rest`"
        )
    images = {}
    for class_id, count in _quota(rule, recipe.draw, seed, group.source, members).items():
        ids = available[class_id]
        if count is None:
            images[class_id] = ids
            continue
        if count > len(ids) and shortfalls is None:
            raise RecipeError(
                f"{count} images of class {class_id!r} wanted, {len(ids)} left in {' + '.join(rule.from_)}",
                where=where,
                hint="ask for fewer, or add a split to `from`",
            )
        if count > len(ids) and shortfalls is not None:
            shortfalls.append(Shortfall(group.name, split, class_id, count, len(ids)))
        images[class_id] = sampling.ordered(recipe.draw, seed, group.source, class_id, ids)[:count]
    digests = population.digests
    kept = {i: digests[i] for ids in images.values() for i in ids if i in digests}
    selection = Selection(group, split, None, images, kept, local=population.local)
    selection.drawn_from = {c: population.counts[c] for c in members}
    selection.population = sum(selection.drawn_from.values())
    selection.expected = selection.count
    return selection


def _quota(
    rule: ImageRule, draw: str, seed: int, source: str, members: Sequence[str]
) -> Mapping[str, int | None]:
    """Return how many images of each class are taken, None for all that are left."""
    if rule.total is not None and members:
        return {**sampling.share_total(rule.total, draw, seed, source, members)}
    return dict.fromkeys(members, rule.per_class)
