"""Mean ranks and Kendall's tau against scipy, and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau, rankdata

from tests.raising import raises
from wordnet_splits.base.errors import DataError
from wordnet_splits.metrics import (
    ScoreSet,
    auroc,
    bootstrap_indices,
    bootstrap_replicates,
    kendall_tau,
    mean_ranks,
)

FEW = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=12)


@given(FEW)
def test_tau_is_scipy_s_tau_b(pairs: list[tuple[int, int]]) -> None:
    a, b = zip(*pairs, strict=True)
    expected = kendalltau(a, b).statistic
    assert kendall_tau(a, b) == pytest.approx(expected, nan_ok=True)


@given(FEW)
def test_tau_turns_with_an_ordering_and_is_symmetric(pairs: list[tuple[int, int]]) -> None:
    a, b = (np.array(side) for side in zip(*pairs, strict=True))
    assert kendall_tau(a, b) == pytest.approx(kendall_tau(b, a), nan_ok=True)
    assert kendall_tau(a, -b) == pytest.approx(-kendall_tau(a, b), nan_ok=True)


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=20))
def test_mean_ranks_are_scipy_s(values: list[int]) -> None:
    assert mean_ranks(values).tolist() == rankdata(values).tolist()


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
