"""The definitions, word for word and slow: every pair, every threshold, exact fractions."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np
from hypothesis import strategies as st

# Scores on a coarse grid, so that ties within and between the sides are the rule.
grid = st.integers(-3, 4).map(lambda v: v / 4)
samples = st.lists(grid, min_size=1, max_size=24)
outcomes = st.lists(st.tuples(grid, st.booleans()), min_size=1, max_size=24)


def tied_scores(seed: int, n_id: int, n_ood: int, levels: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping ID and OOD scores, rounded to `levels` steps per unit (None: all distinct)."""
    random = np.random.default_rng(seed)
    inside, outside = random.normal(0.7, 1, n_id), random.normal(0, 1, n_ood)
    if levels is None:
        return inside, outside
    return np.round(inside * levels) / levels, np.round(outside * levels) / levels


def auroc(inside: Sequence[float], outside: Sequence[float]) -> Fraction:
    twice = sum(2 * (a > b) + (a == b) for a in inside for b in outside)
    return Fraction(twice, 2 * len(inside) * len(outside))


def at_least(t: float, values: Sequence[float]) -> Fraction:
    return Fraction(sum(v >= t for v in values), len(values))


def at_most(t: float, values: Sequence[float]) -> Fraction:
    return Fraction(sum(v <= t for v in values), len(values))


def fpr_id_positive(inside: Sequence[float], outside: Sequence[float], tpr: Fraction) -> Fraction:
    observed = sorted({*inside, *outside})
    t = max(t for t in observed if at_least(t, inside) >= tpr)
    return at_least(t, outside)


def fpr_ood_positive(inside: Sequence[float], outside: Sequence[float], tpr: Fraction) -> Fraction:
    observed = sorted({*inside, *outside})
    t = min(t for t in observed if at_most(t, outside) >= tpr)
    return at_most(t, inside)


def detection_errors(inside: Sequence[float], outside: Sequence[float]) -> list[tuple[Fraction, Fraction]]:
    """(TPR, error) at every observed threshold, ID positive."""
    pairs = []
    for t in sorted({*inside, *outside}):
        true_rate, false_rate = at_least(t, inside), at_least(t, outside)
        pairs.append((true_rate, (1 - true_rate) / 2 + false_rate / 2))
    return pairs


def aurc(confidence: Sequence[float], risk: Sequence[int]) -> Fraction:
    """Mean over ranks of the risk so far, tie groups spread evenly: r = (E + j s/m)/(N + j)."""
    total, seen, errors = Fraction(0), 0, 0
    for value in sorted(set(confidence), reverse=True):
        group = [r for c, r in zip(confidence, risk, strict=True) if c == value]
        m, s = len(group), sum(group)
        total += sum((errors + Fraction(j * s, m)) / (seen + j) for j in range(1, m + 1))
        seen, errors = seen + m, errors + s
    return total / seen


def aurc_trapezoid(confidence: Sequence[float], risk: Sequence[int]) -> Fraction:
    """fd-shifts' rule: (coverage, risk) at every distinct threshold, the first risk kept down to 0."""
    n, points = len(risk), []
    for t in sorted(set(confidence), reverse=True):
        kept = [r for c, r in zip(confidence, risk, strict=True) if c >= t]
        points.append((Fraction(len(kept), n), Fraction(sum(kept), len(kept))))
    points.insert(0, (Fraction(0), points[0][1]))
    return sum(((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in pairwise(points)), Fraction(0))


def weighted_aurc(confidence: Sequence[float], risk: Sequence[int], weight: Sequence[Fraction]) -> Fraction:
    """The same with weights: a tie group's weight and risk are spread evenly over its samples."""
    total, seen, errors = Fraction(0), Fraction(0), Fraction(0)
    for value in sorted(set(confidence), reverse=True):
        group = [(r, w) for c, r, w in zip(confidence, risk, weight, strict=True) if c == value]
        m, mass, failed = len(group), sum(w for _, w in group), sum(r * w for r, w in group)
        total += sum(mass / m * (errors + failed * j / m) / (seen + mass * j / m) for j in range(1, m + 1))
        seen, errors = seen + mass, errors + failed
    return total / seen


def oscr_points(
    known: Sequence[float], correct: Sequence[bool], unknown: Sequence[float]
) -> list[tuple[Fraction, Fraction]]:
    """(FPR, CCR) at -inf and every distinct score, strict >, from the highest threshold down."""
    thresholds = [*sorted({*known, *unknown}, reverse=True), -np.inf]
    return [
        (
            Fraction(sum(v > t for v in unknown), len(unknown)),
            Fraction(sum(ok and v > t for v, ok in zip(known, correct, strict=True)), len(known)),
        )
        for t in thresholds
    ]
