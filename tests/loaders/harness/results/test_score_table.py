"""Exported scores: their metrics are those of the entries, on all images and on any subset of them."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
import torch
from sklearn.metrics import roc_auc_score
from torch import nn

from loaders.harness import Results, evaluate, export_scores, recompute
from loaders.harness.results.exported_scores import DESCRIPTION, read_scores
from loaders.harness.results.scores import IMAGES, check_scores, scored_keys, without_runs
from loaders.harness.results.subsets import _listed, _Scores
from tests.imported import Imported
from tests.loaders.harness.altering import alterations, altered, first, reseal
from tests.raising import raises
from wordnet_splits.base.errors import DataError, OutputError, SplitsError, UnknownNameError
from wordnet_splits.base.parquet import read_table, write_table
from wordnet_splits.base.text_formats import CHECKSUM
from wordnet_splits.base.untrusted import sha256_of
from wordnet_splits.metrics import list_metrics

duckdb = Imported("duckdb")
polars = Imported("polars")

COMMITTED = Path(__file__).resolve().parents[4] / "manifests" / "results"


def network(seed: int) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Flatten(), nn.Linear(192, 16), nn.ReLU(), nn.Linear(16, 6))


@pytest.fixture(scope="module")
def entries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Results of a model of two runs with an ensemble, and of another model."""
    folder = tmp_path_factory.mktemp("entries")
    evaluate({"pair": [network(0), network(1)]}, "digits", "msp,react,ensemble").write(folder / "pair")
    evaluate({"one": network(2)}, "digits", "msp,energy").write(folder / "one")
    return {"pair": folder / "pair", "one": folder / "one"}


