"""Draws from a root, for the sets whose image ids are not frozen because only a copy of the source has them.

The draw is the recipe's own: the same key, the same order of each class, cut as val, then test, then train.
Ids are streamed and only as many kept as can be taken, so that the ten million keys of LSUN fit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from wordnet_splits import sampling
from wordnet_splits.build.population import Populations, count_difference
from wordnet_splits.catalog import load_catalog
from wordnet_splits.errors import MissingImageError, SourceError
from wordnet_splits.manifest import Manifest
from wordnet_splits.manifest.tables import CUT_ORDER
from wordnet_splits.recipe import Group, ImageRule, Recipe, load_recipe
from wordnet_splits.sources import Source

Key = tuple[bytes, str]
"""Sampling key and image id: what a class is ordered by."""


@dataclass(frozen=True)
class Shortfall:
    """A class of which the root holds fewer images than are asked for."""

    group: str
    split: str
    class_id: str
    wanted: int
    taken: int


@dataclass
class Draw:
    """What was drawn for one group.

    Attributes
    ----------
    images : image ids by split and class.
    population : how many images each class was drawn from.
    local : whether they were drawn from what a root happens to hold.
    """

    images: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    shortfalls: list[Shortfall] = field(default_factory=list)
    population: dict[str, int] = field(default_factory=dict)
    local: bool = False


class _Smallest:
    """The ids of one class with the smallest sampling keys, seen one by one."""

    def __init__(self, most: int | None) -> None:
        self.seen = 0
        self._most = most
        self._kept: list[Key] = []

    def add(self, key: Key) -> None:
        self.seen += 1
        self._kept.append(key)
        if self._most is not None and len(self._kept) > 2 * self._most + 64:
            self._kept = sorted(self._kept)[: self._most]

    def ordered(self) -> list[str]:
        return [image_id for _, image_id in sorted(self._kept)]


def draw_group(
    manifest: Manifest,
    group: Group,
    source: Source,
    *,
    splits: Iterable[str],
    local: bool,
    per_class: int | None = None,
    allow_short: bool = False,
) -> Draw:
    """Draw the images of one group from a root.

    Parameters
    ----------
    splits : which splits of the group are wanted.
    local : accept a root whose counts are unknown or differ from the publisher's.
    per_class : take so many images of each class instead of what the recipe says; a smaller number gives a
        part of what a larger one gives.
    allow_short : take what is there where a class holds fewer, and say so in ``shortfalls``.

    Raises
    ------
    SourceError : the root is not the whole source, or that cannot be known, and not ``local``.
    MissingImageError : a class holds too few images, without ``allow_short``.
    """
    recipe = load_recipe(manifest)
    seed = manifest.data.seed
    wanted = [s for s in CUT_ORDER if s in set(splits)]
    rules = {s: _counted(rule, per_class) for s, rule in group.images.items()}
    _check_drawable(recipe, group, rules, manifest.name)
    rows = manifest.classes.filter([g == group.name for g in manifest.classes["group"].to_pylist()])
    members = sorted(rows["class_id"].to_pylist())
    result = Draw()
    for pool in dict.fromkeys(rules[s].from_ for s in wanted):
        assert pool is not None, "checked"
        of_pool = [s for s in CUT_ORDER if s in rules and rules[s].from_ == pool]
        of_pool.sort(key=lambda s: bool(rules[s].rest))
        quotas = {s: _quota(rules[s], recipe.draw, seed, source.name, members) for s in of_pool}
        held, is_local = _held(source, pool, members, quotas.values(), recipe.draw, seed, local)
        result.local |= is_local
        for class_id in members:
            result.population[class_id] = result.population.get(class_id, 0) + held[class_id].seen
            order, first = held[class_id].ordered(), 0
            for split in of_pool:
                count = quotas[split][class_id]
                ids = order[first:] if count is None else order[first : first + count]
                first += len(ids)
                if split in wanted:
                    result.images.setdefault(split, {})[class_id] = ids
                    if count is not None and len(ids) < count:
                        short = Shortfall(group.name, split, class_id, count, len(ids))
                        result.shortfalls.append(short)
    if result.shortfalls and not allow_short:
        raise _too_few(result.shortfalls, source)
    return result


def _counted(rule: ImageRule, per_class: int | None) -> ImageRule:
    if per_class is None or (rule.per_class is None and rule.total is None):
        return rule
    return rule.model_copy(update={"per_class": per_class, "total": None})


def _check_drawable(recipe: Recipe, group: Group, rules: Mapping[str, ImageRule], name: str) -> None:
    """Leave to ``wordnet-splits build`` what hangs on lists, on other groups or on overlapping pools."""
    pools = {rule.from_ for rule in rules.values()}
    splits = [s for pool in pools for s in Populations({}).expand(group.source, pool or ())]
    reused = any(g.reuse for g in recipe.group if g.source == group.source)
    if None in pools or reused or len(splits) != len(set(splits)):
        raise SourceError(
            f"which images group {group.name} takes is decided together with other lists",
            where=name,
            hint=f"run 'wordnet-splits build {recipe.name} --root {group.source}=DIR', "
            f"then 'fix-resize build from-manifest build/{recipe.name}'",
        )


def _quota(
    rule: ImageRule, draw: str, seed: int, source: str, members: Sequence[str]
) -> Mapping[str, int | None]:
    if rule.total is not None:
        return dict(sampling.share_total(rule.total, draw, seed, source, members))
    return dict.fromkeys(members, rule.per_class)  # None: whatever is left


def _held(
    source: Source,
    pool: Sequence[str],
    members: Sequence[str],
    quotas: Iterable[Mapping[str, int | None]],
    draw: str,
    seed: int,
    local: bool,
) -> tuple[dict[str, _Smallest], bool]:
    """Scan publisher's splits; return the first ids of each class, and whether the draw is local."""
    splits = Populations({}).expand(source.name, pool)
    most: dict[str, int | None] = {}
    for class_id in members:
        counts = [q[class_id] for q in quotas]
        most[class_id] = None if None in counts else sum(c for c in counts if c is not None)
    held = {class_id: _Smallest(most[class_id]) for class_id in members}
    seen: dict[str, dict[str, int]] = {split: defaultdict(int) for split in splits}
    for batch in source.scan(splits):
        for image_id, class_id, split in zip(*(c.to_pylist() for c in batch.columns), strict=True):
            seen[split][class_id] += 1
            if class_id in held:
                key = sampling.key(draw, seed, source.name, class_id, image_id)
                held[class_id].add((key, image_id))
    reason = next(filter(None, (_difference(source, s, seen[s]) for s in splits)), None)
    if reason is None and source.order == "published":
        return held, False
    if not local:
        raise SourceError(
            reason or "the copy is not the publisher's, so its positions name no images",
            where=str(source.root),
            hint="--local draws from what this root holds; such a set is called @local and never frozen",
        )
    return held, True


def _difference(source: Source, split: str, seen: Mapping[str, int]) -> str | None:
    catalog = load_catalog(source.name)
    # only the lengths are looked at, and ten million ids are not to be held for them
    images = cast("Mapping[str, list[str]]", {c: range(n) for c, n in seen.items()})
    return count_difference(catalog, split, images)


def _too_few(shortfalls: Sequence[Shortfall], source: Source) -> MissingImageError:
    wanted, taken = sum(s.wanted for s in shortfalls), sum(s.taken for s in shortfalls)
    first = shortfalls[0]
    return MissingImageError(
        f"{len(shortfalls)} classes hold {taken:,} of {wanted:,} images asked of them, such as "
        f"{first.class_id!r} {first.taken:,} of {first.wanted:,} for {first.split}",
        where=f"{source.name} under {source.root}",
        hint="complete the root, ask for fewer with --per-class, or take what is there with --allow-missing",
    )
