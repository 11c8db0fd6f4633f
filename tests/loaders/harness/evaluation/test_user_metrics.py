"""A user's metric, defined after a first evaluation: in results, tables, report, comparison, checks, site."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loaders.harness import check_results, remeasure
from loaders.harness.cli.main import app
from loaders.harness.evaluation.run_evaluation import evaluate_runs
from loaders.harness.results.metadata import MetricOptions
from loaders.harness.results.results import Results
from tests.loaders.harness.evaluation.fake_runs import OPEN_SET, fake_run
from tests.raising import raises
from wordnet_splits.base.errors import DataError, UnknownNameError
from wordnet_splits.base.text_formats import CHECKSUM, read_json, write_sealed
from wordnet_splits.metrics import METRICS, classified_metric, pair_metric

pytestmark = pytest.mark.usefixtures("user_metrics_forgotten")
RUNS = [fake_run(OPEN_SET, 0)]


def evaluated(replicates: int = 10) -> Results:
    return evaluate_runs(OPEN_SET, RUNS, ["msp", "knn[k=5]"], options=MetricOptions(replicates=replicates))


def define_youden(factor: float = 1.0) -> None:
    """Run the cell of a notebook that defines a metric."""

    @pair_metric(higher_is_better=True)
    def youden(counts: Any) -> Any:
        """Greatest TPR - FPR (Youden 1950). Higher is better."""
        true, false = counts.cum_id / counts.n_id[..., None], counts.cum_ood / counts.n_ood[..., None]
        return factor * np.maximum((true - false).max(axis=-1), 0.0)


def define_worst_rank() -> None:
    @classified_metric(higher_is_better=False)
    def doubt(counts: Any) -> Any:
        """Share of ID samples that are wrong. Lower is better."""
        return 1 - counts.correct[..., -1] / counts.n_id


def test_a_metric_defined_after_an_evaluation_is_seen_everywhere(tmp_path: Path) -> None:
    from loaders.harness import compare, report, submit
    from wordnet_splits.explorer.leaderboard_page import leaderboard_page

    first = evaluated()
    define_youden()
    define_worst_rank()
    results = evaluated()
    assert not first.rows(metric="youden")
    rows = results.rows(metric="youden", detector="msp")
    assert {(row["group"], row["role"]) for row in rows} == {
        *(("negative", "external"), ("near-a", "near"), ("far-a", "far"), ("far-b", "far")),
        *(("(mean)", "near"), ("(mean)", "far"), ("(pooled)", "near+far")),
    }
    assert rows[0]["group"] == "near-a"
    assert all(row["lo"] <= row["value"] <= row["hi"] for row in rows)
    (accuracy,) = results.values("accuracy", group="(pooled)", detector="msp")["value"].tolist()
    assert results.values("doubt", group="(pooled)", detector="msp")["value"].tolist() == [
        pytest.approx(1 - accuracy)
    ]

    text = str(results)
    assert f"youden, {__name__}:define_youden.<locals>.youden: x 100, higher is better" in text
    assert f"{100 * rows[0]['value']:.2f}" in text
    page = report(results, tmp_path / "report.html").read_text("utf-8")
    assert "near mean youden" in page
    assert ": doubt, youden.</p>" in page  # no command computes them
    assert f"{100 * rows[0]['value']:.2f}" in page
    ranked = compare(results, metric="youden", on="near")
    best, last = ranked.rows()
    assert best["mean"] >= last["mean"]
    assert best["lo"] is not None
    best, last = compare(results, metric="doubt", on="id").rows()
    assert best["mean"] <= last["mean"]

    results.write(tmp_path / "results")
    assert check_results(tmp_path / "results", OPEN_SET).ok
    entry = submit(tmp_path / "results", by="me", name="mine", commands=["-"], to=tmp_path / "entries")
    metrics = leaderboard_page(entry.parent, [OPEN_SET])["metrics"]
    assert metrics["youden"]["better"] == "higher"
    assert metrics["youden"]["title"].startswith(
        "Greatest TPR - FPR (Youden 1950). Higher is better. (tests."
    )
    assert metrics["doubt"]["better"] == "lower"
    assert metrics["ece"]["better"] == "lower"


def test_without_the_metric_installed_its_rows_are_named(tmp_path: Path, capsys: Any) -> None:
    from loaders.harness import compare

    define_youden()
    results = evaluated()
    results.write(tmp_path / "results")
    METRICS.remove("youden")
    checked = check_results(tmp_path / "results", OPEN_SET)
    assert checked.ok
    assert checked.not_installed == (f"youden ({__name__}:define_youden.<locals>.youden)",)
    assert app(["recompute", "--check", str(tmp_path / "results"), "--json"], standalone_mode=False) == 0
    assert json.loads(capsys.readouterr().out)["not_installed"] == list(checked.not_installed)
    app(["recompute", "--check", str(tmp_path / "results")], standalone_mode=False)
    assert "not recomputed, as they are not installed: youden" in capsys.readouterr().out
    ranked = compare(
        results, metric="youden", on="near"
    )  # the direction is in the results, intervals are not
    assert ranked.rankings[0].higher_is_better
    assert ranked.rows()[0]["lo"] is None
    assert "higher is better" in results.table()
    again = remeasure(tmp_path / "results", bootstrap=0)
    assert not again.rows(metric="youden")
    assert any("not installed, so left out" in note for note in again.about.notes)
    assert again.about.metrics == ()


def test_another_definition_is_found_out(tmp_path: Path) -> None:
    from loaders.harness import compare

    define_youden()
    results = evaluated()
    results.write(tmp_path / "results")
    with pytest.warns(UserWarning, match="'youden' replaces the earlier one"):
        define_youden(0.5)
    checked = check_results(tmp_path / "results", OPEN_SET)
    assert {d.row.split(", ")[-1] for d in checked.differences} == {"youden"}
    with raises(DataError, where="fake msp", naming=("youden", "results")):
        compare(results, metric="youden", on="near")
    assert compare(remeasure(tmp_path / "results", bootstrap=0), metric="youden", on="near").rows()


def test_results_from_before_the_metric_still_recompute(tmp_path: Path) -> None:
    evaluated().write(tmp_path / "results")
    define_youden()
    checked = check_results(tmp_path / "results", OPEN_SET)
    assert checked.ok
    assert checked.not_installed == ()
    assert remeasure(tmp_path / "results", bootstrap=0).rows(metric="youden")


@pytest.mark.parametrize(
    ("kernel", "named"),
    [
        (lambda counts: 1 / 0, ()),
        (lambda counts: np.zeros(7), "7"),
        (lambda counts: counts.n_id / 0, ()),
    ],
)
def test_a_broken_metric_stops_the_evaluation_in_one_line(kernel: Callable[..., Any], named: object) -> None:
    kernel.__name__ = "broken"
    pair_metric(higher_is_better=True)(kernel)
    with raises(DataError, where="'broken'", naming=named):
        evaluated(0)


def test_nan_is_a_dash_with_a_note() -> None:
    from loaders.harness import compare

    @pair_metric(higher_is_better=True)
    def fussy(counts: Any) -> Any:
        """Defined for 90 OOD samples alone. Higher is better."""
        return np.where(counts.n_ood == 90, 1.0, np.nan)

    results = evaluated(5)
    (note,) = [note for note in results.about.notes if note.startswith("fussy")]
    assert note.endswith("is NaN in 12 of 14 values, first for msp on near-a")
    assert "fussy" in results.table()
    with raises(DataError, where="results 1", naming=("fussy", "near")):
        compare(results, metric="fussy", on="near")


def test_no_entry_may_redefine_a_built_in_metric(tmp_path: Path) -> None:
    define_youden()
    evaluated(0).write(tmp_path / "results")

    path = tmp_path / "results" / "about.json"
    content = read_json(path)
    del content[CHECKSUM]
    content["about"]["metrics"][0]["name"] = "auroc"
    write_sealed(path, content)
    with raises(DataError, where="about.json", naming="auroc"):
        Results.read(tmp_path / "results")


@pytest.mark.extensions("loaders.harness.comparison")
def test_the_command_line_takes_module_and_name(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my_metrics.py").write_text(
        textwrap.dedent(
            """
            from wordnet_splits.metrics import pair_metric

            @pair_metric(higher_is_better=False)
            def accepted(counts):
                "Share of OOD samples above the median of ID. Lower is better."
                above = 2 * counts.cum_id <= counts.n_id[..., None]
                return (counts.cum_ood * above).max(axis=-1) / counts.n_ood
            """
        )
    )
    evaluated(0).write("results")
    mine = ["--metric", "my_metrics:accepted"]
    assert app(["recompute", "results", "--bootstrap", "5", *mine], standalone_mode=False) == 0
    assert Results.read("results").rows(metric="accepted")
    assert app(["compare", "results", "--on", "near", "--json", *mine], standalone_mode=False) == 0
    ranking = json.loads(capsys.readouterr().out)["ranking"]
    assert [row["metric"] for row in ranking] == ["accepted"] * 2
    assert ranking[0]["mean"] <= ranking[1]["mean"]
    for path, said in {
        "my_metrics:none": "--metric my_metrics",
        "none:accepted": "--metric",
    }.items():
        with raises((DataError, UnknownNameError), where=said):
            app(["recompute", "--check", "results", "--metric", path], standalone_mode=False)
