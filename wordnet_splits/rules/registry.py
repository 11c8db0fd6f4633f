"""The table of operators: what a recipe's key means."""

from __future__ import annotations

from collections.abc import Callable

from wordnet_splits.rules.context import Question
from wordnet_splits.rules.model import Expression
from wordnet_splits.rules.verdict import Finding

Operator = Callable[[Expression, Question], dict[str, Finding]]
"""Judges every candidate: class_id -> whether the operator is true of it, and by what evidence."""

_OPERATORS: dict[str, Operator] = {}


def operator(name: str) -> Callable[[Operator], Operator]:
    """Register a function as the meaning of an operator's key."""

    def register(function: Operator) -> Operator:
        _OPERATORS[name] = function
        return function

    return register


def find_operator(name: str) -> Operator:
    """Return the function that an operator's key stands for."""
    return _OPERATORS[name]


def operator_names() -> tuple[str, ...]:
    """Return the keys of all registered operators, sorted."""
    return tuple(sorted(_OPERATORS))
