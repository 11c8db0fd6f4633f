"""A rule in words, for who does not read the recipe's syntax."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pydantic import BaseModel

from wordnet_splits.rules.model import MEANINGS, ClassRule, Expression, Operand, rule_text

SHOWN: Final = 12
KINDS: Final = {"group": "the group ", "source": "", "split": "the split ", "list": "the list "}


def rule_words(rule: Expression) -> str:
    """Return what a rule is true of, as one phrase.

    >>> from wordnet_splits.recipe import load_recipe
    >>> rule_words(load_recipe("digits").group[1].classes)
    'a direct hypernym in common: those of the group digits-0-5'
    """
    drawn = isinstance(rule, ClassRule) and rule.draw is not None
    what = _operator(rule) if rule.operator else "all classes"
    if not drawn or not isinstance(rule, ClassRule):
        return what
    within = f" of each {rule.within}" if rule.within else ""
    return f"{rule.draw:,} classes{within}, drawn from: {what}"


def _operator(rule: Expression) -> str:
    operator, value = rule.operator, rule.value
    if operator in ("all", "any"):
        parts = [rule_words(part) for part in value]
        joint = " and " if operator == "all" else " or "
        return joint.join(f"({part})" if len(parts) > 1 else part for part in parts)
    if operator == "not":
        return f"not ({rule_words(value)})"
    if operator == "rest":
        return MEANINGS[operator]
    more = f", {rule.relation}" if rule.relation else ""
    return f"{MEANINGS[operator]}: {_value(value)}{more}"


def _value(value: Any) -> str:
    if isinstance(value, Operand):
        return _operand(value)
    if isinstance(value, tuple):
        return _some(value)
    return rule_text(value) if isinstance(value, BaseModel) else str(value)


def _operand(operand: Operand) -> str:
    if operand.kind == "ids":
        return _some(operand.ids)
    return f"those of {KINDS[operand.kind]}{operand.name}"


def _some(names: Sequence[str]) -> str:
    more = f", ... ({len(names):,} in all)" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
