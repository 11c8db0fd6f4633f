"""Split conformal thresholds: the guarantee, its exact law, and what is refused."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations
from math import comb

import numpy as np
import pytest
from scipy.stats import beta, false_discovery_control

from tests.raising import raises
from wordnet_splits.base.errors import DataError
from wordnet_splits.metrics.conformal import BatchGuarantee, ConformalGuarantee, p_values


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


def in_ranks(values: list[int], n: int, rate: Fraction, *, harmonic: Fraction = Fraction(1)) -> set[int]:
    """Return the images that Benjamini and Hochberg's loop flags, by exact fractions of rank/(n + 1)."""
    order = sorted(range(len(values)), key=lambda i: values[i])
    flagged: set[int] = set()
    for k, i in enumerate(order, 1):
        if Fraction(values[i], n + 1) * harmonic <= rate * k / len(values):
            flagged = {j for j in order if values[j] <= values[i]}
    return flagged


@pytest.mark.parametrize("dependent", [False, True])
@pytest.mark.parametrize(("n", "m"), [(199, 1), (199, 40), (99, 100), (99, 101), (49, 300)])
@pytest.mark.parametrize("rate", ["1/20", "1/10", "3/10"])
def test_a_batch_is_judged_as_by_a_plain_loop(n: int, m: int, rate: str, dependent: bool) -> None:
    guarantee = BatchGuarantee(float(Fraction(rate)), n, dependent)
    # a calibrator 1/(H p) has the mean 1 over the n + 1 p-values; Benjamini and Yekutieli take H of m
    harmonic = sum(Fraction(1, k) for k in range(1, min(m, n + 1) + 1)) if dependent else Fraction(1)
    draw = np.random.default_rng(m)
    for share in (0.1, 0.5, 1.0):
        ranks = np.where(draw.random(m) < share, 1 + draw.binomial(3, 0.2, m), draw.integers(1, n + 2, m))
        adjusted = guarantee.adjusted(ranks / (n + 1))
        if m <= n + 1:
            expected = false_discovery_control(ranks / (n + 1), method="by" if dependent else "bh")
            assert adjusted == pytest.approx(expected)
        flagged = set(np.flatnonzero(guarantee.flags(adjusted)).tolist())
        assert flagged == in_ranks(ranks.tolist(), n, Fraction(rate), harmonic=harmonic)


def test_the_e_values_of_a_batch_have_the_mean_1_and_give_e_bh() -> None:
    n, m, rate = 49, 300, 0.3
    ranks = np.random.default_rng(0).integers(1, 4, m)
    factor = BatchGuarantee(rate, n, dependent=True).adjusted(np.array([1 / (n + 1)] * m))[0] * (n + 1)
    assert np.mean([(n + 1) / (k * factor) for k in range(1, n + 2)]) == pytest.approx(1)
    e_values = np.sort((n + 1) / (ranks * factor))[::-1]
    kept = max((k for k in range(1, m + 1) if e_values[k - 1] >= m / (rate * k)), default=0)
    guarantee = BatchGuarantee(rate, n, dependent=True)
    assert guarantee.flags(guarantee.adjusted(ranks / (n + 1))).sum() == kept > 0


@pytest.mark.parametrize(("n", "m", "rate"), [(99, 5, 0.05), (99, 6, 0.05), (120, 500, 0.1), (9, 7, 0.1)])
def test_the_fewest_outliers_of_a_batch_are_flagged_and_no_fewer(n: int, m: int, rate: float) -> None:
    guarantee = BatchGuarantee(rate, n)
    least = guarantee.least(m)
    for outliers in (least - 1, least):
        values = np.where(np.arange(m) < outliers, 1 / (n + 1), 1)
        assert guarantee.flags(guarantee.adjusted(values)).sum() == (outliers if outliers == least else 0)
    assert (least == 1) == (n + 1 >= round(m / rate))
    for dependent in (False, True):
        many = BatchGuarantee(rate, n, dependent).images_for_one(m)
        assert [BatchGuarantee(rate, images, dependent).least(m) for images in (many - 1, many)] == [2, 1]


def test_rates_of_a_batch_that_cannot_be_kept_are_refused() -> None:
    for rate in (0, 1, float("nan")):
        with raises(DataError, where="fdr"):
            BatchGuarantee(rate, 1000)
    for few, dependent in ((18, False), (60, True)):
        with raises(DataError, where="fdr", naming=(few,)):
            BatchGuarantee(0.05, few, dependent).least(100)


@pytest.mark.parametrize(("n", "known", "rate"), [(4, 2, 0.4), (5, 2, 0.5), (3, 3, 0.75)])
def test_the_false_discovery_rate_is_exact_over_every_order_of_scores(
    n: int, known: int, rate: float
) -> None:
    guarantee, m = BatchGuarantee(rate, n), 3
    shares = []
    for order in permutations(range(n + known)):
        scores = np.array([*order[n:], *[-1] * (m - known)], dtype=np.float32)  # OOD images are lowest
        flags = guarantee.flags(guarantee.adjusted(p_values(np.sort(np.float32(order[:n])), scores)))
        shares.append(flags[:known].sum() / max(1, flags.sum()))
    exact = rate * known / m
    assert (np.mean(shares) == pytest.approx(exact)) == (rate * (n + 1) % m == 0)
    assert np.mean(shares) <= exact + 1e-12
