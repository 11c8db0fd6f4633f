"""``unknown-eval``: models through whole benchmarks, from pixels to the table, and every way to go wrong."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pytest
import torch

from loaders.harness.cli.main import app
from loaders.harness.data.arrays import Arrays
from loaders.harness.detectors import parse_detectors
from loaders.harness.evaluation.run_evaluation import evaluate_runs
from loaders.harness.extraction.extractor import BenchmarkImages, Extractor
from loaders.harness.extraction.outputs import Store
from loaders.harness.extraction.shards import ROWS
from loaders.harness.models.loading import load_model
from loaders.harness.results.check import check_results
from loaders.harness.results.metadata import NOT_CHOSEN
from loaders.harness.results.results import Results
from tests.loaders.harness.long_tables import long_scores
from tests.photographs import SHARK, build_photographs, image_file, write_root
from tests.raising import mentions, raises
from wordnet_splits.base.errors import DataError
from wordnet_splits.base.terminal.runner import run
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.metrics import auroc

from ..models.networks import Wrapped, small_network

MODULE = """
import torch
from torch import nn

def build(classes, size, seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Flatten(), nn.Linear(3 * size * size, 16), nn.ReLU(), nn.Linear(16, classes))

def six(): return build(6, 8)
def other(): return build(6, 8, 1)
def seven(): return build(7, 8)
def ten(): return build(10, 8)
def photographs(): return build(2, 32)
def broken():
    network = build(6, 8)
    network[3].weight.data.fill_(float("nan"))
    return network
def sure(data):
    import numpy as np
    return np.asarray(data["logits"]).max(axis=1)
