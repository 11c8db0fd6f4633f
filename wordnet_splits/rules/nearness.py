"""The operator that measures: similarity to the nearest class of an operand."""

from __future__ import annotations

import numpy as np

from wordnet_splits.rules.context import Question
from wordnet_splits.rules.model import Expression, SimilarityBound
from wordnet_splits.rules.registry import operator
from wordnet_splits.rules.verdict import Finding, Key, Via
from wordnet_splits.similarity import similarity as measures


@operator("similarity")
def similarity(test: Expression, ask: Question) -> dict[str, Finding]:
    """True of the classes whose nearest other class of the operand is alike enough, or unlike enough.

    The value of a class is the greatest over all pairs of its synsets with those of the operand's other
    classes (for ``distance`` the smallest); ``above = t`` wants value >= t, ``below = t`` value < t, so
    that the two part the classes. Neither is true of a class without synsets. Follows the full graph.
    """
    rule: SimilarityBound = test.value
    targets = [(wnid, key) for wnid, keys in ask.synsets(rule.to).items() for key in keys]
    targets.sort(key=lambda target: (target[1], target[0]))  # the first of equals is the smallest class
    own = sorted({wnid for c in ask.candidates for wnid in ask.wnids(c)})
    best: dict[str, tuple[float, Via]] = {}
    if targets and own:
        columns = [wnid for wnid, _ in targets]
        sign = -1.0 if rule.measure == "distance" else 1.0
        rows = {wnid: n for n, wnid in enumerate(own)}
        scores = sign * measures.similarity_matrix(rule.measure, own, columns, ask.context.taxonomy).astype(
            np.float64
        )
        columns_of: dict[Key, list[int]] = {}
        for column, (_, target_key) in enumerate(targets):
            columns_of.setdefault(target_key, []).append(column)
        for class_id in ask.candidates:
            others = np.ones(len(targets), np.bool_)
            others[columns_of.get(ask.key(class_id), [])] = False
            if not (wnids := ask.wnids(class_id)) or not others.any():
                continue
            block = np.where(others, scores[[rows[w] for w in wnids]].max(axis=0), -np.inf)
            at = int(block.argmax())
            wnid, (other_source, other_class) = targets[at]
            value = float(sign * block[at])
            best[class_id] = value, Via("threshold", wnid, other_source, other_class, value)
    return {c: _finding(test, best.get(c)) for c in ask.candidates}


def _finding(test: Expression, found: tuple[float, Via] | None) -> Finding:
    rule: SimilarityBound = test.value
    if found is None:
        return Finding(test, False)
    value, via = found
    holds = value >= rule.above if rule.above is not None else value < (rule.below or 0.0)
    return Finding(test, holds, (via,))
