"""Operators of rules: how each judges classes, what it reads and how its evidence is worded."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from wordnet_splits.base.registry import Registry
from wordnet_splits.benchmark.rules.context import Candidates
from wordnet_splits.benchmark.rules.verdict import Finding

if TYPE_CHECKING:
    from wordnet_splits.benchmark.rules.evidence import Names
    from wordnet_splits.benchmark.rules.syntax import Expression

Judge = Callable[["Expression", Candidates], dict[str, Finding]]
"""Judges every candidate: class_id -> whether the operator is true of it, and by what evidence."""
Wording = Callable[[Finding, "Names"], str]
"""Puts a finding into words."""

SENSE, HIERARCHY, MEASURE, WORDNET = "sense", "hierarchy", "measure", "wordnet"
GRAPH = frozenset({SENSE, HIERARCHY, WORDNET})
NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Operator:
    """An operator of rules.

    Attributes
    ----------
    judge : the function that judges candidates.
    value : type of the value of its key, as of a field of a pydantic model.
    meaning : what it is true of, in a few words.
    wording : the function that puts its findings into words.
    reads : what the operator depends on: the ``sense`` that a class is mapped to, the ``hierarchy``, the
        similarity ``measure``, the version of ``wordnet``. An operator that reads any of them is asked only
        about classes that have a synset.
    clause : plural predicate about classes, with ``{}`` for the value, as in ``"lie at or below {}"``; if
        empty, `rules.words` writes the key and its meaning.
    """

    judge: Judge
    value: Any
    meaning: str
    wording: Wording
    reads: frozenset[str]
    clause: str = ""


OPERATORS: Final = Registry[Operator](
    "operator",
    f"{__package__}.operators",
    "wordnet_splits.operators",
    pattern=re.compile(r"[a-z][a-z0-9_]*"),
)


def register_operator(
    name: str, *, value: Any, meaning: str, reads: frozenset[str], wording: Wording, clause: str = ""
) -> Callable[[Judge], Judge]:
    """Register the decorated function as the operator of that key; see `Operator` for the parameters."""
    return OPERATORS.register(name, lambda judge: Operator(judge, value, meaning, wording, reads, clause))
