"""Describe rules in words, and why a rule refuses every class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from wordnet_splits.benchmark.rules.context import Candidates, Context, KeywordOverlap, Operand
from wordnet_splits.benchmark.rules.operators.hierarchy import parents_of
from wordnet_splits.benchmark.rules.operators.selection import HeldOut, Siblings, Slice
from wordnet_splits.benchmark.rules.operators.similarity import SimilarityBound
from wordnet_splits.benchmark.rules.registry import OPERATORS, Verdict
from wordnet_splits.benchmark.rules.syntax import MEANINGS, ClassRule, Expression

NAMED: Final = 12
"""Most classes that a rule in words names."""
KINDS: Final = {"group": "the set ", "source": "", "split": "the split ", "list": "the list "}
RELATIONS: Final = {
    "equal": "equal {}",
    "self-or-below": "equal or lie below {}",
    "self-or-above": "equal or lie above {}",
    "kin": "equal, or lie above or below, {} (no class is above another by a synset wider than its name)",
}
CLEAR_OF: Final = "are clear of {} in keywords and synsets"
KEYWORD_OPTIONS: Final = {
    ("nodes", "subtree"): "keywords reach only synsets of those classes and above them",
    ("match", "lemma"): "a keyword is a whole lemma",
    ("qualifiers", "keep"): "the text after / counts",
    ("compounds", "split"): "compounds are split",
}
PARENT_OPERATORS: Final = ("shares_parent_with", "below_parent_of")
PARENTS_NAMED: Final = 5
"""Most parents that the refusals of a rule name."""


def rule_words(rule: Expression, source: str = "", noun: str = "synset") -> str:
    """Return a phrase for the classes that a rule accepts; ``noun`` is that of the hierarchy's nodes.

    >>> from wordnet_splits.benchmark.recipe import load_recipe
    >>> rule_words(load_recipe("digits").group[1].classes, "digits")
    'the classes of digits that share a direct hypernym with a class of the set digits-0-5'
    """
    of_source = f" of {source}" if source else ""
    all_of_source = rule.operator == "listed" and rule.value == Operand(kind="source", name=source)
    clause = f" that {_predicate(rule, noun)}" if rule.operator and not all_of_source else ""
    if not isinstance(rule, ClassRule) or rule.draw is None:
        return f"{'the' if clause else 'all'} classes{of_source}{clause}"
    noun = "class" if rule.draw == 1 else "classes"
    drawn = f"{rule.draw:,} {noun} of each {rule.within}" if rule.within else f"{rule.draw:,} {noun}"
    return f"{drawn}{of_source if not clause else ''}, drawn at random" + (
        f" from the classes{of_source}{clause}" if clause else ""
    )


def _predicate(rule: Expression, noun: str, *, negated: bool = False) -> str:
    """Return a rule in words; a negation is applied to the parts of ``all`` and ``any``."""
    operator, value = rule.operator, rule.value
    if operator == "not":
        return _predicate(value, noun, negated=not negated)
    if operator in ("all", "any"):
        parts = [_predicate(part, noun, negated=negated) for part in value]
        if len(parts) == 1:
            return parts[0]
        nested = [part.operator in ("all", "any") and len(part.value) > 1 for part in value]
        texts = [f"({text})" if inner else text for text, inner in zip(parts, nested, strict=True)]
        return (", and " if (operator == "all") != negated else ", or ").join(texts)
    clause = _clause(rule, noun)
    if not negated:
        return clause
    if operator == "rest":
        return "are in an earlier set"
    return f"are not {clause.removeprefix('are ')}" if clause.startswith("are ") else f"do not {clause}"


def _clause(rule: Expression, noun: str) -> str:
    value = rule.value
    if isinstance(value, SimilarityBound):
        bound = f"less than {value.below}" if value.above is None else f"at least {value.above}"
        nearest = _operand_words(value.to, "the nearest class of")
        return f"have a similarity ({value.measure}) of {bound} to {nearest}"
    if isinstance(value, Slice):
        return f"are {_slice_words(value)} of the sorted classes below {_join(value.of)}"
    if isinstance(value, Siblings):
        middle = {"alternate": "first and second half in turn"}.get(value.odd, f"{value.odd} half")
        return (
            f"are in the {value.half} half of the classes of the same parents "
            f"(the middle class of an odd number is in the {middle})"
        )
    if isinstance(value, HeldOut):
        kind = f"subtrees of 2 to {value.largest} classes" if value.unit == "subtrees" else "leaves"
        return f"are held out as {kind} {_operand_words(value.of)}, at most {value.classes:,} classes"
    if isinstance(value, KeywordOverlap):
        options = [
            _of_nodes(text, noun)
            for (key, choice), text in KEYWORD_OPTIONS.items()
            if getattr(value, key) == choice
        ]
        any_class = "every class of" if rule.operator == "clear_of" else "a class of"
        text = CLEAR_OF if rule.operator == "clear_of" else OPERATORS[rule.operator].clause
        clause = _of_nodes(text, noun).format(_operand_words(value.with_, any_class))
        return f"{clause} ({'; '.join(options)})" if options else clause
    if rule.operator == "listed":
        return f"are {_operand_words(value, 'in')}"
    words = _operand_words(value) if isinstance(value, Operand) else str(value)
    template = OPERATORS[rule.operator].clause
    if not template:
        return f"fulfil {rule.operator} with {words} ({MEANINGS[rule.operator]})"
    clause = _of_nodes(RELATIONS.get(rule.relation or "", template), noun).format(words)
    return f"{clause}, in any sense of their name" if rule.senses == "any" else clause


def _of_nodes(template: str, noun: str) -> str:
    if noun == "synset":
        return template
    return template.replace("direct hypernym", "parent").replace("synset", noun)


def _slice_words(part: Slice) -> str:
    if part.half is not None:
        return f"in the {part.half} half"
    if part.first is not None:
        return f"among the first {part.first:,}"
    return f"at positions {', '.join(map(str, part.at or ()))} (from 0) of every {part.every}"


def _operand_words(operand: Operand, quantifier: str = "a class of") -> str:
    if operand.kind != "ids":
        return f"{quantifier} {KINDS[operand.kind]}{operand.name}"
    some = {"every class of": "each of", "the nearest class of": "the nearest of"}.get(quantifier, "one of")
    return operand.ids[0] if len(operand.ids) == 1 else f"{some} {_join(operand.ids)}"


def _join(names: Sequence[str]) -> str:
    rest = f", ... ({len(names):,} in all)" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + rest


def explain_refusals(source: str, verdicts: Mapping[str, Verdict], context: Context) -> str:
    """Return why a rule took no candidate.

    The reasons are the number of candidates that each operator refused, the score nearest to the bound, and
    the parents of operands.
    """
    if not verdicts:
        return "earlier groups took every class of the source"
    last = [v.findings[-1] for v in verdicts.values() if v.findings]
    counts = Counter(finding.expression.operator for finding in last if not finding.undecided)
    clauses = [f"`{name}` rejected {n:,} of {len(verdicts):,} candidates" for name, n in counts.items()]
    if undecided := sum(finding.undecided for finding in last):
        clauses.append(f"{undecided:,} of {len(verdicts):,} candidates have {context.unplaced}")
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
        clauses.append(f"the closest to the threshold is {class_id!r}, {value:.4g} to {via.other_class!r}")
    graph, candidates = context.graph, Candidates(source, tuple(verdicts), context)
    expressions = (finding.expression for finding in last)
    for operand in dict.fromkeys(e.value for e in expressions if e.operator in PARENT_OPERATORS):
        parents = sorted(parents_of(candidates.synsets(operand), graph))
        names = ", ".join(f"{graph.name(wnid)} ({wnid})" for wnid in parents[:PARENTS_NAMED])
        rest = f" and {len(parents) - PARENTS_NAMED:,} more" if len(parents) > PARENTS_NAMED else ""
        clauses.append(f"the parents of {operand} are {names or 'none'}{rest}")
    return "; ".join(clauses)