@pytest.fixture(scope="module")
def scores(entries: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("table") / "scores"
    exported = export_scores(list(entries.values()), folder)
    assert exported.models == 3  # two runs, and the other model
    assert exported.scores == 2074 * (2 * 2 + 1 + 2)
    assert not exported.left_out
    return folder


def metric_values(results: Results) -> dict[tuple[Any, ...], float]:
    rows = results.results.to_pylist()
    names = ("run", "detector", "group", "role", "metric")
    return {tuple(row[name] for name in names): row["value"] for row in rows}


def test_every_metric_equals_that_of_the_entries(entries: dict[str, Path], scores: Path) -> None:
    outcome = recompute(scores, list_metrics())
    assert not outcome.notes
    recomputed = {}
    for row in outcome.rows():
        entry = "one" if row["model"] == "one" else "pair"
        run = 0 if row["model"] == "one" else row["run"]  # numbered anew: 2
        key = (entry, run, row["detector"], row["group"], row["role"], row["metric"])
        assert key not in recomputed
        recomputed[key] = row["value"]
    expected = {
        (entry, *key): value
        for entry, folder in entries.items()
        for key, value in metric_values(Results.read(folder)).items()
        if key[1] != "(model)" and not key[4].startswith("nearness_trend")
    }
    assert recomputed.keys() == expected.keys()
    for key, value in expected.items():
        assert recomputed[key] == value or (np.isnan(value) and np.isnan(recomputed[key])), key


@pytest.mark.skipif(not COMMITTED.exists(), reason="the committed results are not in this copy")
def test_the_metrics_of_a_committed_entry_are_those_of_its_results(tmp_path: Path) -> None:
    entry = COMMITTED / "rungs-cifar100-all"
    export_scores(entry, tmp_path / "scores")
    stored = metric_values(Results.read(entry))
    rows = recompute(tmp_path / "scores", ["auroc", "fpr95_id_positive", "aurc_unknown"]).rows()
    assert len(rows) > 100
    for row in rows:
        key = tuple(row[name] for name in ("run", "detector", "group", "role", "metric"))
        assert row["value"] == pytest.approx(stored[key], rel=1e-12)


def test_confidences_are_those_of_the_results(entries: dict[str, Path], scores: Path) -> None:
    table = read_table(scores / "digits" / "scores.parquet")
    one, pair = (Results.read(entries[name]) for name in ("one", "pair"))
    assert table.select(IMAGES.names).equals(one.scores.select(IMAGES.names))
    names = ["msp/0", "msp/1", "react/0", "react/1", "ensemble/0", "msp/2", "energy/2"]
    assert table.column_names[len(IMAGES) :] == names
    for column in names[:5]:
        assert table[column].equals(pair.scores[column])
    assert table["energy/2"].equals(one.scores["energy/0"])
    description, *_ = read_scores(scores / "digits")
    assert [(n.run, n.model, n.entries) for n in description.networks] == [
        (0, "pair", ["pair"]),
        (1, "pair", ["pair"]),
        (2, "one", ["one"]),
    ]
    assert description.networks[2].model_key == one.about.runs[0].model_key
    (ensemble,) = (facts for facts in description.detectors if facts.detector == "ensemble")
    assert ensemble.runs == (0, 1)


def test_entries_with_other_images_have_empty_cells(tmp_path: Path) -> None:
    for seed, groups in ((0, ["gaussian"]), (1, ["uniform"])):
        evaluate({f"m{seed}": network(seed)}, "digits", "msp", groups=groups).write(tmp_path / str(seed))
    export_scores([tmp_path / "0", tmp_path / "1"], tmp_path / "scores")
    table = read_table(tmp_path / "scores" / "digits" / "scores.parquet")
    is_uniform = pc.equal(table["group"], "uniform")
    assert pc.equal(table["msp/0"].is_null(), is_uniform).to_pylist() == [True] * len(table)
    outcome = recompute(tmp_path / "scores")
    assert len(outcome.notes) == 2
    for seed in (0, 1):
        stored = metric_values(Results.read(tmp_path / str(seed)))
        rows = [row for row in outcome.rows() if row["run"] == seed]
        for row in rows:
            key = (0, *(row[name] for name in ("detector", "group", "role", "metric")))
            assert row["value"] == stored[key]
        assert rows


def test_results_are_recomputed_without_an_export(entries: dict[str, Path]) -> None:
    stored = metric_values(Results.read(entries["pair"]))
    rows = recompute(entries["pair"], "auroc").rows()
    assert rows
    for row in rows:
        assert row["value"] == stored[tuple(row[n] for n in ("run", "detector", "group", "role", "metric"))]


def test_duckdb_and_polars_open_it_in_one_line(scores: Path) -> None:
    file = scores / "digits" / "scores.parquet"
    with duckdb.connect() as database:
        unpivoted = f"UNPIVOT '{file}' ON COLUMNS('.*/[0-9]+') INTO NAME col VALUE confidence"
        rows = database.sql(f"SELECT col, count(*) FROM ({unpivoted}) GROUP BY col").fetchall()
    assert sorted(rows) == sorted(
        (name, 2074) for name in ("msp/0", "msp/1", "react/0", "react/1", "ensemble/0", "msp/2", "energy/2")
    )
    assert polars.scan_parquet(file).select("msp/0").collect().height == 2074


def test_a_subset_gives_what_scikit_learn_gives_on_it(scores: Path, tmp_path: Path) -> None:
    images = read_table(scores / "digits" / "scores.parquet").to_pylist()
    draw = np.random.default_rng(0)
    chosen = [row for row in images if draw.random() < 0.3 and row["group"] != "uniform"]
    path = tmp_path / "list.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, ["label", "group", "image_id"], extrasaction="ignore")
        writer.writeheader()
        writer.writerows(chosen)
    outcome = recompute(scores, "auroc", subset=path, detectors=["energy"])
    assert outcome.notes == ("digits: the subset has no image of uniform",)
    by_group = {row["group"]: row for row in outcome.rows()}
    assert set(by_group) == {"digits-6-9", "gaussian", "(mean)", "(pooled)"}
    for group in ("digits-6-9", "gaussian"):
        rows = [row for row in chosen if row["group"] in ("digits-0-5", group)]
        is_id = [row["role"] == "id" for row in rows]
        expected = roc_auc_score(is_id, [row["energy/2"] for row in rows])
        assert by_group[group]["value"] == pytest.approx(expected, rel=1e-12)
        assert by_group[group]["n_id"] == sum(is_id)
        assert by_group[group]["n_ood"] == len(is_id) - sum(is_id)
    assert {size.group: size.images for size in outcome.sizes}["uniform"] == 0


def listed(path: Path, *rows: str) -> Path:
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("rows", "named"),
    [
        (["image", "1"], "image_id"),
        (["image_id"], ()),
        (["image_id", "nowhere", "elsewhere"], ("2", "elsewhere")),
        (["image_id,source", "1,digits", "2"], ()),
        (["image_id,source", "6,cifar10"], ()),
        (["image_id;source", "6;digits"], ()),
    ],
)
def test_lists_that_say_nothing_or_something_else_are_refused(
    rows: list[str], named: object, scores: Path, tmp_path: Path
) -> None:
    with raises(DataError, where="list.csv", naming=named):
        recompute(scores, "auroc", subset=listed(tmp_path / "list.csv", *rows))


