from __future__ import annotations

import hashlib

import numpy as np
import pytest

from wordnet_splits.base.errors import DataError, UnknownNameError
from wordnet_splits.metrics import (
    METRICS,
    ScoreSet,
    auroc,
    bootstrap,
    bootstrap_indices,
    bootstrap_replicates,
    evaluate,
    interval,
    list_metrics,
    pool,
    rank_counts,
    resampling,
)

from .reference import tied_scores

MASK = 2**64 - 1


def splitmix64(state: int, count: int) -> list[int]:
    """The generator as published, one word at a time."""
    words = []
    for _ in range(count):
        state = (state + 0x9E3779B97F4A7C15) & MASK
        z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        words.append(z ^ (z >> 31))
    return words


def state_of(*words: object) -> int:
    """The state of the generator for these words."""
    digest = hashlib.sha256("\x1f".join(map(str, words)).encode()).digest()
    return int.from_bytes(digest[:8], "little")


def example(seed: int = 0, n: int = 150, levels: int | None = 5) -> list[ScoreSet]:
    inside, outside = tied_scores(seed, n, n, levels)
    correct = np.random.default_rng(seed).random(n) < 0.8
    return [ScoreSet("id", "id", inside, correct), ScoreSet("near", "near", outside)]


def test_draws_follow_the_published_generator():
    assert splitmix64(1234567, 3) == [6457827717110365317, 3203168211198807973, 9817491932198370423]
    words = splitmix64(state_of("bootstrap", 3, "svhn", 17), 777)
    assert bootstrap_indices(3, "svhn", 17, 777).tolist() == [((word >> 32) * 777) >> 32 for word in words]


def test_draws_are_uniform():
    draws = np.concatenate([bootstrap_indices(0, "x", r, 50) for r in range(2000)])
    counts = np.bincount(draws, minlength=50)
    chi_square = np.sum((counts - 2000) ** 2 / 2000)
    assert draws.min() == 0
    assert draws.max() == 49
    assert chi_square < 49 + 5 * np.sqrt(2 * 49)


@pytest.mark.parametrize("levels", [None, 5])
def test_a_replicate_is_the_metric_of_the_resampled_rows(levels):
    """Every metric of every replicate, against drawing rows and sorting again."""
    sets = example(levels=levels)
    drawn = bootstrap_replicates(sets, replicates=7, seed=5)
    assert set(drawn) == set(METRICS)
    inside, outside = sets
    order = np.lexsort((-inside.confidence, inside.correct))  # wrong first, then by score, highest first
    for replicate in range(7):
        rows = order[bootstrap_indices(5, "id", replicate, len(order))]
        others = np.sort(outside.confidence)[::-1][bootstrap_indices(5, "near", replicate, len(order))]
        direct = evaluate(rank_counts(inside.confidence[rows], others, correct=inside.correct[rows]))
        for name, value in direct.items():
            assert drawn[name][replicate] == pytest.approx(value, abs=1e-13, nan_ok=True), name


def test_row_order_and_block_size_change_no_bit(monkeypatch):
    sets = example()
    before = bits(bootstrap(sets, replicates=40))
    rows = np.random.default_rng(9).permutation(150)
    shuffled = [
        ScoreSet("id", "id", sets[0].confidence[rows], sets[0].correct[rows]),
        ScoreSet("near", "near", sets[1].confidence[rows]),
    ]
    assert bits(bootstrap(shuffled[::-1], replicates=40)) == before
    monkeypatch.setattr(resampling, "BLOCK", 1000)
    assert bits(bootstrap(sets, replicates=40)) == before


def bits(intervals):
    return {name: np.array(values).tobytes() for name, values in intervals.items()}


def test_a_set_keeps_its_draws_whatever_else_is_evaluated():
    inside, near = example()
    far = ScoreSet("far", "far", near.confidence[:40])
    alone = bootstrap_replicates([inside, near], ["accuracy"], replicates=20)
    together = bootstrap_replicates([inside, far, near], ["accuracy"], replicates=20)
    assert np.array_equal(alone["accuracy"], together["accuracy"])
    other_seed = bootstrap_replicates([inside, near], ["accuracy"], replicates=20, seed=1)
    assert not np.array_equal(alone["accuracy"], other_seed["accuracy"])


