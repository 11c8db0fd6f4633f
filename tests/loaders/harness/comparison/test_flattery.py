"""Cross-validation of a choice over subtrees and classes, against a plain loop over stored scores."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import t

from loaders.harness.cli.main import app
from loaders.harness.comparison import compare
from loaders.harness.comparison.entries import draws_of
from loaders.harness.comparison.flattery import (
    REPLICATES,
    ChoiceFlattery,
    choices,
    draw_flattery,
    flattery_interval,
)
from loaders.harness.comparison.ranking import scope_named
from loaders.harness.results.results import Results
from loaders.harness.results.tables import ResultSets
from tests.raising import raises
from wordnet_splits.base.errors import DataError, UnknownNameError
from wordnet_splits.base.terminal.runner import run
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.metrics.draws import cluster_draws
from wordnet_splits.wordnet.taxonomy import load
from wordnet_splits.wordnet.taxonomy.subtrees import subtree_roots

RESULTS = Path(__file__).resolve().parents[4] / "manifests" / "results"
ENTRIES = ("rungs-cifar100-all", "unknown-cifar-tinyval-all")
pytestmark = pytest.mark.skipif(not RESULTS.exists(), reason="the committed results are not in this copy")


def choice_flattery(
    results: Results | Path, detector: str, *, on: str = "pooled", over: str = "subtrees"
) -> list[ChoiceFlattery]:
    (draw,) = draws_of([results])
    return draw_flattery(draw, detector, scope_named(on, ResultSets.from_results(draw.first)), over)


def looped(results: Results, on: str, over: str, *, bounds: bool) -> tuple[float, float, float, float, float]:
    """Return measured and held-out value, flattery and its interval, image by image."""
    table = results.scores.select(["group", "role", "source", "class_id"]).to_pylist()
    groups = [g for g in results.about.composition.sets if on in ("pooled", g) and g != "cifar-40"]
    rows = results.rows(metric="auroc", detector=results.detectors[0])
    if on in ("near", "far"):
        groups = list(
            dict.fromkeys(r["group"] for r in rows if r["role"] == on and r["group"][0] not in "(m")
        )
    wnids = {
        (row["source"], row["class_id"]): row["wnids"]
        for row in load_manifest(results.about.benchmark).classes.to_pylist()
    }
    keys = {}
    for group in groups:
        of_group = {(row["source"], row["class_id"]) for row in table if row["group"] == group}
        if len(of_group) > 1:
            keys |= {key: key for key in sorted(of_group) if over == "classes" or wnids[key]}
    if over == "subtrees":
        keys = subtree_roots({key: wnids[key] for key in keys}, load())
    images = [
        (i, row["group"], keys[row["source"], row["class_id"]])
        for i, row in enumerate(table)
        if row["group"] in groups and (row["source"], row["class_id"]) in keys
    ]
    sizes = {group: sum(of_image == group for _, of_image, _ in images) for group in groups}
    pools = {g: sum(sizes.values()) for g in groups} if on == "pooled" else sizes
    sets = 1 if on == "pooled" else sum(map(bool, sizes.values()))
    weights = np.array([1 / pools[g] / sets for _, g, _ in images])
    known = [i for i, row in enumerate(table) if row["role"] == "id"]
    wins = {}
    for label in results.detectors:
        scores = results.confidences(label)
        inside, outside = np.sort(scores[known]), scores[[i for i, _, _ in images]]
        below, upto = (np.searchsorted(inside, outside, side) for side in ("left", "right"))
        wins[label] = 1 - (below + upto) / 2 / len(inside)
    of = np.array([f"{fold}" for _, _, fold in images])

    folds = sorted({*of.tolist()})
    counts = cluster_draws(0, "held out", REPLICATES, len(folds))
    number = {fold: n for n, fold in enumerate(dict.fromkeys(of.tolist()))}

    def flattery(drawn: np.ndarray) -> tuple[float, float, float]:
        times = weights * drawn[[number[fold] for fold in of]]
        sums = {label: np.bincount(codes, won * times, len(folds)) for label, won in wins.items()}
        best = max(sums, key=lambda label: sums[label].sum())
        held = 0.0
        for n in range(len(folds)):
            others = np.arange(len(folds)) != n
            held += sums[max(sums, key=lambda label, others=others: sums[label][others].sum())][n]
        return sums[best].sum() / times.sum(), held / times.sum(), (sums[best].sum() - held) / times.sum()

    codes = np.array([number[fold] for fold in of])
    measured, held, total = flattery(np.ones(len(folds)))
    k = len(folds)
    drawn = [flattery(row)[2] for row in counts] if bounds else [0, 0]
    half = t.ppf(0.975, k - 1) * np.sqrt(k / (k - 1)) * np.std(drawn, ddof=1)
    return measured, held, total, max(0, total - half), total + half


@pytest.mark.parametrize("over", ["subtrees", "classes"])
@pytest.mark.parametrize(
    ("entry", "on"), [(0, "pooled"), (0, "near"), (0, "rung-2"), (1, "pooled"), (1, "far")]
)
def test_each_subtree_and_class_is_held_out_as_in_a_plain_loop(entry: int, on: str, over: str) -> None:
    results = Results.read(RESULTS / ENTRIES[entry])
    (row,) = choice_flattery(results, "all", on=on, over=over)
    with_bounds = on in ("near", "rung-2")  # the slow part
    *expected, lo, hi = looped(results, on, over, bounds=with_bounds)
    assert (row.measured, row.held_out, row.flattery) == pytest.approx(tuple(expected), abs=1e-9)
    if with_bounds:
        assert (row.lo, row.hi) == pytest.approx((lo, hi), abs=1e-9)
    assert row.candidates == len(results.detectors)


def test_a_choice_is_part_of_a_comparison_only_if_asked(capsys: pytest.CaptureFixture[str]) -> None:
    folder = RESULTS / ENTRIES[0]
    assert "flattery" not in compare(folder, bootstrap=0, detectors=["msp", "knn"]).as_dict()
    words = f"compare {folder} --bootstrap 0 --flattery all --metric auroc --on near --json"
    assert run(app, words.split(), "unknown-eval") == 0
    (row,) = json.loads(capsys.readouterr().out)["flattery"]
    assert row["over"] == "subtrees"
    assert row["flattery"] == pytest.approx(row["measured"] - row["held_out"])
    assert row["flattery"] == choice_flattery(folder, "all", on="near")[0].flattery
    options = {"metric": "auroc", "over": "classes", "bootstrap": 20, "flattery": "energy"}
    with raises(DataError, naming="energy"):
        compare(folder, on="near", detectors=["energy", "vim"], **options)
    found = compare(folder, on="near", detectors=["msp", "vim"], **options | {"flattery": "all"})
    assert [(row.over, row.candidates) for row in found.flattery] == [("classes", 2)]


def test_a_choice_that_is_none_is_refused() -> None:
    results = Results.read(RESULTS / ENTRIES[0])
    with raises(DataError, where="rungs-cifar100 kim-cifar-short-resnet20-e8", naming="knn"):
        choice_flattery(results, "knn")
    with raises(UnknownNameError, where="rungs-cifar100", naming="kn", near="knn"):
        choice_flattery(results, "kn")
    with raises(UnknownNameError, where="--on"):
        choice_flattery(results, "all", on="rung-9")
    with raises(DataError, where="rungs-cifar100 id", naming=0):
        choice_flattery(results, "all", on="id")
    with raises(DataError, naming="gaussian"):
        choice_flattery(RESULTS / ENTRIES[1], "all", on="gaussian")
    nowhere = replace(results, about=results.about.model_copy(update={"benchmark": "nowhere"}))
    with raises(DataError, where="nowhere"):
        choice_flattery(nowhere, "all")


@pytest.mark.parametrize(("candidates", "folds", "spread"), [(20, 5, 0.0), (20, 20, 0.02), (5, 40, 0.02)])
def test_flattery_has_no_bias_and_its_interval_covers_it(candidates: int, folds: int, spread: float) -> None:
    draw = np.random.default_rng(folds)
    ahead = spread * draw.normal(size=candidates)
    shares = np.full(folds, 1 / folds)
    found, optimism = [], []
    for _ in range(300):
        common = 0.1 * draw.normal(size=folds)
        parts = (0.7 + ahead[:, None] + common + 0.05 * draw.normal(size=(candidates, folds))) / folds
        best, without, *_ = choices(parts)
        optimism.append(parts[best].sum() - (0.7 + ahead[best] + common.mean()))
        found.append(flattery_interval(parts[None], shares))
        assert found[-1][0] == pytest.approx(parts[best].sum() - parts[without, np.arange(folds)].sum())
    expected = np.mean(optimism)
    values = np.array([value for value, _, _ in found])
    assert values.mean() == pytest.approx(expected, abs=4 * values.std() / len(values) ** 0.5)
    covered = [lo is not None and hi is not None and lo <= expected <= hi for _, lo, hi in found]
    assert np.mean(covered) >= 0.93