def test_a_subset_without_id_images_is_refused(scores: Path, tmp_path: Path) -> None:
    images = read_table(scores / "digits" / "scores.parquet").to_pylist()
    ood = next(row["image_id"] for row in images if row["role"] == "near")
    with raises(DataError, where="subset"):
        recompute(scores, "auroc", subset=listed(tmp_path / "list.csv", "image_id", ood))
    with raises(DataError, where="list.txt"):
        recompute(scores, "auroc", subset=listed(tmp_path / "list.txt", ood))
    with raises(DataError, where="nowhere.csv"):
        recompute(scores, "auroc", subset=tmp_path / "nowhere.csv")


def test_an_id_of_two_sources_has_to_be_told_apart() -> None:
    rows = [("a", "1", "x", "x"), ("b", "1", "x", "y"), ("a", "2", "x", "x")]
    columns = [*zip(*((*row, "id", -1) for row in rows), strict=True)]
    images = pa.table(list(map(list, columns)), names=IMAGES.names).cast(IMAGES)
    tables = [_Scores("digits", images, pa.table({}), {})]
    with pytest.raises(DataError) as refused:
        _listed(pa.table({"image_id": ["1"]}), tables, where="list")
    assert refused.value.where == "list"
    for subset, expected in (
        ({"image_id": ["2"]}, [False, False, True]),
        ({"source": ["b"], "image_id": ["1"]}, [False, True, False]),
    ):
        (listed,) = _listed(pa.table(subset), tables, where="list")
        assert listed.tolist() == expected


def test_unknown_names_are_refused(scores: Path, tmp_path: Path) -> None:
    with raises(UnknownNameError, naming="aurok"):
        recompute(scores, "aurok")
    with raises(DataError, where="scores", naming="ece"):
        recompute(scores, ["auroc", "ece"])
    with raises(UnknownNameError, naming="mps"):
        recompute(scores, "auroc", detectors=["mps"])
    with pytest.raises(DataError) as refused:
        recompute(tmp_path, "auroc")
    assert refused.value.where == str(tmp_path)


def test_an_altered_file_is_refused(entries: dict[str, Path], tmp_path: Path) -> None:
    export_scores(entries["one"], tmp_path / "scores")
    for path in (tmp_path / "scores").rglob("*.parquet"):
        whole = path.read_bytes()
        path.write_bytes(whole[:-9] + b"x" + whole[-8:])
        with pytest.raises(DataError) as refused:
            recompute(tmp_path / "scores", "auroc")
        assert refused.value.where == str(path)
        path.write_bytes(whole)
    description = tmp_path / "scores" / "digits" / DESCRIPTION
    description.write_text("{}")
    with pytest.raises(DataError) as refused:
        recompute(tmp_path / "scores", "auroc")
    assert refused.value.where == str(description)


def test_a_folder_is_replaced_only_if_asked_for_and_bytes_are_equal(
    entries: dict[str, Path], tmp_path: Path
) -> None:
    out = tmp_path / "scores"
    export_scores(list(entries.values()), out)
    before = {path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()}
    with raises(OutputError, where="scores"):
        export_scores(entries["one"], out)
    export_scores(list(entries.values()), out, overwrite=True)
    assert before == {path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()}
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("")
    with raises(OutputError, where="mine", naming="notes.txt"):
        export_scores(entries["one"], tmp_path / "mine", overwrite=True)


def test_scores_of_one_detector_and_network_twice_are_refused(
    entries: dict[str, Path], tmp_path: Path
) -> None:
    again = tmp_path / "again"
    Results.read(entries["one"]).write(again)
    with raises(DataError, naming="msp"):
        export_scores([entries["one"], again], tmp_path / "scores")
    assert not (tmp_path / "scores").exists()


