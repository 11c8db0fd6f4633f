"""Abdelzad's tables 2 to 10, rebuilt from runs that have the moments which the paper prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loaders.harness import compare
from loaders.harness.cli.main import app
from loaders.harness.comparison.robustness import DEFAULT, Cells, _tables, layout
from loaders.harness.evaluation.run_evaluation import evaluate_runs
from loaders.harness.results.table import Table
from tests.loaders.harness.evaluation.fake_runs import fake_manifest, fake_run
from tests.raising import raises
from tools.facts import abdelzad
from wordnet_splits.base.errors import DataError, UnknownNameError
from wordnet_splits.metrics import METRICS, robustness

OPTIMIZERS = ("Adam", "RMSprop", "Adamax", "Nadam", "SGD", "Adagrad", "Adadelta")
FPR95 = "FPR95 (OOD positive, interpolated)"
PAPER = layout()["metrics"]["paper"]


def with_moments(moments: Sequence[tuple[float, float]]) -> dict[str, list[float]]:
    """Two runs of each metric that have exactly this mean and population variance."""
    return {
        name: [mean - np.sqrt(variance), mean + np.sqrt(variance)]
        for name, (mean, variance) in zip(PAPER, moments, strict=True)
    }


def cells(values: Mapping[tuple[str, str, str], Any]) -> Cells:
    axes = {
        axis: tuple(dict.fromkeys(key[n] for key in values))
        for n, axis in enumerate(("model", "detector", "group"))
    }
    return Cells(values, axes)


def table(number: int, of: Cells) -> Table:
    (spec,) = [one for one in layout()["table"] if one["number"] == number]
    return next(iter(_tables(of, spec, "paper", PAPER)))


def unweighted(number: int, of: Cells) -> Table:
    (spec,) = [one for one in layout()["table"] if one["number"] == number]
    _, made = _tables(of, spec, "paper", PAPER)
    return made


def over_optimizers() -> Cells:
    rows = zip(OPTIMIZERS, abdelzad.TABLE_3, strict=True)
    return cells({(name, "msp", "F-MNIST"): with_moments(row) for name, row in rows})


def over_sets() -> Cells:
    names = ("F-MNIST", "Omniglot", "Gaussian", "Uniform")
    return cells(
        {("Adam", "msp", name): with_moments(row) for name, row in zip(names, abdelzad.TABLE_7, strict=True)}
    )


def pairs(row: Sequence[str]) -> Any:
    return np.array([[float(part) for part in cell.split("|")] for cell in row])


def near(expected: Any, within: float) -> Any:
    return pytest.approx(np.array(expected), abs=within)


def test_table_2_ends_with_mean_and_variance_over_runs() -> None:
    runs = dict(zip(PAPER, zip(*abdelzad.TABLE_2, strict=True), strict=True))
    made = table(2, cells({("Adam", "msp", "F-MNIST"): runs}))
    assert [tuple(map(float, row[1:])) for row in made.cells[:5]] == list(abdelzad.TABLE_2)
    assert pairs(made.cells[-1][1:]) == near(abdelzad.TABLE_2_LAST, 1.1e-3)


def test_table_3_ends_with_the_mixture_over_optimizers() -> None:
    made = table(3, over_optimizers())
    assert [row[0] for row in made.cells] == [*OPTIMIZERS, "mixture"]
    assert pairs(made.cells[0][1:]) == near(abdelzad.TABLE_3[0], 1e-3)
    assert pairs(made.cells[-1][1:]) == near(abdelzad.TABLE_3_LAST, 1.6e-3)


def test_tables_4_and_5_hold_the_mixture_and_its_score_per_detector() -> None:
    (row,) = table(4, over_optimizers()).cells
    assert pairs(row[1:]) == near(abdelzad.TABLE_3_LAST, 1.6e-3)
    (row,) = table(5, over_optimizers()).cells
    assert [float(cell) for cell in row[1:]] == pytest.approx(abdelzad.TABLE_5[0], abs=0.02)


def test_beside_a_mixture_stands_the_plain_mean_which_two_seeds_that_agree_do_not_rule() -> None:
    """Of two seeds that agree the sd is near 0, so the mixture is all but that model's mean."""
    runs = {"sgd": (68.60, 68.51), "adam": (34.63, 35.87), "rmsprop": (25.12, 18.62)}
    held = cells({(model, "md", "F-MNIST"): dict.fromkeys(PAPER, values) for model, values in runs.items()})
    ((mixture, _),) = pairs(table(4, held).cells[0][1:2])
    assert mixture == pytest.approx(65.6, abs=0.1)
    values = np.array(list(runs.values()))
    made = unweighted(4, held)
    assert made.title.startswith(
        "Table 4, unweighted: F-MNIST: detectors over models, mean and standard deviation"
    )
    assert made.cells[0][1] == f"{values.mean():.3f} ± {values.std(ddof=1):.3f}"
    assert made.rows[0][FPR95] == pytest.approx((values.mean(), values.std(ddof=1)))
    assert made.rows[0]["unweighted"]


