"""Split conformal thresholds: the guarantee, its exact law, and what is refused."""

from __future__ import annotations

from itertools import permutations
from math import comb

import numpy as np
import pytest
from scipy.stats import beta

from tests.raising import raises
from wordnet_splits.base.errors import DataError
from wordnet_splits.metrics.conformal import ConformalGuarantee, p_values


def negative_hypergeometric(n: int, k: int, m: int) -> np.ndarray:
    """P(x of m new scores are below the k-th smallest of n), by counting the orders of n + m scores."""
    orders = [comb(x + k - 1, k - 1) * comb(m - x + n - k, n - k) for x in range(m + 1)]
    return np.array(orders) / comb(n + m, n)


@pytest.mark.parametrize(("n", "rate"), [(3, 0.25), (3, 0.5), (5, 0.4), (5, 0.9)])
def test_the_promise_holds_exactly_over_every_order_of_scores(n: int, rate: float) -> None:
    guarantee = ConformalGuarantee.for_rate(rate, n)
    flags = []
    for order in permutations(range(n + 1)):
        scores = np.array(order, dtype=np.float32)
        calibration = np.sort(scores[:n])
        flagged = bool(scores[n] < calibration[guarantee.rank - 1])
        flags.append(flagged)
        assert flagged == bool(p_values(calibration, scores[n:])[0] <= rate)
    assert np.mean(flags) == pytest.approx(guarantee.false_alarms)
    assert guarantee.false_alarms <= rate < (guarantee.rank + 1) / (n + 1)


def test_the_intervals_are_those_of_the_exact_law() -> None:
    guarantee = ConformalGuarantee.for_rate(0.05, 2000)
    law = negative_hypergeometric(2000, guarantee.rank, 500)
    low, high = guarantee.counts(500)
    cumulative = law.cumsum()
    assert (low, high) == tuple(int(np.searchsorted(cumulative, tail)) for tail in (0.025, 0.975))
    assert law[low : high + 1].sum() >= 0.95 > law[low + 1 : high].sum()
    ends = guarantee.rates()
    assert beta(guarantee.rank, 2001 - guarantee.rank).cdf(ends) == pytest.approx([0.025, 0.975])


def test_p_values_count_scores_that_are_lower_or_equal() -> None:
    calibration = np.array([1, 2, 2, 3], dtype=np.float32)
    scores = np.array([0, 1, 2, 2.5, 9], dtype=np.float32)
    expected = [(1 + sum(c <= s for c in calibration)) / 5 for s in scores]
    assert p_values(calibration, scores).tolist() == expected


def test_rates_that_binary_rounds_up_get_their_rank() -> None:
    assert ConformalGuarantee.for_rate(0.05, 199).rank == 10
    assert ConformalGuarantee.for_rate(0.07, 99).rank == 7  # 0.07 * 100 is 7.000000000000001
    assert ConformalGuarantee.for_rate(0.29, 99).rank == 29  # 0.29 * 100 is 28.999999999999996


@pytest.mark.parametrize(("rate", "n", "least"), [(0.05, 18, 19), (0.001, 998, 999), (0.3, 2, 3)])
def test_too_few_images_are_refused_with_the_number_that_it_takes(rate: float, n: int, least: int) -> None:
    with raises(DataError, naming=(n, least)):
        ConformalGuarantee.for_rate(rate, n)
    assert ConformalGuarantee.for_rate(rate, least).rank == 1


@pytest.mark.parametrize("rate", [0, 1, -0.1, 1.5, float("nan")])
def test_a_rate_that_is_none_is_refused(rate: float) -> None:
    with pytest.raises(DataError):
        ConformalGuarantee.for_rate(rate, 1000)
