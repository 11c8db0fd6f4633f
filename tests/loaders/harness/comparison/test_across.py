"""Rank tests against scipy, published numbers and the formula of scikit-posthocs; blocks by hand."""

from __future__ import annotations

import math
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score

from loaders.harness import Results
from loaders.harness.comparison import compare_across
from loaders.harness.comparison.rank_tests import cliques, rank_test
from loaders.harness.report.plots import plot_data
from loaders.harness.results.scores import column_of
from tests.raising import raises
from wordnet_splits.base.errors import DataError, UnknownNameError
from wordnet_splits.base.shapes import Ranks
from wordnet_splits.benchmark.clusters import subtree_clusters
from wordnet_splits.benchmark.resolve import load_manifest

from .test_compare import results

COMMITTED = Path(__file__).parents[4] / "manifests" / "results"
DEMSAR = """.763 .768 .771 .798  .599 .591 .590 .569  .954 .971 .968 .967  .628 .661 .654 .657
.882 .888 .886 .898  .936 .931 .916 .931  .661 .668 .609 .685  .583 .583 .563 .625  .775 .838 .866 .875
1 1 1 1  .940 .962 .965 .962  .619 .666 .614 .669  .972 .981 .9751 .975  .957 .978 .946 .970"""
"""AUC of four variants of C4.5 on 14 datasets: Demsar 2006, table 6 (which prints .9751 as .975)."""


def ranks_of(values: Any) -> Any:
    return stats.rankdata(-np.asarray(values), axis=1)


def test_published_example() -> None:
    """Demsar, section 3.2.4: mean ranks 3.143, 2.000, 2.893, 1.964; Nemenyi's critical difference 1.25."""
    ranks = ranks_of(np.array(DEMSAR.split(), dtype=float).reshape(14, 4))
    assert ranks.mean(axis=0) == pytest.approx([3.143, 2.000, 2.893, 1.964], abs=5e-4)
    test, nemenyi, _ = rank_test(ranks)
    assert test.critical_difference == pytest.approx(1.25, abs=0.005)  # q = 2.569, from a table
    assert (test.df1, test.df2) == (3, 39)
    assert 0.05 < nemenyi[0, 3] < 0.1  # "at p = 0.10", in his words


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize(("blocks", "entries"), [(3, 4), (5, 3), (40, 9)])
def test_statistics_are_those_of_scipy_and_scikit_posthocs(blocks: int, entries: int, ties: bool) -> None:
    rng = np.random.default_rng(blocks * entries + ties)
    values = rng.normal(size=(blocks, entries)) + np.linspace(0, 1, entries)
    ranks = ranks_of(values.round(0) if ties else values)
    test, nemenyi, conover = rank_test(ranks)
    chi2, p_chi2 = stats.friedmanchisquare(*ranks.T)
    assert (test.chi2, test.p_chi2) == pytest.approx((chi2, p_chi2))
    f = (blocks - 1) * chi2 / (blocks * (entries - 1) - chi2)
    assert (test.f, test.p) == pytest.approx((f, stats.f.sf(f, entries - 1, (entries - 1) * (blocks - 1))))
    # scikit-posthocs 0.11.4, posthoc_conover_friedman and posthoc_nemenyi_friedman, written out for m = 1
    n, k, sums = blocks, entries, ranks.sum(axis=0)
    s2 = (np.sum(ranks**2) - k * n * (k + 1) ** 2 / 4) / (k - 1)
    t2 = np.sum((sums - n * (k + 1) / 2) ** 2) / s2
    a, b = s2 * 2 * n * (k - 1) / (n * k - k - n + 1), 1 - t2 / (n * (k - 1))
    p = []
    for i, j in combinations(range(k), 2):
        p.append(2 * stats.t.sf(abs(sums[i] - sums[j]) / np.sqrt(a * b), n * k - k - n + 1))
        q = np.sqrt(2) * abs(sums[i] - sums[j]) / n / np.sqrt(k * (k + 1) / (6 * n))
        assert nemenyi[i, j] == pytest.approx(stats.studentized_range.sf(q, k, np.inf), abs=1e-7)
    order = np.argsort(p)
    step_down = np.maximum.accumulate(np.minimum(1, np.array(p)[order] * np.arange(len(p), 0, -1)))
    assert conover[np.triu_indices(k, 1)][order] == pytest.approx(step_down)


def test_blocks_that_agree_or_tie_throughout() -> None:
    test, _, conover = rank_test(ranks_of([[3, 2, 1]] * 4))
    assert (test.f, test.p) == (
        math.inf,
        pytest.approx(1 / 6**3),
    )  # the same of 3! orders in three more blocks
    assert np.isnan(conover).all()
    _, _, conover = rank_test(ranks_of([[3, 2, 1], [1, 2, 3]]))  # equal mean ranks
    assert (conover == 1).all()
    test, nemenyi, conover = rank_test(ranks_of(np.ones((4, 3))))
    assert (test.f, test.p, test.chi2) == (0, 1, 0)
    assert nemenyi == pytest.approx(1)
    assert (conover == 1).all()


