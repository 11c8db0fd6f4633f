"""How good the proposals are, every dataset held out from the fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tests.proposals.fitting import Answered, fit, others, outcomes
from wordnet_splits.propose.model import Model
from wordnet_splits.propose.pool import Floats

SETS = ("food101", "caltech256", "places365", "sun397", "cifar100")


@dataclass(frozen=True, eq=False)
class Score:
    """What a model made of one dataset that it had not seen; shares of its names, and per name."""

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
    sure = confidence >= model.ask_below
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
    """Return the score of each dataset by a model fitted on those of no kin."""
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
