"""Calibration against formulas written out in numpy, and scikit-learn where it has the score."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import given
from hypothesis import strategies as st

from tests.raising import raises
from wordnet_splits.base.errors import DataError
from wordnet_splits.metrics import (
    adaptive_calibration_error,
    brier_score,
    ece,
    ece_equal_mass,
    nll,
    static_calibration_error,
)
from wordnet_splits.metrics.calibration import Outputs, calibration_replicates, calibration_values

FUNCTIONS = (ece, ece_equal_mass, brier_score, nll, static_calibration_error, adaptive_calibration_error)


def softmax(seed, n=1003, classes=7, scale=2.0):
    rng = np.random.default_rng(seed)
    logits = scale * rng.normal(size=(n, classes))
    table = np.exp(logits)
    table /= table.sum(axis=1, keepdims=True)
    labels = np.array([rng.choice(classes, p=(row + 0.2) / (row + 0.2).sum()) for row in table])
    return table, labels


def equal_width(p, hit, bins):
    """sum over bins ((b-1)/B, b/B] of n_b / N |mean hit - mean p|"""
    total = 0.0
    for b in range(1, bins + 1):
        inside = [(x, y) for x, y in zip(p, hit, strict=True) if (b - 1) / bins < x <= b / bins]
        if inside:
            gap = np.mean([y for _, y in inside]) - np.mean([x for x, _ in inside])
            total += len(inside) / len(p) * abs(gap)
    return total


def equal_mass_gaps(p, hit, bins):
    """(n_b, |mean hit - mean p|) of bins that np.array_split makes of the sorted probabilities"""
    order = np.argsort(p, kind="stable")
    return [
        (len(rows), abs(np.mean(hit[rows]) - np.mean(p[rows])))
        for rows in np.array_split(order, bins)
        if len(rows)
    ]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("bins", [1, 10, 15])
def test_calibration_errors_are_their_formulas(seed, bins):
    table, labels = softmax(seed)
    p, hit = table.max(axis=1), table.argmax(axis=1) == labels
    assert math.isclose(ece(table, labels, bins=bins), equal_width(p, hit, bins), rel_tol=1e-12)
    gaps = equal_mass_gaps(p, hit, bins)
    expected = sum(n * gap for n, gap in gaps) / len(p)
    assert math.isclose(ece_equal_mass(table, labels, bins=bins), expected, rel_tol=1e-10)
    of_classes = [(table[:, k], labels == k) for k in range(table.shape[1])]
    expected = np.mean([equal_width(q, y, bins) for q, y in of_classes])
    assert math.isclose(static_calibration_error(table, labels, bins=bins), expected, rel_tol=1e-10)
    expected = np.mean([gap for q, y in of_classes for _, gap in equal_mass_gaps(q, y, bins)])
    assert math.isclose(adaptive_calibration_error(table, labels, bins=bins), expected, rel_tol=1e-10)


@pytest.mark.parametrize("classes", [2, 7])
def test_nll_and_brier_score_are_scikit_learn_s(classes):
    table, labels = softmax(4, classes=classes)
    assert math.isclose(nll(table, labels), sklearn.metrics.log_loss(labels, table), rel_tol=1e-12)
    squared = np.mean(((table - np.eye(classes)[labels]) ** 2).sum(axis=1))
    assert math.isclose(brier_score(table, labels), squared, rel_tol=1e-12)
    theirs = sklearn.metrics.brier_score_loss(labels, table, scale_by_half=False, labels=range(classes))
    assert math.isclose(brier_score(table, labels), theirs, rel_tol=1e-12)


def test_extreme_classifiers():
    certain, labels = np.eye(3)[[0, 1, 2, 0]], np.array([0, 1, 2, 0])
    assert [f(certain, labels) for f in FUNCTIONS] == [0] * 6
    wrong = np.array([1, 2, 0, 1])
    assert ece(certain, wrong) == ece_equal_mass(certain, wrong) == 1
    assert brier_score(certain, wrong) == 2
    assert nll(certain, wrong) == math.inf
    uniform = np.full((4, 4), 0.25)
    assert nll(uniform, [0, 1, 2, 3]) == math.log(4)
    assert ece(uniform, [0, 1, 2, 3]) == ece_equal_mass(uniform, [0, 1, 2, 3]) == 0  # ties are one bin's mean


@given(st.lists(st.tuples(st.sampled_from([0.5, 0.6, 0.75, 1.0]), st.booleans()), min_size=1, max_size=30))
def test_row_order_changes_no_bit(pairs):
    table = np.array([[p, 1 - p] for p, _ in pairs])
    labels = np.array([int(not correct) for _, correct in pairs])
    rows = np.random.default_rng(len(pairs)).permutation(len(pairs))
    for function in FUNCTIONS:
        assert function(table, labels) == function(table[rows], labels[rows])


@pytest.mark.parametrize(
    ("probabilities", "labels", "where"),
    [
        ([[2.0, -1.0]], [0], "probabilities"),
        ([[3.1, 0.2]], [0], "probabilities"),
        ([[np.nan, 1.0]], [0], "probabilities"),
        ([0.5, 0.5], [0, 1], "probabilities"),
        (np.empty((0, 2)), [], "probabilities"),
        ([[0.5, 0.5]], [0, 1], "labels"),
        ([[0.5, 0.5]], [0.0], "labels"),
        ([[0.5, 0.5]], [2], "labels"),
        ([[0.5, 0.5]], [-1], "labels"),
    ],
)
def test_what_is_no_classifier_output_is_refused(probabilities, labels, where: str):
    for function in FUNCTIONS:
        with raises(DataError, where=where):
            function(probabilities, np.asarray(labels))
    with pytest.raises(DataError):
        ece([[0.5, 0.5]], [0], bins=0)


def test_a_replicate_is_the_value_of_its_images():
    parts = {}
    for number, (name, n) in enumerate({"a": 40, "b": 25}.items()):
        table, labels = softmax(number, n=n, classes=3)
        parts[name] = Outputs.of(table, labels)
    replicates = calibration_replicates(parts, replicates=5, seed=2)
    from wordnet_splits.metrics import bootstrap_indices

    for number in range(5):
        drawn = []
        for name, outputs in parts.items():
            rows = bootstrap_indices(2, name, number, len(outputs))
            columns = (getattr(outputs, field)[rows] for field in Outputs.__dataclass_fields__)
            drawn.append(Outputs(*columns))
        for metric, value in calibration_values(Outputs.concat(drawn)).items():
            assert math.isclose(replicates[metric][number], value, rel_tol=1e-9, abs_tol=1e-12), metric
