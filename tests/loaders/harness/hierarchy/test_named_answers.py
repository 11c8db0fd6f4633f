"""`results.hierarchy` on the digits: from the network, its store and arrays; one image; what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from loaders.harness import evaluate_arrays, image_ids, plot, report
from loaders.harness.cli.main import app
from loaders.harness.hierarchy import HierarchyReport
from loaders.harness.results.results import Results
from loaders.harness.results.scores import MODEL, PREDICTED, prediction_table
from tests.raising import raises
from wordnet_splits.base.errors import DataError, SplitsError, UnknownNameError
from wordnet_splits.base.terminal.runner import run
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.hierarchy import Conformal

GROUPS = {"digits-0-5": "id", "digits-6-9": "near", "gaussian": "far", "uniform": "far"}


@pytest.fixture(scope="module")
def logits() -> dict[str, np.ndarray]:
    """Right and confident for ID digits, uncertain for every other image."""
    manifest = load_manifest("digits")
    generator, arrays = np.random.default_rng(0), {}
    for group in manifest.groups:
        if group.split == "test":
            labels = manifest.images("test", group.group)["label"].to_numpy()
            arrays[group.group] = generator.normal(size=(len(labels), 6))
            known = np.flatnonzero(labels >= 0)
            arrays[group.group][known, labels[known]] += 8
    return arrays


@pytest.fixture(scope="module")
def results(logits: dict[str, np.ndarray]) -> Results:
    sets = {group: {"logits": values.astype(np.float32)} for group, values in logits.items()}
    ids = {group: image_ids("digits", group) for group in logits}
    return evaluate_arrays(sets, "msp,energy", benchmark="digits", ids=ids)


@pytest.fixture(scope="module")
def named(results: Results, logits: dict[str, np.ndarray]) -> HierarchyReport:
    outcome = results.hierarchy(logits=logits, bootstrap=20)
    assert isinstance(outcome, HierarchyReport)
    return outcome


def test_every_rule_and_detector_has_every_metric(named: HierarchyReport) -> None:
    rules = ("threshold[posterior=0.9]", "information[weight=0]", "conformal[error=0.1]")
    keys = [("class", "(model)"), *((rule, d) for rule in rules for d in ("(model)", "msp", "energy"))]
    assert list(named.answers) == keys
    assert len(named.rows()) == len(keys) * 4 * 6
    for row in named.records:
        assert row.lo is not None
        assert row.hi is not None
        assert row.lo <= row.value <= row.hi
    for key in keys:
        of_roles = [named.value(*key, role, "distance").value for role in ("id", "near", "far")]
        assert named.value(*key, "mean", "distance").value == pytest.approx(sum(of_roles) / 3)
        under, over = (named.value(*key, "mean", metric).value for metric in ("under", "over"))
        assert named.value(*key, "mean", "distance").value == pytest.approx(under + over)


def test_truth_is_the_digit_for_other_digits_and_the_root_for_noise(named: HierarchyReport) -> None:
    images = named.images
    names = np.array([images.hierarchy.name(node) for node in images.truth])
    assert set(names[images.roles == "near"]) == {"digit"}
    assert set(names[images.roles == "far"]) == {"entity"}
    assert set(names[images.roles == "id"]) == {"zero", "one", "two", "three", "four", "five"}


def test_an_unknown_image_is_answered_at_a_node_that_is_no_class(named: HierarchyReport) -> None:
    images, inner = named.images, named.images.hierarchy.inner
    for (rule, detector), answers in named.answers.items():
        if detector != "(model)":
            assert inner[answers[named.unknown[detector]]].all(), rule
            assert not inner[answers[~named.unknown[detector]]].any()
    for unknown in named.unknown.values():
        assert unknown[images.roles == "id"].mean() < 0.1  # 5 % are asked for
        assert unknown[images.roles == "near"].mean() > 0.9
    # naming what is unknown is nearer the truth than taking every image for one of the classes
    always = named.value("class", "(model)", "mean", "distance")
    assert named.value("threshold[posterior=0.9]", "msp", "mean", "distance").hi < always.lo


def test_conformal_sets_hold_the_class_as_often_as_promised(named: HierarchyReport) -> None:
    rows = named.images.roles == "id"
    above = named.value("conformal[error=0.1]", "(model)", "id", "correct").value
    assert rows.sum() == 360
    assert above >= 1 - 0.1 - 3 * (0.1 * 0.9 / 180) ** 0.5


def test_one_image_in_words(named: HierarchyReport) -> None:
    names = named.images.names()
    near = next(n for n, role in enumerate(named.images.roles) if role == "near" and named.unknown["msp"][n])
    answer = named.explain(names[near], detector="msp")
    assert answer.text == "a digit, 100%; not one of the 6"
    assert (answer.verdict, answer.truth, answer.distance) == ("unknown", "digit", 0)
    assert [name for _, name, _ in answer.path][::6] == ["entity", "digit"]
    assert named.explain(names[near], detector="(model)").text == "a digit, 100%; which of the 6 is open"
    known = named.explain(names[0].partition("/")[2], detector="msp")
    assert known.verdict == "known"
    assert known.text.endswith("; one of the 6")


def test_wrong_names_are_refused(named: HierarchyReport, results: Results, logits: Any) -> None:
    first = named.images.names()[0]
    for options in ({"image": "x"}, {"image": first, "rule": "x"}, {"image": first, "detector": "knn"}):
        with pytest.raises(UnknownNameError):
            named.explain(**options)
    with pytest.raises(UnknownNameError):
        results.hierarchy(logits=logits, detectors=["knn"])
    with raises(DataError, where="digits", naming="7"):
        results.hierarchy(logits=logits, run=7)
    with raises(DataError, where="digits"):
        results.hierarchy()
    with raises(DataError, where="digits"):
        results.hierarchy(logits={})
    for values in (3, [1], np.zeros((3, 6))):
        with pytest.raises(DataError) as caught:
            results.hierarchy(logits=values)  # type: ignore[arg-type]
        assert caught.value.where == "digits"
    with raises(DataError, where="digits-0-5"):
        results.hierarchy(logits={group: values[:, :5] for group, values in logits.items()})
    with raises(DataError, where="digits"):
        results.hierarchy(logits={group: -values for group, values in logits.items()})
    with raises(DataError, where="digits"):
        results.hierarchy(logits=logits, false_alarms=1)


NOT_THE_LOGITS: dict[str, Any] = {
    "ten times": lambda z: 10 * z,
    "a tenth more": lambda z: 1.1 * z,
    "softmax": lambda z: np.exp(z) / np.exp(z).sum(1, keepdims=True),
    "ranks": lambda z: z.argsort(1).argsort(1),
    "zeros": np.zeros_like,
    "whole numbers": np.rint,
    "cubes": lambda z: z**3,
    "complex": lambda z: z + 0j,
    "masked": lambda z: np.ma.masked_greater(z, 3),
    "object": lambda z: z.astype(object),
    "text": lambda z: z.astype(str),
    "a number": lambda z: 3.0,
    "ragged": lambda z: [[1.0], [1.0, 2.0]],
}
THE_LOGITS: dict[str, Any] = {
    "half precision": np.float16,
    "an offset": lambda z: z + 7,
    "logarithms of the softmax": lambda z: z - np.log(np.exp(z).sum(1, keepdims=True)),
    "lists": lambda z: z.tolist(),
}


@pytest.fixture(scope="module")
def of_more_columns(logits: dict[str, np.ndarray]) -> Results:
    """Results of the same logits with a background class, whose softmax has another sum."""
    logits = {**logits, "digits-0-5": rolled(logits["digits-0-5"])}
    sets = {group: {"logits": np.pad(values, ((0, 0), (0, 1)))} for group, values in logits.items()}
    ids = {group: image_ids("digits", group) for group in logits}
    return evaluate_arrays(sets, "msp", benchmark="digits", ids=ids, background="last")


def rolled(values: np.ndarray) -> np.ndarray:
    """Predict another class for ten ID images: only their probabilities tell the scale of the others."""
    return np.concatenate([np.roll(values[:10], 1, axis=1), values[10:]])


@pytest.mark.parametrize("case", NOT_THE_LOGITS)
def test_what_predicts_the_same_classes_is_not_taken_for_the_logits(
    case: str, results: Results, of_more_columns: Results, logits: Any
) -> None:
    wrong = {**logits, "digits-0-5": rolled(logits["digits-0-5"])}
    for of_logits, of_groups in ((results, logits), (of_more_columns, wrong)):
        with pytest.raises(DataError) as caught:
            of_logits.hierarchy(logits={group: NOT_THE_LOGITS[case](z) for group, z in of_groups.items()})
        assert caught.value.where in ("digits", *GROUPS)


@pytest.mark.parametrize("case", THE_LOGITS)
def test_logits_of_the_same_softmax_are_the_logits(
    case: str, results: Results, of_more_columns: Results, logits: Any
) -> None:
    wrong = {**logits, "digits-0-5": rolled(logits["digits-0-5"])}
    for of_logits, of_groups in ((results, logits), (of_more_columns, wrong)):
        values = [
            of_logits.hierarchy(logits=given).value("class", "(model)", "mean", "distance").value
            for given in (of_groups, {group: THE_LOGITS[case](z) for group, z in of_groups.items()})
        ]
        assert values[1] == pytest.approx(values[0], abs=0.01)


def test_of_several_networks_the_one_that_answers_is_named(results: Results, logits: Any) -> None:
    (first,) = results.about.runs
    said = results.predicted().select(PREDICTED.names)
    predictions = prediction_table({(MODEL, run): said for run in (0, 1)})

    def of_models(*models: str) -> Results:
        runs = tuple(first.model_copy(update={"run": n, "model": m}) for n, m in enumerate(models))
        about = results.about.model_copy(update={"runs": runs})
        return replace(results, about=about, predictions=predictions)

    two_runs, two_models = of_models("net", "net"), of_models("a", "b")
    by_default = two_runs.hierarchy(logits=logits, detectors=(), rules=["threshold"])
    assert by_default.images.network == "net, run 0"
    assert by_default.notes[-1] == "The network is run 0 of 2 of net; run= (--run) takes another."
    with raises(DataError, where="digits", naming=("run", "--run")):
        two_models.hierarchy(logits=logits)
    chosen = two_models.hierarchy(logits=logits, run=1, detectors=(), rules=["threshold"])
    assert (chosen.images.network, len(chosen.notes)) == ("b", 2)


def test_sets_given_in_python_have_no_hierarchy() -> None:
    sets = {"id": {"logits": 5 * np.eye(3, dtype=np.float32), "labels": [0, 1, 2]}}
    with raises(DataError, where="own-sets"):
        evaluate_arrays(sets, "msp").hierarchy()


def test_network_store_command_plot_and_report_agree(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch = pytest.importorskip("torch")
    from loaders.harness import evaluate

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 6))
    store = tmp_path / "store"
    results = evaluate(model, "digits", "msp", store=store)
    results.write(tmp_path / "results")
    direct = evaluate(model, "digits", "msp").hierarchy(rules=["threshold"])
    assert results.hierarchy(rules=["threshold"]).rows() == direct.rows()
    arguments = ["hierarchy", str(tmp_path / "results"), "--store", str(store), "--rules", "threshold"]
    assert run(app, [*arguments, "--json", "--out", str(tmp_path / "rows.csv")], "unknown-eval") == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["rows"] == [dict(row) for row in direct.rows()]
    assert len((tmp_path / "rows.csv").read_text().splitlines()) == len(direct.rows()) + 1
    name = direct.images.names()[0]
    assert run(app, [*arguments, "--image", name], "unknown-eval") == 0
    assert str(direct.explain(name)) in capsys.readouterr().out
    assert run(app, [*arguments[:-1], "treshold"], "unknown-eval") == 2
    with pytest.raises(SplitsError):
        plot(tmp_path / "results", "hierarchy", tmp_path / "h.svg")
    plot(tmp_path / "results", "hierarchy", tmp_path / "h.svg", store=store)
    report(tmp_path / "results", tmp_path / "page.html", store=store)
    assert "Answers in the hierarchy" in (tmp_path / "page.html").read_text()


def test_curves_trade_specificity_for_accuracy(named: HierarchyReport) -> None:
    for curve in named.curves():
        assert (np.diff(curve.specificity) <= 1e-9).all(), curve.rule
        assert curve.correct[-1] >= curve.correct[0]


def test_on_the_tree_nodes_have_one_path(results: Results, logits: dict[str, np.ndarray]) -> None:
    on_tree = results.hierarchy(logits=logits, tree=True, rules=["information[weight=2]"], detectors=["msp"])
    hierarchy = on_tree.images.hierarchy
    assert all(len(hierarchy.taxonomy.parents(wnid)) <= 1 for wnid in hierarchy.wnids)
    assert on_tree.notes[0].startswith("Tree of ImageNet")


def test_id_images_without_a_label_calibrate_nothing(named: HierarchyReport) -> None:
    images, rule = named.images, Conformal(0.2)
    rows = np.flatnonzero(images.roles == "id")[::3]
    labels = images.table["label"].to_numpy().copy()
    labels[rows] = -1
    column = images.table.schema.get_field_index("label")
    unlabelled = replace(images, table=images.table.set_column(column, "label", pa.array(labels, pa.int32())))
    kept = np.setdiff1d(np.arange(len(labels)), rows)
    fewer = replace(
        images,
        table=images.table.take(pa.array(kept)),
        **{name: getattr(images, name)[kept] for name in ("roles", "probabilities", "truth", "folds")},
    )
    assert (unlabelled.answers(rule)[kept] == fewer.answers(rule)).all()
