"""Operators of families: siblings (halves of them) and below_one (of several categories)."""

from __future__ import annotations

from dataclasses import dataclass

from wordnet_splits.rules.context import WORDNET, Question
from wordnet_splits.rules.evidence import Names, counted, listed, renders
from wordnet_splits.rules.model import Expression, Siblings
from wordnet_splits.rules.registry import operator
from wordnet_splits.rules.structure import all_above, unrelated
from wordnet_splits.rules.verdict import Finding, Via


@dataclass(frozen=True)
class Member:
    """A class among its siblings; ``middle`` is the half that the middle class of its family is in."""

    parents: tuple[str, ...]
    family: int
    place: int
    of: int
    middle: str

    @property
    def half(self) -> str:
        """The half that the class is in."""
        if self.of % 2 and self.place == self.of // 2:
            return self.middle
        return "first" if self.place < self.of // 2 else "second"


@operator("siblings")
def siblings(test: Expression, ask: Question) -> dict[str, Finding]:
    """True of the classes in one half of their family (Noda et al. 2025: halves of siblings).

    A family is the classes of the same parents in the hierarchy that the recipe names; families come in the
    order of their first classes, the classes of each in the order of the source. As with `slice`, they are
    counted over the whole catalog, whatever groups have taken, so that the halves fit together. A class
    without a parent is in no family.
    """
    rule: Siblings = test.value
    family = families(ask, rule.odd)
    found = {}
    for c in ask.candidates:
        if (own := family.get(c)) is None:
            found[c] = Finding(test, False)
            continue
        via = tuple(Via("ancestor", p, WORDNET, p, float(own.place)) for p in own.parents)
        found[c] = Finding(test, own.half == rule.half, via, (str(own.of), own.half, str(own.family)))
    return found


def families(ask: Question, odd: str) -> dict[str, Member]:
    """Return every class of the catalog that has a parent, with its place in its family."""
    graph = ask.context.graph
    members: dict[tuple[str, ...], list[str]] = {}
    for item in sorted(ask.catalog, key=lambda item: (item.index, item.class_id)):
        parents = tuple(sorted({parent for wnid in item.wnids for parent in graph.parents(wnid)}))
        if parents:
            members.setdefault(parents, []).append(item.class_id)
    found: dict[str, Member] = {}
    odd_ones = 0
    for number, (parents, classes) in enumerate(members.items()):
        middle = ("first", "second")[odd_ones % 2] if odd == "alternate" else odd
        odd_ones += len(classes) % 2
        for place, class_id in enumerate(classes):
            found[class_id] = Member(parents, number, place, len(classes), middle)
    return found


@renders("siblings")
def _siblings(finding: Finding, names: Names) -> str:
    if not finding.via:
        return f"{names.it} has no parent and so no siblings"
    size, half, _ = finding.words
    parents = listed([names.synset(via.wnid) for via in finding.via])
    place = f"number {finding.via[0].value:.0f}, from 0, of {counted(int(size), 'class')} with the parent"
    return f"{names.it} is {place}{'s' if len(finding.via) > 1 else ''} {parents}, in the {half} half"


@operator("below_one")
def below_one(test: Expression, ask: Question) -> dict[str, Finding]:
    """True of the classes at or below exactly one synset of the operand (Ren et al. 2018: categories).

    The evidence is that synset; of a class below several all of them, the nearest first.
    """
    roots = ask.synsets(test.value)

    def evidence(class_id: str) -> tuple[Via, ...]:
        above = all_above(ask.wnids(class_id), roots, ask.context.graph)
        return tuple(
            Via("ancestor" if edges else "equal", wnid, *roots[wnid][0], float(edges))
            for edges, wnid in above
        )

    found = {c: evidence(c) for c in ask.candidates}
    missed = unrelated([c for c, via in found.items() if not via], roots, ask)
    return {c: Finding(test, len(via) == 1, via or missed[c]) for c, via in found.items()}


@renders("below_one")
def _below_one(finding: Finding, names: Names) -> str:
    if not finding.via or finding.via[0].relation == "unrelated":
        return f"{names.it} is not at or below {names.any_of(finding.test.value, finding.via)}"
    synsets = listed([names.synset(via.wnid) for via in finding.via])
    if len(finding.via) > 1:
        return f"{names.it} lies below several, {synsets}"
    verb = "is" if finding.via[0].relation == "equal" else "lies below"
    return f"of all synsets named {names.it} {verb} {synsets} alone"
