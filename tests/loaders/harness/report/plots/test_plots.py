"""What pictures show, against scikit-learn, the metrics and counting by hand; and that each kind draws."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest
import torch
from scipy.stats import spearmanr
from sklearn.metrics import roc_curve

from loaders import UnknownDetectionSet
from loaders.harness import compare, evaluate, evaluate_arrays, plot, report
from loaders.harness.comparison.accuracy import accuracy_correlations
from loaders.harness.comparison.entries import draws_of
from loaders.harness.comparison.ranking import list_scopes
from loaders.harness.evaluation.run_evaluation import evaluate_runs
from loaders.harness.models.origin import WeightsOrigin
from loaders.harness.report.plots import list_plots, plot_data
from loaders.harness.report.plots.curves import density_panel
from loaders.harness.results.metric_rows import MEAN, POOLED
from loaders.harness.results.results import Results
from loaders.harness.results.tables import ResultSets
from tests.imported import Imported
from tests.loaders.harness.evaluation.fake_runs import fake_manifest, fake_run
from tests.loaders.harness.long_tables import long_predictions, long_scores
from tests.raising import mentions, raises
from wordnet_splits.base.errors import DataError, OutputError, UnknownNameError
from wordnet_splits.base.shapes import Bars, Lines, Points
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.metrics import bootstrap_indices, interval

networkx = Imported("networkx")
torchvision_functional = Imported("torchvision.transforms.functional")

SETS = [
    ("known", "id", "test", 90),
    ("near-a", "near", "test", 60),
    ("far-a", "far", "test", 40),
    ("shifted", "csid", "test", 30),
]


@pytest.fixture(scope="module")
def results() -> Results:
    manifest = fake_manifest(SETS, name="digits")
    networks = [fake_run(manifest, seed, model=model) for model in ("one", "two") for seed in (0, 1)]
    networks = [replace(run, model_key=f"{run.name}-key") for run in networks]
    return evaluate_runs(manifest, networks, "mcp,energy,mls")


@pytest.fixture(scope="module")
def single() -> Results:
    """Results of models of one run."""
    manifest = fake_manifest(SETS, name="digits")
    return evaluate_runs(manifest, [fake_run(manifest, 0, model=m) for m in ("one", "two")], "mcp,energy,mls")


@pytest.fixture(scope="module")
def digits() -> Results:
    manifest = load_manifest("digits")
    return evaluate_runs(manifest, [fake_run(manifest, splits=("test",))], "mcp,energy")


def confidences(results: Results, detector: str, group: str, run: int = 0) -> Any:
    table = long_scores(results).to_pandas()
    chosen = (table.detector == detector) & (table.run == run) & (table.group == group)
    return table[chosen].sort_values("image_id").confidence.to_numpy()


def right(results: Results, run: int = 0) -> Any:
    table = long_predictions(results).to_pandas()
    chosen = table[(table.run == run) & (table.group == "known")].sort_values("image_id")
    return (chosen.prediction == chosen.label).to_numpy()


def panels(results: Any, what: str, **options: Any) -> Any:
    return plot_data(results, what, **options).panels


def test_risk_is_the_share_of_errors_among_the_most_confident(single: Results) -> None:
    (panel,) = panels(single, "risk-coverage", detectors=["mcp"])
    line = panel.lines[0]
    pool = [confidences(single, "mcp", group) for group in ("known", "near-a", "far-a")]
    errors = np.concatenate([~right(single), np.ones(100, bool)])
    order = np.argsort(-np.concatenate(pool), kind="stable")
    risk = np.cumsum(errors[order]) / np.arange(1, 191)
    assert len(line.x) == 190  # no ties
    assert line.x == pytest.approx(np.arange(1, 191) / 190)
    assert line.y == pytest.approx(risk)
    (aurc,) = [
        row["value"] for row in single.rows(metric="aurc_unknown", group=POOLED, detector="mcp", run=0)
    ]
    assert line.y.mean() == pytest.approx(aurc)
    assert line.value == f"{1000 * aurc:.1f}"


def test_roc_is_scikit_learn_s(single: Results) -> None:
    found = panels(single, "roc", detectors=["energy"])
    assert [panel.title for panel in found] == ["near-a", "far-a"]
    for panel in found:
        inside, outside = (confidences(single, "energy", g) for g in ("known", panel.title))
        truth = [1] * len(inside) + [0] * len(outside)
        fpr, tpr, _ = roc_curve(truth, np.concatenate([inside, outside]), drop_intermediate=False)
        assert panel.lines[0].x == pytest.approx(fpr)
        assert panel.lines[0].y == pytest.approx(tpr)
        assert panel.lines[-1].dashed


def test_oscr_counts_right_knowns_above_each_threshold(single: Results) -> None:
    (panel,) = panels(single, "oscr-linear", detectors=["mcp"], groups=["far-a"])
    line = panel.lines[0]
    inside, outside = (confidences(single, "mcp", g) for g in ("known", "far-a"))
    thresholds = [*sorted({*inside, *outside}, reverse=True), -np.inf]
    assert line.x.tolist() == [np.mean(outside > t) for t in thresholds]
    assert line.y == pytest.approx([np.mean((inside > t) & right(single)) for t in thresholds])
    assert np.trapezoid(line.y, line.x) == pytest.approx(
        single.rows(metric="oscr", group="far-a", detector="mcp", run=0)[0]["value"]
    )
    (log,) = panels(single, "oscr", detectors=["mcp"], groups=["far-a"])
    assert log.log_x
    assert log.lines[0].x.tolist() == [x for x in line.x if x > 0]


def test_densities_have_area_one_and_say_how_many(single: Results) -> None:
    panel = panels(single, "densities", detectors=["mls"])[0]
    n = int(right(single).sum())
    sizes = {"correct": f"{n}", "incorrect": f"{90 - n}", "near": "60", "far": "40"}
    assert {line.name: line.value for line in panel.lines} == sizes
    for line in panel.lines:
        assert np.sum(line.y * np.diff(line.x)) == pytest.approx(1)
    of_near = confidences(single, "mls", "near-a")
    counts, _ = np.histogram(of_near, bins=panel.lines[2].x)
    assert panel.lines[2].y * 60 * np.diff(panel.lines[2].x) == pytest.approx(counts)
    assert density_panel("", "", {"x": [np.array([1.0, 1.0])]}).lines[0].y.sum() > 0


def test_softmax_histograms_are_of_target_and_greatest(single: Results) -> None:
    table = long_predictions(single).to_pandas()
    table = table[table.run == 0]
    panel = panels(single, "palechor-4")[0]
    known = table[table.group == "known"].target_probability
    counts, _ = np.histogram(known, bins=60, range=(0, 1))
    assert panel.lines[0].name in ("target of ID", "greatest of far-a", "greatest of near-a")
    by_name = {line.name: line for line in panel.lines}
    assert by_name["target of ID"].y * 90 / 60 == pytest.approx(counts)
    far = np.histogram(table[table.group == "far-a"].max_probability, bins=60, range=(0, 1))[0]
    assert by_name["greatest of far-a"].y * 40 / 60 == pytest.approx(far)
    assert [len(p.lines) for p in panels(single, "kim-6")] == [4, 4]  # two models


def test_curves_of_several_runs_are_their_mean_with_a_band(results: Results) -> None:
    (panel,) = panels(results, "roc", detectors=["energy"], groups=["far-a"])
    line = panel.lines[0]
    curves = []
    for run in (0, 1):
        inside, outside = (confidences(results, "energy", g, run) for g in ("known", "far-a"))
        fpr, tpr, _ = roc_curve(
            [1] * 90 + [0] * 40, np.concatenate([inside, outside]), drop_intermediate=False
        )
        curves.append([tpr[fpr <= x + 1e-12].max() for x in line.x[::50]])
    mean, sd = np.mean(curves, axis=0), np.std(curves, axis=0, ddof=1)
    steps = np.isclose((line.x[::50] * 40) % 1, 0) | np.isclose((line.x[::50] * 40) % 1, 1)
    assert steps.sum() > 5  # the corners of the curves of 40 OOD images
    assert line.y[::50][steps] == pytest.approx(mean[steps])
    assert line.hi[::50][steps] == pytest.approx(np.minimum(mean + sd, 1)[steps])
    assert line.lo[::50][steps] == pytest.approx((mean - sd)[steps])
    rows = results.rows(metric="auroc", group="far-a", detector="energy", model="one")
    values = [100 * row["value"] for row in rows]
    assert line.value == f"{np.mean(values):.1f}±{np.std(values, ddof=1):.1f}"
    assert np.trapezoid(line.y, line.x) == pytest.approx(np.mean(values) / 100, abs=0.01)
    plot = plot_data(results, "roc", detectors=["energy"])
    assert plot.notes == ("Lines are means over the runs of a model, bands one standard deviation.",)
    for kind in ("risk-coverage", "oscr", "densities", "kim-6", "palechor-4"):
        lines = [line for panel in panels(results, kind) for line in panel.lines]
        assert all(np.all(line.lo <= line.y) and np.all(line.y <= line.hi) for line in lines), kind


def test_msp_is_shown_as_a_probability(single: Results) -> None:
    mcp, _, mls, _ = panels(single, "densities", detectors=["mcp", "mls"])
    assert (mcp.x_label, mls.x_label) == ("probability", "confidence")
    far = next(line for line in mcp.lines if line.name == "far")
    counts, edges = np.histogram(np.exp(confidences(single, "mcp", "far-a")), bins=60, range=(0, 1))
    assert far.x == pytest.approx(edges)
    assert far.y * 40 / 60 == pytest.approx(counts)
    table = long_predictions(single).to_pandas()
    greatest = table[(table.run == 0) & (table.group == "far-a")].max_probability
    assert far.y * 40 / 60 == pytest.approx(np.histogram(greatest, bins=60, range=(0, 1))[0])


def test_the_best_models_are_those_of_the_comparison() -> None:
    manifest = fake_manifest(SETS, name="digits")
    runs = [fake_run(manifest, seed, model=f"m{seed:02d}", temperature=2 + seed) for seed in range(14)]
    many = evaluate_runs(manifest, runs, "mcp,energy")
    order = list(dict.fromkeys(row["model"] for row in compare(many, bootstrap=0).rows()))
    plot = plot_data(many, "near-far", best=3)
    assert {point.name.split()[0] for point in plot.panels[0].points} == set(order[:3])
    assert plot.notes == ("The 3 best of 14 models by aurc_unknown on pooled.",)
    whole = plot_data(many, "near-far", best=20)
    assert whole.notes == ()
    points = whole.panels[0].points
    assert {(p.kind, p.marker, p.label) for p in points} == {
        (f"m{n:02d}", detector, False) for n in range(14) for detector in ("mcp", "energy")
    }


def test_points_are_means_over_runs(results: Results) -> None:
    (panel,) = panels(results, "near-far")
    assert {point.name for point in panel.points} == {
        f"{model} {d}" for model in ("one", "two") for d in results.detectors
    }
    rows = results.rows(metric="auroc", group=MEAN, role="far", detector="mcp", model="two")
    (point,) = [point for point in panel.points if point.name == "two mcp"]
    assert point.y == pytest.approx(100 * np.mean([row["value"] for row in rows]))
    near, far = panels(results, "full-spectrum", detectors=["mcp"])
    rows = results.rows(metric="auroc[full-spectrum]", group=MEAN, role="near", detector="mcp", model="one")
    assert near.points[0].y == pytest.approx(100 * np.mean([row["value"] for row in rows]))
    assert (near.title, far.title) == ("near", "far")


def test_nearness_has_a_point_for_each_class(results: Results) -> None:
    panel = panels(results, "nearness", detectors=["mcp"])[0]
    table = results.by_class.to_pandas()
    table = table[(table.detector == "mcp") & (table.run < 2)]
    table = table.groupby(["group", "class_id"], as_index=False)[["similarity", "auroc"]].mean()
    points = sorted((round(p.x, 9), p.y) for p in panel.points)
    due = sorted((round(x, 9), y) for x, y in zip(table.similarity, 100 * table.auroc, strict=True))
    assert np.array(points) == pytest.approx(np.array(due))
    assert {p.kind for p in panel.points} == {"near-a", "far-a"}
    panel = panels(results, "nearness", detectors=["mcp"], groups=["near-a"])[0]
    alone = table[table.group == "near-a"]
    assert f"{spearmanr(alone.similarity, alone.auroc).statistic:.3f}" in panel.title


def test_bars_are_those_of_the_comparison(results: Results) -> None:
    (panel,) = panels(results, "kim-5")
    due = compare(results, bootstrap=200).improvements
    assert [(b.value, b.lo, b.hi) for b in panel.bars] == [(one.percent, one.lo, one.hi) for one in due]
    panel = panels(results, "robustness", groups=["far-a"], metric="fpr95_id_positive")[0]
    runs = results.rows(metric="fpr95_id_positive", group="far-a", detector="mcp", model="one")
    values = [100 * row["value"] for row in runs]
    (bar,) = [b for b in panel.bars if (b.category, b.series) == ("one", "mcp")]
    assert bar.value == pytest.approx(np.mean(values))
    assert bar.hi - bar.value == pytest.approx(np.std(values, ddof=1))


def test_architectures_are_in_order_of_accuracy(results: Results) -> None:
    near, far = panels(results, "architectures", detectors=["energy"])
    assert (near.title, far.title) == ("near", "far")

    def mean(metric: str, group: str, role: str, model: str) -> float:
        rows = results.rows(metric=metric, group=group, role=role, model=model, detector="energy")
        return 100 * float(np.mean([row["value"] for row in rows]))

    models = sorted(("one", "two"), key=lambda model: mean("accuracy", POOLED, "id", model))
    accuracies = [f"{model} ({mean('accuracy', POOLED, 'id', model):.1f}%)" for model in models]
    for panel in (near, far):
        assert [bar.category for bar in panel.bars] == accuracies
        due = [mean("auroc", MEAN, panel.title, model) for model in models]
        assert [bar.value for bar in panel.bars] == pytest.approx(due)
    (chosen,) = panels(results, "architectures", metric="fpr95_id_positive", groups=["far-a"])
    assert chosen.title == "far-a"
    assert len(chosen.bars) == 2 * 3


def test_accuracy_is_correlated_over_networks(results: Results) -> None:
    near, far = panels(results, "accuracy", detectors=["energy"])
    assert near.title.endswith("(no interval), n = 4")  # of two models
    rows = [
        results.rows(metric=metric, group=group, role=role, detector="energy")
        for metric, group, role in (("accuracy", POOLED, "id"), ("auroc", MEAN, "far"))
    ]
    x, y = ([100 * row["value"] for row in part] for part in rows)
    assert [(p.x, p.y, p.kind) for p in far.points] == [
        (a, b, row["model"]) for a, b, row in zip(x, y, rows[0], strict=True)
    ]
    assert f"Spearman {spearmanr(x, y).statistic:.2f} " in far.title


def test_an_interval_of_the_correlation_draws_models_with_their_runs() -> None:
    manifest = fake_manifest(SETS[:2], name="digits")
    networks = [fake_run(manifest, n, model=f"m{n // 2}") for n in range(12)]
    held = evaluate_runs(manifest, [replace(run, model_key=f"{run.name}-key") for run in networks], "mcp")
    draw = draws_of([held])[0]
    scopes = [scope for scope in list_scopes(ResultSets.from_results(held)) if scope.name == "near"]
    (found,) = accuracy_correlations(draw, "auroc", scopes, replicates=50)
    drawn = []
    for r in range(50):
        taken = [2 * n + k for n in bootstrap_indices(0, "models", r, 6) for k in (0, 1)]
        x, y = ([getattr(found.points[n], name) for n in taken] for name in ("accuracy", "value"))
        drawn.append(spearmanr(x, y).statistic)
    assert (found.lo, found.hi) == interval(found.rho, np.array(drawn))[1:]
    assert found.lo < found.rho < found.hi
    with raises(DataError, where="digits"):
        panels(evaluate_runs(manifest, networks[:1], "mcp"), "accuracy")


def test_gammas_are_those_of_the_record(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    from loaders.harness.training import checkpoint as files

    with raises(DataError, where="digits", naming="gamma"):
        plot_data(results, "palechor-3")
    origins = [WeightsOrigin(kind="trained", spec=f"trained:models/{r.name}") for r in results.about.runs]
    runs = tuple(
        run.model_copy(update={"weights": origin})
        for run, origin in zip(results.about.runs, origins, strict=True)
    )
    trained = replace(results, about=results.about.model_copy(update={"runs": runs}))
    history = [
        {"epoch": 1, "gamma_plus": 0.5, "gamma_minus": None, "gamma": None},
        {"epoch": 2, "gamma_plus": 0.75, "gamma_minus": 0.25, "gamma": 0.5},
    ]
    monkeypatch.setattr(files, "read_metadata", lambda path: {"history": history})
    plus, minus, both = panels(trained, "palechor-3")
    assert (plus.lines[0].x.tolist(), plus.lines[0].y.tolist()) == ([1, 2], [0.5, 0.75])
    assert (minus.lines[0].x.tolist(), both.lines[0].y.tolist()) == ([2], [0.5])
    assert [line.name for line in plus.lines] == [run.name for run in runs]


def test_shares_of_predictions_are_counted(digits: Results) -> None:
    found = {panel.title: panel for panel in panels(digits, "predictions")}
    panel = found["digits-6-9"]
    assert panel.columns == ("zero", "one", "two", "three", "four", "five")
    assert set(panel.rows) == {"six", "seven", "eight", "nine"}
    assert panel.values.sum(axis=1) == pytest.approx(1)
    table = digits.predicted()
    table = table.filter(pc.equal(table["class_id"], "7"))
    share = np.mean(table["prediction"].to_numpy() == 3)
    assert panel.values[panel.rows.index("seven"), 3] == pytest.approx(share)


OF_OTHERS = ("palechor-3", "kim-7", "hierarchy", "nearness-trend", "cliques")
"""Kinds of trainings, activations, classes in WordNet and several benchmarks, which these results lack."""


@pytest.mark.parametrize("kind", [kind.name for kind in list_plots() if kind.name not in OF_OTHERS])
def test_every_kind_draws(kind: str, results: Results, digits: Results, tmp_path: Path) -> None:
    held = digits if kind in ("predictions", "recalcati-2", "recalcati-3") else results
    path = plot(held, kind, tmp_path / "a.svg")
    assert ET.parse(path).getroot().tag.endswith("svg")
    again = plot(held, kind, tmp_path / "b.svg")
    assert path.read_bytes() == again.read_bytes()
    picture = plot_data(held, kind)
    assert picture.title
    assert all(
        panel.lines
        if isinstance(panel, Lines)
        else panel.points
        if isinstance(panel, Points)
        else panel.bars
        if isinstance(panel, Bars)
        else panel.values.size
        for panel in picture.panels
    )


@pytest.mark.parametrize(("suffix", "start"), [(".png", b"\x89PNG"), (".pdf", b"%PDF"), (".svg", b"<?xml")])
def test_formats(suffix: str, start: bytes, results: Results, tmp_path: Path) -> None:
    path = plot(results, "near-far", tmp_path / f"a{suffix}")
    assert path.read_bytes().startswith(start)
    assert path.read_bytes() == plot(results, "near-far", tmp_path / f"b{suffix}").read_bytes()


def test_names_from_outside_are_only_text(tmp_path: Path) -> None:
    name = "_$\\frac{x}<script>&-->" + "x" * 1000
    manifest = fake_manifest(SETS, name="digits")
    held = evaluate_runs(
        manifest, [fake_run(manifest, 0, model=name), fake_run(manifest, 1, model="b")], "mcp"
    )
    for kind in ("roc", "near-far", "robustness", "densities"):
        assert ET.parse(plot(held, kind, tmp_path / f"{kind}.svg")).getroot() is not None


@pytest.mark.parametrize(
    ("what", "options", "error", "where"),
    [
        ("rock", {}, UnknownNameError, "--what"),
        ("roc", {"groups": ["fara"]}, UnknownNameError, "--group"),
        ("kim-7", {}, DataError, "kim-7"),
        ("roc", {"detectors": ["knn"]}, UnknownNameError, "--detectors"),
    ],
)
def test_what_is_lacking_is_one_line(
    what: str, options: Any, error: type[Exception], where: str, digits: Results
) -> None:
    with raises(error, where=where):
        plot_data(digits, what, **options)


def test_benchmarks_without_the_sets_are_said(digits: Results, tmp_path: Path) -> None:
    with raises(DataError, where="digits"):
        plot_data(digits, "full-spectrum")
    for of_several_models in ("robustness", "architectures"):
        with raises(DataError, where="digits"):
            plot_data(digits, of_several_models)
    with raises(OutputError, where="a.txt"):
        plot(digits, "roc", tmp_path / "a.txt")
    with raises(OutputError, where="a.svg"):
        plot(digits, "recalcati-4", tmp_path / "a.svg")
    graph = networkx.read_graphml(plot(digits, "recalcati-4", tmp_path / "a.graphml"))
    assert {source.partition("/")[0] for source, _ in graph.edges} == {"gaussian", "uniform"}
    assert sum(d["images"] for _, _, d in graph.edges(data=True)) <= 1000


def test_mean_softmax_is_that_of_the_stored_logits(tmp_path: Path) -> None:
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 6)).eval()
    store = tmp_path / "store"
    held = evaluate(network, "digits", "msp", groups=["uniform", "digits-6-9"], store=store)
    (panel,) = panels(held, "kim-7", groups=["digits-6-9"], store=store)
    images = UnknownDetectionSet("digits", group="digits-6-9", transform=torchvision_functional.to_tensor)
    said = [network(image[None])[0].softmax(0).detach().numpy() for image, _ in images]
    sevens = [row == "7" for row in images.table["class_id"].to_pylist()]
    assert panel.values[panel.rows.index("seven")] == pytest.approx(np.mean(np.array(said)[sevens], axis=0))
    with raises(DataError, where="elsewhere", naming="uniform"):
        plot_data(held, "kim-7", groups=["uniform"], store=tmp_path / "elsewhere")


def test_a_notebook_has_the_kinds_as_methods(digits: Results, tmp_path: Path) -> None:
    assert {"risk_coverage", "kim_5", "roc"} <= set(dir(digits.plot))
    picture = digits.plot.near_far()
    assert picture.panels == plot_data(digits, "near-far").panels
    assert ET.fromstring(picture._repr_svg_()).tag.endswith("svg")
    assert digits.plot.roc(tmp_path / "a.svg", groups=["uniform"]).is_file()
    with raises(UnknownNameError, where="--what", naming="rock"):
        _ = digits.plot.rock
    assert not hasattr(digits.plot, "__deepcopy__")


def test_results_on_id_alone_have_little_to_show(tmp_path: Path) -> None:
    logits = np.random.default_rng(0).normal(size=(30, 3)).astype(np.float32)
    held = evaluate_arrays({"id": {"logits": logits, "labels": np.arange(30) % 3}}, "msp")
    with raises(DataError, where="own-sets", naming="roc"):
        plot_data(held, "roc")
    assert len(panels(held, "densities")[0].lines) == 2
    text = report(held, tmp_path / "a.html").read_text(encoding="utf-8")
    assert mentions(text, "own-sets")
