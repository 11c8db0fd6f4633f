"""Rules decide which classes a group takes, and leave evidence."""

from wordnet_splits.rules.context import Context
from wordnet_splits.rules.engine import decide
from wordnet_splits.rules.evidence import sentence
from wordnet_splits.rules.model import (
    ClassRule,
    Expression,
    Operand,
    known_keys,
    lists_used,
    operands,
    rule_text,
)
from wordnet_splits.rules.verdict import Finding, Key, Verdict, Via

__all__ = [
    "ClassRule",
    "Context",
    "Expression",
    "Finding",
    "Key",
    "Operand",
    "Verdict",
    "Via",
    "decide",
    "known_keys",
    "lists_used",
    "operands",
    "rule_text",
    "sentence",
]
