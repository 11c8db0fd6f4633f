"""Draw the images of a group from a root if their ids are not in the manifest.

``wordnet-splits build`` draws the same images.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from wordnet_splits.base.errors import MissingImageError, SourceError
from wordnet_splits.benchmark.construct.population import expand
from wordnet_splits.benchmark.construct.selection import Shortfall, select_images
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.benchmark.recipe import Group, ImageRule, Recipe, load_recipe
from wordnet_splits.datasets.sources import Source


@dataclass(frozen=True)
class GroupDraw:
    """The images drawn for a group.

    Attributes
    ----------
    images : image ids by split and class.
    shortfalls : classes with fewer images than required.
    population : number of images from which each class was drawn.
    local : whether the root may be incomplete.
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
) -> GroupDraw:
    """Draw the images of a group from a root.

    Parameters
    ----------
    splits : splits of the group to draw.
    local : accept a root whose counts are unknown or differ from the publisher's.
    per_class : number of images per class, instead of the recipe's; a smaller number draws a subset of a
        larger draw.
    allow_short : accept classes with too few images, and record them in ``shortfalls``.

    Raises
    ------
    SourceError : the root may be incomplete, and ``local`` is false.
    MissingImageError : a class has too few images, and ``allow_short`` is false.
    """
    recipe = load_recipe(manifest)
    rules = {s: _with_count(rule, per_class) for s, rule in group.images.items()}
    _check_drawable(recipe, group, rules, manifest.name)
    pools = {rules[s].from_ for s in splits}
    # earlier splits of the same pool come first in its order
    drawn_group = group.model_copy(update={"images": {s: r for s, r in rules.items() if r.from_ in pools}})
    group_recipe = recipe.model_copy(update={"group": (drawn_group,)})
    rows = manifest.classes.select(["class_id", "group"]).to_pylist()
    classes = {group.name: sorted(r["class_id"] for r in rows if r["group"] == group.name)}
    all_shortfalls: list[Shortfall] = []
    sources = {source.name: source}
    selections = select_images(
        group_recipe, manifest.data.seed, classes, sources, local=local, shortfalls=all_shortfalls
    )
    for selection in selections:
        if selection.awaiting is not None:
            raise SourceError(
                selection.awaiting.reason,
                where=str(source.root),
                hint="complete the root"
                if local
                else "--local draws from this root as it is; such a set is called @local and never frozen",
            )
    shortfalls = [s for s in all_shortfalls if s.split in splits]
    if shortfalls and not allow_short:
        raise _too_few(shortfalls, source)
    population: Counter[str] = Counter()
    for counts in {rules[s.split].from_: s.drawn_from for s in selections}.values():
        population.update(counts)
    images = {s.split: s.images for s in selections if s.split in splits}
    return GroupDraw(images, shortfalls, population, any(s.local for s in selections))


def _with_count(rule: ImageRule, per_class: int | None) -> ImageRule:
    if per_class is None or (rule.per_class is None and rule.total is None):
        return rule
    return rule.model_copy(update={"per_class": per_class, "total": None})


def _check_drawable(recipe: Recipe, group: Group, rules: Mapping[str, ImageRule], name: str) -> None:
    """Raise SourceError if the draw depends on lists, other groups or overlapping pools."""
    pools = {rule.from_ for rule in rules.values()}
    splits = [s for pool in pools for s in expand(group.source, pool or (), recipe.datasets)]
    reused = any(g.reuse for g in recipe.group if g.source == group.source)
    if None in pools or reused or len(splits) != len(set(splits)):
        raise SourceError(
            f"the images of group {group.name} depend on lists or on other groups",
            where=name,
            hint=f"run 'wordnet-splits build {recipe.name} --root {group.source}=DIR', "
            f"then 'fix-resize build from-manifest build/{recipe.name}'",
        )


def _too_few(shortfalls: Sequence[Shortfall], source: Source) -> MissingImageError:
    required, available = sum(s.wanted for s in shortfalls), sum(s.taken for s in shortfalls)
    example = shortfalls[0]
    return MissingImageError(
        f"{len(shortfalls)} classes have {available:,} of {required:,} required images, such as "
        f"{example.class_id!r} {example.taken:,} of {example.wanted:,} for {example.split}",
        where=f"{source.name} under {source.root}",
        hint="complete the root, ask for fewer with --per-class, or accept fewer with --allow-missing",
    )
