"""Sums by row and softmax odds in float32: against SciPy in float64, and the same wherever a row lies."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp
from threadpoolctl import threadpool_info

from loaders.harness.data.arrays import map_in_order
from loaders.harness.detectors.softmax import (
    at_least_single,
    lengths,
    log_others,
    log_sum_exp,
    maxima,
    products,
    scaled_odds,
    sums,
)

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("width", [1, 7, 100, 1000])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_row_has_the_same_sums_wherever_it_lies(width: int, kind: type) -> None:
    rows = RNG.normal(0, 3, (97, width)).astype(kind)
    others = RNG.normal(0, 3, (97, width)).astype(kind)
    whole = sums(rows), products(rows, others), lengths(rows), maxima(rows)
    for first, size in ((0, 1), (1, 13), (5, 92), (96, 1)):
        own = slice(first, first + size)
        parts = (
            sums(rows[own]),
            products(rows[own], others[own]),
            lengths(rows[own].copy()),
            maxima(rows[own]),
        )
        assert [part.tobytes() for part in parts] == [found[own].tobytes() for found in whole]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(0, 5), (3, 0), (1, 1), (97, 100)])
def test_the_greatest_of_a_row_is_numpys(shape: tuple[int, int], order: str) -> None:
    values = RNG.normal(0, 3, shape).astype(np.float32)
    rows = np.asfortranarray(values) if order == "F" else values
    if rows.size > 1:
        rows[1, 2:4] = np.inf, np.nan
    np.testing.assert_array_equal(maxima(rows), rows.max(axis=1, initial=-np.inf))


def test_sums_in_float32_keep_its_digits() -> None:
    rows = RNG.exponential(1, (50, 2048)).astype(np.float32)
    np.testing.assert_allclose(sums(rows), rows.sum(axis=1, dtype=np.float64), rtol=5e-7)
    half = at_least_single(rows.astype(np.float16))
    np.testing.assert_allclose(sums(half), half.sum(axis=1, dtype=np.float64), rtol=5e-7)


@pytest.mark.parametrize("offset", [0.0, -70.0, -500.0, 70.0, 500.0])
def test_log_sum_exp_is_scipys_beyond_the_range_of_float32_too(offset: float) -> None:
    values = (RNG.normal(0, 10, (40, 100)) + offset).astype(np.float32)
    np.testing.assert_allclose(log_sum_exp(values), logsumexp(values.astype(np.float64), axis=1), atol=5e-6)


@pytest.mark.parametrize("temperature", [0.01, 0.1, 1.0, 10.0, 11.0, 1000.0, 1e6])
@pytest.mark.parametrize("spread", [0.1, 3.0, 300.0])
@pytest.mark.parametrize("with_background", [False, True])
def test_odds_in_float32_are_those_of_float64(
    temperature: float, spread: float, with_background: bool
) -> None:
    logits = RNG.normal(0, spread, (60, 50)).astype(np.float32)
    background = RNG.normal(0, spread, 60).astype(np.float32) if with_background else None
    others = [np.delete(row, row.argmax()) for row in logits.astype(np.float64)]
    if background is not None:
        others = [np.append(row, one) for row, one in zip(others, background, strict=True)]
    top = logits.max(axis=1).astype(np.float64)
    exact = np.array([logsumexp((row - one) / temperature) for row, one in zip(others, top, strict=True)])
    found = log_others(logits, background, temperature)
    np.testing.assert_allclose(found, exact, rtol=2e-6, atol=4e-6 * max(1, spread) / min(1, temperature))
    odds = scaled_odds(logits, background, [temperature])[0]
    wanted = np.array([(one - row).mean() for row, one in zip(others, top, strict=True)])  # at T without end
    if temperature < 1e6:
        wanted = temperature * (np.log(len(others[0])) - exact)
    np.testing.assert_allclose(odds, wanted, rtol=2e-3 if temperature == 1e6 else 1e-5, atol=2e-6 * spread)


def test_blas_has_one_thread_beside_ours_and_its_own_number_after() -> None:
    def of_blas(_: int = 0) -> list[int]:
        return [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]

    before = of_blas()
    assert before
    assert map_in_order(of_blas, range(3), 2) == [[1] * len(before)] * 3
    assert of_blas() == before


def test_a_job_on_a_thread_may_map_jobs_itself() -> None:
    def squares(n: int) -> list[int]:
        return map_in_order(lambda i: i * i, range(n), 2)

    assert map_in_order(squares, [3] * 8, 2) == [[0, 1, 4]] * 8
