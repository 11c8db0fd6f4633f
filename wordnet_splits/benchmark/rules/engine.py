"""Decisions of rules: operators combined by all, any and not, then the draw."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wordnet_splits.base import digests
from wordnet_splits.base.errors import RecipeError
from wordnet_splits.benchmark.rules.context import Candidates, Context
from wordnet_splits.benchmark.rules.registry import OPERATORS, Finding, Verdict, Via
from wordnet_splits.benchmark.rules.syntax import ClassRule, Expression, expand_clear_of

Verdicts = dict[str, Verdict]


def decide(rule: ClassRule, source: str, class_ids: Sequence[str], context: Context) -> Verdicts:
    """Judge every candidate class.

    An operator that reads WordNet decides nothing about a class without a synset: neither the operator nor
    its opposite takes the class, only another part of the rule can, such as ``listed``.

    Parameters
    ----------
    rule : the ``classes = { ... }`` of a group.
    source : the group's source.
    class_ids : classes of the source that no earlier group has taken.
    context : the benchmark so far.

    Returns
    -------
    class_id -> verdict, in the order of ``class_ids``; the verdicts do not depend on that order.

    Raises
    ------
    UnknownNameError : an operand names a group, source, list, class or column that does not exist.
    RecipeError : a draw asks for more classes than the rule accepts, or the hierarchy lacks parts, glosses
        or names that an operator reads.
    """
    candidates = Candidates(source, tuple(class_ids), context)
    for class_id in candidates.class_ids:
        _ = candidates.catalog[class_id]  # refuses a class of another source, whatever the operator
    verdicts = _evaluate(rule, candidates) if rule.operator else _same_verdict(candidates, accepted=True)
    return verdicts if rule.draw is None else _draw(rule, verdicts, candidates)


def _same_verdict(candidates: Candidates, *, accepted: bool) -> Verdicts:
    return dict.fromkeys(candidates.class_ids, Verdict(accepted, ()))


def _evaluate(expression: Expression, candidates: Candidates) -> Verdicts:
    combine = COMBINATIONS.get(expression.operator)
    if combine is not None:
        return combine(expression, candidates)
    operator = OPERATORS[expression.operator]
    candidates.require(operator.reads, expression.operator)
    judged = [c for c in candidates.class_ids if candidates.wnids(c) or not operator.reads]
    findings = operator.judge(expression, candidates.select(judged))
    undecided = Verdict(False, (Finding(expression, False, undecided=True),), undecided=True)
    return {
        c: Verdict(findings[c].holds, (findings[c],)) if c in findings else undecided
        for c in candidates.class_ids
    }


def _all(expression: Expression, candidates: Candidates) -> Verdicts:
    """Accept the classes that every table accepts.

    An accepted class keeps the findings of all tables; a refused class keeps the findings of the first table
    that refuses it. A class is undecided if a table is undecided and no table refuses.
    """
    verdicts = _same_verdict(candidates, accepted=True)
    for part in expression.value:
        remaining = [c for c, verdict in verdicts.items() if verdict.accepted or verdict.undecided]
        for c, verdict in _evaluate(part, candidates.select(remaining)).items():
            before = verdicts[c]
            if before.accepted and verdict.accepted:
                verdicts[c] = Verdict(True, before.findings + verdict.findings)
            elif before.accepted or not (verdict.accepted or verdict.undecided):
                verdicts[c] = verdict
    return verdicts


def _any(expression: Expression, candidates: Candidates) -> Verdicts:
    """Accept the classes that at least one table accepts.

    An accepted class keeps the findings of the first table that accepts it; a refused class keeps the
    findings of all tables. A class is undecided if a table is undecided and no table accepts.
    """
    verdicts = _same_verdict(candidates, accepted=False)
    for part in expression.value:
        remaining = [c for c, verdict in verdicts.items() if not verdict.accepted]
        for c, verdict in _evaluate(part, candidates.select(remaining)).items():
            before = verdicts[c]
            if verdict.accepted or (verdict.undecided and not before.undecided):
                verdicts[c] = verdict
            elif not before.undecided:
                verdicts[c] = Verdict(False, before.findings + verdict.findings)
    return verdicts


def _not(expression: Expression, candidates: Candidates) -> Verdicts:
    return _opposite(_evaluate(expression.value, candidates))


def _clear_of(expression: Expression, candidates: Candidates) -> Verdicts:
    """Accept the classes whose synsets and whose name both stay clear of the classes of ``with``.

    Shorthand for ``not = { any = [...] }`` with the operators ``overlaps`` (equal, above, below),
    ``below_parent_of`` and ``keyword_overlap``; these operators supply the evidence.
    """
    return _opposite(_any(expand_clear_of(expression), candidates))


def _opposite(verdicts: Verdicts) -> Verdicts:
    return {c: Verdict(not (v.accepted or v.undecided), v.findings, v.undecided) for c, v in verdicts.items()}


COMBINATIONS: dict[str, Callable[[Expression, Candidates], Verdicts]] = {
    "all": _all,
    "any": _any,
    "not": _not,
    "clear_of": _clear_of,
}


def _draw(rule: ClassRule, verdicts: Verdicts, candidates: Candidates) -> Verdicts:
    """Keep ``draw`` of the accepted classes, of each value of the column ``within``, by sampling key."""
    accepted = [c for c, verdict in verdicts.items() if verdict.accepted]
    drawn_verdicts = dict(verdicts)
    context, source, size = candidates.context, candidates.source, rule.draw or 0
    for stratum, members in sorted(_strata(rule, accepted, candidates).items()):
        try:
            drawn = digests.draw_classes(context.draw, context.seed, source, members, size)
        except RecipeError as error:
            within = f", {rule.within} {stratum!r}" if rule.within else ""
            raise RecipeError(error.what, where=f"source {source!r}{within}", hint=error.hint) from None
        for position, c in enumerate(digests.order_classes(context.draw, context.seed, source, members)):
            via = Via("draw", value=float(position + 1))
            finding = Finding(rule, position < len(drawn), (via,), (str(len(members)), stratum))
            drawn_verdicts[c] = Verdict(finding.holds, (*verdicts[c].findings, finding))
    return drawn_verdicts


def _strata(rule: ClassRule, class_ids: Sequence[str], candidates: Candidates) -> dict[str, list[str]]:
    if rule.within is None:
        return {"": list(class_ids)}
    catalog = candidates.catalog
    values = dict(zip(catalog.column("class_id"), catalog.column(rule.within), strict=True))
    strata: dict[str, list[str]] = {}
    for c in class_ids:
        if not values[c]:
            raise RecipeError(
                f"the column {rule.within!r} is empty for class {c!r}",
                where=f"source {candidates.source!r}",
                hint="draw within a column that every candidate has",
            )
        strata.setdefault(values[c], []).append(c)
    return strata
