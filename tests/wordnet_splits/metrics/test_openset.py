from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.raising import raises
from wordnet_splits.base.errors import DataError
from wordnet_splits.metrics import (
    accuracy,
    auroc,
    ccr_at_fpr,
    gamma,
    gamma_minus,
    gamma_plus,
    oscr,
    oscr_curve,
    rank_counts,
)

from .reference import oscr_points, outcomes, samples


def columns(pairs):
    confidence, correct = zip(*pairs, strict=True)
    return list(confidence), list(correct)


@given(outcomes, samples)
def test_the_curve_is_equation_6_at_every_threshold(pairs, unknown):
    confidence, correct = columns(pairs)
    curve = oscr_curve(confidence, correct, unknown)
    points = oscr_points(confidence, correct, unknown)
    assert curve.thresholds[-1] == -np.inf
    assert list(zip(curve.fpr, curve.ccr, strict=True)) == [(float(f), float(c)) for f, c in points]
    assert curve.fpr[-1] == 1
    assert curve.ccr[-1] == accuracy(confidence, correct)


@given(outcomes, samples)
def test_the_area_is_the_trapezoid_and_its_closed_form(pairs, unknown):
    confidence, correct = columns(pairs)
    points = oscr_points(confidence, correct, unknown)
    area = sum(
        ((f1 - f0) * (c0 + c1) / 2 for (f0, c0), (f1, c1) in pairwise(points)),
        Fraction(0),
    )
    ours = oscr(confidence, correct, unknown)
    assert ours == pytest.approx(float(area), abs=1e-15)
    assert ours <= accuracy(confidence, correct)
    right = [c for c, ok in pairs if ok]
    if right:
        closed = accuracy(confidence, correct) * auroc(right, unknown)
        assert ours == pytest.approx(closed, abs=1e-14)


@given(outcomes, samples, st.sampled_from([0.001, 0.01, 0.1, 0.25, 0.5, 1.0]))
def test_ccr_at_fpr_in_both_readings(pairs, unknown, rate):
    confidence, correct = columns(pairs)
    points = oscr_points(confidence, correct, unknown)
    best = max(c for f, c in points if float(f) <= rate)
    assert ccr_at_fpr(confidence, correct, unknown, fpr=rate) == float(best)

    distance = min(abs(float(f) - rate) for f, _ in points)
    nearest = ccr_at_fpr(confidence, correct, unknown, fpr=rate, nearest=True)
    if distance > 0.1 * rate:
        assert np.isnan(nearest)
    else:
        assert nearest == float(max(c for f, c in points if abs(float(f) - rate) == distance))


def test_scores_that_saturate_at_one_leave_the_strict_curve():
    curve = oscr_curve([1.0, 1.0], [1, 1], [1.0, 0.5])
    assert curve.fpr.tolist() == [0, 0.5, 1]
    assert curve.ccr.tolist() == [0, 1, 1]
    assert ccr_at_fpr([1.0, 1.0], [1, 1], [1.0, 0.5], fpr=0.1) == 0
    assert np.isnan(ccr_at_fpr([1.0, 1.0], [1, 1], [1.0, 0.5], fpr=0.1, nearest=True))


def test_of_two_equally_near_rates_the_greater_counts():
    unknown = [3.0] * 15 + [1.0] * 2 + [0.0] * 15  # FPR 15/32, then 17/32
    assert ccr_at_fpr([3.0, 1.0], [1, 1], unknown, fpr=0.5, nearest=True) == 1
    assert ccr_at_fpr([3.0, 1.0], [1, 1], unknown, fpr=0.5) == 0.5


def test_negatives_and_unknowns_each_have_their_own_count():
    known, correct = [0.9, 0.6], [1, 1]
    assert ccr_at_fpr(known, correct, [0.7] + [0.1] * 9, fpr=0.1) == 1
    assert ccr_at_fpr(known, correct, [0.7] + [0.1] * 3, fpr=0.1) == 0.5


@pytest.mark.parametrize("rate", [0, -0.1, 1.1, float("nan")])
def test_a_rate_outside_its_range_is_refused(rate):
    with raises(DataError, naming="fpr"):
        ccr_at_fpr([1.0], [1], [0.0], fpr=rate)


def test_gamma_by_hand():
    target, highest = [0.9, 0.5], [0.25, 0.75]
    assert gamma_plus(target) == pytest.approx((0.9 + 0.5) / 2)
    assert gamma_minus(highest, classes=4) == pytest.approx(((1 - 0.25) + (1 - 0.75)) / 2 + 1 / 4)
    assert gamma_minus(highest, classes=4, background=True) == pytest.approx(((1 - 0.25) + (1 - 0.75)) / 2)
    assert gamma(target, highest, classes=4) == pytest.approx((0.7 + 0.75) / 2)


def test_gamma_is_one_for_a_perfect_network():
    assert gamma([1.0, 1.0], [1 / 8] * 3, classes=8) == 1
    assert gamma([1.0, 1.0], [0.0] * 3, classes=8, background=True) == 1


def test_gamma_against_a_softmax_over_all_classes():
    logits = np.random.default_rng(0).normal(0, 3, (50, 10))
    softmax = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    labels = np.arange(50) % 10
    expected = np.mean(softmax[np.arange(50), labels])
    assert gamma_plus(softmax[np.arange(50), labels]) == pytest.approx(expected)
    assert gamma_minus(softmax.max(axis=1), classes=10) == pytest.approx(np.mean(1.1 - softmax.max(axis=1)))


@pytest.mark.parametrize(
    "call",
    [
        lambda: gamma_plus([]),
        lambda: gamma_plus([1.5], name="eos"),
        lambda: gamma_minus([-0.1], classes=3),
        lambda: gamma_minus([0.1], classes=0),
        lambda: gamma_plus([float("nan")]),
    ],
)
def test_what_is_no_probability_is_refused(call):
    with pytest.raises(DataError):
        call()


def test_counts_serve_every_open_set_metric():
    counts = rank_counts([0.9, 0.4], [0.6, 0.1], correct=[1, 1])
    assert oscr(counts) == oscr([0.9, 0.4], [1, 1], [0.6, 0.1])
    assert ccr_at_fpr(counts, fpr=0.5) == 1
