from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from tests.raising import raises
from wordnet_splits.base.errors import DataError
from wordnet_splits.metrics import (
    ScoreSet,
    auroc,
    auroc_by_nearness,
    auroc_per_class,
    bootstrap_indices,
    bootstrap_replicates,
    kendall_tau,
    nearness_trend,
)

from .reference import grid, samples

classed = st.lists(st.tuples(grid, st.sampled_from("abc")), min_size=1, max_size=24)


@given(samples, classed)
def test_per_class_is_the_auroc_of_each_class_alone(inside, outside):
    scores, classes = zip(*outside, strict=True)
    rows = auroc_per_class(inside, scores, classes)
    assert [row.ood_class for row in rows] == sorted(set(classes))
    for row in rows:
        own = [score for score, label in outside if label == row.ood_class]
        assert row.n_ood == len(own)
        assert row.auroc == auroc(inside, own)


@given(samples, st.lists(st.tuples(grid, st.floats(0, 1)), min_size=1, max_size=24))
def test_bins_cut_the_similarity(inside, outside):
    scores, similarity = (np.array(side) for side in zip(*outside, strict=True))
    rows = auroc_by_nearness(inside, scores, similarity, bins=4)
    assert sum(row.n_ood for row in rows) == len(scores)
    for row in rows:
        chosen = (similarity >= row.low) & ((similarity < row.high) | (row.high == 1) & (similarity == 1))
        assert row.n_ood == chosen.sum()
        if chosen.any():
            assert row.auroc == auroc(inside, scores[chosen])
        else:
            assert np.isnan(row.auroc)


def test_a_similarity_that_is_nan_is_refused_not_dropped():
    with raises(DataError, where="knn", naming="2"):
        auroc_by_nearness([1.0], [0.0, 0.0], [np.nan, 0.55], name="knn")
    with raises(DataError, naming="2"):
        auroc_by_nearness([1.0], [0.0, 0.0], np.ma.masked_array([0.5, 0.55], mask=[1, 0]))


def test_without_ood_samples_every_bin_is_empty():
    rows = auroc_by_nearness([1.0], [], [], bins=2)
    assert [(row.n_ood, np.isnan(row.auroc)) for row in rows] == [(0, True), (0, True)]
    assert auroc_per_class([1.0], [], []) == ()


def test_given_edges():
    rows = auroc_by_nearness([1.0], [0.0, 2.0, 1.0], [0.2, 0.5, 0.9], bins=[0, 0.5, 0.8, 1])
    assert [(row.n_ood, row.auroc) for row in rows] == [(1, 1.0), (1, 0.0), (1, 0.5)]


def test_the_trend_is_spearmans():
    random = np.random.default_rng(0)
    outside = np.round(random.normal(0, 1, 400), 1)
    classes = random.integers(0, 20, 400).astype(str)
    rows = auroc_per_class(np.round(random.normal(1, 1, 300), 1), outside, classes)
    similarity = {row.ood_class: round(float(random.random()), 1) for row in rows}
    expected = spearmanr([similarity[row.ood_class] for row in rows], [row.auroc for row in rows]).statistic
    assert nearness_trend(rows, similarity) == pytest.approx(expected, abs=1e-12)


def test_the_trend_is_negative_where_near_classes_are_hard():
    rows = auroc_per_class([3.0, 4.0], [1.0, 2.5, 3.5, 5.0], ["a", "b", "c", "d"])
    similarity = {"a": 0.1, "b": 0.2, "c": 0.6, "d": 0.9}
    assert nearness_trend(rows, similarity) < -0.9
    assert np.isnan(nearness_trend(rows, {"a": 0.1}))
    assert np.isnan(nearness_trend(rows, dict.fromkeys("abcd", 0.5)))


def test_classes_are_texts_and_numbers():
    classes = np.array(["a", 1], dtype=object)
    assert [row.ood_class for row in auroc_per_class([1.0], [0.0, 2.0], classes)] == ["1", "a"]


@pytest.mark.parametrize(
    "call",
    [
        lambda: auroc_per_class([], [1.0], ["a"]),
        lambda: auroc_per_class([1.0], [1.0], ["a", "b"]),
        lambda: auroc_per_class([1.0], [1.0, 2.0], [None, "a"]),
        lambda: auroc_per_class([1.0], [1.0, 2.0], [{}, "a"]),
        lambda: auroc_per_class([1.0], [1.0, 2.0], np.array(["a", 1j], dtype=object)),
        lambda: auroc_by_nearness([1.0], [1.0], [1.5]),
        lambda: auroc_by_nearness([1.0], [1.0], [0.5], bins=0),
        lambda: auroc_by_nearness([1.0], [1.0], [0.5], bins=[1, 0]),
        lambda: auroc_per_class([1.0], [np.nan], ["a"], name="knn"),
    ],
)
def test_what_does_not_fit_is_refused(call):
    with pytest.raises(DataError):
        call()


def test_by_hand() -> None:
    # pairs (1,2) (1,3) (2,3): two agree, one does not
    assert kendall_tau([1, 2, 3], [1, 3, 2]) == pytest.approx(1 / 3)
    assert np.isnan(kendall_tau([1, 1], [1, 2]))
    assert np.isnan(kendall_tau([1], [1]))
    with raises(DataError, naming=("2", "3")):
        kendall_tau([1, 2], [1, 2, 3])


def test_paired_replicates_draw_the_same_rows_whatever_the_scores() -> None:
    """Each replicate is the metric of exactly the rows that `bootstrap_indices` names."""
    rng = np.random.default_rng(5)
    for seed in range(2):
        inside, outside = rng.normal(1, 1, 40), rng.normal(0, 1, 30)
        sets = [ScoreSet("in", "id", inside), ScoreSet("out", "near", outside)]
        found = bootstrap_replicates(sets, ["auroc"], replicates=7, seed=seed, paired=True)["auroc"]
        for replicate, value in enumerate(found):
            rows = bootstrap_indices(seed, "in", replicate, 40), bootstrap_indices(seed, "out", replicate, 30)
            assert value == auroc(inside[rows[0]], outside[rows[1]])


def test_the_same_scores_have_no_difference_in_any_paired_replicate() -> None:
    rng = np.random.default_rng(6)
    inside, outside = rng.normal(1, 1, 50), rng.normal(0, 1, 50)
    one, two = (
        bootstrap_replicates(
            [ScoreSet("in", "id", scale * inside), ScoreSet("out", "far", scale * outside)],
            ["auroc"],
            replicates=20,
            paired=True,
        )["auroc"]
        for scale in (1, 3)
    )
    assert one.tolist() == two.tolist()
    assert len(set(one)) > 1
