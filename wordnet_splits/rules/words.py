"""Rules, and the refusals of a rule that takes no class, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic import BaseModel

from wordnet_splits.rules.context import Candidates, Context
from wordnet_splits.rules.model import MEANINGS, ClassRule, Expression, Operand, rule_text
from wordnet_splits.rules.operators.hierarchy import parents_of
from wordnet_splits.rules.verdict import Verdict

NAMED: Final = 12
"""Most classes that a rule in words names."""
KINDS: Final = {"group": "the group ", "source": "", "split": "the split ", "list": "the list "}
PARENT_OPERATORS: Final = ("shares_parent_with", "below_parent_of")
PARENTS_NAMED: Final = 5
"""Most parents that the refusals of a rule name."""


def rule_words(rule: Expression) -> str:
    """Return the classes of which a rule is true, as one phrase.

    >>> from wordnet_splits.recipe import load_recipe
    >>> rule_words(load_recipe("digits").group[1].classes)
    'a direct hypernym in common: those of the group digits-0-5'
    """
    phrase = _operator_words(rule) if rule.operator else "all classes"
    if not isinstance(rule, ClassRule) or rule.draw is None:
        return phrase
    within = f" of each {rule.within}" if rule.within else ""
    return f"{rule.draw:,} classes{within}, drawn from: {phrase}"


def _operator_words(rule: Expression) -> str:
    operator, value = rule.operator, rule.value
    if operator in ("all", "any"):
        parts = [rule_words(part) for part in value]
        joint = " and " if operator == "all" else " or "
        return joint.join(f"({part})" if len(parts) > 1 else part for part in parts)
    if operator == "not":
        return f"not ({rule_words(value)})"
    if operator == "rest":
        return MEANINGS[operator]
    relation = f", {rule.relation}" if rule.relation else ""
    return f"{MEANINGS[operator]}: {_value_words(value)}{relation}"


def _value_words(value: Any) -> str:
    if isinstance(value, Operand):
        return _join(value.ids) if value.kind == "ids" else f"those of {KINDS[value.kind]}{value.name}"
    if isinstance(value, tuple):
        return _join(value)
    return rule_text(value) if isinstance(value, BaseModel) else str(value)


def _join(names: Sequence[str]) -> str:
    rest = f", ... ({len(names):,} in all)" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + rest


def explain_refusals(source: str, verdicts: Mapping[str, Verdict], context: Context) -> str:
    """Return why a rule took no candidate.

    The reasons are the number of candidates that each operator refused, the score nearest to the bound, and
    the parents of operands.
    """
    if not verdicts:
        return "earlier groups have taken every class of the source"
    last = [v.findings[-1] for v in verdicts.values() if v.findings]
    counts = Counter(finding.expression.operator for finding in last if not finding.undecided)
    clauses = [f"of {len(verdicts):,} candidates {name} decided against {n:,}" for name, n in counts.items()]
    if undecided := sum(finding.undecided for finding in last):
        clauses.append(
            f"{undecided:,} of {len(verdicts):,} candidates have no synset, and the rule reads WordNet"
        )
    scores = [
        (via.value, class_id, via)
        for class_id, verdict in verdicts.items()
        for via in verdict.via
        if via.relation == "threshold" and via.value is not None
    ]
    if scores:
        bounds = (f.expression.value for f in last if f.expression.operator == "similarity")
        best = min if any(bound.below is not None for bound in bounds) else max
        value, class_id, via = best(scores, key=lambda score: score[:2])
        clauses.append(f"the nearest to pass is {class_id!r} with {value:.4g}, beside {via.other_class!r}")
    graph, candidates = context.graph, Candidates(source, tuple(verdicts), context)
    expressions = (finding.expression for finding in last)
    for operand in dict.fromkeys(e.value for e in expressions if e.operator in PARENT_OPERATORS):
        parents = sorted(parents_of(candidates.synsets(operand), graph))
        names = ", ".join(f"{graph.name(wnid)} ({wnid})" for wnid in parents[:PARENTS_NAMED])
        rest = f" and {len(parents) - PARENTS_NAMED:,} more" if len(parents) > PARENTS_NAMED else ""
        clauses.append(f"the parents of {operand} are {names or 'none'}{rest}")
    return "; ".join(clauses)
