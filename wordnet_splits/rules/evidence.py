"""Evidence in words: one sentence a reviewer accepts, rendered from a verdict's findings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from wordnet_splits.rules.context import WORDNET, Context
from wordnet_splits.rules.model import (
    ClassRule,
    Expression,
    KeywordOverlap,
    Operand,
    SimilarityBound,
    Slice,
)
from wordnet_splits.rules.verdict import Finding, Key, Verdict, Via

NAMED = 3
"""How many of several classes or synsets a sentence names, the nearest; it says how many there are."""
SHOWN_HASH = 12
"""Hexadecimal digits of a sampling key that a sentence shows."""


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 edge``, ``405 candidates``, ``2 classes``."""
    plural = f"{noun}es" if noun.endswith("s") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def listed(names: Sequence[str], last: str = "and") -> str:
    """Return names as a sentence lists them: ``a, b and c``."""
    return f" {last} ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


@dataclass(frozen=True)
class Names:
    """How sentences call the classes and synsets of one benchmark.

    ``subject`` is the class judged, ``named`` whether the sentence has named it already.
    """

    subject: Key
    context: Context
    named: bool = False

    @property
    def it(self) -> str:
        """The class judged."""
        return "it" if self.named else self.of_class(self.subject)

    def of_class(self, key: Key) -> str:
        """Return the name of a class; of a wnid given by itself, its synset."""
        if key[0] == WORDNET:
            return self.synset(key[1])
        return self.context.catalog(key[0])[key[1]].name.replace("_", " ")

    def synset(self, wnid: str | None) -> str:
        """Return a synset as its first lemma and wnid: ``toy dog (n02085374)``."""
        if wnid is None:
            return "no synset"
        return f"{self.context.taxonomy.lemmas(wnid)[0].replace('_', ' ')} ({wnid})"

    def kind(self, operand: Operand) -> str:
        """Return what a class of the operand is called: ``ID class``, ``cifar100 class``."""
        if operand.kind == "group":
            role = self.context.roles.get(operand.name, operand.name)
            return f"{'ID' if role == 'id' else role} class"
        return "class" if operand.kind == "ids" else f"{operand.name} class"

    def a_kind(self, operand: Operand) -> str:
        """Return the same with its article."""
        kind = self.kind(operand)
        return f"{'an' if kind[0].lower() in 'aeio' else 'a'} {kind}"

    def other(self, operand: Operand, via: Via) -> str:
        """Return the class on the other side: ``the ID class pug``."""
        return self.others(operand, [via])

    def others(self, operand: Operand, vias: Sequence[Via]) -> str:
        """Return the classes on the other side, the first three of them and their number."""
        keys = list(dict.fromkeys((str(v.other_source), str(v.other_class)) for v in vias))
        shown = listed([self.of_class(key) for key in keys[:NAMED]])
        if keys[0][0] == WORDNET:
            return shown
        if len(keys) == 1:
            return f"the {self.kind(operand)} {shown}"
        of = f" ({len(keys):,} in all)" if len(keys) > NAMED else ""
        return f"the {self.kind(operand)}es {shown}{of}"

    def any_of(self, operand: Operand, missed: Sequence[Via] = ()) -> str:
        """Return what all classes of the operand together are called; of many synsets the nearest three."""
        if operand.kind != "ids":
            return self.a_kind(operand)
        if len(operand.ids) <= NAMED:
            return listed([self.one_id(name) for name in operand.ids], "or")
        nearest = list(dict.fromkeys(via.wnid for via in missed))[:NAMED]
        near = f", the nearest being {listed([self.synset(wnid) for wnid in nearest])}" if nearest else ""
        return f"any of {len(operand.ids):,} synsets{near}"

    def one_id(self, name: str) -> str:
        """Return what stands in an array, a class id or a wnid."""
        catalog = self.context.catalog(self.subject[0])
        if name in catalog:
            return self.of_class((self.subject[0], name))
        return self.synset(self.context.taxonomy.find(name))


Renderer = Callable[[Finding, Names], str]
_RENDERERS: dict[str, Renderer] = {}


