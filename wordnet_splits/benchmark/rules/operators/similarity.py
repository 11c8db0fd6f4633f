"""The operator that measures: similarity to the nearest class of an operand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import model_validator

from wordnet_splits.benchmark.rules.context import Candidates, Key, Measure, OperandField, RuleTable
from wordnet_splits.benchmark.rules.registry import GRAPH, MEASURE, Finding, Names, Via, register_operator
from wordnet_splits.wordnet.similarity import similarity_matrix
from wordnet_splits.wordnet.similarity.measures import OF_INFORMATION, constants

if TYPE_CHECKING:
    from wordnet_splits.benchmark.rules.syntax import Expression


class SimilarityBound(RuleTable):
    """True where the similarity to the nearest class of ``to`` is at least ``above``, or less than ``below``.

    Attributes
    ----------
    to : an operand.
    measure : the measure of similarity.
    above : the least value, in place of ``below``.
    below : the limit that the value must not reach.
    """

    to: OperandField
    measure: Measure
    above: float | None = None
    below: float | None = None

    @model_validator(mode="after")
    def _one_bound(self) -> SimilarityBound:
        if (self.above is None) == (self.below is None):
            raise ValueError("give exactly one of above, below")
        return self


def bounds_in(rule: Any) -> list[SimilarityBound]:
    """Return the bounds on similarities in a rule, or in a tuple of rules."""
    if isinstance(rule, SimilarityBound):
        return [rule]
    if isinstance(rule, tuple):
        return [bound for part in rule for bound in bounds_in(part)]
    return bounds_in(rule.value) if isinstance(getattr(rule, "operator", None), str) else []


def _similarity_wording(finding: Finding, names: Names) -> str:
    bounds: SimilarityBound = finding.expression.value
    if not finding.via:
        similarity_to = f"no similarity of {names.subject} to {names.any_of(bounds.to)}"
        return f"{similarity_to} can be computed without {names.noun}s"
    via = finding.via[0]
    bound = bounds.above if bounds.above is not None else bounds.below
    side = "at least" if finding.holds == (bounds.above is not None) else "less than"
    pair = f"{names.subject} and the nearest class, {names.others(bounds.to, [via])},"
    measure = f"{bounds.measure} score {via.value:.4g}" + "".join(f" ({words})" for words in finding.words)
    return f"{pair} have the {measure}, {side} {bound:g}"


@register_operator(
    "similarity",
    value=SimilarityBound,
    meaning="similarity to the nearest class, above or below a threshold",
    reads=GRAPH | {MEASURE},
    wording=_similarity_wording,
)
def similarity(expression: Expression, candidates: Candidates) -> dict[str, Finding]:
    """Accept the classes whose similarity to the nearest other class of the operand is within a bound.

    The value of a class is the greatest similarity over all pairs of its synsets with synsets of the
    operand's other classes (for ``distance``, the smallest distance). ``above = t`` means value >= t,
    ``below = t`` means value < t. Neither holds for a class without synsets. Follows the full graph.
    """
    bounds: SimilarityBound = expression.value
    targets = [(wnid, key) for wnid, keys in candidates.synsets(bounds.to).items() for key in keys]
    targets.sort(key=lambda target: (target[1], target[0]))  # the first of equals is the smallest class
    rows = {wnid: n for n, wnid in enumerate(candidates.all_wnids())}
    if not targets or not rows:
        return dict.fromkeys(candidates.class_ids, Finding(expression, False))
    sign = -1.0 if bounds.measure == "distance" else 1.0
    columns = [wnid for wnid, _ in targets]
    scores = sign * similarity_matrix(bounds.measure, list(rows), columns, candidates.taxonomy).astype(
        np.float64
    )
    words = (constants(bounds.measure, candidates.taxonomy),) if bounds.measure in OF_INFORMATION else ()
    columns_of: dict[Key, list[int]] = {}
    for column, (_, key) in enumerate(targets):
        columns_of.setdefault(key, []).append(column)
    findings = {}
    for class_id in candidates.class_ids:
        eligible = np.ones(len(targets), np.bool_)
        eligible[columns_of.get(candidates.key(class_id), [])] = False
        if not (wnids := candidates.wnids(class_id)) or not eligible.any():
            findings[class_id] = Finding(expression, False)
            continue
        best = np.where(eligible, scores[[rows[w] for w in wnids]].max(axis=0), -np.inf)
        nearest = int(best.argmax())
        wnid, (source, nearest_class) = targets[nearest]
        value = float(sign * best[nearest])
        holds = value >= bounds.above if bounds.above is not None else value < (bounds.below or 0.0)
        findings[class_id] = Finding(
            expression, holds, (Via("threshold", wnid, source, nearest_class, value),), words
        )
    return findings
