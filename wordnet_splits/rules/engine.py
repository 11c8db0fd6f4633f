"""Deciding: operators combined by all, any and not, then the draw."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wordnet_splits.base import sampling
from wordnet_splits.base.errors import RecipeError
from wordnet_splits.rules import families, glosses, labels, naming, nearness, parts, selection, structure
from wordnet_splits.rules.context import Context, Question
from wordnet_splits.rules.model import ClassRule, Expression
from wordnet_splits.rules.registry import find_operator, reads_wordnet
from wordnet_splits.rules.verdict import Finding, Verdict, Via

OPERATOR_MODULES = (families, glosses, labels, naming, nearness, parts, selection, structure)
"""Imported for the operators they register."""

Verdicts = dict[str, Verdict]


def decide(rule: ClassRule, source: str, candidates: Sequence[str], context: Context) -> Verdicts:
    """Judge every candidate class.

    An operator that reads WordNet decides nothing about a class without a synset: neither it nor its opposite
    takes the class, only another part of the rule can, such as ``listed``.

    Parameters
    ----------
    rule : the ``classes = { ... }`` of a group.
    source : the group's source.
    candidates : class_ids of it still on offer.
    context : the benchmark so far.

    Returns
    -------
    class_id -> verdict, in the order of ``candidates``; which classes are taken depends on no order.

    Raises
    ------
    UnknownNameError : an operand names a group, source, list, class or column that does not exist.
    RecipeError : a draw asks for more classes than the rule accepts.
    """
    ask = Question(source, tuple(candidates), context)
    for class_id in ask.candidates:
        _ = ask.catalog[class_id]  # a class of another source is an error, whatever the operator looks at
    verdicts = _evaluate(rule, ask) if rule.operator else {c: Verdict(True, ()) for c in ask.candidates}
    return verdicts if rule.draw is None else _draw(rule, verdicts, ask)


def _evaluate(test: Expression, ask: Question) -> Verdicts:
    combine = COMBINATIONS.get(test.operator)
    if combine is not None:
        return combine(test, ask)
    asked = [c for c in ask.candidates if ask.wnids(c) or not reads_wordnet(test.operator)]
    findings = find_operator(test.operator)(test, ask.among(asked))
    undecided = Verdict(False, (Finding(test, False, undecided=True),), undecided=True)
    judged = {c: Verdict(finding.holds, (finding,)) for c, finding in findings.items()}
    return {c: judged.get(c, undecided) for c in ask.candidates}


def _all(test: Expression, ask: Question) -> Verdicts:
    """Accepted by every part, on the findings of all; refused on the findings of the first that refuses.

    Undecided where a part is and none refuses.
    """
    verdicts = {c: Verdict(True, ()) for c in ask.candidates}
    for part in test.value:
        still = [c for c, verdict in verdicts.items() if verdict.accepted or verdict.undecided]
        for c, verdict in _evaluate(part, ask.among(still)).items():
            before = verdicts[c]
            if before.accepted and verdict.accepted:
                verdicts[c] = Verdict(True, before.findings + verdict.findings)
            elif before.accepted or not (verdict.accepted or verdict.undecided):
                verdicts[c] = verdict
    return verdicts


def _any(test: Expression, ask: Question) -> Verdicts:
    """Accepted on the findings of the first part that accepts; refused on the findings of all.

    Undecided where a part is and none accepts.
    """
    verdicts = {c: Verdict(False, ()) for c in ask.candidates}
    for part in test.value:
        still = [c for c, verdict in verdicts.items() if not verdict.accepted]
        for c, verdict in _evaluate(part, ask.among(still)).items():
            before = verdicts[c]
            if verdict.accepted or (verdict.undecided and not before.undecided):
                verdicts[c] = verdict
            elif not before.undecided:
                verdicts[c] = Verdict(False, before.findings + verdict.findings)
    return verdicts


def _not(test: Expression, ask: Question) -> Verdicts:
    return _opposite(_evaluate(test.value, ask))


def _clear_of(test: Expression, ask: Question) -> Verdicts:
    """Accepted where neither the synsets nor the name come near a class of ``with``.

    Short for ``not = { any = [...] }`` of ``overlaps`` (equal, above, below), ``below_parent_of`` and
    ``keyword_overlap``, so that the evidence of each way of touching is that operator's own.
    """
    touches = Expression.model_validate(
        {
            "any": [
                {"overlaps": test.value.with_, "relation": "ancestry"},
                {"below_parent_of": test.value.with_},
                {"keyword_overlap": test.value},
            ]
        }
    )
    return _opposite(_any(touches, ask))


def _opposite(verdicts: Verdicts) -> Verdicts:
    return {c: Verdict(not (v.accepted or v.undecided), v.findings, v.undecided) for c, v in verdicts.items()}


COMBINATIONS: dict[str, Callable[[Expression, Question], Verdicts]] = {
    "all": _all,
    "any": _any,
    "not": _not,
    "clear_of": _clear_of,
}


def _draw(rule: ClassRule, verdicts: Verdicts, ask: Question) -> Verdicts:
    """Keep ``draw`` of the accepted classes, of each value of the column ``within``, by sampling key."""
    accepted = [c for c, verdict in verdicts.items() if verdict.accepted]
    decided = dict(verdicts)
    for stratum, members in sorted(_strata(rule, accepted, ask).items()):
        context = ask.context
        try:
            drawn = sampling.draw_classes(context.draw, context.seed, ask.source, members, rule.draw or 0)
        except RecipeError as error:
            within = f", {rule.within} {stratum!r}" if rule.within else ""
            raise RecipeError(error.what, where=f"source {ask.source!r}{within}", hint=error.hint) from None
        for place, c in enumerate(sampling.order_classes(context.draw, context.seed, ask.source, members)):
            via = Via("draw", value=float(place + 1))
            digest = sampling.key(context.draw, context.seed, ask.source, c).hex()
            finding = Finding(rule, place < len(drawn), (via,), (str(len(members)), stratum, digest))
            decided[c] = Verdict(finding.holds, (*verdicts[c].findings, finding))
    return decided


def _strata(rule: ClassRule, accepted: Sequence[str], ask: Question) -> dict[str, list[str]]:
    if rule.within is None:
        return {"": list(accepted)}
    values = dict(zip(ask.catalog.column("class_id"), ask.catalog.column(rule.within), strict=True))
    strata: dict[str, list[str]] = {}
    for c in accepted:
        if not values[c]:
            raise RecipeError(
                f"the column {rule.within!r} is empty for class {c!r}",
                where=f"source {ask.source!r}",
                hint="draw within a column that every candidate has",
            )
        strata.setdefault(values[c], []).append(c)
    return strata
