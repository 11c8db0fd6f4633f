from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from tests.raising import raises
from wordnet_splits.base.errors import DataError
from wordnet_splits.metrics import RankCounts, ScoreSet, auroc, auroc_by_nearness, rank_counts
from wordnet_splits.metrics.counts import count_below, least_count

from .reference import outcomes, samples


class FakeTensor:
    """What a torch tensor looks like from outside: on a device, with a gradient, perhaps bfloat16."""

    def __init__(self, values, *, on_cpu=False, bfloat16=False):
        self.values, self.on_cpu, self.bfloat16 = np.asarray(values, dtype=np.float32), on_cpu, bfloat16

    def detach(self):
        return self

    def cpu(self):
        return FakeTensor(self.values, on_cpu=True, bfloat16=self.bfloat16)

    def float(self):
        return FakeTensor(self.values, on_cpu=self.on_cpu)

    def __array__(self, dtype=None, copy=None):
        if not self.on_cpu or self.bfloat16:
            raise TypeError("can't convert")
        return self.values


@given(outcomes, samples)
def test_counts_are_those_of_every_threshold(known, outside):
    inside, correct = (np.array(side) for side in zip(*known, strict=True))
    counts = rank_counts(inside, outside, correct=correct)
    assert counts.thresholds.tolist() == sorted({*inside.tolist(), *outside}, reverse=True)
    for i, t in enumerate(counts.thresholds):
        assert counts.cum_id[i] == np.sum(inside >= t)
        assert counts.cum_correct[i] == np.sum(correct & (inside >= t))
        assert counts.cum_ood[i] == np.sum(np.array(outside) >= t)
        assert counts.id_steps[i] == np.sum(inside == t)


@given(samples, samples)
def test_ood_positive_is_the_counts_of_negated_scores(inside, outside):
    flipped = rank_counts(inside, outside).ood_positive
    direct = rank_counts(-np.array(outside), -np.array(inside))
    assert np.array_equal(flipped.thresholds, direct.thresholds)
    assert np.array_equal(flipped.cum_id, direct.cum_id)
    assert np.array_equal(flipped.cum_ood, direct.cum_ood)


def test_views_pair_correct_samples_with_each_kind_of_error():
    counts = rank_counts([4, 3, 2], [3, 1], correct=[1, 0, 1])
    assert counts.failures.cum_id.tolist() == [1, 1, 2, 2]
    assert counts.failures.cum_ood.tolist() == [0, 1, 1, 1]
    assert counts.unknowns.cum_ood.tolist() == [0, 2, 2, 3]
    assert counts.proposed.cum_ood.tolist() == [0, 1, 1, 2]


def test_dtypes_meet_without_loss():
    third = np.float32(1) / np.float32(3)
    assert len(rank_counts(np.array([third]), np.array([1 / 3])).thresholds) == 2
    assert len(rank_counts(np.array([third]), np.array([np.float64(third)])).thresholds) == 1
    assert rank_counts(np.array([0.5], np.float16), [1]).thresholds.tolist() == [1, 0.5]
    assert rank_counts(np.ones(2, np.float32), np.zeros(2, np.float32)).thresholds.dtype == np.float32


def test_minus_zero_ties_with_zero():
    counts = rank_counts([0.0, -0.0], [-0.0])
    assert counts.thresholds.tobytes() == np.array([0.0]).tobytes()
    assert counts.cum_id.tolist() == [2]


@pytest.mark.parametrize("bfloat16", [False, True])
def test_tensors_are_read_by_their_methods(bfloat16):
    counts = rank_counts(FakeTensor([2, 1], bfloat16=bfloat16), FakeTensor([0]), correct=FakeTensor([1, 0]))
    assert counts.cum_correct is not None
    assert counts.cum_correct.tolist() == [1, 1, 1]


def test_torch_tensors():
    torch = pytest.importorskip("torch")
    scores = torch.tensor([2.0, 1.0], requires_grad=True)
    for tensor in (scores, scores.to(torch.bfloat16), scores.to(torch.float16)):
        counts = rank_counts(tensor, torch.tensor([0.0]), correct=torch.tensor([True, False]))
        assert counts.thresholds.tolist() == [2, 1, 0]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_non_finite_scores_are_refused_by_name(bad):
    with raises(DataError, where="OOD scores", naming=("2", "4")):
        rank_counts([1.0], [0.0, bad, 0.5, bad], name="knn on svhn")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (([], []), ()),
        (([[1.0], [2.0]], [0.0]), "2"),
        ((["high"], [0.0]), ()),
        (([1.0 + 2j], [0.0]), ()),
    ],
)
def test_what_is_no_score_is_refused(arguments, named: object):
    with raises(DataError, naming=named):
        rank_counts(*arguments)


