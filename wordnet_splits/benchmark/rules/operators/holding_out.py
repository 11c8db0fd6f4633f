"""The operator that holds out classes whose relatives stay: whole subtrees, or single leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from wordnet_splits.base.names import counted
from wordnet_splits.base.sampling import order_classes
from wordnet_splits.benchmark.rules.context import WORDNET, Candidates
from wordnet_splits.benchmark.rules.evidence import Names
from wordnet_splits.benchmark.rules.registry import GRAPH, Finding, Via, register_operator
from wordnet_splits.benchmark.rules.rule_values import Key, OperandField, RuleTable

if TYPE_CHECKING:
    from wordnet_splits.benchmark.rules.syntax import Expression

Unit = tuple[str, frozenset[Key]]
"""A node (its wnid) and the classes at or below it."""


class HeldOut(RuleTable):
    """Classes drawn to be held out of ``of``, at most ``classes``; each keeps a relative that is not.

    Attributes
    ----------
    of : an operand: the classes that are divided.
    unit : ``subtrees`` holds out all classes below a node together, ``leaves`` single classes.
    classes : the greatest number of classes to hold out.
    largest : the greatest number of classes of one subtree.
    """

    of: OperandField
    unit: Literal["subtrees", "leaves"]
    classes: Annotated[int, Field(ge=1, strict=True)]
    largest: Annotated[int, Field(ge=2, strict=True)] = 10


def _held_out_wording(finding: Finding, names: Names) -> str:
    rule: HeldOut = finding.expression.value
    if not finding.holds:
        return f"{names.it} is not among the {rule.unit} held out of {names.a_kind(rule.of)}"
    family, remaining = finding.words
    node = names.synset(finding.via[0].wnid)
    unit = f"is {node}" if finding.via[0].relation == "equal" else f"lies below {node}"
    return (
        f"{names.it} {unit}, held out as number {finding.via[0].value:.0f} of the {rule.unit} drawn; "
        f"{counted(int(remaining), 'class')} below {names.synset(family)} stay"
    )


@register_operator(
    "held_out",
    value=HeldOut,
    meaning="drawn as subtrees or leaves whose relatives stay",
    reads=GRAPH,
    wording=_held_out_wording,
)
def held_out(expression: Expression, candidates: Candidates) -> dict[str, Finding]:
    """True of classes drawn to be held out of an operand, so that each has a relative that stays.

    Units (leaves, or nodes of 2 to ``largest`` classes) are considered in the order of the draw. One is held
    out if it shares no class with those before it, fits into ``classes``, has no class that lies above or
    below one outside the unit, and leaves a class to every family: the smallest node above a unit that
    covers more classes than the unit.
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
