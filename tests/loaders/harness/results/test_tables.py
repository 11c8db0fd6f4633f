"""Tables in the papers' layouts: what they hold, and what they never set beside a paper's figure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from loaders.harness.detectors import get_spec
from loaders.harness.evaluation.run_evaluation import evaluate_runs
from loaders.harness.results.metadata import MetricOptions, MissingSet
from loaders.harness.results.metric_rows import LABELS, MEAN, POOLED, UNKNOWN_ROLES, key_of_label, label_of
from loaders.harness.results.results import Results
from loaders.harness.results.scores import MODEL
from loaders.harness.results.sentences import composition_lines, lines_below
from loaders.harness.results.tables import (  # type: ignore[attr-defined]
    OVER,
    Table,
    layout_of,
    layouts,
    tables,
)
from tests.loaders.harness.evaluation.fake_runs import OPEN_SET, fake_manifest, fake_run
from tests.made_manifests import altered
from tests.raising import raises
from wordnet_splits.base.errors import UnknownNameError
from wordnet_splits.base.tabular import PAGE_WIDTH, text_table
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.metrics import METRICS, list_metrics

SETS = [
    ("cifar-40", "id", "test", 80),
    ("cifar-60", "near", "test", 60),
    ("lsun", "far", "test", 40),
    ("svhn", "far", "test", 50),
]
GAMMAS = {"gamma", "gamma_plus", "gamma_minus"}


def named(name: str, sets: Sequence[tuple[str, str, str, int]] = SETS) -> Manifest:
    return fake_manifest(sets, name=name)


def evaluated(manifest: Manifest, detectors: str = "mcp,energy", *, runs: int = 1, **options: Any) -> Results:
    return evaluate_runs(manifest, [fake_run(manifest, seed) for seed in range(runs)], detectors, **options)


def text(made: Sequence[Table]) -> str:
    return "\n".join(" | ".join(row) for table in made for row in (table.columns, *table.cells))


def cell(table: Table, row: str, column: str) -> str:
    (found,) = [r for r in table.cells if r[0] == row]
    return found[table.columns.index(column)]


def value(results: Results, metric: str, group: str, role: str, detector: str = "mcp") -> float:
    return float(np.mean(results.values(metric, group=group, role=role, detector=detector)["value"].tolist()))


def test_every_layout_asks_for_metrics_that_exist() -> None:
    for layout in layouts().values():
        for table in layout["table"]:
            for part in table["columns"]:
                assert part["over"] in OVER
                for metric, factor in part["show"]:
                    assert metric.partition("[")[0] in {*METRICS, *GAMMAS}
                    assert factor in (1, 100, 1000)
        for row in layout.get("published", ()):
            get_spec(row["of"])
            keys = {*row["cells"], *row["pooled_cells"]}
            shown = {m for t in layout["table"] for part in t["columns"] for m, _ in part["show"]}
            assert {key.partition("/")[2] for key in keys} <= shown
            assert all(
                re.fullmatch(r"[\d.]+(±[\d.]+)?", v)
                for v in [*row["cells"].values(), *row["pooled_cells"].values()]
            )


def test_published_cells_are_of_groups_of_the_shipped_benchmarks() -> None:
    for row in [row for layout in layouts().values() for row in layout.get("published", ())]:
        name = {"places-*": "places-inter"}.get(row["benchmarks"][0], row["benchmarks"][0].rstrip("*"))
        if name.startswith("places-facets"):
            continue  # built from the authors' lists
        groups = {g.group for g in load_manifest(name).groups} | {POOLED}
        assert {key.partition("/")[0] for key in row["cells"]} <= groups


@pytest.mark.parametrize(
    ("benchmark", "title"),
    [
        ("unknown-cifar", "Kim"),
        ("unknown-cifar-tinyval", "Kim"),
        ("unknown-imagenet-placesval@local", "Kim"),
        ("osc-p3-dag", "Palechor"),
        ("optimizers-mnist", "Abdelzad"),
        ("openood-cifar10", "OpenOOD"),
        ("places-inter", "Recalcati"),
        ("digits", "AURC"),
    ],
)
def test_a_benchmark_has_the_layout_of_its_paper(benchmark: str, title: str) -> None:
    assert layout_of(benchmark)["title"].startswith(title)


def test_an_unknown_layout_names_the_near_ones() -> None:
    with raises(UnknownNameError, naming="opneood", near="openood"):
        layout_of("digits", "opneood")


def test_kim_prints_percent_and_aurc_in_thousandths() -> None:
    results = evaluated(named("unknown-cifar-near4000"))
    (table,) = tables(results)
    assert cell(table, "mcp", "ACC") == f"{100 * value(results, 'accuracy', POOLED, 'id'):.2f}"
    assert (
        cell(table, "mcp", "AURC+OOD") == f"{1000 * value(results, 'aurc_unknown', POOLED, 'near+far'):.2f}"
    )
    assert cell(table, "mcp", "AURC") == f"{1000 * value(results, 'aurc', POOLED, 'id'):.2f}"
    expected = 100 * value(results, "fpr95_id_positive", "lsun", "far", "energy")
    assert cell(table, "energy", "lsun FPR95 (ID positive)") == f"{expected:.2f}"
    sets = [c.removesuffix(" AUROC") for c in table.columns if c.endswith("AUROC")]
    assert sets == ["cifar-60", "lsun", "svhn"]  # near first, then in the benchmark's order


def test_the_papers_row_stands_below_ours_with_its_pooled_aurc_where_every_set_is_there() -> None:
    (table,) = tables(evaluated(named("unknown-cifar-near4000")))
    assert [row[0] for row in table.cells] == ["mcp", "MCP, table 6", "energy"]
    assert cell(table, "MCP, table 6", "AURC+OOD") == "773.15±12.77"
    assert cell(table, "MCP, table 6", "svhn AUROC") == "74.91±1.30"
    assert table.notes == ("Table 6 is of another draw of 40 classes: compare order and size, not digits.",)


@pytest.mark.parametrize("benchmark", ["unknown-cifar", "unknown-cifar-tinyval"])
def test_the_paper_s_aurc_is_compared_with_the_4000_variant_alone(benchmark: str) -> None:
    made = tables(evaluated(named(benchmark)))
    assert "MCP, table 6" in text(made)
    assert "773.15" not in text(made)


def test_aurc_is_never_beside_the_papers_while_a_set_is_missing() -> None:
    results = evaluated(named("unknown-cifar-near4000"), groups=["cifar-60", "svhn"])
    made = tables(results)
    assert cell(made[0], "MCP, table 6", "AURC+OOD") == "-"
    assert "773.15" not in text(made)
    lines = composition_lines(results)
    assert lines == [
        "AURC+OOD pools cifar-40 80, cifar-60 60, svhn 50: 80 ID and 110 OOD images, 57.9% OOD.",
        "Not chosen (groups=, --group): lsun (far).",
        "So this AURC+OOD is over other images than the benchmark's and is compared with no paper's.",
    ]


def test_a_set_that_is_there_in_part_counts_as_missing() -> None:
    manifest = named("unknown-cifar-near4000")
    groups = [row.model_dump() for row in manifest.groups]
    for row in groups:
        row["expected"] += row["group"] == "svhn"
    results = evaluated(altered(manifest, groups=groups))
    assert "773.15" not in text(tables(results))
    assert "Missing: svhn (far), 50 of 51 images scored." in composition_lines(results)


def test_a_set_that_awaits_its_source_is_named_so() -> None:
    results = evaluated(named("unknown-cifar"))
    awaited = MissingSet(group="lsun", role="far", scored=0, expected=None, status="awaiting lsun")
    about = results.about.model_copy(update={"missing": (awaited,)})
    lines = composition_lines(replace(results, about=about))
    assert "Missing: lsun (far), 0 images scored (awaiting lsun)." in lines


def test_several_runs_give_mean_and_sample_deviation() -> None:
    results = evaluated(named("unknown-cifar"), runs=3)
    (table,) = tables(results)
    runs = 100 * np.array(
        results.values("auroc", group="svhn", role="far", detector="energy")["value"].tolist()
    )
    assert len(runs) == 3
    assert cell(table, "energy", "svhn AUROC") == f"{runs.mean():.2f}±{runs.std(ddof=1):.2f}"
    assert table.rows[1]["svhn/auroc"] == pytest.approx(runs.mean() / 100)


def test_means_over_near_and_over_far_sets_have_their_own_keys() -> None:
    results = evaluated(named("digits"), "energy")
    (row,) = tables(results, "openood")[0].rows
    for role in ("near", "far"):
        (mean,) = results.values("auroc", group=role)["value"]
        assert row[f"{role} (mean)/auroc"] == mean


def test_below_the_table_stand_aurc_at_a_prevalence_and_the_trend_over_nearness() -> None:
    results = evaluated(named("digits"), options=MetricOptions(prevalences=(0.1,)))
    *_, prevalence, trend = lines_below(results)
    expected = 1000 * value(results, "aurc_unknown[prevalence=0.1]", POOLED, "near+far")
    assert prevalence.startswith(f"AURC+OOD x 1000 if 10% were OOD: mcp {expected:.2f}, energy ")
    expected = value(results, "nearness_trend", POOLED, "near+far", "energy")
    assert trend.endswith(f", energy {expected:.4f}.")
    assert "(rank correlation over OOD classes): mcp" in trend


def test_classes_without_a_synset_are_counted_beside_the_trend_that_leaves_them_out() -> None:
    manifest = named("digits")
    means = [
        None if row["class_id"] in ("svhn-0", "svhn-2") else row["mean"]
        for row in manifest.classes.to_pylist()
    ]
    column = manifest.classes.schema.get_field_index("mean")
    classes = manifest.classes.set_column(column, "mean", pa.array(means, pa.float64()))
    results = evaluated(Manifest(manifest.data, classes, dict(manifest.parts)))
    trend = lines_below(results)[-1]
    assert "over OOD classes; not in the hierarchy, left out: 2 of 12 (25 images)): mcp" in trend
    binned = [row["n_ood"] for row in results.by_nearness.to_pylist() if row["detector"] == "mcp"]
    assert sum(binned) == 60 + 40 + 50 - 25


OSC = [
    ("known", "id", "test", 60),
    ("negative", "external", "test", 30),
    ("unknown", "far", "test", 40),
]


def test_palechor_has_a_table_for_each_of_negatives_and_unknowns_with_its_count() -> None:
    results = evaluated(named("osc-p1", OSC), "msp_float32")
    unknown, negative, confidences = tables(results)
    assert unknown.title == "CCR at FPR on unknown (40 images)"
    assert negative.title == "CCR at FPR on negative (30 images)"
    expected = value(results, "ccr_at_fpr_0.1", "negative", "external", "msp_float32")
    assert cell(negative, "msp_float32", "CCR at 1e-1") == f"{expected:.4f}"
    assert cell(negative, "msp_float32", "CCR at 1e-3 (nearest)") == "-"  # of 30 images
    assert confidences.columns == (
        "",
        "gamma+",
        "unknown gamma-",
        "unknown gamma",
        "negative gamma-",
        "negative gamma",
    )
    assert cell(confidences, "model", "gamma+") == f"{value(results, 'gamma_plus', POOLED, 'id', MODEL):.4f}"


def test_abdelzad_prints_variance_over_runs_under_both_conventions() -> None:
    sets = [("mnist", "id", "test", 60), ("omniglot", "far", "test", 40), ("uniform", "far", "test", 30)]
    results = evaluated(named("optimizers-mnist", sets), "msp_float32", runs=3)
    made = tables(results)
    assert [table.title for table in made] == ["omniglot (40 images)", "uniform (30 images)"]
    runs = 100 * np.array(
        results.values("fpr95_ood_positive_interpolated", group="uniform", role="far")["value"].tolist()
    )
    heading = "FPR95 (OOD positive, interpolated)"
    assert cell(made[1], "msp_float32", heading) == f"{runs.mean():.2f} ({runs.var():.2f})"
    ours = 100 * value(results, "fpr95_id_positive", "uniform", "far", "msp_float32")
    assert cell(made[1], "msp_float32", "FPR95 (ID positive)").startswith(f"{ours:.2f} (")


def test_openood_has_means_and_the_full_spectrum_where_there_is_shifted_id() -> None:
    plain = evaluated(named("openood-cifar10"))
    assert len(tables(plain)) == 1
    shifted = evaluated(named("openood-imagenet200", [*SETS, ("imagenet-r", "csid", "test", 40)]))
    standard, full = tables(shifted)
    expected = 100 * np.mean([value(shifted, "auroc", group, "far") for group in ("lsun", "svhn")])
    assert cell(standard, "mcp", "far mean AUROC") == f"{expected:.2f}"
    expected = 100 * value(shifted, "auroc[full-spectrum]", MEAN, "near")
    assert cell(full, "mcp", "near mean AUROC [full-spectrum]") == f"{expected:.2f}"
    assert (
        cell(full, "mcp", "ACC [full-spectrum]")
        == f"{100 * value(shifted, 'accuracy[full-spectrum]', POOLED, 'id'):.2f}"
    )


def test_recalcatis_tables_pool_the_sets_and_rank_correct_against_wrong() -> None:
    sets = [("places", "id", "test", 90), ("imagenet", "far", "test", 60)]
    results = evaluated(named("places-inter", sets), "msp,mls")
    six, seven = tables(results)
    assert cell(six, "msp", "pooled AUROC") == f"{100 * value(results, 'auroc', POOLED, 'far', 'msp'):.2f}"
    assert cell(six, "MSP, table VI", "pooled FPR95 (ID positive)") == "86.85"
    assert cell(six, "MLV, table VI", "pooled det. error (ID positive)") == "42.33"
    for metric, paper in (
        ("fpr95_failure", "76.33"),
        ("detection_error_failure", "40.66"),
        ("auroc_failure", "77.74"),
    ):
        ours = value(results, metric, POOLED, "id", "msp")
        assert cell(seven, "msp", label_of(metric)) == f"{100 * ours:.2f}"
        assert cell(seven, "MSP, table VII", label_of(metric)) == paper
    assert not [row for table in (six, seven) for row in table.cells if {*row[1:]} == {"-"}]
    missing = MissingSet(group="svhn", role="far", scored=0, expected=None, status="awaiting svhn")
    partial = replace(results, about=results.about.model_copy(update={"missing": (missing,)}))
    assert not [row for row in tables(partial)[0].cells if "table VI" in row[0]]


def test_a_layout_can_be_asked_for() -> None:
    results = evaluated(named("digits"))
    assert "near mean AUPR-In (trapezoid)" in tables(results, "openood")[0].columns


def test_json_keys_name_group_and_metric() -> None:
    (table,) = tables(evaluated(named("digits")))
    row = table.as_dict()["rows"][0]
    assert row["detector"] == "mcp"
    assert {f"{group}/auroc" for group, role, _, _ in SETS if role in UNKNOWN_ROLES} <= set(row)


@pytest.mark.parametrize("width", [60, 80])
def test_a_narrow_terminal_gets_every_number_below_the_others(width: int) -> None:
    (table,) = tables(evaluated(named("unknown-cifar"), runs=2))
    parts = table.folded(width)
    assert len(parts) > 1
    assert [c for part in parts for c in part.columns[1:]] == list(table.columns[1:])
    for part in parts:
        assert [row[0] for row in part.cells] == [row[0] for row in table.cells]
        widths = [max(map(len, column)) for column in zip(part.columns, *part.cells, strict=True)]
        assert sum(widths) + 2 * (len(widths) - 1) <= width
    assert table.folded(None) == [table]


def test_long_names_are_wrapped_alike_so_that_numbers_stand_together() -> None:
    model, detector = "optimizers-small/" + "a-network-" * 3, "a-long-detector[" + "x=1," * 6 + "]"
    numbers = tuple(f"{n}.25" for n in range(10, 16))
    table = Table("", ("model", "detector", *"abcdef"), ((model, detector, *numbers),))
    (part,) = table.folded(80)
    lines, left_out = text_table(part.columns, part.cells, right=part.right, width=80)
    assert not left_out
    assert max(map(len, lines)) <= 80
    assert lines[2].split()[2:] == list(numbers)
    shown = [len(dashes) for dashes in lines[1].split()[:2]]
    assert max(shown) - min(shown) <= 1


@pytest.mark.parametrize("width", [60, 80])
def test_the_text_is_as_wide_as_asked_for_and_leaves_no_number_out(width: int) -> None:
    results = evaluated(named("unknown-cifar"), runs=2)
    whole, narrow = str(results), results.table(width=width)
    assert results.table() == results.table(width=PAGE_WIDTH)  # stdout of a test is not a terminal
    assert max(map(len, narrow.splitlines())) <= width < max(map(len, whole.splitlines()))
    for number in re.findall(r"\d+\.\d+", whole):
        assert number in narrow
    assert "near mean AUPR-In (trapezoid)" in results.table("openood")
    with raises(UnknownNameError, near="kim"):
        results.table("kin")


def test_names_from_outside_cannot_steer_a_terminal() -> None:
    results = evaluated(named("unknown-cifar"))
    runs = tuple(
        run.model_copy(update={"name": "x\x1b[31m", "weights": "\x1b[2J"}) for run in results.about.runs
    )
    hostile = replace(results, about=results.about.model_copy(update={"runs": runs}))
    assert "weights \\x1b[2J" in hostile.table()
    assert "\x1b" not in hostile.table() + str(hostile)


def test_no_label_is_of_two_metrics() -> None:
    labels = [label_of(metric) for metric in {*LABELS, *list_metrics()}]
    assert len({label.casefold() for label in labels}) == len(labels)
    for metric in (*LABELS, "auroc[full-spectrum]", "youden"):
        assert key_of_label(label_of(metric)) == key_of_label(metric) == metric


def test_no_column_of_a_table_is_headed_as_another() -> None:
    results = evaluate_runs(OPEN_SET, [fake_run(OPEN_SET)], "msp")
    for layout in layouts():
        for table in tables(results, layout):
            assert len({*table.columns}) == len(table.columns), table.title


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (("AURC+OOD", "pooled", "knn"), ("aurc_unknown", "(pooled)", "knn[k=5]")),
        (("FPR95 (id positive)", "near-a", "deepnn"), ("fpr95_id_positive", "near-a", "knn[k=5]")),
        (("Auroc", "far", "mcp"), ("auroc", "(mean)", "msp")),
    ],
)
def test_values_take_aliases_and_keep_near_and_far_apart(given: Sequence[str], meant: Sequence[str]) -> None:
    results = evaluated(OPEN_SET, "msp,knn[k=5]", runs=2)
    of_alias, (metric, group, detector) = results.values(given[0], group=given[1], detector=given[2]), meant
    role = "far" if given[1] == "far" else None
    rows = results.rows(metric=metric, group=group, detector=detector, role=role)
    assert of_alias.to_dict("records") == [{name: row[name] for name in of_alias} for row in rows]
    assert [*of_alias] == ["model", "detector", "role", "group", "run", "value"]


def test_a_detector_with_several_values_is_not_guessed() -> None:
    with raises(UnknownNameError, where="made", near="knn[k=5]"):
        evaluated(OPEN_SET, "knn[k=5],knn[k=6]").values("auroc", detector="knn")


@pytest.mark.parametrize(("metric", "factor"), [("AUROC", 100), ("aurc_unknown", 1000), ("accuracy", 100)])
def test_a_summary_is_the_table_of_a_metric_by_set(metric: str, factor: float) -> None:
    results = evaluated(OPEN_SET, "msp,energy", runs=2)
    frame, summary = results.values(metric), results.summary(metric)
    means = frame.groupby(["model", "detector", "role", "group"])["value"].mean() * factor
    values = summary.to_pandas().set_index(["model", "detector"]).stack()
    assert len(values) == len(means) == sum(len(row) for row in summary.table.cells) - len(results.detectors)
    for key, mean in means.items():
        assert values[(*key[:2], f"{key[2]} {key[3]}")] == pytest.approx(mean)
