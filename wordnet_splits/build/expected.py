"""How many images a split will hold, from published counts alone."""

from __future__ import annotations

from collections.abc import Sequence

from wordnet_splits.build.plan import list_rows
from wordnet_splits.build.population import expand
from wordnet_splits.catalog import load_catalog
from wordnet_splits.catalog.inventory import inventory_splits, load_inventory
from wordnet_splits.recipe import Group


def expected_count(group: Group, split: str, members: Sequence[str]) -> int | None:
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
    pool = _pool_size(group.source, expand(group.source, rule.from_), members)
    if pool is None or rule.all:
        return pool
    for other, other_rule in group.images.items():
        if other_rule.list_ is not None:
            pool -= _listed_in_pool(group, other_rule.list_, members, rule.from_)
        elif other != split and other_rule.from_ == rule.from_:
            taken = expected_count(group, other, members)
            if taken is None:
                return None
            pool -= taken
    return pool


def _listed_in_pool(group: Group, name: str, members: Sequence[str], pool: Sequence[str]) -> int:
    """Count a list's images that come from ``pool``: those in no inventory of another publisher's split."""
    elsewhere: set[str] = set()
    for other in inventory_splits(group.source):
        if other not in pool and (table := load_inventory(group.source, other)) is not None:
            elsewhere.update(table.column("image_id").to_pylist())
    wanted = {(group.source, c) for c in members}
    return sum((source, c) in wanted and i not in elsewhere for source, c, i in list_rows(name))


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