"""


class Called(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out)
        return found


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_roots_of_this_machine: None) -> Iterator[None]:
    """A working folder with a module of networks, which is imported from there."""
    (tmp_path / "tiny_nets.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
    sys.modules.pop("tiny_nets", None)


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Any:
    def called(*arguments: str) -> Called:
        code = run(app, list(arguments), "unknown-eval")
        captured = capsys.readouterr()
        return Called(code, captured.out, captured.err)

    return called


PIXELS = ("--mean", "0", "--std", "1")


def digits(*more: str, model: str = "tiny_nets:six") -> list[str]:
    return [
        "run",
        "--benchmark",
        "digits",
        "--model",
        model,
        *PIXELS,
        "--device",
        "cpu",
        "--out",
        "out",
        *more,
    ]


def test_from_pixels_to_the_table(call: Any) -> None:
    found = call(*digits("--detectors", "preset:openood", "--bootstrap", "20", "--seed-boot", "5"))
    assert found.code == 0, found.err
    assert found.out.splitlines()[1].split()[:3] == ["detector", "ACC", "AURC+OOD"]
    pooled = "AURC+OOD pools digits-0-5 360, digits-6-9 714, gaussian 500, uniform 500: 360 ID and 1,714 OOD"
    assert pooled in found.out
    assert "opengan is left out: it fits on OOD validation images, and there are none" in found.err
    results = Results.read(Path("out"))
    assert results.detectors[:5] == ("openmax[distance=euclidean]", "msp", "tempscale", "odin", "mds")
    assert results.about.options.replicates == 20
    (row,) = results.rows(metric="auroc", group="uniform", detector="mds")
    scores = long_scores(results).to_pandas()
    scores = scores[scores.detector == "mds"].set_index("group").confidence
    assert row["value"] == auroc(scores["digits-0-5"], scores["uniform"])
    assert row["lo"] < row["value"] < row["hi"]
    assert results.about.images_fingerprint == load_manifest("digits").fingerprint
    (network,) = results.about.runs
    assert {len(key) for key in (network.model_key, *network.transforms)} == {64}
    assert results.about.command.startswith("unknown-eval run --benchmark digits --model ")
    assert scores.shape == (360 + 714 + 500 + 500,)
    checked = call("recompute", "--check", "out")
    assert (checked.code, "all recompute" in checked.out) == (0, True)


def test_one_json_object_and_nothing_else_on_stdout(call: Any) -> None:
    found = call(*digits("--detectors", "msp,ensemble", "--json"))
    assert found.json["composition"]["prevalence"] == pytest.approx(1714 / 2074)
    assert "tiny_nets:six: left out, as one run is not an ensemble: ensemble" in found.json["notes"]
    assert [Path(file).name for file in found.json["files"]][:2] == ["scores.parquet", "predictions.parquet"]
    assert found.json["tables"][0]["rows"][0]["detector"] == "msp"
    assert "results in out" in found.err


def save_weights(seed: int) -> str:
    import importlib

    network = importlib.import_module("tiny_nets").build(6, 8, seed)
    torch.save(network.state_dict(), f"seed{seed}.pt")
    return f"seed{seed}.pt"


def test_several_weights_are_several_runs_and_an_ensemble(call: Any) -> None:
    files = [save_weights(seed) for seed in (1, 2, 3)]
    given = [argument for file in files for argument in ("--weights", file)]
    found = call(*digits("--detectors", "mcp,ensemble", "--runs", *given))
    assert found.code == 0, found.err
    assert "±" in found.out
    results = Results.read(Path("out"))
    assert len(results.values("auroc", group="uniform", detector="mcp")["value"].tolist()) == 3
    assert [run.name for run in results.about.runs] == [f"tiny_nets:six {file}" for file in files]
    assert len({run.model_key for run in results.about.runs}) == 3
    assert check_results("out").ok
    again = call(*digits("--detectors", "mcp", "--weights", files[0], "--weights", files[0]))
    assert (again.code, "is given twice" in again.err) == (2, True)


def test_a_background_column_is_dropped_after_softmax(call: Any) -> None:
    assert call(*digits("--detectors", "msp,odin", "--background", "last", model="tiny_nets:seven")).code == 0
    results = Results.read(Path("out"))
    (one,) = results.about.runs
    assert one.class_map is not None
    assert (one.class_map.background, one.class_map.columns, one.class_map.of) == (6, 6, 7)
    assert one.other_columns
    assert max(results.predicted()["prediction"].to_pylist()) < 6


@pytest.mark.parametrize("restrict", ["columns", "full"])
def test_a_wider_model_is_restricted_by_a_mapping(call: Any, restrict: str) -> None:
    Path("columns.json").write_text("[0, 1, 2, 3, 4, 5]")
    given = ["--mapping", "columns.json", "--restrict", restrict]
    assert call(*digits("--detectors", "msp,odin", *given, model="tiny_nets:ten")).code == 0
    results = Results.read(Path("out"))
    assert results.about.runs[0].class_map.restrict == restrict
    predicted = set(results.predicted()["prediction"].to_pylist())
    assert (-1 in predicted) == (restrict == "full")
    assert max(predicted) <= 5


def test_a_users_detector(call: Any) -> None:
    assert call(*digits("--detectors", "tiny_nets:sure,mls")).code == 0
    results = Results.read(Path("out"))
    own, built_in = (
        results.values("auroc", group="uniform", detector=name)["value"].tolist() for name in ("sure", "mls")
    )
    assert own == built_in


@pytest.mark.extensions("loaders.harness.training")
def test_a_trained_model_and_a_folder_of_them(call: Any) -> None:
    training = [
        "--recipe",
        "digits-demo",
        "--epochs",
        "1",
        "--seeds",
        "0-1",
        "--device",
        "cpu",
        "--threads",
        "1",
    ]
    assert call("train", "--benchmark", "digits", "--out", "models", *training).code == 0
    found = call(*digits("--detectors", "msp", "--json", model="trained:models/digits"))
    assert found.json["models"] == ["digits/digits-demo-tiny-cnn-e1"]
    names = [run["name"] for run in found.json["runs"]]
    assert names == [f"digits/digits-demo-tiny-cnn-e1-s{seed}" for seed in (0, 1)]
    one = call(*digits("--detectors", "msp", "--json", "--overwrite", model="trained:models/digits/*-s1"))
    assert [run["name"] for run in one.json["runs"]] == names[1:]
    nothing = call(*digits(model="trained:models"))
    assert (nothing.code, "models: no trained model here" in nothing.err) == (2, True)


@pytest.mark.extensions("loaders.harness.report")
def test_sets_may_be_chosen_and_the_missing_ones_are_named(call: Any) -> None:
    found = call(*digits("--detectors", "msp", "--group", "gaussian"))
    assert found.code == 0
    assert "Missing" not in found.out
    results = Results.read(Path("out"))
    assert [(row.group, row.status) for row in results.about.missing] == [
        ("digits-6-9", NOT_CHOSEN),
        ("uniform", NOT_CHOSEN),
    ]
    assert call("recompute", "--check", "out").code == 0
    page = call("report", "out", "--out", "page.html")
    assert (page.code, "0 of 714" in Path("page.html").read_text()) == (0, False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (digits("--detectors", "mspp"), ("mspp", "msp")),
        (digits("--layout", "kimm"), ("kimm", "kim")),
        (digits("--group", "gausian"), ("gausian", "gaussian")),
        (digits("--prevalence", "1.5"), ("--prevalence", "1.5")),
        (digits("--sweep", "--detectors", "knn"), "digits"),
        (digits(model="tiny_nets:seven"), ("tiny_nets", "7", "6")),
        (digits(model="tiny_nets:sixx"), ("sixx", "six")),
        (digits(model="tiny_nets:broken"), ()),
        (
            digits("--weights", "a", "--model", "tiny_nets:six", "--weights", "b", "--weights", "c"),
            "3",
        ),
        (digits("--model", "tiny_nets:six"), "tiny_nets"),
        (["run", "--benchmark", "digitz", "--model", "tiny_nets:six"], "digitz"),
        (["run", "--benchmark", "digits"], "--model"),
        (["recompute", "--check", "nowhere"], ("nowhere", "about.json")),
    ],
)
def test_every_error_is_one_line_and_exit_2(call: Any, arguments: list[str], message: object) -> None:
    found = call(*arguments)
    assert found.code == 2
    assert found.err.splitlines()[-1].startswith("error: ")
    assert mentions(found.err, message)
    assert "Traceback" not in found.err


def test_errors_are_objects_with_json(call: Any) -> None:
    found = call(*digits("--detectors", "mspp", "--json"))
    assert (found.code, found.json["error"]["near"]) == (2, ["msp", "mls", "mds"])


def photographs(*more: str) -> list[str]:
    fixed = ["--model", "tiny_nets:photographs", "--device", "cpu", "--detectors", "msp", "--out", "out"]
    return ["run", "--benchmark", "build/photographs@local", *fixed, *PIXELS, *more]


@pytest.fixture
def root() -> Path:
    folder = write_root(Path("imagenet"), (32, 32))
    assert build_photographs(folder, Path("build")).name == "photographs@local"
    return folder


def test_a_missing_root_is_named(call: Any, root: Path) -> None:
    found = call(*photographs())
    assert (found.code, "imagenet1k" in found.err, "--root" in found.err) == (2, True, True)


def test_missing_images_are_an_error_unless_they_may_be_left_out(call: Any, root: Path) -> None:
    image_file(root, SHARK, 2).unlink()
    refused = call(*photographs("--root", f"imagenet1k={root}"))
    assert (refused.code, f"{SHARK}_5002" in refused.err) == (2, True)
    found = call(*photographs("--root", f"imagenet1k={root}", "--allow-missing", "--json"))
    assert found.code == 3, found.err
    assert len(found.json["left_out"]) == 1
    assert found.json["left_out"][0].startswith("near/test: 1 images left out: not under ")
    assert found.json["missing"][0]["group"] == "near"
    assert (found.json["missing"][0]["scored"], found.json["missing"][0]["expected"]) == (3, 4)
    assert Results.read(Path("out")).about.left_out == tuple(found.json["left_out"])


def test_a_set_without_one_image_is_left_out_whole(call: Any, root: Path) -> None:
    for number in range(4):
        image_file(root, SHARK, number).unlink()
    found = call(*photographs("--root", f"imagenet1k={root}", "--allow-missing"))
    assert found.code == 3, found.err
    assert "Missing: near (near), 0 of 4 images scored." in found.out
    assert set(Results.read(Path("out")).scores["group"].to_pylist()) == {"known", "noise"}
    nothing = call(*photographs("--allow-missing"))
    assert (nothing.code, "known: there are no ID images" in nothing.err) == (2, True)


def test_changed_results_exit_with_1(call: Any) -> None:
    assert call(*digits("--detectors", "msp")).code == 0
    table = pq.read_table("out/results.parquet")
    values = [v + 0.001 for v in table["value"].to_pylist()]
    column = table.schema.get_field_index("value")
    pq.write_table(table.set_column(column, table.schema.field(column), [values]), "out/results.parquet")
    found = call("recompute", "--check", "out")
    assert found.code == 1
    assert "results: msp, 0, (pooled), id, accuracy: value stored" in found.out
    assert call("recompute", "--check", "out", "--json").json["ok"] is False


def test_detectors_and_presets_are_listed(call: Any) -> None:
    found = call("list", "detectors", "kn*")
    assert found.code == 0
    assert found.out.splitlines()[2].split()[:6] == ["knn,", "deepnn", "features", "ID", "train", "k=50"]
    listed = call("list", "detectors", "--json").json
    assert [row["sweep"] for row in listed["detectors"] if row["name"] == "odin"] == [
        {"T": [1, 10, 100, 1000], "eps": [0.0014, 0.0028]}
    ]
    by_name = {row["name"]: row for row in listed["detectors"]}
    assert by_name["gram"]["fit_on"] == ["train", "val"]
    assert by_name["oodl"]["presets"] == ["all", "recalcati"]
    assert all(row["paper"] for row in listed["detectors"] if row["name"] != "output")
    assert {row["name"] for row in listed["presets"]} >= {"kim", "openood", "abdelzad", "recalcati"}


class Watching(Extractor):
    """Remembers the arrays it gave of each split."""

    given: dict[str, Arrays]

    def read(self, split: str, name: str, needs: frozenset[str]) -> Any:
        found = super().read(split, name, needs)
        self.__dict__.setdefault("given", {})[split] = found.arrays
        return found


def test_no_image_is_forwarded_twice_and_test_labels_are_not_given(tmp_path: Path) -> None:
    network = Wrapped()
    manifest = load_manifest("digits")
    images, store = BenchmarkImages(manifest), Store(tmp_path / "store")
    model = load_model(network, device="cpu")
    extractor = Watching(model, images, store)
    from loaders.harness.extraction.outputs import ModelRun

    watched = ModelRun("m", model.key, extractor)
    evaluate_runs(manifest, [watched], parse_detectors("msp,knn,tempscale,mds"))
    groups = 6
    overhead = groups * 4 * ROWS  # of each group the canary and its check: a few passes of 16 images
    assert 2797 <= network.seen <= 2797 + overhead
    assert set(extractor.given) == {"test", "train", "val"}
    assert "labels" not in extractor.given["test"]
    assert "labels" in extractor.given["train"]
    network.seen = 0
    evaluate_runs(manifest, [Extractor(model, BenchmarkImages(manifest), store).run()], "energy,knn")
    assert network.seen <= overhead


def test_odin_of_a_restricted_model_goes_over_the_benchmarks_columns(tmp_path: Path) -> None:
    """Its gradient is of the softmax that the detector takes, not of the model's ten classes."""
    manifest = load_manifest("digits")
    wide, narrow = small_network(10), small_network(10)
    narrow[6].weight.data = narrow[6].weight.data[:6].clone()
    narrow[6].bias.data = narrow[6].bias.data[:6].clone()
    found = []
    for network, mapping in ((wide, [0, 1, 2, 3, 4, 5]), (narrow, None)):
        model = load_model(network, device="cpu", mapping=mapping)
        run = Extractor(model, BenchmarkImages(manifest), Store(tmp_path / "store")).run()
        results = evaluate_runs(manifest, [run], "odin[T=10,eps=0.05]", groups=["digits-6-9"])
        found.append(long_scores(results)["confidence"].to_numpy())
    assert found[0] == pytest.approx(found[1], rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("mapping", [None, "identity"])
def test_a_model_of_too_many_columns_is_refused_before_an_extraction(
    mapping: str | None, tmp_path: Path
) -> None:
    network = Wrapped(small_network(classes=9))
    model = load_model(network, device="cpu", mapping=mapping)
    images = BenchmarkImages(load_manifest("digits"))
    with raises(DataError, where="Wrapped", naming="9"):
        evaluate_runs(
            load_manifest("digits"), [Extractor(model, images, Store(tmp_path / "store")).run()], "msp"
        )
    assert network.seen <= ROWS
    assert not list(tmp_path.rglob("*.npy"))


def test_models_have_rows_and_a_default_folder_of_their_own(call: Any) -> None:
    given = ["run", "--benchmark", "digits", "--device", "cpu", "--detectors", "msp", "--group", "uniform"]
    given += PIXELS
    two = ["--model", "tiny_nets:six", "--model", "tiny_nets:other"]
    found = call(*given, *two)
    assert found.code == 0, found.err
    assert "results in build/results/digits/tiny_nets-six+tiny_nets-other" in found.err
    assert "±" not in found.out
    assert [line.split()[:2] for line in found.out.splitlines()[3:5]] == [
        ["tiny_nets:six", "msp"],
        ["tiny_nets:other", "msp"],
    ]
    runs = call(*given, *two, "--runs", "--out", "out")
    assert "mean over 2 runs and their spread (tiny_nets:six, tiny_nets:other)" in " ".join(runs.out.split())
    refused = call(*given, "--model", "tiny_nets:six", "--out", "out")
    assert (refused.code, mentions(refused.err, "out")) == (2, True)
    assert call(*given, "--model", "tiny_nets:six", "--out", "out", "--overwrite").code == 0
