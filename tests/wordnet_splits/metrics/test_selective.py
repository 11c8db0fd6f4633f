from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, roc_auc_score, roc_curve

from wordnet_splits.base.errors import DataError
from wordnet_splits.metrics import (
    ScoreSet,
    accuracy,
    augrc,
    aurc,
    aurc_original,
    aurc_proposed,
    aurc_unknown,
    auroc_failure,
    bootstrap_indices,
    bootstrap_replicates,
    detection_error_failure,
    e_aurc,
    e_aurc_geifman,
    fpr95_failure,
    rank_counts,
)
from wordnet_splits.metrics.selective import _harmonic_numbers

from . import reference
from .reference import outcomes, samples


def columns(pairs):
    confidence, correct = zip(*pairs, strict=True)
    return list(confidence), list(correct)


@given(outcomes)
def test_aurc_is_its_definition(pairs):
    confidence, correct = columns(pairs)
    risk = [int(not ok) for ok in correct]
    assert aurc(confidence, correct) == pytest.approx(float(reference.aurc(confidence, risk)), abs=1e-14)


@given(outcomes)
def test_e_aurc_subtracts_the_best_order_of_the_same_errors(pairs):
    confidence, correct = columns(pairs)
    risk = [int(not ok) for ok in correct]
    best = reference.aurc([-i for i in range(len(risk))], sorted(risk))
    expected = float(reference.aurc(confidence, risk) - best)
    assert e_aurc(confidence, correct) == pytest.approx(expected, abs=1e-14)
    error = sum(risk) / len(risk)
    optimum = 1 if error == 1 else error + (1 - error) * math.log(1 - error)
    assert e_aurc_geifman(confidence, correct) == pytest.approx(
        aurc(confidence, correct) - optimum, abs=1e-14
    )


def test_e_aurc_is_zero_for_the_best_order_and_geifmans_is_not():
    confidence, correct = np.arange(10.0), np.arange(10) >= 4
    assert e_aurc(confidence, correct) == pytest.approx(0, abs=1e-16)
    assert abs(e_aurc_geifman(confidence, correct)) > 1e-3


@given(outcomes)
def test_augrc_is_the_trapezoid_and_the_closed_form(pairs):
    confidence, correct = columns(pairs)
    n, area, before = len(pairs), Fraction(0), Fraction(0)
    for t in sorted(set(confidence), reverse=True):
        group = [ok for c, ok in pairs if c == t]
        after = before + Fraction(sum(not ok for ok in group), n)
        area += Fraction(len(group), n) * (before + after) / 2
        before = after
    assert augrc(confidence, correct) == pytest.approx(float(area), abs=1e-15)
    acc = Fraction(sum(correct), n)
    auroc_f = Fraction(0)
    if 0 < acc < 1:
        auroc_f = reference.auroc([c for c, ok in pairs if ok], [c for c, ok in pairs if not ok])
    closed = (1 - auroc_f) * acc * (1 - acc) + (1 - acc) ** 2 / 2
    assert area == closed


def test_augrc_at_the_ends():
    assert augrc([1, 2, 3], [1, 1, 1]) == 0
    assert augrc([1, 2, 3], [0, 0, 0]) == 0.5


def test_degenerate_risks():
    assert aurc([1, 2, 3], [1, 1, 1]) == e_aurc([1, 2, 3], [1, 1, 1]) == e_aurc_geifman([1], [1]) == 0
    assert aurc([1, 2, 3], [0, 0, 0]) == 1
    assert e_aurc([1, 2, 3], [0, 0, 0]) == pytest.approx(0, abs=1e-16)
    assert e_aurc_geifman([1, 2, 3], [0, 0, 0]) == pytest.approx(0, abs=1e-15)
    assert aurc([5], [0]) == 1
    assert aurc([7] * 4, [1, 0, 1, 1]) == pytest.approx(1 / 4)  # one tie: the error rate at every rank


def test_a_large_sample_agrees_with_the_plain_formula():
    random = np.random.default_rng(0)
    confidence, correct = random.permutation(200_000).astype(float), random.random(200_000) < 0.8
    wrong = ~correct[np.argsort(-confidence)]
    plain = math.fsum(np.cumsum(wrong) / np.arange(1, len(wrong) + 1)) / len(wrong)
    assert aurc(confidence, correct) == pytest.approx(plain, abs=1e-13)


