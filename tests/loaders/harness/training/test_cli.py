"""The commands, and one real training on the embedded digits, killed and resumed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from loaders.harness import evaluate
from loaders.harness.cli.main import app
from loaders.harness.training.checkpoint import load_checkpoint, load_state
from loaders.harness.training.commands import parse_seeds
from loaders.harness.training.data import load_training_data
from tests.raising import mentions, raises
from wordnet_splits.base.errors import SplitsError
from wordnet_splits.cli.main import run

PROGRAM = "unknown-eval"


def call(*arguments: str) -> int:
    return run(app, list(arguments), PROGRAM)


def train_digits(out: Path, *more: str) -> list[str]:
    fixed = ["--recipe", "digits-demo", "--threads", "1", "--device", "cpu"]
    return ["train", "--benchmark", "digits", *fixed, "--out", str(out), *more]


def test_digits_are_learnt(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(*train_digits(tmp_path, "--seeds", "0-1", "--epochs", "12", "--json")) == 0
    captured = capsys.readouterr()
    found: dict[str, Any] = json.loads(captured.out)
    assert "differs: 12 epochs in place of 40" in captured.err
    assert [row["run"] for row in found["runs"]] == [
        "digits-demo-tiny-cnn-e12-s0",
        "digits-demo-tiny-cnn-e12-s1",
    ]
    assert all(row["val_accuracy"] > 0.9 for row in found["runs"])
    assert found["runs"][0]["differs"] == ["12 epochs in place of 40"]
    module = load_checkpoint(found["runs"][0]["model"])
    val = load_training_data("digits").val
    assert val is not None
    accuracy = (module(val.pixels / 255).argmax(1) == val.labels).double().mean()
    assert float(accuracy) == pytest.approx(found["runs"][0]["val_accuracy"])
    assert call(*train_digits(tmp_path, "--seeds", "0-1", "--epochs", "12")) == 0
    captured = capsys.readouterr()
    assert "digits-demo-tiny-cnn-e12-s1: trained already" in captured.err
    assert "val accuracy" in captured.out


def test_on_some_of_the_images(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(*train_digits(tmp_path, "--images", "120", "--epochs", "1", "--json")) == 0
    captured = capsys.readouterr()
    note = "120 of the ID train images, equally many of each class, by the benchmark's own draw"
    assert f"differs: {note}" in captured.err
    (row,) = json.loads(captured.out)["runs"]
    assert (row["run"], row["images"]) == ("digits-demo-tiny-cnn-e1-n120-s0", 120)
    assert row["differs"] == ["1 epoch in place of 40", note]
    module: Any = load_checkpoint(row["model"])
    assert module.metadata["recipe"]["images"] == 120
    results = evaluate(f"trained:{row['model']}", "digits", "msp", groups=["uniform"])
    assert [run.model for run in results.about.runs] == ["digits/digits-demo-tiny-cnn-e1-n120"]


@pytest.mark.parametrize(
    ("options", "name", "trial"),
    [
        (("--steps", "3", "--batch", "4"), "3x4", {"steps": 3, "batch": 4}),
        (("--steps", "3"), "3x32", {"steps": 3, "batch": None}),
        (("--batch", "64"), "allx64", {"steps": None, "batch": 64}),
    ],
)
def test_a_trial_is_one_epoch_that_says_so(
    options: tuple[str, ...],
    name: str,
    trial: dict[str, int | None],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert call(*train_digits(tmp_path, *options, "--json")) == 0
    (row,) = json.loads(capsys.readouterr().out)["runs"]
    assert (row["run"], row["epochs"]) == (f"digits-demo-tiny-cnn-e1-trial-{name}-s0", 1)
    assert row["differs"][-1].startswith("a trial")
    module: Any = load_checkpoint(row["model"])
    assert module.metadata["recipe"]["trial"] == trial


KILLED = """
import sys, threading
from loaders.harness.cli.main import app
from loaders.harness.training import fitting
from wordnet_splits.cli.main import run

kept = fitting.save_state
def halting(*arguments):
    kept(*arguments)
    print("kept", flush=True)
    threading.Event().wait()
fitting.save_state = halting
sys.exit(run(app, sys.argv[1:], "unknown-eval"))
"""


@pytest.mark.faults
def test_a_killed_training_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    arguments = train_digits(tmp_path / "killed", "--epochs", "6")
    words = [sys.executable, "-c", KILLED, *arguments]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    folder = tmp_path / "killed" / "digits" / "digits-demo-tiny-cnn-e6-s0"
    assert process.stdout is not None
    assert process.stdout.readline() == "kept\n"
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert not (folder / "model.json").exists()
    state = load_state(folder)
    assert state is not None
    assert len(state["history"]) == 1
    assert call(*arguments) == 0
    assert call(*train_digits(tmp_path / "whole", "--epochs", "6")) == 0
    whole = tmp_path / "whole" / "digits" / folder.name
    assert (folder / "model.pt").read_bytes() == (whole / "model.pt").read_bytes()


def test_recipes_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("list", "recipes") == 0
    assert "kim-cifar-short" in capsys.readouterr().out
    assert call("list", "recipes", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert {"abdelzad", "kim-cifar"} <= {r["name"] for r in found["recipes"]}
    assert "resnet20" in {n["name"] for n in found["networks"]}


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--seeds", "4-1"), "4-1"),
        (("--seeds", "a"), "a"),
        (("--optimizers", "adm"), ("adm", "adam")),
        (("--network", "resnet18"), ("resnet18", "8")),
        (("--precision", "half"), "half"),
        (("--root", "digits"), "digits"),
        (("--images", "5"), ("5", "6")),
        (("--images", "700"), ()),
        (("--benchmark", "digit"), ("digit", "digits")),
        (("--log", "tensorbord:x"), "tensorboard"),
        (("--packed", "nowhere"), "nowhere"),
        (("--method", "[]"), ("[]", "--method")),
        (("--network", "none"), "none"),
        (("--start", "nothing"), "--start"),
        (("--start", "nothing.pth"), "nothing.pth"),
        (("--recipe", "csi-linear/short"), "csi-short-plain-cnn-s0"),
        (("--method", "logitnorm[tua=1]"), ("tua", "tau")),
    ],
)
def test_mistakes_are_one_line_and_exit_2(
    tmp_path: Path, more: tuple[str, ...], message: object, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(*train_digits(tmp_path, *more)) == 2
    error = capsys.readouterr().err.splitlines()
    assert mentions(error[-1], message)
    if more[0] not in ("--network", "--start", "--recipe"):  # refused after the recipe is announced
        assert len(error) == 1


def test_seeds() -> None:
    assert parse_seeds("0") == [0]
    assert parse_seeds("0-4") == [0, 1, 2, 3, 4]
    assert parse_seeds("3, 0,5-6,5") == [3, 0, 5, 6]
    with raises(SplitsError, where="--seeds", naming="1000"):
        parse_seeds("0-99999999")
