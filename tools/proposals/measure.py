"""Accuracy and calibration of the proposals, with every dataset held out from the fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tools.proposals.fitting import Answered, fit, others, outcomes
from wordnet_splits.linking.pool import Floats
from wordnet_splits.linking.weights import Model, needs_confirmation

EDGES = (0.0, 0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
"""Confidences between which names are counted."""
SETS = ("food101", "caltech256", "places365", "sun397", "cifar100")


@dataclass(frozen=True, eq=False)
class Score:
    """A model's score on a dataset that it had not seen: shares of the dataset's names, and per name."""

    source: str
    names: tuple[str, ...]
    first: float
    five: float
    covered: float
    asked: float
    unasked_right: float
    right: Floats
    confidence: Floats


def score(model: Model, each: Answered) -> Score:
    """Score a model on a dataset."""
    ranks, alone, together = outcomes(model, each)
    confidence = model.confidence(each.reading.pool, alone, together)
    right = (ranks == 0).astype(float)
    sure = (confidence >= model.ask_below) & ~needs_confirmation(each.reading, together)
    return Score(
        each.source,
        each.names,
        float(right.mean()),
        float((ranks < 5).mean()),
        float(np.isfinite(ranks).mean()),
        float(1 - sure.mean()),
        float(right[sure].mean()) if sure.any() else 1.0,
        right,
        confidence,
    )


def held_out(sets: Sequence[Answered]) -> list[Score]:
    """Return the score of each dataset by a model fitted on the unrelated datasets."""
    scores = []
    for each in sets:
        scores.append(score(fit(others(each, sets)), each))
    return scores


def reliability(
    scores: Sequence[Score], edges: Sequence[float]
) -> list[tuple[float, float, int, float, float]]:
    """Return, per interval of confidence: from, to, names, mean confidence, share that is right."""
    confidence = np.concatenate([s.confidence for s in scores])
    right = np.concatenate([s.right for s in scores])
    rows = []
    for low, high in pairwise(edges):
        here = (confidence >= low) & ((confidence < high) | (high == edges[-1]))
        if here.any():
            rows.append((low, high, int(here.sum()), confidence[here].mean(), right[here].mean()))
    return rows


def score_table(scores: Sequence[Score], *, held_out: bool = True) -> list[str]:
    """Return the lines of a table of scores, in percent; with their mean if each was held out."""
    title = "dataset, held out" if held_out else "dataset in no fit"
    lines = [
        f"| {title} | names | top-1 | top-5 | among the candidates | asked | right of the rest |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    figures = np.array([[s.first, s.five, s.covered, s.asked, s.unasked_right] for s in scores])
    for s, row in zip(scores, figures, strict=True):
        lines.append(f"| {s.source} | {len(s.names)} | {_percent(row)} |")
    return [*lines, f"| mean | | {_percent(figures.mean(axis=0))} |"] if held_out else lines


def reliability_table(scores: Sequence[Score]) -> list[str]:
    """Return the lines of a table of confidences."""
    lines = ["| confidence | names | mean confidence | right |", "|---|---:|---:|---:|"]
    for low, high, count, mean, right in reliability(scores, EDGES):
        lines.append(f"| {low:.2f}-{high:.2f} | {count} | {100 * mean:.1f} | {100 * right:.1f} |")
    return lines


def _percent(shares: Floats) -> str:
    return " | ".join(f"{100 * share:.1f}" for share in shares.tolist())
