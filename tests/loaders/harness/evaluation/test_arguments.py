"""Arguments of another kind than those that are meant: taken as they are meant, or refused in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loaders.harness import evaluate_arrays
from loaders.harness.results.metadata import MAX_REPLICATES
from wordnet_splits.base.errors import DataError, SplitsError

torch = pytest.importorskip("torch", reason="needs torch")
from torch import nn  # noqa: E402 - after importorskip

from loaders import evaluate  # noqa: E402 - after importorskip
from loaders.harness import load_model  # noqa: E402 - after importorskip
from loaders.harness.models.loading import open_models  # noqa: E402 - after importorskip
from tests.raising import raises  # noqa: E402 - after importorskip
from wordnet_splits.base.errors import UnknownNameError  # noqa: E402 - after importorskip

MODULE = """
import sys
from torch import nn

def network():
    return nn.Sequential(nn.Flatten(), nn.Linear(192, 6))

def leaving():
    sys.exit()

def leaves_later(x):
    sys.exit(0)
"""
SETS = {
    "id": {"logits": 9 * np.eye(3, dtype="f4"), "labels": [0, 1, 2]},
    "near": {"logits": 2 * np.eye(3, dtype="f4")},
}


@pytest.fixture
def _module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "made_here.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.parametrize(
    ("sets", "options", "where"),
    [
        ("acts.npz", {}, "acts.npz"),
        (Path(__file__), {}, "test_arguments.py"),
        ([SETS], {}, "sets"),
        ({0: SETS["id"]}, {}, "sets"),
        ({}, {}, "sets"),
        ({"id": "acts.npz"}, {}, "id"),
        ({"id": SETS["id"]["logits"]}, {}, "id"),
        ({"id": {**SETS["id"], 3: [1]}}, {}, "id"),
        (SETS, {"head": np.eye(3)}, "head"),
        (SETS, {"bootstrap": MAX_REPLICATES + 1}, "options of the evaluation"),
    ],
)
def test_arrays_of_another_kind_are_refused_in_one_line(
    sets: Any, options: dict[str, Any], where: str
) -> None:
    with raises(SplitsError, where=where) as caught:
        evaluate_arrays(sets, "msp", **options)
    assert "\n" not in caught.value.line()


def test_sets_of_images_that_are_no_mapping_are_refused_alike() -> None:
    with raises(DataError, where="sets"):
        evaluate(nn.Flatten(), sets=[torch.zeros(2, 3, 8, 8)])  # type: ignore[arg-type]


def test_bfloat16_arrays_are_taken_exactly() -> None:
    rng = torch.Generator().manual_seed(0)
    sets = {name: {"logits": torch.randn(30, 4, generator=rng).bfloat16()} for name in ("id", "near")}
    sets["id"]["labels"] = torch.arange(30) % 4
    wide = {name: {key: _wide(array) for key, array in held.items()} for name, held in sets.items()}
    found, due = evaluate_arrays(sets, "msp,mls"), evaluate_arrays(wide, "msp,mls")
    assert found.scores.equals(due.scores)


def _wide(tensor: Any) -> Any:
    return tensor.float().numpy() if tensor.is_floating_point() else tensor.numpy()


def test_images_of_bfloat16_are_read() -> None:
    images, others = torch.rand(2, 12, 3, 8, 8).bfloat16()
    network = nn.Sequential(nn.Flatten(), nn.Linear(192, 6)).bfloat16()
    found = evaluate(network, sets={"id": (images, torch.arange(12) % 6), "near": others}, detectors="msp")
    assert len(found.values("auroc", group="near")["value"].tolist()) == 1


@pytest.mark.usefixtures("_module")
def test_one_file_of_weights_is_one_file(tmp_path: Path) -> None:
    network = nn.Sequential(nn.Flatten(), nn.Linear(192, 6))
    torch.save(network.state_dict(), tmp_path / "w.pth")
    for weights in (str(tmp_path / "w.pth"), tmp_path / "w.pth", [tmp_path / "w.pth"]):
        ((model,),) = open_models(["made_here:network"], weights).values()
        assert (model.module[1].weight == network[1].weight).all()
    spec = "made_here:network"
    weights = str(tmp_path / "w.pth")
    results = evaluate(spec, "digits", "msp", weights=weights, groups=["uniform"], mean=0, std=1)
    assert str(results.about.runs[0].weights) == f"file {tmp_path / 'w.pth'}"
    with raises(SplitsError, naming="absent.pth"):
        evaluate(spec, "digits", "msp", weights="absent.pth")


@pytest.mark.usefixtures("_module")
@pytest.mark.parametrize("spec", ["sys:exit", "made_here:leaving"])
def test_a_model_that_exits_is_an_error(spec: str) -> None:
    with pytest.raises(DataError):
        load_model(spec)


@pytest.mark.usefixtures("_module")
def test_a_forward_pass_that_exits_is_an_error() -> None:
    model = load_model("made_here:leaves_later", model_id="leaving", mean=0, std=1)
    with raises(DataError, where="leaving", naming="SystemExit"):
        evaluate(model, "digits", "msp", groups=["uniform"])


def test_a_detector_that_exits_is_an_error() -> None:
    def leaving(data: Any) -> Any:
        raise SystemExit

    with raises(DataError, where="'leaving' on id"):
        evaluate_arrays(SETS, [leaving])


def test_functions_may_name_what_they_give() -> None:
    def named(x: Any) -> Any:
        return {"features": x.flatten(1), "logits": x.flatten(1)[:, :6] * x.flatten(1)[:, 6:12]}

    def of_other(x: Any) -> Any:
        return {**named(x), "embedding": x.flatten(1)}

    def in_order(x: Any) -> Any:
        return tuple(named(x).values())

    sets = {"id": (torch.rand(30, 3, 4, 4), torch.arange(30) % 6), "near": torch.rand(20, 3, 4, 4)}
    sets["id/train"] = sets["id"]
    found = [
        evaluate(function, sets=sets, detectors="knn[k=3],msp", model_id="f").scores
        for function in (named, in_order)
    ]
    assert found[0].equals(found[1])
    with raises(UnknownNameError, where="f", naming="embedding"):
        evaluate(of_other, sets=sets, detectors="msp", model_id="f")


def test_what_describes_own_sets_is_refused_with_a_benchmark() -> None:
    model = nn.Sequential(nn.Flatten(), nn.Linear(192, 6))
    with raises(DataError, where="evaluate"):
        evaluate(model, "digits", "msp", classes=3)


@pytest.mark.parametrize(
    ("option", "where"),
    [
        ({"std": 0.5}, "normalisation"),
        ({"mean": "0,0", "std": 1}, "mean"),
        ({"mean": 0, "std": [1, 0, 1]}, "std"),
        ({"mean": 0, "std": 1, "transform": "tests:x"}, "--transform tests:x"),
        ({"transform": "resize-9-crop-10"}, "resize-9-crop-10"),
    ],
)
def test_a_normalisation_is_two_numbers_or_two_threes(option: dict[str, Any], where: str) -> None:
    model = nn.Sequential(nn.Flatten(), nn.Linear(192, 6))
    with raises(DataError, where=where):
        evaluate(model, "digits", "msp", groups=["uniform"], **option)


@pytest.mark.parametrize("option", [{"roots": {"dtd": "dtd"}}, {"store": "kept"}, {"allow_missing": True}])
def test_what_belongs_to_a_benchmark_is_refused_with_own_sets(option: dict[str, Any]) -> None:
    images = torch.zeros(4, 3, 8, 8)
    sets = {"id": (images, torch.tensor([0, 1, 2, 3])), "near": images}
    with raises(DataError, where="evaluate", naming=next(iter(option))):
        evaluate(nn.Flatten(), None, "msp", sets=sets, **option)
