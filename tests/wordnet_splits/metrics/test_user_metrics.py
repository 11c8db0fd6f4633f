"""Metrics of users: registered at any time, replaced with a warning, their values checked; entry points."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from tests.raising import raises
from wordnet_splits.base.errors import DataError, UnknownNameError
from wordnet_splits.metrics import (
    METRICS,
    RankCounts,
    ScoreSet,
    auroc,
    bootstrap,
    evaluate,
    get_metric,
    list_metrics,
    pair_metric,
    rank_counts,
    register_metric,
    registry,
)

SETS = [ScoreSet("in", "id", np.arange(30.0) + 10), ScoreSet("out", "far", np.arange(25.0))]
COUNTS = rank_counts(SETS[0].confidence, SETS[1].confidence)


@pytest.fixture(autouse=True)
def _restored(user_metrics_forgotten):
    """Leave the registry as it was."""


def youden(counts):
    """Greatest TPR - FPR (Youden 1950). Higher is better."""
    true, false = counts.cum_id / counts.n_id[..., None], counts.cum_ood / counts.n_ood[..., None]
    return np.maximum((true - false).max(axis=-1), 0.0)


def test_a_metric_is_known_at_once_and_replaced_with_a_warning():
    assert "youden" not in evaluate(COUNTS)
    pair_metric(higher_is_better=True)(youden)
    value = evaluate(COUNTS)["youden"]
    assert value == bootstrap(SETS, ["youden"], replicates=20)["youden"].value
    assert get_metric("youden").origin == f"{__name__}:youden"
    with pytest.warns(UserWarning, match="'youden' replaces the earlier one") as caught:
        pair_metric(higher_is_better=False)(youden)
    assert caught[0].filename == __file__
    assert not METRICS["youden"].higher_is_better


@pytest.mark.parametrize("name", ["auroc", "ccr_at_fpr_0.01", "gamma", "nearness_trend", "ece", "nll"])
def test_a_name_of_a_built_in_value_is_refused(name):
    before = METRICS.registered.get(name)
    with raises(DataError, naming=name):
        register_metric(name, youden, higher_is_better=True, needs=("id", "ood"))(auroc)
    assert METRICS.registered.get(name) is before


def test_a_name_that_is_not_an_identifier_is_refused():
    with pytest.raises(DataError):
        pair_metric(higher_is_better=True)(lambda counts: counts.n_id)


def raising(counts):
    """Raise."""
    raise RuntimeError("no\nvalue")


def exiting(counts):
    """Exit."""
    sys.exit(3)


def scalar(counts):
    """Reduce every axis, so that all replicates would share one value."""
    return (counts.cum_id / 30 - counts.cum_ood / 25).max()


def per_threshold(counts):
    """Reduce no axis."""
    return counts.cum_id


def infinite(counts):
    """Divide by zero."""
    return counts.n_id / 0


def texts(counts):
    """Return text."""
    return "high"


@pytest.mark.parametrize(
    ("kernel", "where"),
    [
        (raising, "'raising'"),
        (exiting, "'exiting'"),
        (scalar, "'scalar'"),
        (per_threshold, "'per_threshold'"),
        (infinite, "'infinite'"),
        (texts, "'texts'"),
    ],
)
def test_a_broken_metric_is_one_line_with_its_name(kernel, where: str):
    pair_metric(higher_is_better=True)(kernel)
    with raises(DataError, where=where):
        bootstrap(SETS, [kernel.__name__], replicates=20)


def test_a_metric_that_mixes_replicates_is_refused():
    pair_metric(higher_is_better=True)(sharing)
    counts = rank_counts(SETS[0].confidence, SETS[1].confidence)
    stacked = RankCounts(counts.thresholds, *(np.stack([c] * 3) for c in (counts.cum_id, counts.cum_ood)))
    assert evaluate(counts, ["sharing"]) == {"sharing": 1.0}
    with raises(DataError, where="'sharing'"):
        get_metric("sharing").kernel(stacked)


def sharing(counts):
    """Divide by the sum over all replicates."""
    return counts.n_id / counts.n_id.sum()


def overwriting(counts):
    """Overwrite the counts that it gets."""
    counts.cum_id[...] = 0
    return counts.n_id / 1


def test_a_metric_cannot_change_the_counts_of_others():
    pair_metric(higher_is_better=True)(overwriting)
    before = auroc(COUNTS)
    evaluate(COUNTS, ["overwriting"])
    assert COUNTS.cum_id.any()
    assert auroc(COUNTS) == before


def undefined(counts):
    """Give NaN. Higher is better."""
    return np.full(counts.n_id.shape, np.nan)


def test_nan_is_kept_as_undefined():
    pair_metric(higher_is_better=True)(undefined)
    assert np.isnan(bootstrap(SETS, ["undefined"], replicates=20)["undefined"]).all()


PLUGIN = """
import numpy as np
from wordnet_splits.metrics import pair_metric

@pair_metric(higher_is_better=True)
def {name}(counts):
    '''Number of ID samples. Higher is better.'''
    return counts.n_id / 1
"""


def test_metrics_of_packages_are_computed_and_broken_ones_left_out(tmp_path, monkeypatch, isolated):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "metric_plugin.py").write_text(PLUGIN.format(name="mine"))
    isolated(METRICS, [("mine", "metric_plugin:mine"), ("broken", "no_such_module:metric")])
    with pytest.warns(UserWarning, match="left out") as caught:
        assert "mine" in list_metrics()
    assert len(caught) == 1
    assert evaluate(COUNTS, ["mine"]) == {"mine": 30}


def test_module_name_must_be_a_metric(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_metric_file.py").write_text(PLUGIN.format(name="of_file") + "\ndef plain(counts): ...\n")
    assert registry.import_metric("my_metric_file:of_file", where="--metric") == ("of_file",)
    for path, said in {
        "my_metric_file:plain": "--metric",
        "my_metric_file:none": "--metric my_metric_file",
        "my_metric_file.py:of_file": "--metric",
        "no_such_module:x": "--metric",
    }.items():
        with raises((DataError, UnknownNameError), where=said):
            registry.import_metric(path, where="--metric")