def test_a_network_with_two_maps_of_its_columns_is_two(tmp_path: Path) -> None:
    for name, columns, detector in (("a", [0, 1, 2, 3, 4, 5], "msp"), ("b", [1, 0, 2, 3, 4, 5], "energy")):
        evaluate(network(0), "digits", detector, mapping=columns).write(tmp_path / name)
    exported = export_scores([tmp_path / "a", tmp_path / "b"], tmp_path / "scores")
    assert exported.models == 2
    values = [row["value"] for row in recompute(tmp_path / "scores", "aurc").rows()]
    assert values == [row["value"] for name in "ab" for row in recompute(tmp_path / name, "aurc").rows()]


def test_an_ensemble_is_exported_without_a_run_that_has_no_scores(
    entries: dict[str, Path], tmp_path: Path
) -> None:
    pair = Results.read(entries["pair"])
    scores, predictions = without_runs(pair, [1])
    about = pair.about.model_copy(update={"unscored_runs": (1,)})
    replace(pair, scores=scores, predictions=predictions, about=about).write(tmp_path / "pair")
    exported = export_scores(tmp_path / "pair", tmp_path / "scores")
    assert (exported.models, exported.detectors, len(exported.left_out)) == (1, 3, 1)
    description, scores, _ = read_scores(tmp_path / "scores" / "digits")
    assert scores.column_names[len(IMAGES) :] == ["msp/0", "react/0", "ensemble/0"]
    assert {facts.runs for facts in description.detectors} == {(0,)}


@pytest.mark.skipif(not COMMITTED.exists(), reason="the committed results are not in this copy")
def test_an_entry_without_scores_is_said(entries: dict[str, Path], tmp_path: Path) -> None:
    without = COMMITTED / "optimizers-fashion-small"
    with raises(DataError, where="optimizers-fashion-small", naming="scores"):
        export_scores(without, tmp_path / "scores")
    exported = export_scores([without, entries["one"]], tmp_path / "scores")
    assert "the entry has no scores of runs 0, 1" in exported.left_out[0]
    assert exported.benchmarks == ("digits",)


def test_scores_of_sets_given_in_python_are_exported(tmp_path: Path) -> None:
    torch.manual_seed(0)
    sets = {role: (torch.rand(8, 3, 8, 8), torch.arange(8) % 2) for role in ("id", "near")}
    evaluate(network(0), sets=sets, classes=6, detectors="msp").write(tmp_path / "own")
    export_scores(tmp_path / "own", tmp_path / "scores")
    rows = recompute(tmp_path / "scores", "auroc").rows()
    stored = metric_values(Results.read(tmp_path / "own"))
    for row in rows:
        assert row["value"] == stored[tuple(row[n] for n in ("run", "detector", "group", "role", "metric"))]
    assert rows


def test_names_and_lists_of_other_types(scores: Path) -> None:
    labels = ["msp", "energy"]
    assert recompute(scores, detectors="msp, energy").table.equals(recompute(scores, detectors=labels).table)
    for subset in (["1"], 5, pa.Table.from_arrays([pa.array(["6"])] * 2, names=["image_id"] * 2)):
        with pytest.raises(DataError) as error:
            recompute(scores, subset=subset)  # type: ignore[arg-type]
        assert error.value.where == "subset"
    for folder, metrics, where in ((5, "auroc", "scores"), (scores, None, "metrics"), (scores, 5, "metrics")):
        with pytest.raises(DataError) as error:
            recompute(folder, metrics)  # type: ignore[arg-type]
        assert error.value.where == where
    for arguments in ({"metrics": [5]}, {"metrics": [["auroc"]]}, {"detectors": [5]}):
        with pytest.raises(UnknownNameError):
            recompute(scores, **arguments)  # type: ignore[arg-type]


MALFORMED: dict[str, Callable[[pa.Table], pa.Table]] = {
    "NaN": first("msp/0", float("nan")),
    "infinity": first("msp/0", float("inf")),
    "no image id": first("image_id", None),
    "no group": first("group", None),
    "no role": first("role", None),
    "a set of two roles": first("role", "far"),
    "a set of two sources": first("source", "cifar10"),
    "an image twice": lambda table: table.take([1, *range(1, len(table))]),
    "a detector less": lambda table: table.drop_columns(["msp/0"]),
    "a detector more": lambda table: table.append_column("mls/0", table["msp/0"]),
    "another run": lambda table: table.rename_columns([*table.column_names[:-1], "ensemble/9"]),
    "no run": lambda table: table.rename_columns([*table.column_names[:-1], "ensemble/x"]),
    "float32": lambda table: table.set_column(6, "msp/0", table["msp/0"].cast(pa.float32())),
    "texts": lambda table: table.set_column(6, "msp/0", table["msp/0"].cast("string")),
}
OTHER_PREDICTIONS: dict[str, Callable[[pa.Table], pa.Table]] = {
    "fewer rows": lambda table: table.slice(1),
    "no rows": lambda table: table.slice(0, 0),
    "a column less": lambda table: table.drop_columns(["prediction/(model)/0"]),
    "predictions of one run": lambda table: table.select(table.column_names[:6]),
}


