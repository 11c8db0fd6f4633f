from __future__ import annotations

import numpy as np
import pytest

from tools.facts import abdelzad as paper
from wordnet_splits.base.errors import SplitsError
from wordnet_splits.metrics import (
    Robustness,
    mixture_moments,
    robustness,
    robustness_score,
    run_moments,
)


@pytest.mark.parametrize(
    ("runs", "published"), [(paper.TABLE_2, paper.TABLE_2_LAST), (paper.TABLE_13, paper.TABLE_13_LAST)]
)
def test_run_moments_give_the_last_rows_of_tables_2_and_13(runs, published):
    for values, (mean, variance) in zip(zip(*runs, strict=True), published, strict=True):
        assert run_moments(values) == pytest.approx((mean, variance), abs=1e-3)


@pytest.mark.parametrize(
    ("components", "published"),
    [
        (paper.TABLE_3, paper.TABLE_3_LAST),
        (paper.TABLE_7, paper.TABLE_7_LAST),
        (paper.TABLE_14, paper.TABLE_14_LAST),
    ],
)
def test_mixture_gives_tables_3_7_and_14(components, published):
    for column, (mean, variance) in zip(zip(*components, strict=True), published, strict=True):
        means, variances = zip(*column, strict=True)
        assert mixture_moments(means, variances) == pytest.approx((mean, variance), abs=1e-3)


def test_equation_5_as_printed_misses_table_3():
    means, variances = zip(*[row[0] for row in paper.TABLE_3], strict=True)
    printed, _ = mixture_moments(means, variances, variant="eq5")
    assert printed == pytest.approx(8.637, abs=5e-4)
    assert mixture_moments(means, variances)[0] == pytest.approx(8.634, abs=5e-4)


@pytest.mark.parametrize(
    ("moments", "published"), [(paper.TABLE_4, paper.TABLE_5), (paper.TABLE_8, paper.TABLE_9)]
)
def test_scores_of_tables_5_and_9_follow_from_4_and_8(moments, published):
    for row, scores in zip(moments, published, strict=True):
        for (mean, variance), lower, score in zip(row, paper.LOWER_IS_BETTER, scores, strict=True):
            ours = robustness_score(mean, variance, higher_is_better=not lower)
            assert ours == pytest.approx(score, abs=0.02 if lower else 6e-4)


def test_the_most_robust_detector_of_table_5_is_odin():
    names = ("max-softmax", "ODIN", "MD", "Entropy", "Margin", "MC-D", "MI")
    scores = [robustness_score(*row[0], higher_is_better=False) for row in paper.TABLE_4]
    assert names[int(np.argmin(scores))] == "ODIN"


def test_robustness_is_moments_mixture_and_score_in_one():
    runs = np.random.default_rng(0).uniform(60, 90, (4, 5))
    moments = [run_moments(row) for row in runs]
    mean, variance = mixture_moments(*zip(*moments, strict=True))
    for higher in (True, False):
        score = robustness_score(mean, variance, higher_is_better=higher)
        assert robustness(runs, higher_is_better=higher) == Robustness(mean, variance, score)


def test_two_components_by_hand():
    # sd 1 and 3, eps -> 0: weights 3/4 and 1/4; mean 3/4*80 + 1/4*60, variance of the mixture
    mean, variance = mixture_moments([80, 60], [1, 9], variant="eq5", eps=1e-12)
    assert mean == pytest.approx(75)
    assert variance == pytest.approx(3 / 4 * (1 + (75 - 80) ** 2) + 1 / 4 * (9 + (75 - 60) ** 2))


def test_the_unit_matters_and_order_does_not():
    runs = np.random.default_rng(1).uniform(60, 90, (4, 5))
    shuffled = np.random.default_rng(2).permuted(runs[::-1], axis=1)
    assert robustness(runs, higher_is_better=True) == robustness(shuffled, higher_is_better=True)
    percent, fraction = (robustness(runs * k, higher_is_better=True).score for k in (1, 0.01))
    assert percent != pytest.approx(fraction, rel=1e-6)


@pytest.mark.parametrize(
    "call",
    [
        lambda: run_moments([]),
        lambda: run_moments([1, np.nan], name="msp"),
        lambda: mixture_moments([1, 2], [1]),
        lambda: mixture_moments([1, 2], [1, -1]),
        lambda: mixture_moments([1], [1], variant="eq4"),
        lambda: robustness([1, 2, 3], higher_is_better=True),
        lambda: robustness_score(0, 1, higher_is_better=True),
    ],
)
def test_what_has_no_value_is_refused(call):
    with pytest.raises(SplitsError):
        call()


def weighted(mean, variance, higher_is_better):
    return 3 * variance + (-mean if higher_is_better else mean)


def test_another_formula_replaces_equation_8():
    runs, higher = np.array([[90.0, 92.0, 91.0], [80.0, 88.0, 70.0]]), {"higher_is_better": True}
    default = robustness(runs, **higher)
    mean, variance = default.mean, default.variance
    assert robustness(runs, **higher, formula="cv") == default
    for formula, score in (
        ("shortfall", 100 - mean + variance**0.5),
        (weighted, 3 * variance - mean),
        (f"{__name__}:weighted", 3 * variance - mean),
    ):
        assert robustness(runs, **higher, formula=formula) == Robustness(mean, variance, pytest.approx(score))
    assert robustness_score(5, 4, higher_is_better=False, formula="shortfall") == 7


@pytest.mark.parametrize(
    "formula", ["cvv", "no_such_module:f", lambda *_: float("nan"), lambda *_: None, lambda mean: mean, 3]
)
def test_a_formula_that_gives_no_number_is_refused(formula):
    with pytest.raises(SplitsError):
        robustness([[90.0, 92.0]], higher_is_better=True, formula=formula)
