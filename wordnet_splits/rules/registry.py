"""The table of operators: what a recipe's key means."""

from __future__ import annotations

from collections.abc import Callable

from wordnet_splits.rules.context import Question
from wordnet_splits.rules.model import Expression
from wordnet_splits.rules.verdict import Finding

Operator = Callable[[Expression, Question], dict[str, Finding]]
"""Judges every candidate: class_id -> whether the operator is true of it, and by what evidence."""

_OPERATORS: dict[str, Operator] = {}
_WITHOUT_WORDNET: set[str] = set()


def operator(name: str, *, reads_wordnet: bool = True) -> Callable[[Operator], Operator]:
    """Register a function as the meaning of an operator's key.

    One that ``reads_wordnet`` is asked only about classes that have a synset.
    """

    def register(function: Operator) -> Operator:
        _OPERATORS[name] = function
        if not reads_wordnet:
            _WITHOUT_WORDNET.add(name)
        return function

    return register


def find_operator(name: str) -> Operator:
    """Return the function that an operator's key stands for."""
    return _OPERATORS[name]


def reads_wordnet(name: str) -> bool:
    """Say whether an operator decides by the synsets of a class."""
    return name not in _WITHOUT_WORDNET


def operator_names() -> tuple[str, ...]:
    """Return the keys of all registered operators, sorted."""
    return tuple(sorted(_OPERATORS))