def test_a_large_sample_with_ties_agrees_with_its_ranks():
    random = np.random.default_rng(1)
    n, groups = 200_000, 50
    confidence, correct = random.integers(0, groups, n), random.random(n) < 0.7
    total, seen, errors = [], 0, 0
    for value in range(groups - 1, -1, -1):
        inside = confidence == value
        m, s = int(inside.sum()), int((~correct[inside]).sum())
        j = np.arange(1, m + 1)
        total.append(math.fsum((errors + j * s / m) / (seen + j)))
        seen, errors = seen + m, errors + s
    assert aurc(confidence, correct) == pytest.approx(math.fsum(total) / n, abs=1e-12)


def test_harmonic_numbers_are_exact_to_their_unit():
    table = _harmonic_numbers(12)
    exact, unit = Fraction(0), Fraction(1, 2**57)
    for k in range(2**12):
        exact += Fraction(1, k) if k else 0
        assert abs(int(table[k]) * unit - exact) <= (k + 200) * unit
    assert _harmonic_numbers(5)[-1] == table[31]


@given(outcomes, samples)
def test_unknown_detection_pools_every_error(pairs, outside):
    confidence, correct = columns(pairs)
    pooled, risk = confidence + outside, [int(not ok) for ok in correct] + [1] * len(outside)
    expected = float(reference.aurc(pooled, risk))
    assert aurc_unknown(confidence, correct, outside) == pytest.approx(expected, abs=1e-14)


@given(outcomes, samples)
def test_poolings_of_fd_shifts(pairs, outside):
    confidence, correct = columns(pairs)
    right = [c for c, ok in pairs if ok]
    proposed = float(reference.aurc(right + outside, [0] * len(right) + [1] * len(outside)))
    assert aurc_proposed(confidence, correct, outside) == pytest.approx(proposed, abs=1e-14)
    original = float(reference.aurc(confidence + outside, [0] * len(confidence) + [1] * len(outside)))
    assert aurc_original(confidence, outside) == pytest.approx(original, abs=1e-14)


@given(outcomes, samples)
def test_the_trapezoid_is_fd_shifts_rule_for_ties_under_each_pooling(pairs, outside):
    confidence, correct = columns(pairs)
    right = [c for c, ok in pairs if ok]
    all_id, errors = [0] * len(confidence), [int(not ok) for ok in correct]
    unknown = [1] * len(outside)
    pools = [
        (aurc(confidence, correct, trapezoid=True), confidence, errors),
        (
            aurc_proposed(confidence, correct, outside, trapezoid=True),
            right + outside,
            [0] * len(right) + unknown,
        ),
        (aurc_original(confidence, outside, trapezoid=True), confidence + outside, all_id + unknown),
    ]
    for value, scores, risk in pools:
        assert value == pytest.approx(float(reference.aurc_trapezoid(scores, risk)), abs=1e-14)


def test_the_two_rules_differ_under_ties_however_many_samples():
    """Two confidences: right at the one, wrong at the other."""
    confidence, correct = np.repeat([1, 0], 50_000), np.repeat([True, False], 50_000)
    assert aurc(confidence, correct, trapezoid=True) == pytest.approx(1 / 8, abs=1e-12)
    assert aurc(confidence, correct) == pytest.approx((1 - math.log(2)) / 2, abs=1e-5)


def test_without_ties_the_two_rules_differ_by_the_ends_alone():
    random = np.random.default_rng(4)
    n = 2_000
    confidence, correct = random.permutation(n), random.random(n) < 0.8
    ends = float(not correct[np.argmax(confidence)]) - float(np.mean(~correct))
    difference = aurc(confidence, correct, trapezoid=True) - aurc(confidence, correct)
    assert difference == pytest.approx(ends / (2 * n), abs=1e-14)


def test_replicates_of_the_trapezoid_are_its_values_on_the_drawn_samples():
    """A replicate may hold none of the first tie: the curve then starts at the next."""
    confidence, correct = np.array([3.0, 2.0, 2.0, 1.0]), np.array([0, 1, 0, 1])
    drawn = bootstrap_replicates(
        [ScoreSet("x", "id", confidence, correct)], ["aurc_trapezoid"], replicates=50
    )
    order = np.lexsort([-confidence, correct])  # wrong before correct, then by score: the canonical order
    for replicate, value in enumerate(drawn["aurc_trapezoid"]):
        rows = order[bootstrap_indices(0, "x", replicate, 4)]
        risk = [int(not ok) for ok in correct[rows]]
        assert value == pytest.approx(
            float(reference.aurc_trapezoid(confidence[rows].tolist(), risk)), abs=1e-14
        )


