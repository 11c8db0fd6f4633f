"""Registry of rule operators: functions that judge classes, inputs, verdicts, and evidence in words."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from wordnet_splits.base.registry import Registry
from wordnet_splits.benchmark.rules.context import WORDNET as WORDNET
from wordnet_splits.benchmark.rules.context import Candidates, Context, Key, Operand

if TYPE_CHECKING:
    from wordnet_splits.benchmark.rules.syntax import ClassRule, Expression

RELATIONS = (
    *("equal", "ancestor", "descendant", "sibling", "keyword", "list", "threshold", "draw"),
    *("unrelated", "name", "part", "whole", "gloss", "named-in-gloss"),
)


class Via(NamedTuple):
    """One piece of evidence, as a row of the class table's ``via`` column.

    Parameters
    ----------
    relation : the relation of ``wnid`` to this class: ``equal`` (its own synset), its ``ancestor`` or
        ``descendant``, the parent it shares with a ``sibling``, the synset that a ``keyword`` of its name
        reaches; ``list``, ``threshold``, ``draw``; ``unrelated``, a synset that the rule names and
        that is not related to this class; this class's synset that has the other class's ``name``, or whose
        ``gloss`` names the other class; the other class's synset that is the ``whole`` or the ``part`` of
        this class, or whose gloss names this class (``named-in-gloss``). The piece after a ``keyword``
        relates the other class's synset to the synset reached.
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
    """The outcome of an operator or draw for a class.

    ``expression`` is the table of the operator, ``holds`` whether it is true of the class. ``words`` are
    details for the sentence that have no column in ``via`` (the keyword and its lemma, the number of
    candidates). ``undecided``: the operator reads WordNet and the class has no synset, so neither the
    operator nor its opposite can be established.
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
"""Function that judges every candidate: class_id -> finding, with whether the operator holds and evidence."""
Wording = Callable[[Finding, "Names"], str]
"""Puts a finding into words."""

SENSE, HIERARCHY, MEASURE = "sense", "hierarchy", "measure"
PARTS, GLOSSES, NAMES = "parts", "glosses", "names"
"""Inputs that a hierarchy may lack, see `Taxonomy.lacks`."""
GRAPH = frozenset({SENSE, HIERARCHY, WORDNET})
NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Operator:
    """An operator of rules.

    Attributes
    ----------
    judge : the function that judges candidates.
    value : type of the value of its key, as of a field of a pydantic model.
    meaning : a few words that describe the classes it accepts.
    wording : the function that puts its findings into words.
    reads : inputs of the operator: the ``sense`` that a class is mapped to, the ``hierarchy``, the
        similarity ``measure``, the version of ``wordnet``, and ``parts``, ``glosses`` or several ``names``
        of its nodes. An operator with any such input judges only classes that have a synset.
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


NAMED = 3
"""Most classes or synsets that a sentence names, the nearest; it gives the number of all."""


def join_names(names: Sequence[str], last: str = "and") -> str:
    """Return names as a sentence lists them: ``a, b and c``."""
    return f" {last} ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


