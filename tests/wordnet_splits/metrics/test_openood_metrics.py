"""The five numbers of OpenOOD's tables, written out naively, against what results hold under their names."""

from __future__ import annotations

import numpy as np
import pytest

from wordnet_splits.metrics import ScoreSet, evaluate, pool

from .reference import tied_scores


def trapezoid(positive, negative):
    """Area below precision over recall; positives have the higher scores, and the curve starts at (0, 1)."""
    area, recall, precision = 0.0, 0.0, 1.0
    for t in sorted({*positive, *negative}, reverse=True):
        hits, false = np.sum(positive >= t), np.sum(negative >= t)
        now = hits / len(positive), hits / (hits + false)
        area += (now[0] - recall) * (now[1] + precision) / 2
        recall, precision = now
    return area


def table_row(inside, outside):
    """OOD is positive: the first threshold that 95% of OOD images are at or below."""
    t = next(t for t in sorted(outside) if np.mean(outside <= t) >= 0.95)
    pairs = [(a > b) + 0.5 * (a == b) for a in inside for b in outside]
    return {
        "fpr95_ood_positive": np.mean(inside <= t),
        "auroc": np.mean(pairs),
        "aupr_in_trapezoid": trapezoid(inside, outside),
        "aupr_out_trapezoid": trapezoid(-outside, -inside),
    }


@pytest.mark.parametrize("levels", [None, 12])
def test_openoods_table_row(levels):
    inside, outside = tied_scores(3, 90, 70, levels)
    correct = np.arange(len(inside)) % 4 > 0
    expected = table_row(inside, outside) | {"accuracy": correct.mean()}
    sets = [ScoreSet("known", "id", inside, correct), ScoreSet("near", "near", outside)]
    found = evaluate(pool(sets), list(expected))
    assert found == pytest.approx(expected, abs=1e-12)