@given(outcomes, samples, st.sampled_from([Fraction(1, 10), Fraction(1, 2), Fraction(9, 10)]))
def test_a_stated_prevalence_reweights_the_sides(pairs, outside, prevalence):
    confidence, correct = columns(pairs)
    weights = [(1 - prevalence) / len(confidence)] * len(confidence) + [prevalence / len(outside)] * len(
        outside
    )
    risk = [int(not ok) for ok in correct] + [1] * len(outside)
    expected = float(reference.weighted_aurc(confidence + outside, risk, weights))
    ours = aurc_unknown(confidence, correct, outside, prevalence=float(prevalence))
    assert ours == pytest.approx(expected, abs=1e-13)


@given(outcomes, samples)
def test_the_prevalence_there_is_changes_nothing(pairs, outside):
    confidence, correct = columns(pairs)
    there = len(outside) / (len(outside) + len(confidence))
    ours = aurc_unknown(confidence, correct, outside, prevalence=there)
    assert ours == pytest.approx(aurc_unknown(confidence, correct, outside), abs=1e-13)


def test_repeating_ood_samples_is_what_a_prevalence_stands_for():
    """AURC at prevalence p nears that of a sample in which OOD makes up p, as both grow."""
    random = np.random.default_rng(0)
    inside, outside = random.normal(1, 1, 4000), random.normal(0, 1, 4000)
    correct = random.random(4000) < 0.8
    larger = np.repeat(outside, 4) + random.normal(0, 1e-9, 16000)
    assert aurc_unknown(inside, correct, outside, prevalence=0.8) == pytest.approx(
        aurc_unknown(inside, correct, larger), abs=2e-4
    )


@pytest.mark.parametrize("prevalence", [0, 1, -0.5, 2, float("nan")])
def test_an_impossible_prevalence_is_refused(prevalence):
    with pytest.raises(DataError):
        aurc_unknown([1.0], [1], [0.0], prevalence=prevalence)


def test_accuracy_and_misclassification_auroc_equal_scikit_learn():
    random = np.random.default_rng(3)
    confidence = np.round(random.random(500), 2)
    correct = random.random(500) < confidence
    assert accuracy(confidence, correct) == accuracy_score(np.ones(500), correct)
    assert auroc_failure(confidence, correct) == pytest.approx(roc_auc_score(correct, confidence), abs=1e-12)


@pytest.mark.parametrize("decimals", [1, 2, 12])
def test_fpr95_and_detection_error_of_failures_equal_scikit_learns_curve(decimals):
    random = np.random.default_rng(decimals)
    confidence = np.round(random.random(700), decimals)
    correct = random.random(700) < confidence
    fpr, tpr, _ = roc_curve(correct, confidence, drop_intermediate=False)
    reached = tpr >= 0.95
    assert fpr95_failure(confidence, correct) == pytest.approx(fpr[reached].min(), abs=1e-12)
    error = (0.5 * (1 - tpr) + 0.5 * fpr)[reached].min()
    assert detection_error_failure(confidence, correct) == pytest.approx(error, abs=1e-12)


@pytest.mark.parametrize("metric", [fpr95_failure, detection_error_failure])
def test_failures_without_one_kind_are_nan_also_in_a_replicate(metric):
    assert np.isnan([metric([1.0, 2.0], correct) for correct in ([1, 1], [0, 0])]).all()
    sets = [ScoreSet("id", "id", [2.0, 1.0, 3.0], [1, 0, 1]), ScoreSet("far", "far", [0.0])]
    drawn = bootstrap_replicates(sets, [metric.__name__], replicates=200)[metric.__name__]
    assert {*drawn[~np.isnan(drawn)]} == {0.0}  # the wrong sample is the least confident
    assert 0 < np.isnan(drawn).sum() < 200


def test_misclassification_auroc_needs_both_kinds():
    for correct in ([1, 1], [0, 0]):
        with pytest.raises(DataError):
            auroc_failure([1.0, 2.0], correct)


def test_correctness_has_to_be_given():
    with pytest.raises(DataError):
        aurc(rank_counts([1.0], [0.0]))
    with pytest.raises(DataError):
        aurc_unknown([1.0], [1], [])
