"""Adjusted p, chances and ranks of pairs: a plain loop, SciPy's laws, and made data whose truth is known."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from loaders.harness.comparison.significance import max_t, pair_tests, replicates_for
from wordnet_splits.metrics import ClusterDesign
from wordnet_splits.metrics.draws import cluster_draws


def westfall_young(observed: list[float], drawn: list[list[float]]) -> list[float]:
    """Algorithm 4.1, pair by pair and replicate by replicate: ``drawn`` are absolute statistics."""
    falling = sorted(range(len(observed)), key=lambda n: -observed[n])
    adjusted, before = [0.0] * len(observed), 0.0
    for place, n in enumerate(falling):
        beyond = 0
        for replicate in range(len(drawn[0])):
            highest = max(drawn[m][replicate] for m in falling[place:])
            beyond += highest >= observed[n]
        before = adjusted[n] = max(before, (1 + beyond) / (1 + len(drawn[0])))
    return adjusted


@given(st.integers(0, 2**32), st.integers(2, 5), st.integers(2, 30))
def test_max_t_is_a_plain_loop(seed: int, entries: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=entries).round(1)  # with ties
    replicates = rng.normal(values[:, None], 0.3, size=(entries, count))
    replicates[0] = replicates[1]
    values[0] = values[1]
    tests = pair_tests(values, replicates)
    observed, drawn = [], []
    for a, b in combinations(range(entries), 2):
        difference = replicates[a] - replicates[b]
        sd = np.std(difference, ddof=1)
        observed.append(abs(values[a] - values[b]) / sd if sd else 0.0)
        drawn.append((abs(difference - difference.mean()) / sd if sd else 0 * difference).tolist())
    assert tests.p == pytest.approx(2 * norm.sf(observed))
    assert tests.p_adjusted == pytest.approx(westfall_young(observed, drawn))
    assert tests.p_adjusted.min() >= 1 / (count + 1)
    assert tests.p_adjusted[0] == 1
    order = rng.permutation(entries)
    again = pair_tests(values[order], replicates[order])
    by_pair = {frozenset(order[pair]): p for pair, p in zip(again.pairs, again.p_adjusted, strict=True)}
    assert [by_pair[frozenset(pair)] for pair in tests.pairs] == tests.p_adjusted.tolist()


def test_undefined_replicates_and_constant_differences() -> None:
    rng = np.random.default_rng(0)
    replicates = rng.normal(size=(3, 40))
    some = replicates.copy()
    some[0, :5] = np.nan
    found, expected = pair_tests(np.arange(3.0), some), pair_tests(np.arange(3.0), replicates[:, 5:])
    assert (found.undefined, expected.undefined) == (5, 0)
    assert found.p_adjusted.tolist() == expected.p_adjusted.tolist()
    some[0] = np.nan  # never defined: not tested, and no obstacle to the others
    found = pair_tests(np.arange(3.0), some)
    assert np.isnan(found.p[:2]).all()
    assert found.p[2] == pair_tests(np.arange(2.0), replicates[1:]).p[0]
    equal = pair_tests(np.array([1.0, 1.0, 2.0]), some)  # nor if its value is that of another
    assert equal.p_adjusted[2] == found.p_adjusted[2]
    assert equal.p_adjusted[0] == 1
    constant = pair_tests(np.array([0.9, 0.5]), np.array([[0.9] * 20, [0.5] * 20]))  # no error to judge by
    assert np.isnan([constant.p[0], constant.p_adjusted[0], constant.above[0]]).all()
    assert constant.rank_bounds(np.array([0.9, 0.5]), 0.05).tolist() == [[1, 2], [1, 2]]
    assert np.isnan(pair_tests(np.array([0.9, 0.5]), np.array([[0.9], [0.5]])).p[0])


def test_ranks_count_the_significant_pairs() -> None:
    values = np.array([0.9, 0.8, 0.79, 0.1])
    replicates = np.random.default_rng(0).normal(values[:, None], 0.02, size=(4, 400))
    tests = pair_tests(values, replicates)
    assert tests.rank_bounds(values, 0.05).tolist() == [[1, 1], [2, 3], [2, 3], [4, 4]]
    assert tests.rank_bounds(values, 1e-6).tolist() == [[1, 4]] * 4  # below what 400 replicates can show


@pytest.mark.parametrize(("p", "count"), [(0.05, 19), (0.01, 99), (0.001, 999), (1 / 3, 2)])
def test_replicates_for_a_p(p: float, count: int) -> None:
    assert replicates_for(p) == count
    assert 1 / (count + 1) <= p + 1e-12 < 1 / count


def made(clusters: int, shift: Any, seed: int, *, replicates: int = 300) -> tuple[Any, Any, ClusterDesign]:
    """Values and replicates of entries: normal effects of clusters, correlated between entries."""
    shift = np.asarray(shift, dtype=float)
    rng = np.random.default_rng([seed, clusters])
    mixing = np.random.default_rng(7).normal(size=(len(shift), 3))
    effects = mixing @ rng.normal(size=(3, clusters)) + 0.5 * rng.normal(size=(len(shift), clusters))
    effects += shift[:, None]
    drawn = cluster_draws(0, "made", replicates, clusters) / clusters
    return effects.mean(axis=1), effects @ drawn.T, ClusterDesign((1.0,), (clusters,))


@pytest.mark.parametrize(
    ("count", "margin"), [(120, 0.06), pytest.param(3000, 0.01, marks=pytest.mark.oracle)]
)
@pytest.mark.parametrize("clusters", [5, 10, 20, 40])
def test_family_wise_error_is_5_percent_among_equal_entries(clusters: int, count: int, margin: float) -> None:
    errors = [
        (pair_tests(*made(clusters, np.zeros(6), seed)).p_adjusted <= 0.05).any() for seed in range(count)
    ]
    assert np.mean(errors) <= 0.05 + margin
    assert np.mean(errors) >= 0.05 - 2 * margin


@pytest.mark.parametrize(
    ("count", "margin"), [(120, 0.06), pytest.param(3000, 0.02, marks=pytest.mark.oracle)]
)
@pytest.mark.parametrize("clusters", [5, 40])
def test_intervals_of_chances_cover_the_truth(clusters: int, count: int, margin: float) -> None:
    """The truth: how often fresh draws of as many clusters have the first entry above the second."""
    shift = np.array([1.0, 0.0]) / np.sqrt(clusters)
    fresh = [made(clusters, shift, seed, replicates=2)[0] for seed in range(100_000, 104_000)]
    truth = np.mean([first > second for first, second in fresh])
    covered = []
    for seed in range(count):
        tests = pair_tests(*made(clusters, shift, seed))
        covered.append(tests.above_lo[0] <= truth <= tests.above_hi[0])
    assert abs(np.mean(covered) - 0.95) <= margin


def test_few_clusters_widen_the_reference_of_max_t() -> None:
    values, replicates, design = made(5, [2, 0, 0, 0], 1)
    tests = pair_tests(values, replicates, design)
    sd = np.array([np.std(replicates[a] - replicates[b], ddof=1) for a, b in tests.pairs])
    t = np.abs(values[tests.pairs[:, 0]] - values[tests.pairs[:, 1]]) / sd / design.factor
    assert (max_t(t, tests.pairs, replicates, sd, design.df) == tests.p_adjusted).all()
    assert (max_t(t, tests.pairs, replicates, sd) < tests.p_adjusted)[t > 2].all()
