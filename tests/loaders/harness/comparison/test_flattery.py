"""Cross-validation of a choice over subtrees and classes, against a plain loop over stored scores."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import t

from loaders.harness.cli.main import app
from loaders.harness.comparison import choice_flattery, compare
from loaders.harness.results.results import Results
from tests.raising import raises
from wordnet_splits.base.errors import DataError, UnknownNameError
from wordnet_splits.base.terminal.runner import run
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.wordnet.taxonomy import load
from wordnet_splits.wordnet.taxonomy.subtrees import subtree_roots

RESULTS = Path(__file__).resolve().parents[4] / "manifests" / "results"
ENTRIES = ("rungs-cifar100-all", "unknown-cifar-tinyval-all")
pytestmark = pytest.mark.skipif(not RESULTS.exists(), reason="the committed results are not in this copy")


def looped(results: Results, on: str, over: str) -> tuple[float, float, float, float, float]:
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

    def value(label: str, chosen: np.ndarray) -> float:
        return float((wins[label] * weights)[chosen].sum() / weights[chosen].sum())

    best = max(wins, key=lambda label: value(label, np.full(len(of), True)))
    lost, held, shares = [], [], []
    for fold in sorted({*of.tolist()}):
        here = of == fold
        other = max(wins, key=lambda label: value(label, ~here))
        shares.append(weights[here].sum())
        held.append(shares[-1] * value(other, here))
        lost.append(shares[-1] * (value(best, here) - value(other, here)))
    total, k = sum(lost), len(lost)
    error = np.sqrt(k / (k - 1) * sum((d - w * total) ** 2 for d, w in zip(lost, shares, strict=True)))
    half = t.ppf(0.975, k - 1) * error
    return value(best, np.full(len(of), True)), sum(held), total, max(0, total - half), total + half


@pytest.mark.parametrize("over", ["subtrees", "classes"])
@pytest.mark.parametrize(
    ("entry", "on"), [(0, "pooled"), (0, "near"), (0, "rung-2"), (1, "pooled"), (1, "far")]
)
def test_each_subtree_and_class_is_held_out_as_in_a_plain_loop(entry: int, on: str, over: str) -> None:
    results = Results.read(RESULTS / ENTRIES[entry])
    (row,) = choice_flattery(results, "all", on=on, over=over)
    expected = looped(results, on, over)
    bounds = (row.lo or 0, row.hi or 0)  # None if no choice changes
    assert (row.measured, row.held_out, row.flattery, *bounds) == pytest.approx(expected, abs=1e-9)
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
    with raises(DataError, where="over"):
        choice_flattery(results, "all", over="images")
    with raises(DataError, where="rungs-cifar100 id", naming=0):
        choice_flattery(results, "all", on="id")
    with raises(DataError, naming="gaussian"):
        choice_flattery(RESULTS / ENTRIES[1], "all", on="gaussian")
    nowhere = replace(results, about=results.about.model_copy(update={"benchmark": "nowhere"}))
    with raises(DataError, where="nowhere"):
        choice_flattery(nowhere, "all")