def renders(operator: str) -> Callable[[Renderer], Renderer]:
    """Register the function that puts an operator's findings into words."""

    def register(function: Renderer) -> Renderer:
        _RENDERERS[operator] = function
        return function

    return register


def renderer_names() -> tuple[str, ...]:
    """Return the operators whose findings have words, sorted."""
    return tuple(sorted(_RENDERERS))


def sentence(verdict: Verdict, *, source: str, class_id: str, group: str, context: Context) -> str:
    """Return a verdict as one sentence without a full stop.

    Parameters
    ----------
    verdict : what a rule decided about the class.
    source, class_id : the class.
    group : the group that takes or refuses it.
    context : the benchmark; its ``roles`` let the sentence say "ID class".
    """
    parts = [
        _RENDERERS[_operator(finding)](finding, Names((source, class_id), context, named=n > 0))
        for n, finding in enumerate(verdict.findings)
    ]
    reason = _joined(parts, verdict) or f"every class of {source} on offer is taken"
    return f"{group}: {reason}" if verdict.accepted else f"not {group}: {reason}"


def _operator(finding: Finding) -> str:
    if finding.undecided:
        return "undecided"
    drawn = any(via.relation == "draw" for via in finding.via)
    return "draw" if drawn else finding.test.operator


def _joined(parts: list[str], verdict: Verdict) -> str:
    last = verdict.findings[-1] if verdict.findings else None
    if last is not None and _operator(last) == "draw" and not last.holds:
        reason = "; ".join(parts[:-1])
        return f"{parts[-1]} ({reason})" if reason else parts[-1]
    return "; ".join(parts)


@renders("listed")
def _listed(finding: Finding, names: Names) -> str:
    operand: Operand = finding.test.value
    place = {
        "ids": "the rule",
        "source": f"the source {operand.name}",
        "split": f"the publisher's split {operand.name}",
        "list": f"the published list {operand.name}",
        "group": f"the group {operand.name}",
    }[operand.kind]
    return f"{names.it} is{'' if finding.holds else ' not'} named in {place}"


@renders("rest")
def _rest(finding: Finding, names: Names) -> str:
    if not finding.words:
        return f"every class of {names.subject[0]} is taken, {names.it} too"
    group = "group" if len(finding.words) == 1 else "groups"
    return f"{names.it} is in no earlier group of {names.subject[0]} ({group} {listed(finding.words)})"


@renders("slice")
def _slice(finding: Finding, names: Names) -> str:
    rule: Slice = finding.test.value
    if not finding.words:
        return f"{names.it} is not below {names.any_of(Operand('ids', ids=rule.of), finding.via)}"
    via = finding.via[0]
    classes = counted(int(finding.words[0]), "class")
    place = f"{names.it} is number {via.value:.0f}, from 0, of the {classes} below"
    if rule.half is not None:
        part = f"the {rule.half} half"
    elif rule.first is not None:
        part = f"the first {rule.first}"
    else:
        at = ", ".join(map(str, rule.at or ()))
        part = f"number {at} of every {rule.every}"
    return f"{place} {names.synset(via.wnid)}, {'in' if finding.holds else 'not in'} {part}"


@renders("subtree")
def _subtree(finding: Finding, names: Names) -> str:
    if not finding.holds:
        return f"{names.it} is not at or below {names.any_of(finding.test.value, finding.via)}"
    via = finding.via[0]
    verb = "is" if via.relation == "equal" else "lies below"
    return f"{names.it} {verb} {names.synset(via.wnid)}"


@renders("shares_parent_with")
def _shares_parent_with(finding: Finding, names: Names) -> str:
    operand: Operand = finding.test.value
    if not finding.holds:
        return f"{names.it} shares no parent with {names.any_of(operand, finding.via)}"
    others, parent = _nearest(finding, operand, names)
    return f"{names.it} and {others} share the parent {parent}"


@renders("below_parent_of")
def _below_parent_of(finding: Finding, names: Names) -> str:
    operand: Operand = finding.test.value
    if not finding.holds:
        return f"{names.it} is not at or below a parent of {names.any_of(operand, finding.via)}"
    relation = finding.via[0].relation
    others, parent = _nearest(finding, operand, names)
    if relation == "sibling":
        return f"{names.it} and {others} share the parent {parent}"
    return f"{names.it} {'is' if relation == 'equal' else 'lies below'} {parent}, a parent of {others}"


