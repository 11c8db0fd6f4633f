"""Intervals of results over OOD classes and subtrees: values, what is stored, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loaders.harness import evaluate_arrays, image_ids, remeasure
from loaders.harness.cli.main import app
from loaders.harness.data.arrays import Array
from loaders.harness.evaluation.run_evaluation import evaluate_runs
from loaders.harness.results import check
from loaders.harness.results.check import check_results
from loaders.harness.results.metadata import ClusterCount, metric_options
from loaders.harness.results.metric_rows import MEAN, POOLED, has_interval
from loaders.harness.results.results import Results
from loaders.harness.results.scores import ImagesBySet
from loaders.harness.results.sentences import lines_below
from tests.loaders.harness.evaluation.fake_runs import fake_manifest, fake_run
from tests.raising import mentions, raises
from wordnet_splits.base.errors import DataError
from wordnet_splits.base.terminal.runner import run
from wordnet_splits.base.text_formats import read_json, write_sealed
from wordnet_splits.metrics import ScoreSet, get_metric, pool
from wordnet_splits.metrics.draws import cluster_draws
from wordnet_splits.metrics.resampling import bootstrap_replicates

MANIFEST = fake_manifest(
    [
        ("known", "id", "train", 80),
        ("known", "id", "test", 120),
        ("shifted", "csid", "test", 60),
        ("near-a", "near", "test", 120),
        ("far-a", "far", "test", 70),
        ("far-b", "far", "test", 90),
        ("negative", "external", "test", 50),
    ],
    classes=6,
)
REPLICATES = 30


def results(over: str, **of_options: Any) -> Results:
    options = metric_options(REPLICATES, 3, (0.5,), over, **of_options)
    return evaluate_runs(MANIFEST, [fake_run(MANIFEST)], "msp,knn[k=5]", options=options)


@pytest.fixture(scope="module")
def over_classes() -> Results:
    return results("classes")


def score_sets(found: Results, *roles: str) -> list[ScoreSet]:
    """The sets of some roles, of msp, with the classes of their images as clusters."""
    images, confidence, truth = ImagesBySet(found.scores), found.confidences("msp"), found.predicted(0)
    right = np.array(truth["prediction"].to_pylist()) == np.array(truth["label"].to_pylist())
    sets = []
    for group, role in images.roles.items():
        if role in roles:
            rows = images.rows[group]
            codes = np.unique(images.classes[rows].astype(str), return_inverse=True)[1]
            correct = right[rows] if role in ("id", "csid") else None
            sets.append(ScoreSet(group, role, confidence[rows], correct, codes))
    return sets


def expected(pools: list[list[ScoreSet]], inside: list[ScoreSet], metric: str, **kw: Any) -> list[float]:
    """Value +- t x standard error of the mean over pools of pools of sets with about 6 clusters each."""
    from scipy.stats import t

    drawn: list[Array] = []
    values = []
    for sets in pools:
        both = [*inside, *sets]
        values.append(float(get_metric(metric).kernel(pool(both, **kw))))
        drawn.append(bootstrap_replicates(both, [metric], replicates=REPLICATES, seed=3, **kw)[metric])
    weights = [[len(s.confidence) / sum(len(o.confidence) for o in sets) for s in sets] for sets in pools]
    shares = np.array([w / len(pools) for of_pool in weights for w in of_pool])
    sizes = [np.unique(s.clusters, return_counts=True)[1] for sets in pools for s in sets]
    k = np.array([n.sum() ** 2 / np.sum(n**2) for n in sizes])  # 6, or less with unequal sizes
    variances = shares**2 / (k - 1)
    df = variances.sum() ** 2 / np.sum(variances**2 / (k - 1))
    factor = np.sqrt(variances.sum() / np.sum(shares**2 / k))
    half = t.ppf(0.975, df) * factor * np.mean(drawn, axis=0).std(ddof=1)
    value = np.mean(values)
    angles = np.arcsin(np.sqrt(value)) + np.array([-1, 1]) * half / (2 * np.sqrt(value * (1 - value)))
    return [value, *np.sin(np.clip(angles, 0, np.pi / 2)) ** 2]


@pytest.mark.parametrize("metric", ["auroc", "fpr95_id_positive", "oscr"])
def test_rows_are_the_plain_functions_of_metrics(over_classes: Results, metric: str) -> None:
    inside, near, far = (score_sets(over_classes, role) for role in ("id", "near", "far"))
    shifted = score_sets(over_classes, "csid")
    cases: list[tuple[str, str, str, list[list[ScoreSet]], dict[str, Any]]] = [
        ("near-a", "near", metric, [near], {}),
        (MEAN, "far", metric, [[each] for each in far], {}),
        (POOLED, "near+far", metric, [near + far], {}),
        ("negative", "external", metric, [score_sets(over_classes, "external")], {}),
        (MEAN, "near", f"{metric}[full-spectrum]", [near], {"full_spectrum": True}),
    ]
    for group, role, name, pools, kw in cases:
        (row,) = over_classes.rows(metric=name, group=group, role=role, detector="msp")
        of_id = inside + shifted if kw else inside
        due = expected(pools, of_id, metric, **kw)
        np.testing.assert_allclose([row["value"], row["lo"], row["hi"]], due, rtol=1e-12)


def test_a_replicate_of_a_set_is_its_drawn_classes(over_classes: Results) -> None:
    """AUROC of a replicate by a loop over classes, against ID images drawn within theirs."""
    (inside,), (near,) = score_sets(over_classes, "id"), score_sets(over_classes, "near")
    fixed = ScoreSet("one", "id", inside.confidence[:1], inside.correct[:1], np.zeros(1, int))  # type: ignore[index]
    drawn = bootstrap_replicates([fixed, near], ["auroc"], replicates=4, seed=3)["auroc"]
    for times, value in zip(cluster_draws(3, near.name, 4, 6), drawn, strict=True):
        scores = np.concatenate(
            [np.tile(near.confidence[near.clusters == k], n) for k, n in enumerate(times)]
        )
        above = (fixed.confidence > scores).mean() + (fixed.confidence == scores).mean() / 2
        assert value == pytest.approx(above)


def test_values_and_rows_of_id_are_those_over_images(over_classes: Results) -> None:
    at_images = results("images")
    for row, other in zip(over_classes.results.to_pylist(), at_images.results.to_pylist(), strict=True):
        ends = {} if row["n_ood"] == 0 else {"lo": 0, "hi": 0}
        np.testing.assert_equal({**row, **ends}, {**other, **ends})
        assert (row["lo"] is not None) == has_interval(row["metric"])


@pytest.fixture(scope="module")
def on_digits() -> Results:
    """Made logits on digits: four near classes, and noise of a single class each."""
    rng = np.random.default_rng(0)
    ids = {group: image_ids("digits", group) for group in ("digits-0-5", "digits-6-9", "gaussian", "uniform")}
    arrays = {group: {"logits": rng.normal(size=(len(names), 6))} for group, names in ids.items()}
    return evaluate_arrays(arrays, "msp,energy", benchmark="digits", ids=ids, bootstrap=REPLICATES)


@pytest.fixture
def folder(on_digits: Results, tmp_path: Path) -> Path:
    on_digits.write(tmp_path / "results")
    return tmp_path / "results"


@pytest.mark.parametrize(
    ("options", "clusters"),
    [({"over": "classes"}, 4), ({"over": "subtrees", "cut": 1}, 4), ({"over": "images"}, 0)],
)
def test_stored_results_keep_their_level_and_recompute(folder: Path, options: Any, clusters: int) -> None:
    remeasure(folder, bootstrap=REPLICATES, **options).write(folder)
    about = read_json(folder / "about.json")["about"]
    assert {n: about["options"][n] for n in ("over", "cut") if n in about["options"]} == (
        options if clusters else {}
    )
    assert about.get("clusters", {}).get("digits-6-9", {"number": 0})["number"] == clusters
    checked, stored = check_results(folder), Results.read(folder)
    assert (checked.ok, checked.intervals.recomputed) == (True, checked.intervals.stored)
    for row in stored.results.to_pylist():
        noise = row["group"] in ("gaussian", "uniform") or (row["group"], row["role"]) == (MEAN, "far")
        assert (row["lo"] is None) == (not has_interval(row["metric"]) or bool(clusters and noise))
    text = "\n".join(lines_below(stored))
    assert mentions(text, options["over"] if clusters else "images")
    assert not clusters or mentions(text, "gaussian", "uniform", clusters)


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize(
    ("over", "change"),
    [
        ("images", {"options": {"over": "classes"}}),
        ("classes", {"options": {"over": "images"}}),
        ("classes", {"clusters": {}}),
        ("classes", {"clusters": {"digits-6-9": {"number": 60, "effective": 60.0}}}),
    ],
)
def test_an_altered_level_does_not_recompute(
    folder: Path, over: str, change: dict[str, Any], sampled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "MAX_DRAWS", 0 if sampled else check.MAX_DRAWS)
    remeasure(folder, bootstrap=REPLICATES, over=over).write(folder)
    assert check_results(folder).ok
    sealed = read_json(folder / "about.json")
    del sealed["checksum"]
    for name, values in change.items():
        sealed["about"][name] = {**sealed["about"][name], **values} if values else values
    write_sealed(folder / "about.json", sealed)
    assert not check_results(folder).ok


CLASSES = {
    "id": {"logits": 9 * np.eye(4)[[0, 1, 2, 3] * 5], "labels": [0, 1, 2, 3] * 5},
    "near": {"logits": np.random.default_rng(1).normal(size=(12, 4)), "labels": [0, 1, 2] * 4},
    "far": {"logits": np.random.default_rng(2).normal(size=(6, 4))},
}


def test_sets_given_in_python_have_the_classes_of_their_labels(tmp_path: Path) -> None:
    found = evaluate_arrays(CLASSES, "msp", bootstrap=REPLICATES, over="classes")
    assert found.about.clusters["near"] == ClusterCount(3, 3.0)
    assert isinstance(found.about.clusters["far"], str)
    found.write(tmp_path)
    assert remeasure(tmp_path, bootstrap=REPLICATES, over="classes").about == found.about
    assert check_results(tmp_path).ok
    unlabelled = {name: arrays for name, arrays in CLASSES.items() if name != "near"}
    for sets, over in ((CLASSES, "subtrees"), (unlabelled, "classes")):
        with raises(DataError, where="--over"):
            evaluate_arrays(sets, "msp", bootstrap=REPLICATES, over=over)
    with raises(DataError, where="--over"):
        remeasure(tmp_path, over="subtrees")


@pytest.mark.parametrize(
    ("options", "kind", "where"),
    [
        (["--over", "class"], "unknown-name", "--over"),
        (["--over", "classes", "--bootstrap", "0"], "data", "--over"),
        (["--over", "subtrees", "--bootstrap", "1"], "data", "--over"),
        (["--over", "classes", "--cut", "2"], "data", "--cut"),
    ],
)
def test_unusable_levels_are_refused_in_one_line(
    folder: Path, options: list[str], kind: str, where: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arrays = ["run", "--benchmark", "digits", "--arrays", str(folder), "--bootstrap", "5"]
    for command in (["recompute", str(folder)], arrays):
        assert run(app, [*command, *options, "--json"], "unknown-eval") == 2
        error = json.loads(capsys.readouterr().out)["error"]
        assert (error["kind"], error["where"]) == (kind, where)