def test_sets_are_resampled_apart():
    """With every ID score above every OOD score each replicate is perfect: no set loses its size."""
    sets = [ScoreSet("id", "id", [3.0, 4.0]), ScoreSet("a", "near", [1.0]), ScoreSet("b", "far", [0.0, 0.5])]
    drawn = bootstrap_replicates(sets, ["auroc"], replicates=200)
    assert drawn["auroc"].tolist() == [1.0] * 200
    one = [ScoreSet("id", "id", [0.5]), ScoreSet("a", "near", [1.0]), ScoreSet("b", "far", [0.0])]
    assert bootstrap_replicates(one, ["auroc"], replicates=50)["auroc"].tolist() == [0.5] * 50


def test_the_interval_has_the_width_that_theory_gives():
    """Standard deviation of AUROC by DeLong, Biometrics 1988."""
    inside, outside = tied_scores(4, 400, 300, None)
    sets = [ScoreSet("id", "id", inside), ScoreSet("far", "far", outside)]
    drawn = bootstrap_replicates(sets, ["auroc"])["auroc"]
    wins = (inside[:, None] > outside) + 0.5 * (inside[:, None] == outside)
    delong = np.sqrt(np.var(wins.mean(1), ddof=1) / 400 + np.var(wins.mean(0), ddof=1) / 300)
    assert np.std(drawn) == pytest.approx(delong, rel=0.1)
    result = bootstrap(sets, ["auroc"])["auroc"]
    assert result.value == auroc(inside, outside)
    assert result.lo < result.value < result.hi
    assert result.hi - result.lo == pytest.approx(2 * 1.96 * delong, rel=0.15)
    narrower = bootstrap(sets, ["auroc"], level=0.5)["auroc"]
    assert result.lo < narrower.lo < narrower.hi < result.hi


def test_full_spectrum_resamples_shifted_id_too():
    inside, near = example()
    shifted = ScoreSet("shifted", "csid", inside.confidence - 1, inside.correct)
    standard = bootstrap([inside, shifted, near], ["auroc"], replicates=30)
    spectrum = bootstrap([inside, shifted, near], ["auroc"], replicates=30, full_spectrum=True)
    assert standard == bootstrap([inside, near], ["auroc"], replicates=30)
    assert spectrum["auroc"].value == auroc(pool([inside, shifted, near], full_spectrum=True))
    assert spectrum["auroc"].hi < standard["auroc"].lo


def test_replicates_without_a_value_are_left_out():
    sets = [ScoreSet("id", "id", [2.0, 1.0, 3.0], [1, 0, 1]), ScoreSet("far", "far", [0.0])]
    drawn = bootstrap_replicates(sets, ["auroc_failure"], replicates=100)["auroc_failure"]
    assert 0 < np.isnan(drawn).sum() < 100
    assert bootstrap(sets, ["auroc_failure"], replicates=100)["auroc_failure"] == (1.0, 1.0, 1.0)
    assert np.isnan(interval(0.5, np.array([np.nan])).lo)


def test_metrics_that_need_no_ood():
    only = [ScoreSet("id", "id", [2.0, 1.0, 3.0], [1, 0, 1])]
    assert set(bootstrap(only, replicates=5)) == set(list_metrics(("id", "correct")))


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda sets: bootstrap(sets, replicates=0), DataError),
        (lambda sets: bootstrap(sets, level=1.0), DataError),
        (lambda sets: bootstrap([*sets, sets[1]]), DataError),
        (lambda sets: bootstrap(sets, ["aurocc"]), UnknownNameError),
        (lambda sets: bootstrap(sets[:1], ["auroc"]), DataError),
        (lambda sets: bootstrap([]), DataError),
    ],
)
def test_what_cannot_be_resampled_is_refused(call, error):
    with pytest.raises(error):
        call(example(n=5))