@renders("overlaps")
def _overlaps(finding: Finding, names: Names) -> str:
    operand: Operand = finding.test.value
    stands_for = "a sense of the name of" if finding.test.senses == "any" else "the synset of"
    if not finding.holds:
        where = {
            "equal": "is not",
            "self-or-above": "neither is nor lies above",
            "ancestry": "neither is nor lies above or below",
        }.get(finding.test.relation or "", "neither is nor lies below")
        return f"{names.it} {where} {stands_for} {names.any_of(operand, finding.via)}"
    others, synset = _nearest(finding, operand, names)
    verb = {"equal": "is", "ancestor": "lies below", "descendant": "lies above"}[finding.via[0].relation]
    return f"{names.it} {verb} {synset}, {stands_for} {others}"


def _nearest(finding: Finding, operand: Operand, names: Names) -> tuple[str, str]:
    """Return the classes that the nearest synset of the evidence stands for, and that synset."""
    first = finding.via[0]
    through = [v for v in finding.via if (v.relation, v.wnid) == (first.relation, first.wnid)]
    return names.others(operand, through), names.synset(first.wnid)


@renders("keyword_overlap")
def _keyword_overlap(finding: Finding, names: Names) -> str:
    rule: KeywordOverlap = finding.test.value
    if not finding.holds:
        all_kin = ", a sibling, an ancestor or a descendant of one"
        kin = all_kin if rule.nodes == "all" else " or an ancestor of one"
        return f"no keyword of {names.it} reaches {names.a_kind(rule.with_)}{kin}"
    reached, relative = finding.via[:2]
    keyword, kind, lemma = finding.words
    variant = "" if kind in ("name", "tokens") else f", by {kind},"
    other = names.other(rule.with_, relative)
    what = {
        "equal": f"which is {other}",
        "sibling": f"whose sibling under {names.synset(relative.wnid)} is {other}",
        "ancestor": f"which lies below {other}",
        "descendant": f"below which lies {other}",
    }[relative.relation]
    spelled = "" if lemma == keyword else f" as {lemma.replace('_', ' ')!r}"
    return (
        f"the keyword {keyword.replace('_', ' ')!r}{variant} of {names.it} reaches "
        f"{names.synset(reached.wnid)}{spelled}, {what}"
        + (f" (the closest of {len(finding.via) // 2:,} such synsets)" if len(finding.via) > 2 else "")
    )


@renders("similarity")
def _similarity(finding: Finding, names: Names) -> str:
    rule: SimilarityBound = finding.test.value
    if not finding.via:
        return f"{names.it} or {names.any_of(rule.to)} has no synset, so that nothing can be measured"
    via = finding.via[0]
    bound = rule.above if rule.above is not None else rule.below
    side = "at least" if finding.holds == (rule.above is not None) else "less than"
    return (
        f"the {rule.measure} score of {names.it} and the nearest, {names.other(rule.to, via)}, "
        f"is {via.value:.4g}, {side} {bound:g}"
    )


@renders("undecided")
def _undecided(finding: Finding, names: Names) -> str:
    return (
        f"{names.it} has no synset, so that a rule that reads WordNet takes it only where it lists it by name"
    )


@renders("draw")
def _draw(finding: Finding, names: Names) -> str:
    rule: Expression = finding.test
    assert isinstance(rule, ClassRule)
    candidates, stratum, digest = finding.words
    of = f" of {stratum.replace('_', ' ')}" if stratum else ""
    place = f"number {finding.via[0].value:.0f} of {counted(int(candidates), 'candidate')}{of}"
    context = names.context
    return (
        f"{'drawn' if finding.holds else 'not drawn'} as {place} in the order of their BLAKE2b keys "
        f"(its own is {digest[:SHOWN_HASH]}..., of draw {context.draw!r} with seed {context.seed}), "
        f"of which the first {rule.draw} {'is' if rule.draw == 1 else 'are'} taken"
    )
