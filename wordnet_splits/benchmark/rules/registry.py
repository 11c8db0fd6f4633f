"""Operators of rules: how each judges classes, what it reads, and its verdicts with their evidence."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from wordnet_splits.base.registry import Registry
from wordnet_splits.benchmark.rules.context import Candidates

if TYPE_CHECKING:
    from wordnet_splits.benchmark.rules.evidence import Names
    from wordnet_splits.benchmark.rules.syntax import Expression


from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from wordnet_splits.benchmark.rules.syntax import Expression


RELATIONS = (
    *("equal", "ancestor", "descendant", "sibling", "keyword", "list", "threshold", "draw"),
    *("unrelated", "name", "part", "whole", "gloss", "named-in-gloss"),
)


class Via(NamedTuple):
    """One piece of evidence, as a row of the class table's ``via`` column.

    Parameters
    ----------
    relation : what ``wnid`` is to this class: ``equal`` (its own synset), its ``ancestor`` or
        ``descendant``, the parent it shares with a ``sibling``, the synset that a ``keyword`` of its name
        reaches; ``list``, ``threshold``, ``draw``; ``unrelated``, a synset that the rule names and
        that is not related to this class; its own synset that has the ``name`` of the other class, or whose
        ``gloss`` names that class; the other class's synset that is the ``whole`` or the ``part`` of this
        class, or whose gloss names this class (``named-in-gloss``). The piece after a ``keyword`` is the
        relation of the other class's synset to the synset reached.
    wnid : the synset concerned.
    other_source, other_class : the class on the other side of the relation; a wnid that the recipe names
        directly is a class of the source ``wordnet``.
    value : edges to ``wnid`` (between the two where ``unrelated``; up to the synset that has the pointer for
        ``part`` and ``whole``); the similarity for ``threshold``; position in the draw, from 1, for ``draw``;
        position in the slice, from 0.
    """

    relation: str
    wnid: str | None = None
    other_source: str | None = None
    other_class: str | None = None
    value: float | None = None


class Finding(NamedTuple):
    """The outcome of one operator, or of the draw, for one class.

    ``expression`` is the table of the operator, ``holds`` whether it is true of the class. ``words`` are
    details for the sentence that have no column in ``via`` (the keyword and its lemma, the number of
    candidates). ``undecided``: the operator reads WordNet and the class has no synset, so that neither the
    operator nor its opposite is known to be true.
    """

    expression: Expression
    holds: bool
    via: tuple[Via, ...] = ()
    words: tuple[str, ...] = ()
    undecided: bool = False


class Verdict(NamedTuple):
    """Whether a rule takes a class, and the findings that decided it.

    An ``undecided`` class is not accepted: the decision depends on a synset, and the class has none.
    """

    accepted: bool
    findings: tuple[Finding, ...]
    undecided: bool = False

    @property
    def via(self) -> tuple[Via, ...]:
        """The evidence of all findings, in order."""
        return tuple(via for finding in self.findings for via in finding.via)


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
