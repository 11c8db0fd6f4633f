"""Operators that pick classes by name, position or draw: listed, rest, slice, siblings, held_out."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, model_validator

from wordnet_splits.base.digests import order_classes
from wordnet_splits.base.names import counted
from wordnet_splits.benchmark.rules.context import (
    WORDNET,
    Candidates,
    Half,
    Key,
    Operand,
    OperandField,
    RuleTable,
    Synsets,
    Yes,
)
from wordnet_splits.benchmark.rules.operators.hierarchy import unrelated
from wordnet_splits.benchmark.rules.registry import (
    GRAPH,
    NOTHING,
    Finding,
    Names,
    Via,
    join_names,
    register_operator,
)

if TYPE_CHECKING:
    from wordnet_splits.benchmark.rules.syntax import Expression


class Slice(RuleTable):
    """Part of the sorted classes strictly below each root: one half, the first n, or some of every n.

    Attributes
    ----------
    of : the roots: wnids, names such as ``dog.n.01``, or nouns.
    half : the half to take.
    first : the number of classes to take from the start.
    every : the length of a period of classes, with ``at``.
    at : the positions to take in every period, from 0.
    """

    of: Synsets
    half: Half | None = None
    first: Annotated[int, Field(ge=1, strict=True)] | None = None
    every: Annotated[int, Field(ge=1)] | None = None
    at: Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _one_form(self) -> Slice:
        forms = [form for form in (self.half, self.first, self.every) if form is not None]
        if len(forms) != 1 or (self.every is None) != (self.at is None):
            raise ValueError("give one of half, first, or every and at")
        if self.every is not None and self.at is not None and max(self.at) >= self.every:
            raise ValueError(f"at counts from 0 to {self.every - 1} when every is {self.every}")
        return self


class Siblings(RuleTable):
    """One half of each family, the classes of the same parents, in the order of their source.

    Attributes
    ----------
    half : the half to take.
    odd : the half of the middle class of an odd family; ``alternate`` gives it to the first half in the first
        odd family, to the second in the next, and so on.
    """

    half: Half
    odd: Literal["first", "second", "alternate"] = "second"


def _listed_wording(finding: Finding, names: Names) -> str:
    operand: Operand = finding.expression.value
    place = {
        "ids": "named in the rule",
        "source": f"a class of {operand.name}",
        "split": f"in the publisher's split {operand.name}",
        "list": f"in the published list {operand.name}",
        "group": f"in the group {operand.name}",
    }[operand.kind]
    return f"{names.subject} is{'' if finding.holds else ' not'} {place}"


@register_operator(
    "listed", value=OperandField, meaning="the classes named", reads=NOTHING, wording=_listed_wording
)
def listed(expression: Expression, candidates: Candidates) -> dict[str, Finding]:
    """Accept the classes that the operand names.

    A class of another source counts by its class_id: within the ImageNet family that is the wnid.
    """
    source_of: dict[str, str] = {}
    for source, class_id in candidates.classes(expression.value):
        if source == candidates.source or class_id not in source_of:
            source_of[class_id] = source
    vias = {c: (Via("list", None, source_of[c], c),) if c in source_of else () for c in candidates.class_ids}
    return {c: Finding(expression, bool(via), via) for c, via in vias.items()}


def _rest_wording(finding: Finding, names: Names) -> str:
    if not finding.words:
        return f"all classes of {names.key[0]} are taken"
    group = "group" if len(finding.words) == 1 else "groups"
    return (
        f"{names.subject} is not in an earlier group of {names.key[0]} ({group} {join_names(finding.words)})"
    )


@register_operator(
    "rest",
    value=Yes,
    meaning="all that no earlier group took",
    reads=NOTHING,
    wording=_rest_wording,
    clause="are in no earlier set",
)
def rest(expression: Expression, candidates: Candidates) -> dict[str, Finding]:
    """Accept every class that no earlier group has taken."""
    groups = candidates.context.groups.items()
    earlier = tuple(name for name, keys in groups if any(source == candidates.source for source, _ in keys))
    return {c: Finding(expression, True, words=earlier) for c in candidates.class_ids}


def _slice_wording(finding: Finding, names: Names) -> str:
    rule: Slice = finding.expression.value
    if not finding.words:
        return f"{names.subject} is not below {names.any_of(Operand('ids', ids=rule.of), finding.via)}"
    via = finding.via[0]
    classes = counted(int(finding.words[0]), "class")
    place = f"{names.subject} has position {via.value:.0f} (from 0) of the {classes} below"
    if rule.half is not None:
        part = f"the {rule.half} half"
    elif rule.first is not None:
        part = f"the first {rule.first}"
    else:
        at = ", ".join(map(str, rule.at or ()))
        part = f"position{'s' if len(rule.at or ()) > 1 else ''} {at} of every {rule.every}"
    return f"{place} {names.synset(via.wnid)}, {'in' if finding.holds else 'not in'} {part}"


@register_operator(
    "slice",
    value=Slice,
    meaning="a part of the sorted classes below a synset",
    reads=GRAPH,
    wording=_slice_wording,
)
def slice_(expression: Expression, candidates: Candidates) -> dict[str, Finding]:
    """Accept some of the classes strictly below each root, by their position in the sorted whole catalog.

    Positions count from 0 over the whole catalog, including classes of earlier groups, so that slices of the
    same roots fit together. The first half of n classes is floor(n/2) (Palechor et al. 2023, section 3).
    """
    rule: Slice = expression.value
    replaced = [c for c in candidates.class_ids if candidates.key(c) in candidates.context.replaced_synsets]
    findings: dict[str, Finding] = {}
    for root in map(candidates.taxonomy.find, rule.of):
        members, below = _strictly_below(root, candidates)
        for class_id in sorted({*members, *replaced}):
            if below.isdisjoint(candidates.wnids(class_id)):
                continue
            position = bisect_left(members, class_id)
            if class_id not in findings or not findings[class_id].holds:
                via = Via("ancestor", root, WORDNET, root, float(position))
                holds = _in_slice(rule, position, len(members))
                findings[class_id] = Finding(expression, holds, (via,), (str(len(members)),))
    roots = candidates.synsets(Operand("ids", ids=rule.of))
    nearest = unrelated([c for c in candidates.class_ids if c not in findings], roots, candidates)
    return {c: findings.get(c) or Finding(expression, False, nearest[c]) for c in candidates.class_ids}


def _in_slice(rule: Slice, position: int, members: int) -> bool:
    if rule.half is not None:
        return (position < members // 2) == (rule.half == "first")
    if rule.first is not None:
        return position < rule.first
    assert rule.every is not None
    assert rule.at is not None
    return position % rule.every in rule.at


def _strictly_below(root: str, candidates: Candidates) -> tuple[list[str], frozenset[str]]:
    """Return the classes of the catalog strictly below a root, sorted, and all synsets there."""
    below = candidates.context.graph.descendants(root) - {root}
    members = sorted(item.class_id for item in candidates.catalog if not below.isdisjoint(item.wnids))
    return members, below


@dataclass(frozen=True)
class Member:
    """A class among its siblings; ``middle`` is the half that the middle class of its family belongs to."""

    parents: tuple[str, ...]
    family: int
    position: int
    size: int
    middle: str

    @property
    def half(self) -> str:
        """The half that the class belongs to."""
        if self.size % 2 and self.position == self.size // 2:
            return self.middle
        return "first" if self.position < self.size // 2 else "second"


def _siblings_wording(finding: Finding, names: Names) -> str:
    if not finding.via:
        return f"{names.subject} has no parent and so no siblings"
    size, half, _ = finding.words
    parents = join_names([names.synset(via.wnid) for via in finding.via])
    place = f"position {finding.via[0].value:.0f} (from 0) of {counted(int(size), 'class')} with the parent"
    return f"{names.subject} has {place}{'s' if len(finding.via) > 1 else ''} {parents}, in the {half} half"


@register_operator(
    "siblings",
    value=Siblings,
    meaning="one half of the classes of the same parents",
    reads=GRAPH,
    wording=_siblings_wording,
)
def siblings(expression: Expression, candidates: Candidates) -> dict[str, Finding]:
    """Accept the classes in one half of their family (Noda et al. 2025: halves of siblings).

    A family is the classes of the same parents in the hierarchy that the recipe names; families come in the
    order of their first classes, the classes of each in the order of the source. As with `slice`, they
    are counted over the whole catalog, including classes of earlier groups, so that the halves fit together.
    A class without a parent is in no family.
    """
    rule: Siblings = expression.value
    members = family_members(candidates, rule.odd)
    findings = {}
    for c in candidates.class_ids:
        if (member := members.get(c)) is None:
            findings[c] = Finding(expression, False)
            continue
        via = tuple(Via("ancestor", p, WORDNET, p, float(member.position)) for p in member.parents)
        words = str(member.size), member.half, str(member.family)
        findings[c] = Finding(expression, member.half == rule.half, via, words)
    return findings


def family_members(candidates: Candidates, odd: str) -> dict[str, Member]:
    """Return every class of the catalog that has a parent, with its position in its family."""
    graph = candidates.context.graph
    families: dict[tuple[str, ...], list[str]] = {}
    for item in sorted(candidates.catalog, key=lambda item: (item.index, item.class_id)):
        parents = tuple(sorted({parent for wnid in item.wnids for parent in graph.parents(wnid)}))
        if parents:
            families.setdefault(parents, []).append(item.class_id)
    members: dict[str, Member] = {}
    odd_families = 0
    for number, (parents, classes) in enumerate(families.items()):
        middle = ("first", "second")[odd_families % 2] if odd == "alternate" else odd
        odd_families += len(classes) % 2
        for position, class_id in enumerate(classes):
            members[class_id] = Member(parents, number, position, len(classes), middle)
    return members


Unit = tuple[str, frozenset[Key]]
"""A node (its wnid) and the classes at or below it."""


class HeldOut(RuleTable):
    """Classes drawn to be held out of ``of``, at most ``classes``; each keeps a relative that is not.

    Attributes
    ----------
    of : an operand: the classes that are divided.
    unit : ``subtrees`` holds out all classes below a node together, ``leaves`` single classes.
    classes : the greatest number of classes to hold out.
    largest : the greatest number of classes in a subtree.
    """

    of: OperandField
    unit: Literal["subtrees", "leaves"]
    classes: Annotated[int, Field(ge=1, strict=True)]
    largest: Annotated[int, Field(ge=2, strict=True)] = 10


def _held_out_wording(finding: Finding, names: Names) -> str:
    rule: HeldOut = finding.expression.value
    if not finding.holds:
        return f"{names.subject} is not in the {rule.unit} held out by the seeded draw"
    family, remaining = finding.words
    node = names.synset(finding.via[0].wnid)
    unit = f"is {node}" if finding.via[0].relation == "equal" else f"is below {node}"
    draw = f"the seeded draw of {rule.unit} (rank {finding.via[0].value:.0f})"
    return (
        f"{names.subject} {unit}, held out by {draw}, "
        f"which leaves {counted(int(remaining), 'class')} below {names.synset(family)}"
    )


@register_operator(
    "held_out",
    value=HeldOut,
    meaning="drawn as subtrees or leaves whose relatives stay",
    reads=GRAPH,
    wording=_held_out_wording,
)
def held_out(expression: Expression, candidates: Candidates) -> dict[str, Finding]:
    """Accept classes drawn to be held out of an operand, so that each has a relative that stays.

    Units (leaves, or nodes of 2 to ``largest`` classes) are considered in the order of the draw. A unit is
    held out if it shares no class with earlier units, fits into ``classes``, has no class above or below a
    class outside the unit, and leaves a class to every family. A unit's family is the smallest node above
    the unit that covers more classes than the unit.
    """
    rule: HeldOut = expression.value
    graph, context = candidates.context.graph, candidates.context
    below: dict[str, set[Key]] = {}
    synsets: dict[Key, tuple[str, ...]] = {}
    for key, item in candidates.items(rule.of):
        synsets[key] = item.wnids
        for wnid in item.wnids:
            for ancestor in graph.ancestors(wnid):
                below.setdefault(ancestor, set()).add(key)
    depth = {wnid: graph.max_depth(wnid) for wnid in below}
    nodes = sorted(below, key=lambda wnid: (len(below[wnid]), -depth[wnid], wnid))
    deepest: dict[frozenset[Key], str] = {}
    for wnid in nodes:
        deepest.setdefault(frozenset(below[wnid]), wnid)
    kin: dict[Key, set[Key]] = {key: set() for key in synsets}
    for key, wnids in synsets.items():
        for relative in {relative for wnid in wnids for relative in below[wnid]}:
            kin[key].add(relative)
            kin[relative].add(key)
    families: dict[str, Unit] = {}
    held: dict[Key, tuple[str, int]] = {}
    for number, (wnid, keys) in enumerate(_units(rule, deepest, synsets, context.draw, context.seed), 1):
        family = next(((node, of) for of, node in deepest.items() if keys < of), None)
        together = {*held, *keys}
        fits = keys.isdisjoint(held) and len(together) <= rule.classes
        fits = fits and all(kin[key] <= keys for key in keys)
        if family and fits and all(of - together for _, of in (*families.values(), family)):
            families[wnid] = family
            held |= dict.fromkeys(keys, (wnid, number))
    findings = {}
    for class_id in candidates.class_ids:
        if (key := candidates.key(class_id)) not in held:
            findings[class_id] = Finding(expression, False)
            continue
        wnid, number = held[key]
        relation = "equal" if wnid in synsets[key] else "ancestor"
        family_node, of_family = families[wnid]
        words = (family_node, str(len(of_family - held.keys())))
        findings[class_id] = Finding(
            expression, True, (Via(relation, wnid, WORDNET, wnid, float(number)),), words
        )
    return findings


def _units(
    rule: HeldOut,
    deepest: dict[frozenset[Key], str],
    synsets: dict[Key, tuple[str, ...]],
    draw: str,
    seed: int,
) -> list[Unit]:
    """Return what may be held out, in the order of the draw."""
    if rule.unit == "leaves":
        units = {wnids[0]: frozenset({key}) for key, wnids in sorted(synsets.items()) if wnids}
    else:
        units = {wnid: keys for keys, wnid in deepest.items() if 2 <= len(keys) <= rule.largest}
    return [(wnid, units[wnid]) for wnid in order_classes(draw, seed, WORDNET, units)]
