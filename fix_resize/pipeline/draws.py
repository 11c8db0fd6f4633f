"""Draws from a root, for sets with image ids that are not frozen because only a copy of the source has them.

The draw is the one that ``wordnet-splits build`` makes, of one group alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from wordnet_splits.base.errors import MissingImageError, SourceError
from wordnet_splits.making.images import Shortfall, select_images
from wordnet_splits.making.population import expand
from wordnet_splits.manifest import Manifest
from wordnet_splits.recipe import Group, ImageRule, Recipe, load_recipe
from wordnet_splits.sources import Source


@dataclass(frozen=True)
class Draw:
    """What was drawn for one group.

    Attributes
    ----------
    images : image ids by split and class.
    population : how many images each class was drawn from.
    local : whether they were drawn from an incomplete or unknown root.
    """

    images: Mapping[str, Mapping[str, Sequence[str]]]
    shortfalls: Sequence[Shortfall]
    population: Mapping[str, int]
    local: bool


def draw_group(
    manifest: Manifest,
    group: Group,
    source: Source,
    *,
    splits: Collection[str],
    local: bool,
    per_class: int | None = None,
    allow_short: bool = False,
) -> Draw:
    """Draw the images of one group from a root.

    Parameters
    ----------
    splits : which splits of the group are wanted.
    local : accept a root whose counts are unknown or differ from the publisher's.
    per_class : images to take of each class, in place of the recipe's number; a smaller number selects a
        subset of what a larger one selects.
    allow_short : take fewer where a class holds fewer, and record it in ``shortfalls``.

    Raises
    ------
    SourceError : the root is not the whole source, or that cannot be known, and not ``local``.
    MissingImageError : a class holds too few images, without ``allow_short``.
    """
    recipe = load_recipe(manifest)
    rules = {s: _counted(rule, per_class) for s, rule in group.images.items()}
    _check_drawable(recipe, group, rules, manifest.name)
    pools = {rules[s].from_ for s in splits}
    # earlier splits of the same pool take their share first
    cut = group.model_copy(update={"images": {s: r for s, r in rules.items() if r.from_ in pools}})
    alone = recipe.model_copy(update={"group": (cut,)})
    rows = manifest.classes.select(["class_id", "group"]).to_pylist()
    classes = {group.name: sorted(r["class_id"] for r in rows if r["group"] == group.name)}
    noted: list[Shortfall] = []
    sources = {source.name: source}
    selections = select_images(alone, manifest.data.seed, classes, sources, local=local, shortfalls=noted)
    for selection in selections:
        if selection.awaiting is not None:
            raise SourceError(
                selection.awaiting.reason,
                where=str(source.root),
                hint="complete the root"
                if local
                else "--local draws from what this root holds; such a set is called @local and never frozen",
            )
    shortfalls = [s for s in noted if s.split in splits]
    if shortfalls and not allow_short:
        raise _too_few(shortfalls, source)
    population: Counter[str] = Counter()
    for of_pool in {rules[s.split].from_: s.drawn_from for s in selections}.values():
        population.update(of_pool)
    images = {s.split: s.images for s in selections if s.split in splits}
    return Draw(images, shortfalls, population, any(s.local for s in selections))


def _counted(rule: ImageRule, per_class: int | None) -> ImageRule:
    if per_class is None or (rule.per_class is None and rule.total is None):
        return rule
    return rule.model_copy(update={"per_class": per_class, "total": None})


def _check_drawable(recipe: Recipe, group: Group, rules: Mapping[str, ImageRule], name: str) -> None:
    """Leave to ``wordnet-splits build`` what depends on lists, other groups or overlapping pools."""
    pools = {rule.from_ for rule in rules.values()}
    splits = [s for pool in pools for s in expand(group.source, pool or ())]
    reused = any(g.reuse for g in recipe.group if g.source == group.source)
    if None in pools or reused or len(splits) != len(set(splits)):
        raise SourceError(
            f"the images of group {group.name} depend on lists or on other groups",
            where=name,
            hint=f"run 'wordnet-splits build {recipe.name} --root {group.source}=DIR', "
            f"then 'fix-resize build from-manifest build/{recipe.name}'",
        )


def _too_few(shortfalls: Sequence[Shortfall], source: Source) -> MissingImageError:
    wanted, taken = sum(s.wanted for s in shortfalls), sum(s.taken for s in shortfalls)
    first = shortfalls[0]
    return MissingImageError(
        f"{len(shortfalls)} classes hold {taken:,} of {wanted:,} images to be taken, such as "
        f"{first.class_id!r} {first.taken:,} of {first.wanted:,} for {first.split}",
        where=f"{source.name} under {source.root}",
        hint="complete the root, ask for fewer with --per-class, or take what is there with --allow-missing",
    )
