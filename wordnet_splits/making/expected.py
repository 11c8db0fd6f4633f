"""Number of images that a split will have, from published counts."""

from __future__ import annotations

from collections.abc import Sequence

from wordnet_splits.catalog import load_catalog
from wordnet_splits.making.plan import SplitPlan
from wordnet_splits.making.population import Populations
from wordnet_splits.sources import source_class


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