@pytest.mark.parametrize("side", ["id", "ood", "correct"])
def test_a_masked_array_is_refused_and_one_that_masks_nothing_is_an_array(side):
    masked = np.ma.masked_array([1, 0, 1], mask=[False, True, False])
    sides = {"id": np.array([3, 2, 1]), "ood": np.array([2, 1, 0]), "correct": np.array([1, 0, 1])}
    whole = {**sides, side: np.ma.masked_array(sides[side])}
    assert rank_counts(whole["id"], whole["ood"], correct=whole["correct"]).cum_id.tolist() == [1, 2, 3, 3]
    sides[side] = masked
    with raises(DataError, naming="3"):
        rank_counts(sides["id"], sides["ood"], correct=sides["correct"])


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_integers_that_float64_makes_equal_are_refused(dtype):
    beyond = np.array([2**53, 2**53 + 1], dtype)
    with raises(DataError, where="OOD scores", naming=("knn", "2")):
        rank_counts([0], beyond, name="knn")


@pytest.mark.parametrize(
    "other", [np.array([2**53]), np.array([2**53], np.uint64), np.array([2.0**53], "f4")]
)
def test_integers_that_float64_makes_equal_to_the_other_side_are_refused(other):
    with raises(DataError, where="knn", naming="2"):
        rank_counts(np.array([2**53 + 1]), other, name="knn")
    with raises(DataError, naming="2"):
        auroc_by_nearness(np.array([2**53 + 1]), other, [0.5], bins=[0, 1])


def test_integers_beyond_float64_that_stay_different_are_ranked():
    assert auroc(np.array([2**60 + 1, 2**61]), [5, 7]) == 1
    assert auroc(np.array([2**60 + 1]), np.array([2**60 + 1, 2**62 - 1])) == 0.25
    assert rank_counts(np.array([-(2**63), 2**63 - 1], np.int64)).thresholds.tolist() == [2.0**63, -(2.0**63)]
    assert rank_counts(np.array([2**63 - 1, 2**63 - 1])).cum_id.tolist() == [2]


def test_integers_of_sets_that_are_pooled_are_exact():
    """Which of the other sets' scores they would be equal to is not known when a set is made."""
    with raises(DataError, where="svhn: scores"):
        ScoreSet("svhn", "near", np.array([2**53 + 1]))
    assert ScoreSet("svhn", "near", np.array([2**53 + 2])).confidence.tolist() == [2.0**53 + 2]


@pytest.mark.parametrize("correct", [[True], [0.5, 1], ["yes", "no"], [[1, 0]]])
def test_flags_must_be_one_truth_per_id_score(correct):
    with raises(DataError, where="correct"):
        rank_counts([1.0, 2.0], [0.0], correct=correct)


def test_absent_sides_are_named():
    with raises(DataError, where="msp on x"):
        rank_counts([1.0], name="msp on x").require("id", "ood")
    with pytest.raises(DataError):
        rank_counts([], [1.0]).require("id")
    with pytest.raises(DataError):
        rank_counts([1.0]).require("correct")


def test_what_is_shared_is_computed_once():
    calls = []

    def part(counts: RankCounts) -> np.ndarray:
        calls.append(counts)
        return counts.cum_id

    counts = rank_counts([1.0], [0.0])
    assert counts.cached(part) is counts.cached(part)
    assert len(calls) == 1


def test_least_count_is_the_definition():
    for share in (0.95, 0.001, 0.1, 0.07, 0.29, 1.0, 1 / 3):  # 0.07 * 100 > 7, 0.29 * 100 < 29
        total = np.arange(1, 2000)
        expected = [int(np.flatnonzero(np.arange(n + 1) / n >= share)[0]) for n in total]
        assert least_count(share, total).tolist() == expected


def test_count_below_works_row_by_row():
    cumulative = np.array([[1, 2, 2, 5], [0, 0, 3, 3]])
    assert count_below(cumulative, np.array([2, 1])).tolist() == [1, 2]
    assert count_below(cumulative[0], np.array(9)).tolist() == 4
