"""Kendall's tau by hand, and paired replicates."""

from __future__ import annotations

import numpy as np
import pytest

from tests.raising import raises
from wordnet_splits.base.errors import DataError
from wordnet_splits.metrics import (
    ScoreSet,
    auroc,
    bootstrap_indices,
    bootstrap_replicates,
    kendall_tau,
)


def test_by_hand() -> None:
    # pairs (1,2) (1,3) (2,3): two agree, one does not
    assert kendall_tau([1, 2, 3], [1, 3, 2]) == pytest.approx(1 / 3)
    assert np.isnan(kendall_tau([1, 1], [1, 2]))
    assert np.isnan(kendall_tau([1], [1]))
    with raises(DataError, naming=("2", "3")):
        kendall_tau([1, 2], [1, 2, 3])


def test_paired_replicates_draw_the_same_rows_whatever_the_scores() -> None:
    """Each replicate is the metric of exactly the rows that `bootstrap_indices` names."""
    rng = np.random.default_rng(5)
    for seed in range(2):
        inside, outside = rng.normal(1, 1, 40), rng.normal(0, 1, 30)
        sets = [ScoreSet("in", "id", inside), ScoreSet("out", "near", outside)]
        found = bootstrap_replicates(sets, ["auroc"], replicates=7, seed=seed, paired=True)["auroc"]
        for replicate, value in enumerate(found):
            rows = bootstrap_indices(seed, "in", replicate, 40), bootstrap_indices(seed, "out", replicate, 30)
            assert value == auroc(inside[rows[0]], outside[rows[1]])


def test_the_same_scores_have_no_difference_in_any_paired_replicate() -> None:
    rng = np.random.default_rng(6)
    inside, outside = rng.normal(1, 1, 50), rng.normal(0, 1, 50)
    one, two = (
        bootstrap_replicates(
            [ScoreSet("in", "id", scale * inside), ScoreSet("out", "far", scale * outside)],
            ["auroc"],
            replicates=20,
            paired=True,
        )["auroc"]
        for scale in (1, 3)
    )
    assert one.tolist() == two.tolist()
    assert len(set(one)) > 1