def test_cliques_are_the_maximal_runs() -> None:
    rng = np.random.default_rng(0)
    for difference in (0.1, 0.7, 2, 30):
        means = np.sort(rng.uniform(1, 9, 12)).tolist()
        close = [(a, b) for a, b in combinations(range(12), 2) if means[b] - means[a] < difference]
        maximal = [
            (a, b) for a, b in close if not any(c <= a and b <= d and (a, b) != (c, d) for c, d in close)
        ]
        assert cliques(means, difference) == maximal


def benchmarks(detectors: str = "mcp,energy,mls,entropy") -> list[Results]:
    return [
        results(name, detectors, seeds=(0, number), model=f"{name}/net")
        for number, name in enumerate(("unknown-cifar-near4000", "unknown-cifar"), 1)
    ]


def test_a_value_of_each_benchmark_is_a_block() -> None:
    held = benchmarks()
    found = compare_across(held, on="near")
    table = [
        [
            np.mean(one.values("auroc", group="(mean)", role="near", detector=d)["value"].tolist())
            for d in one.detectors
        ]
        for one in held
    ]
    means = dict(zip(held[0].detectors, ranks_of(table).mean(axis=0), strict=True))
    assert {entry.detector: entry.mean_rank for entry in found.entries} == means
    assert found.blocks == ("unknown-cifar-near4000", "unknown-cifar")
    assert [entry.mean_rank for entry in found.entries] == sorted(means.values())
    lower = compare_across(held, metric="fpr95_id_positive", on="svhn")
    assert lower.entries[0].mean < lower.entries[-1].mean


def test_classes_are_blocks_once_and_their_order_plays_no_part() -> None:
    held = benchmarks()
    found = compare_across(held, over="classes")
    by_class = [row for one in held for row in one.by_class.to_pylist() if row["detector"] == "mcp"]
    assert set(found.blocks) == {f"{row['source']}/{row['class_id']}" for row in by_class}
    mean = next(entry.mean for entry in found.entries if entry.detector == "mcp")
    assert mean == pytest.approx(np.mean([row["auroc"] for row in by_class]))
    again = compare_across(held[::-1], over="classes")
    assert [(e.detector, e.mean_rank) for e in again.entries] == [
        (e.detector, e.mean_rank) for e in found.entries
    ]
    assert again.test.p == pytest.approx(found.test.p)


def test_a_subtree_is_the_auroc_of_its_images() -> None:
    held = Results.read(COMMITTED / "rungs-cifar100-all")
    found = compare_across(held, over="subtrees", on="rung-1", detectors=["msp", "mls", "knn"])
    roots = subtree_clusters(load_manifest("rungs-cifar100"))["rung-1"].of
    scores, values = held.scores, []
    msp = scores[column_of(("msp", 0))].to_numpy()
    is_id = np.array(scores["role"].to_pylist()) == "id"
    in_group = np.array(scores["group"].to_pylist()) == "rung-1"
    of = [
        roots.get(key)
        for key in zip(scores["source"].to_pylist(), scores["class_id"].to_pylist(), strict=True)
    ]
    for root in found.blocks:
        rows = in_group & (np.array(of) == root)
        values.append(roc_auc_score(is_id[is_id | rows], msp[is_id | rows]))
    assert next(e.mean for e in found.entries if e.detector == "msp") == pytest.approx(np.mean(values))


def test_models_of_other_names_are_matched_by_detector() -> None:
    held = [
        results(name, "mcp,energy,mls", seeds=(n,), model=f"net-{n}")
        for n, name in enumerate(("unknown-cifar-near4000", "unknown-cifar"))
    ]
    assert {entry.model for entry in compare_across(held).entries} == {"(one each)"}
    (panel, _) = plot_data(held, "cliques", over="classes").panels
    assert isinstance(panel, Ranks)
    assert set(panel.rows) == {"mcp", "energy", "mls"}
    with raises(DataError, where="--best"):
        plot_data(held, "cliques", best=1)


@pytest.mark.parametrize(
    ("given", "options", "kind"),
    [
        (slice(1), {}, DataError),
        (slice(2), {"detectors": ["mcp", "mls"]}, DataError),
        (slice(2), {"over": "classes", "metric": "fpr95_id_positive"}, DataError),
        (slice(2), {"over": "classes", "on": "id"}, DataError),
        (slice(2), {"over": "subtrees"}, DataError),
        (slice(2), {"on": "nowhere"}, UnknownNameError),
        (slice(2), {"over": "images", "cut": 1}, DataError),
        (slice(2), {"over": "families"}, UnknownNameError),
    ],
)
def test_what_cannot_be_ranked_is_refused(given: slice, options: Any, kind: Any) -> None:
    with raises(kind):
        compare_across(benchmarks()[given], **options)
