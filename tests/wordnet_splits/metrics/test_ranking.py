from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import (
    auc,
    average_precision_score,
    precision_recall_curve,
    roc_auc_score,
    roc_curve,
)

from tests.raising import raises
from wordnet_splits.base.errors import DataError
from wordnet_splits.metrics import (
    aupr_in,
    aupr_out,
    auroc,
    detection_error,
    detection_error_at_tpr95,
    detection_error_min,
    fpr95_id_positive,
    fpr95_ood_positive,
    openood_fpr95,
)

from . import reference
from .reference import samples, tied_scores

CASES = [
    pytest.param(*tied_scores(seed, n_id, n_ood, levels), id=f"{n_id}x{n_ood}-{levels}")
    for seed, (n_id, n_ood, levels) in enumerate(
        [(1000, 700, None), (1000, 700, 20), (400, 4000, 4), (57, 23, 2), (2000, 100, 1), (1, 1, 1)]
    )
]


def labelled(inside, outside):
    return np.r_[np.ones(len(inside)), np.zeros(len(outside))], np.r_[inside, outside]


@pytest.mark.parametrize(("inside", "outside"), CASES)
def test_areas_equal_scikit_learn(inside, outside):
    is_id, scores = labelled(inside, outside)
    assert auroc(inside, outside) == pytest.approx(roc_auc_score(is_id, scores), abs=1e-12)
    assert aupr_in(inside, outside) == pytest.approx(average_precision_score(is_id, scores), abs=1e-12)
    assert aupr_out(inside, outside) == pytest.approx(average_precision_score(1 - is_id, -scores), abs=1e-12)
    for ours, positive, ranked in ((aupr_in, is_id, scores), (aupr_out, 1 - is_id, -scores)):
        precision, recall, _ = precision_recall_curve(positive, ranked)
        assert ours(inside, outside, trapezoid=True) == pytest.approx(auc(recall, precision), abs=1e-12)


@pytest.mark.parametrize(("inside", "outside"), CASES)
def test_fpr95_equals_scikit_learns_roc_curve(inside, outside):
    is_id, scores = labelled(inside, outside)
    for ours, positive, ranked in (
        (fpr95_id_positive, is_id, scores),
        (fpr95_ood_positive, 1 - is_id, -scores),
    ):
        fpr, tpr, _ = roc_curve(positive, ranked, drop_intermediate=False)
        assert ours(inside, outside) == fpr[np.argmax(tpr >= 0.95)]
        expected = np.interp(0.95, tpr, fpr)  # the reading of OODL's code
        assert ours(inside, outside, interpolate=True) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_openood_reads_the_same_point(seed):
    """OpenOOD: OOD positive, scores negated, the first point of roc_curve whose TPR is at least .95."""
    inside, outside = tied_scores(seed, 900, 1300, None)
    is_id, scores = labelled(inside, outside)
    fpr, tpr, _ = roc_curve(1 - is_id, -scores)
    assert openood_fpr95(inside, outside) == fpr[np.argmax(tpr >= 0.95)]


def test_dropped_points_can_move_openoods_value_but_not_ours():
    """Twenty ties of one ID and one OOD sample lie on one line, of which scikit-learn keeps the ends."""
    scores = np.arange(20.0)
    fpr, tpr, _ = roc_curve(np.r_[np.zeros(20), np.ones(20)], -np.r_[scores, scores])
    assert fpr[np.argmax(tpr >= 0.95)] == 1.0
    assert openood_fpr95(scores, scores) == 19 / 20


@given(samples, samples)
def test_auroc_counts_pairs(inside, outside):
    assert auroc(inside, outside) == float(reference.auroc(inside, outside))


@given(samples, samples, st.sampled_from([Fraction(19, 20), Fraction(1, 2), Fraction(1), Fraction(4, 5)]))
def test_fpr_at_tpr_is_its_definition(inside, outside, tpr):
    for ours, definition in (
        (fpr95_id_positive, reference.fpr_id_positive),
        (fpr95_ood_positive, reference.fpr_ood_positive),
    ):
        assert ours(inside, outside, tpr=float(tpr)) == float(definition(inside, outside, tpr))


