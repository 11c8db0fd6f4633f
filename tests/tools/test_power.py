"""Variance components: the estimator against known variances, the file against the committed results."""

from __future__ import annotations

import tomllib
from itertools import pairwise

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy.special import nctdtrinc, stdtrit

from tools.power import OUT, RESULTS, between, lines_of, measure, per_image
from wordnet_splits import power
from wordnet_splits.benchmark.clusters import Level, subtree_clusters
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.metrics import ScoreSet, auroc, fpr95_id_positive
from wordnet_splits.metrics.resampling import paired_replicates

(RUNGS,) = (folder for folder in RESULTS if folder.name == "rungs-cifar100-all")


def test_the_estimator_finds_the_variances_of_nested_classes() -> None:
    rng = np.random.default_rng(0)
    sizes = rng.integers(2, 9, 3000)  # classes of unequal size, in subtrees of unequal size
    parent = np.sort(rng.integers(0, 600, 3000))
    parent = np.unique(parent, return_inverse=True)[1]
    classes = np.repeat(np.arange(3000), sizes)
    parts = [rng.normal(0, s, n) for s, n in ((1, 600), (2, 3000), (3, len(classes)))]
    values = parts[0][parent[classes]] + parts[1][classes] + parts[2]
    assert between(values, classes, parent[classes]) == pytest.approx((1, 4, 9), rel=0.15)


def test_balanced_classes_have_the_textbook_components() -> None:
    values = np.random.default_rng(1).normal(size=(4, 3, 5)) + np.arange(4)[:, None, None]
    squares = [5 * 3 * values.mean(axis=(1, 2)).var(ddof=1)]
    squares.append(5 * values.mean(axis=2).var(axis=1, ddof=1).mean())
    squares.append(values.var(axis=2, ddof=1).mean())
    expected = ((squares[0] - squares[1]) / 15, (squares[1] - squares[2]) / 5, squares[2])
    classes, subtrees = np.repeat(np.arange(12), 5), np.repeat(np.arange(4), 15)
    assert between(values.ravel(), classes, subtrees) == pytest.approx(expected)


def test_the_parts_of_images_have_the_metrics_as_their_means() -> None:
    rng = np.random.default_rng(2)
    inside, outside = rng.integers(0, 30, 101).astype(float), rng.integers(-9, 20, 77).astype(float)
    parts = per_image(inside, outside)
    assert parts["auroc"].mean() == pytest.approx(float(auroc(inside, outside)))
    assert parts["fpr95"].mean() == pytest.approx(float(fpr95_id_positive(inside, outside)))


def test_the_file_holds_the_components_of_a_result() -> None:
    ours = {e["group"]: e for e in tomllib.loads("\n".join(lines_of(measure([RUNGS]))))["measured"]}
    kept = {
        e["group"]: e
        for e in tomllib.loads(OUT.read_text("utf-8"))["measured"]
        if e["benchmark"] == "rungs-cifar100"
    }
    assert list(ours) == [f"rung-{n}" for n in range(1, 6)]
    assert ours == kept


@pytest.mark.results
def test_the_file_is_that_of_the_committed_results() -> None:
    assert OUT.read_text("utf-8") == "\n".join([*lines_of(measure(RESULTS)), ""])


@pytest.mark.results
@pytest.mark.parametrize("over", ["classes", "subtrees"])
def test_the_standard_error_is_that_of_the_paired_bootstrap(over: Level) -> None:
    manifest, table = (
        load_manifest("rungs-cifar100"),
        pq.read_table(RUNGS / "scores.parquet"),
    )
    groups, ids = (np.array(table[name].to_pylist()) for name in ("group", "class_id"))
    inside, rows = groups == "cifar-40", groups == "rung-1"
    of = subtree_clusters(manifest)["rung-1"].of
    names = [of["cifar100", i] if over == "subtrees" else i for i in ids[rows]]
    clusters = np.unique(names, return_inverse=True)[1]
    strata = np.unique(ids[inside], return_inverse=True)[1]
    entries, values = [], []
    for scores in (table[name].to_numpy() for name in table.column_names[6:]):
        known = ScoreSet("cifar-40", "id", scores[inside], clusters=strata)
        entries.append([known, ScoreSet("rung-1", "near", scores[rows], clusters=clusters)])
        values.append(float(auroc(scores[inside], scores[rows])))
    replicates = paired_replicates(entries, "auroc", replicates=200)
    k, ratios = len(np.unique(clusters)), []
    for a, b in pairwise(sorted(range(len(values)), key=lambda n: -values[n])):
        if values[a] > values[b] > 0.5:
            error = np.std(replicates[a] - replicates[b], ddof=1) * np.sqrt(k / (k - 1))
            row = power(manifest, auroc=(values[a] + values[b]) / 2).sets[0]
            ratios.append(row.auroc[over] / nctdtrinc(k - 1, 0.2, stdtrit(k - 1, 0.975)) / error)
    assert 0.75 < np.median(ratios) < 1.25