@dataclass(frozen=True)
class Names:
    """Names of a benchmark's classes and synsets, as sentences use them.

    ``key`` is the class that is judged, ``subject_named`` whether the sentence has named it already.
    """

    key: Key
    context: Context
    subject_named: bool = False

    @property
    def subject(self) -> str:
        """The class that is judged."""
        return "it" if self.subject_named else self.of_class(self.key)

    def of_class(self, key: Key) -> str:
        """Return the name of a class, or the synset of a wnid that the rule names directly."""
        if key[0] == WORDNET:
            return self.synset(key[1])
        return self.context.catalog(key[0])[key[1]].name.replace("_", " ")

    def synset(self, wnid: str | None) -> str:
        """Return a synset as its first lemma and wnid: ``toy dog (n02085374)``."""
        return f"no {self.noun}" if wnid is None else self.context.taxonomy.label(wnid)

    @property
    def noun(self) -> str:
        """The word for a node of the hierarchy: ``synset`` or ``node``."""
        return self.context.taxonomy.noun

    def kind(self, operand: Operand) -> str:
        """Return the kind of an operand's classes: ``ID class``, ``cifar100 class``."""
        if operand.kind == "group":
            role = self.context.roles.get(operand.name, operand.name)
            return f"{'ID' if role == 'id' else role} class"
        return "class" if operand.kind == "ids" else f"{operand.name} class"

    def a_kind(self, operand: Operand) -> str:
        """Return the kind of an operand's classes with its article: ``an ID class``."""
        kind = self.kind(operand)
        return f"{'an' if kind[0].lower() in 'aeio' else 'a'} {kind}"

    def others(self, operand: Operand, vias: Sequence[Via]) -> str:
        """Return the classes on the other side: the first three names and the total number."""
        keys = list(dict.fromkeys((str(v.other_source), str(v.other_class)) for v in vias))
        shown = join_names([self.of_class(key) for key in keys[:NAMED]])
        if keys[0][0] == WORDNET:
            return shown
        if len(keys) == 1:
            return f"the {self.kind(operand)} {shown}"
        of = f" ({len(keys):,} in all)" if len(keys) > NAMED else ""
        return f"the {self.kind(operand)}es {shown}{of}"

    def any_of(self, operand: Operand, nearest: Sequence[Via] = ()) -> str:
        """Return a name for any class of the operand; of many synsets the nearest three are named."""
        if operand.kind != "ids":
            return self.a_kind(operand)
        if len(operand.ids) <= NAMED:
            return join_names([self._of_id(text) for text in operand.ids], "or")
        wnids = list(dict.fromkeys(via.wnid for via in nearest))[:NAMED]
        near = f", the nearest being {join_names([self.synset(wnid) for wnid in wnids])}" if wnids else ""
        return f"any of {len(operand.ids):,} {self.noun}s{near}"

    def _of_id(self, text: str) -> str:
        """Return the name of an entry of an array, a class id or a synset."""
        if text in self.context.catalog(self.key[0]):
            return self.of_class((self.key[0], text))
        return self.synset(self.context.taxonomy.find(text))


def sentence(verdict: Verdict, *, source: str, class_id: str, group: str, context: Context) -> str:
    """Return a verdict as a sentence without a full stop.

    Parameters
    ----------
    verdict : the decision of a rule about the class.
    source, class_id : the class.
    group : the group that takes or refuses it.
    context : the benchmark; its ``roles`` turn "class" into "ID class" in the sentence.
    """
    parts = [
        _word(finding, Names((source, class_id), context, subject_named=n > 0))
        for n, finding in enumerate(verdict.findings)
    ]
    reason = "; ".join(parts)
    if verdict.findings and _is_draw(verdict.findings[-1]) and not verdict.findings[-1].holds:
        earlier = "; ".join(parts[:-1])
        reason = f"{parts[-1]} ({earlier})" if earlier else parts[-1]
    return f"{group}: {reason}" if verdict.accepted else f"not {group}: {reason}"


def _is_draw(finding: Finding) -> bool:
    return bool(finding.via) and finding.via[0].relation == "draw"


def _word(finding: Finding, names: Names) -> str:
    if finding.undecided:
        return f"{names.subject} has {names.context.unplaced}"
    if _is_draw(finding):
        return _word_draw(finding)
    return OPERATORS[finding.expression.operator].wording(finding, names)


def _word_draw(finding: Finding) -> str:
    rule = cast("ClassRule", finding.expression)
    candidates, stratum = finding.words
    within = f" in {stratum.replace('_', ' ')}" if stratum else ""
    rank = f"rank {finding.via[0].value:.0f} of {int(candidates):,}{within}; {rule.draw:,} taken"
    return f"{'selected' if finding.holds else 'not selected'} by the seeded draw ({rank})"