@given(samples, samples)
def test_detection_errors_are_their_definitions(inside, outside):
    points = reference.detection_errors(inside, outside)
    reached = [(t, e) for t, e in points if t >= Fraction(19, 20)]
    assert detection_error(inside, outside) == pytest.approx(float(min(e for _, e in reached)), abs=1e-15)
    highest = reached[-1][1]  # the points come by ascending threshold
    assert detection_error_at_tpr95(inside, outside) == pytest.approx(float(highest), abs=1e-15)
    smallest = min(Fraction(1, 2), *(e for _, e in points))
    assert detection_error_min(inside, outside) == pytest.approx(float(smallest), abs=1e-15)


@given(samples, samples)
def test_negating_scores_exchanges_the_sides(inside, outside):
    a, b = np.array(inside), np.array(outside)
    assert auroc(a, b) == auroc(-b, -a)
    assert auroc(a, b) == pytest.approx(1 - auroc(b, a), abs=1e-15)
    assert aupr_out(a, b) == aupr_in(-b, -a)
    assert aupr_out(a, b, trapezoid=True) == aupr_in(-b, -a, trapezoid=True)
    for interpolate in (False, True):
        ours = fpr95_ood_positive(a, b, interpolate=interpolate)
        assert ours == fpr95_id_positive(-b, -a, interpolate=interpolate)
    assert detection_error(a, b, ood_positive=True) == detection_error(-b, -a)
    assert detection_error_at_tpr95(a, b, ood_positive=True) == detection_error_at_tpr95(-b, -a)
    assert detection_error_min(a, b) == pytest.approx(detection_error_min(-b, -a), abs=1e-15)


def test_separated_scores():
    high, low = [3.0, 2.0], [1.0, 0.0]
    assert auroc(high, low) == aupr_in(high, low) == aupr_out(high, low) == 1
    assert fpr95_id_positive(high, low) == fpr95_ood_positive(high, low) == detection_error(high, low) == 0
    assert auroc(low, high) == 0
    assert fpr95_id_positive(low, high) == 1
    assert detection_error_min(low, high) == 0.5


def test_all_scores_tied_is_chance():
    same = [0.5] * 8
    assert auroc(same, same[:2]) == 0.5
    assert fpr95_id_positive(same, same[:2]) == 1
    assert aupr_in(same, same[:2]) == 8 / 10
    assert aupr_out(same, same[:2]) == 2 / 10
    assert detection_error(same, same[:2]) == 0.5


def test_interpolation_at_a_tpr_that_occurs_takes_its_last_point():
    inside = np.r_[np.full(19, 2.0), 0.0]  # TPR .95 from score 2 down to the OOD score 1
    assert fpr95_id_positive(inside, [1.0, -1.0]) == 0
    assert fpr95_id_positive(inside, [1.0, -1.0], interpolate=True) == 0.5


def test_interpolation_starts_at_the_origin():
    # one threshold: the segment from (0, 0) to (1, 1)
    assert fpr95_id_positive([1.0], [1.0], interpolate=True) == pytest.approx(0.95)


@pytest.mark.parametrize(
    "function",
    [auroc, aupr_in, aupr_out, fpr95_id_positive, fpr95_ood_positive, detection_error, detection_error_min],
)
def test_an_empty_side_is_refused_by_name(function):
    with raises(DataError, where="msp on svhn"):
        function([1.0], [], name="msp on svhn")
    with raises(DataError, where="msp on svhn"):
        function([], [1.0], name="msp on svhn")


def test_a_rate_outside_its_range_is_refused():
    for tpr in (0, 1.5, -1, float("nan")):
        with pytest.raises(DataError):
            fpr95_id_positive([1.0], [0.0], tpr=tpr)