@pytest.mark.parametrize("name", [*MALFORMED, "no confidence"])
def test_scores_of_another_form_are_refused(name: str, entries: dict[str, Path]) -> None:
    held = Results.read(entries["pair"])
    keys = scored_keys(held.scores)
    change = MALFORMED.get(name, first("msp/0", None))
    for complete in (True, False) if name in MALFORMED else (True,):  # exports may lack a confidence
        with raises(DataError, where="scores"):
            check_scores(change(held.scores), held.predictions, keys, [0, 1], complete=complete)


@pytest.mark.parametrize("name", OTHER_PREDICTIONS)
def test_predictions_of_another_form_are_refused(name: str, entries: dict[str, Path]) -> None:
    held = Results.read(entries["pair"])
    other = OTHER_PREDICTIONS[name](held.predictions)
    with raises(DataError, where="predictions"):
        check_scores(held.scores, other, scored_keys(held.scores), [0, 1])


SCORES, PREDICTIONS = "scores.parquet", "predictions.parquet"


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("table")
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(192, 6))
    evaluate({"one": model}, "digits", "msp,mls", groups=["uniform"]).write(folder / "one")
    export_scores(folder / "one", folder / "scores")
    return folder / "scores"


@pytest.fixture
def table(exported: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(exported, tmp_path / "scores")) / "digits"


def rewrite(folder: Path, file: str, change: Callable[[pa.Table], pa.Table]) -> None:
    write_table(change(read_table(folder / file)), folder / file)
    digest = sha256_of(folder / file, largest=1 << 30)
    reseal(folder / DESCRIPTION, lambda content: content["files"].update({file: digest}))


REFUSED: dict[str, tuple[str, Callable[[pa.Table], pa.Table]]] = {
    "infinity": (SCORES, first("msp/0", float("inf"))),
    "no predictions": (PREDICTIONS, lambda table: table.slice(0, 0)),
}
"""Two of `MALFORMED` and `OTHER_PREDICTIONS`, read from a folder."""
ODD = {
    "no confidence of an image": (SCORES, first("msp/0", None)),
    "roles that are none": (SCORES, lambda table: table.set_column(4, "role", table["group"])),
    "a prediction beyond": (PREDICTIONS, first("prediction/(model)/0", 2**31 - 1)),
    "no prediction": (PREDICTIONS, first("prediction/(model)/0", None)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_table_of_another_form_is_refused(name: str, table: Path) -> None:
    file, change = REFUSED[name]
    rewrite(table, file, change)
    with pytest.raises(DataError) as refused:
        recompute(table.parent)
    assert Path(str(refused.value.where)).parent == table


@pytest.mark.parametrize("name", ODD)
def test_odd_values_end_in_a_line_or_rows(name: str, table: Path) -> None:
    rewrite(table, *ODD[name])
    ends_well(table.parent)


def ends_well(scores: Path) -> None:
    line = ""
    try:
        recompute(scores, ["auroc", "accuracy"]).rows()
    except SplitsError as error:
        line = str(error)
    assert "\n" not in line


@pytest.mark.fuzz
def test_every_value_of_a_description_that_is_altered_ends_in_a_line_or_rows(table: Path) -> None:
    whole = (table / DESCRIPTION).read_bytes()
    content = json.loads(whole)
    content.pop(CHECKSUM)
    for _, path, new in alterations(content):
        other = altered(content, path, new)

        def change(document: dict[str, Any], other: dict[str, Any] = other) -> None:
            document.clear()
            document.update(other)

        reseal(table / DESCRIPTION, change)
        ends_well(table.parent)
        (table / DESCRIPTION).write_bytes(whole)
