"""Answers of a classifier at any node of WordNet above its classes, and their distance from the truth."""

from __future__ import annotations

from wordnet_splits.hierarchy.nodes import AnswerErrors, ClassHierarchy, balanced_means, compare_answers
from wordnet_splits.hierarchy.stopping import RULES, Conformal, Information, Rule, Threshold, parse_rule

__all__ = [
    "RULES",
    "AnswerErrors",
    "ClassHierarchy",
    "Conformal",
    "Information",
    "Rule",
    "Threshold",
    "balanced_means",
    "compare_answers",
    "parse_rule",
]
