from __future__ import annotations

import doctest
import importlib
import pkgutil
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.raising import raises
from wordnet_splits import metrics
from wordnet_splits.base.errors import DataError, UnknownNameError
from wordnet_splits.metrics import METRICS, evaluate, get_metric, list_metrics, rank_counts, register_metric

from .reference import outcomes, samples, tied_scores

BY_NEEDS = {
    ("id", "ood"): lambda c, ok, o: (c, o),
    ("id", "correct"): lambda c, ok, o: (c, ok),
    ("id", "correct", "ood"): lambda c, ok, o: (c, ok, o),
}


def columns(pairs):
    confidence, correct = zip(*pairs, strict=True)
    return np.array(confidence), np.array(correct)


@given(outcomes, samples, st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_no_bit(pairs, outside, random):
    confidence, correct = columns(pairs)
    before = evaluate(rank_counts(confidence, outside, correct=correct))
    random.shuffle(pairs)
    random.shuffle(outside)
    confidence, correct = columns(pairs)
    after = evaluate(rank_counts(confidence, outside, correct=correct))
    assert set(before) == set(METRICS)
    assert bits(before) == bits(after)


def bits(values):
    return {name: np.float64(value).tobytes() for name, value in values.items()}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("levels", [None, 8])
def test_the_order_of_many_rows_changes_no_bit(dtype, levels):
    inside, outside = (scores.astype(dtype) for scores in tied_scores(0, 20_000, 30_000, levels))
    correct = inside > np.roll(inside, 1)
    random = np.random.default_rng(1)
    rows = random.permutation(len(inside))
    before = evaluate(rank_counts(inside, outside, correct=correct))
    after = evaluate(rank_counts(inside[rows], random.permutation(outside), correct=correct[rows]))
    assert bits(before) == bits(after)


@given(outcomes, samples)
def test_a_monotone_transform_changes_no_bit(pairs, outside):
    confidence, correct = columns(pairs)
    before = evaluate(rank_counts(confidence, outside, correct=correct))
    after = evaluate(rank_counts(confidence**3 + 7, np.array(outside) ** 3 + 7, correct=correct))
    assert bits(before) == bits(after)


@given(outcomes, samples)
def test_values_are_fractions(pairs, outside):
    confidence, correct = columns(pairs)
    for name, value in evaluate(rank_counts(confidence, outside, correct=correct)).items():
        low = -1 if name == "e_aurc_geifman" else 0  # its optimum is not a discrete one
        assert np.isnan(value) or low <= value <= 1, name


@pytest.mark.parametrize("name", sorted(METRICS))
def test_the_registered_kernel_is_the_public_function(name):
    inside, outside = tied_scores(2, 300, 200, 6)
    correct = inside > np.roll(inside, 3)
    entry = METRICS[name]
    arrays = BY_NEEDS[entry.needs](inside, correct, outside)
    options = {
        "fpr95_id_positive_interpolated": {"interpolate": True},
        "fpr95_ood_positive_interpolated": {"interpolate": True},
        "aupr_in_trapezoid": {"trapezoid": True},
        "aupr_out_trapezoid": {"trapezoid": True},
        "detection_error_ood_positive": {"ood_positive": True},
        "aurc_trapezoid": {"trapezoid": True},
        "aurc_proposed_trapezoid": {"trapezoid": True},
        "aurc_original_trapezoid": {"trapezoid": True},
    }.get(name, {})
    if name.startswith("ccr_at_fpr_"):
        rate, _, nearest = name.removeprefix("ccr_at_fpr_").partition("_")
        options = {"fpr": float(rate), "nearest": bool(nearest)}
    value = float(entry.kernel(rank_counts(inside, outside, correct=correct)))
    assert np.array_equal(value, entry.function(*arrays, **options), equal_nan=True)


@pytest.mark.parametrize("name", sorted(METRICS))
def test_the_stated_direction_is_the_good_one(name):
    confidence, correct, outside = np.arange(40.0, 0, -1), np.arange(40) < 30, np.arange(-40.0, 0)
    good = evaluate(rank_counts(confidence, outside, correct=correct))[name]
    bad = evaluate(rank_counts(confidence - 90, -outside, correct=correct[::-1]))[name]
    if name in ("accuracy", "ccr_at_fpr_1", "ccr_at_fpr_1_nearest"):  # accuracies: no part of the ranking
        bad = evaluate(rank_counts(confidence, outside, correct=correct & (confidence > 20)))[name]
    if np.isnan(bad):  # no point of the curve near that rate
        assert name.endswith("_nearest")
        return
    assert good != bad
    assert (good > bad) == METRICS[name].higher_is_better


@pytest.mark.parametrize("name", sorted(METRICS))
def test_the_documentation_states_direction_and_positive_side(name):
    text = METRICS[name].function.__doc__ or ""
    word = "igher is better" if METRICS[name].higher_is_better else "ower is better"
    assert word in text
    if "ood" in METRICS[name].needs:
        assert "positive" in text or "risk" in text
    assert METRICS[name].summary.endswith((".", ":"))


def test_evaluate_takes_what_the_counts_allow():
    assert set(evaluate(rank_counts([1.0], [0.0]))) == set(list_metrics(("id", "ood")))
    assert set(evaluate(rank_counts([1.0], correct=[1]))) == set(list_metrics(("id", "correct")))
    assert list_metrics() == tuple(sorted(METRICS))


def test_evaluate_computes_the_named_ones_or_says_why_not():
    assert evaluate(rank_counts([1.0], [0.0]), ["auroc"]) == {"auroc": 1.0}
    with pytest.raises(DataError):
        evaluate(rank_counts([1.0], [0.0]), ["aurc"])
    with raises(UnknownNameError, near="auroc"):
        get_metric("aurocc")


def test_a_value_that_does_not_exist_is_nan_not_an_error():
    values = evaluate(rank_counts([2.0, 1.0], [0.0], correct=[1, 1]))
    assert np.isnan(values["auroc_failure"])
    assert values["aurc"] == 0


def test_a_name_is_registered_once():
    with raises(ValueError, naming="auroc"):
        register_metric("auroc", METRICS["auroc"].kernel, higher_is_better=True, needs=("id", "ood"))(
            metrics.auroc
        )


def test_examples_in_docstrings_hold():
    attempted = 0
    for module in pkgutil.iter_modules(metrics.__path__):
        result = doctest.testmod(importlib.import_module(f"{metrics.__name__}.{module.name}"))
        assert result.failed == 0
        attempted += result.attempted
    assert attempted >= 4


def test_torch_and_pandas_are_not_imported():
    code = (
        "import sys, wordnet_splits.metrics; "
        "print(sorted({'torch', 'pandas', 'scipy', 'sklearn'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
