"""Operators that pick classes by name or place: listed, slice, rest."""

from __future__ import annotations

from bisect import bisect_left

from wordnet_splits.rules.context import WORDNET, Question
from wordnet_splits.rules.model import Expression, Operand, Slice
from wordnet_splits.rules.registry import operator
from wordnet_splits.rules.structure import unrelated
from wordnet_splits.rules.verdict import Finding, Via


@operator("listed", reads_wordnet=False)
def listed(test: Expression, ask: Question) -> dict[str, Finding]:
    """True of the classes that the operand names.

    A class of another source counts by its class_id: within the ImageNet family that is the wnid.
    """
    named: dict[str, str] = {}
    for source, class_id in ask.classes(test.value):
        if source == ask.source or class_id not in named:
            named[class_id] = source
    return {
        c: Finding(test, True, (Via("list", None, named[c], c),)) if c in named else Finding(test, False)
        for c in ask.candidates
    }


@operator("slice")
def slice_(test: Expression, ask: Question) -> dict[str, Finding]:
    """True of some of the classes strictly below each root, by their place in the sorted whole catalog.

    Places count from 0 over the whole catalog, whatever groups have taken, so that slices of one set of
    roots fit together. The first half of n classes is floor(n/2) (Palechor et al. 2023, section 3).
    """
    rule: Slice = test.value
    found: dict[str, Finding] = {}
    for root in map(ask.context.taxonomy.find, rule.of):
        members, below = _strictly_below(root, ask)
        for class_id in sorted({*members, *(c for c in ask.candidates if ask.has_replaced_synsets(c))}):
            if below.isdisjoint(ask.wnids(class_id)):
                continue
            place = bisect_left(members, class_id)
            if class_id not in found or not found[class_id].holds:
                via = Via("ancestor", root, WORDNET, root, float(place))
                found[class_id] = Finding(
                    test, _in_slice(rule, place, len(members)), (via,), (str(len(members)),)
                )
    roots = ask.synsets(Operand("ids", ids=rule.of))
    missed = unrelated([c for c in ask.candidates if c not in found], roots, ask)
    return {c: found.get(c) or Finding(test, False, missed[c]) for c in ask.candidates}


def _in_slice(rule: Slice, place: int, members: int) -> bool:
    if rule.half is not None:
        return (place < members // 2) == (rule.half == "first")
    if rule.first is not None:
        return place < rule.first
    assert rule.every is not None
    assert rule.at is not None
    return place % rule.every in rule.at


def _strictly_below(root: str, ask: Question) -> tuple[list[str], frozenset[str]]:
    """Return the classes of the catalog strictly below a root, sorted, and all synsets there."""
    below = ask.context.graph.descendants(root) - {root}
    members = sorted(item.class_id for item in ask.catalog if not below.isdisjoint(item.wnids))
    return members, below


@operator("rest", reads_wordnet=False)
def rest(test: Expression, ask: Question) -> dict[str, Finding]:
    """True of every class still on offer."""
    groups = ask.context.groups.items()
    earlier = tuple(name for name, keys in groups if any(source == ask.source for source, _ in keys))
    return {c: Finding(test, True, words=earlier) for c in ask.candidates}