def test_a_plain_mean_of_one_run_has_no_deviation() -> None:
    """One set, and two models of one run each: a table over sets has one value in each cell."""
    runs = {"sgd": 71.667, "adam": 50.0}
    held = cells({(model, "md", "a"): {name: [value] for name in PAPER} for model, value in runs.items()})
    assert [row[1] for row in unweighted(8, held).cells] == ["71.667", "50.000"]
    assert [row[FPR95] for row in unweighted(8, held).rows] == [
        (71.667, None),
        (50.0, None),
    ]


def test_a_plain_mean_over_fewer_cells_than_there_are_is_left_out() -> None:
    runs = {("sgd", "md", "a"): [1.0, 2.0], ("adam", "md", "a"): [3.0, 4.0], ("adam", "msp", "a"): [3.0, 4.0]}
    held = cells({key: dict.fromkeys(PAPER, values) for key, values in runs.items()})
    assert [row[1] for row in unweighted(4, held).cells] == ["2.500 ± 1.291", "-"]


def test_tables_7_to_9_are_over_ood_sets() -> None:
    made = table(7, over_sets())
    assert pairs(made.cells[-1][1:]) == pytest.approx(
        np.array([(4.162, 11.733), (3.437, 6.649), (98.282, 0.78), (98.82, 0.579), (97.257, 1.683)]), abs=2e-3
    )
    assert table(8, over_sets()).cells[0][1:] == made.cells[-1][1:]
    (row,) = table(9, over_sets()).cells
    assert [float(cell) for cell in row[1:]] == pytest.approx([14.258, 8.867, 0.009, 0.008, 0.013], abs=0.02)


def evaluated(models: Sequence[str] = ("adam", "sgd", "nadam"), runs: int = 2) -> Any:
    sets = [("mnist", "id", "test", 60), ("omniglot", "far", "test", 40), ("uniform", "far", "test", 30)]
    manifest = fake_manifest(sets, name="optimizers-mnist")
    networks = [
        fake_run(manifest, 10 * n + seed, model=model)
        for n, model in enumerate(models)
        for seed in range(runs)
    ]
    return evaluate_runs(manifest, networks, "msp_float32,entropy")


def test_best_detectors_and_models_have_the_lowest_scores_of_the_metrics_module() -> None:
    held = evaluated()
    found = compare(held, bootstrap=0)
    assert len(found.robustness) == 2 * (2 + 2 + 2 + 1 + 2 + 2 + 2 + 1)
    best = next(t for t in found.robustness if t.title.startswith("Table 6"))
    assert best.title.endswith("score (eq. 8) of values in % (the paper's convention)")
    for group, row in zip(("omniglot", "uniform"), best.rows, strict=True):
        scores = {
            detector: robustness(
                [
                    [
                        100 * one["value"]
                        for one in held.rows(model=model, detector=detector, group=group, metric=PAPER[0])
                    ]
                    for model in ("adam", "sgd", "nadam")
                ],
                higher_is_better=METRICS[PAPER[0]].higher_is_better,
            ).score
            for detector in held.detectors
        }
        assert row["group"] == group
        assert row["best detector"] == [min(scores, key=lambda name: scores[name])]
    top = next(t for t in found.robustness if t.title.startswith("Table 10"))
    assert all(len(row["best model"]) == 2 for row in top.rows)


def test_both_conventions_are_printed_and_single_runs_are_said() -> None:
    found = compare(evaluated(runs=1), bootstrap=0, robustness=[4])
    assert {row["convention"] for t in found.robustness for row in t.rows} == {"paper", "ours"}
    assert any("each model has one run" in note for note in found.notes)
    assert FPR95 in str(found)


def test_one_model_has_no_robustness_and_numbers_are_2_to_10() -> None:
    held = evaluated(["adam"])
    assert compare(held, bootstrap=0).robustness == ()
    with raises(DataError, where="optimizers-mnist"):
        compare(held, bootstrap=0, robustness=[4])
    with raises(DataError, where="--robustness", naming="11"):
        compare(evaluated(), bootstrap=0, robustness=[11])
    assert set(DEFAULT) < {spec["number"] for spec in layout()["table"]} == set(range(2, 11))


def test_a_formula_of_the_user_scores_the_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = evaluated()
    (tmp_path / "my_formulas.py").write_text("def spread(mean, variance, higher): return variance\n")
    monkeypatch.chdir(tmp_path)
    found = compare(held, bootstrap=0, robustness=[4, 5], formula="my_formulas:spread").robustness
    moments, scores = (next(t for t in found if t.title.startswith(f"Table {n}: omniglot")) for n in (4, 5))
    assert "formula my_formulas:spread" in scores.title
    for of_moments, of_scores in zip(moments.rows, scores.rows, strict=True):
        assert of_scores["AUROC"] == pytest.approx(of_moments["AUROC"][1])
    held.write(tmp_path / "held")
    command = ["compare", str(tmp_path / "held"), "--robustness", "5", "--bootstrap", "0", "--json"]
    assert app([*command, "--formula", "my_formulas:spread"], standalone_mode=False) == 0
    with raises(DataError, where="--formula"):
        compare(evaluated(["adam"]), bootstrap=0, formula="shortfall")
    with raises(UnknownNameError, near="shortfall"):
        compare(evaluated(["adam"]), bootstrap=0, formula="shortfal")
