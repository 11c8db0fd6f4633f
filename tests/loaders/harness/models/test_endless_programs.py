"""Programs whose loop does not end are refused at the deadline; those whose loop ends are computed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from loaders.harness import load_model
from loaders.harness.models.sources import first_batch
from loaders.harness.models.trial import Outcome
from tests.imported import Imported
from wordnet_splits.base.errors import DataError

onnx = Imported("onnx")
X = torch.rand(3, 3, 4, 4, generator=torch.Generator().manual_seed(0))
SECONDS = 1.0


class Loops(nn.Module):
    """Logits after some rounds, without end where the images are positive."""

    def __init__(self, endless: bool) -> None:
        super().__init__()
        self.fc = nn.Linear(48, 5)
        self.endless = endless

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rounds = 0
        while rounds < 3 or (self.endless and bool(x.sum() > 0)):
            rounds += 1
        return self.fc(x.flatten(1)) * rounds


class Loading(nn.Module):
    """A loop without end that runs as the program is loaded."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(48, 5)

    @torch.jit.export
    def __getstate__(self) -> tuple[int, bool]:
        return 1, self.training

    @torch.jit.export
    def __setstate__(self, state: tuple[int, bool]) -> None:
        self.training = state[1]
        rounds = state[0]
        while rounds > 0:
            rounds = 1 + rounds % 7

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.flatten(1)[:, :5]


def scripted(module: nn.Module, path: Path) -> Path:
    torch.manual_seed(0)
    torch.jit.save(torch.jit.script(module.eval()), str(path))
    return path


def looped(path: Path, rounds: int, *, endless_from: float | None = None) -> Path:
    """Write an ONNX model whose Loop adds the images to themselves so many times.

    ``endless_from``: only while the greatest pixel is above it.
    """
    helper, kind = onnx.helper, onnx.TensorProto
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["first"], ["on"]),
            helper.make_node("Add", ["sum", "images"], ["more"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("round", kind.INT64, []),
            helper.make_tensor_value_info("go", kind.BOOL, []),
            helper.make_tensor_value_info("sum", kind.FLOAT, [None, 3, 4, 4]),
        ],
        [
            helper.make_tensor_value_info("on", kind.BOOL, []),
            helper.make_tensor_value_info("more", kind.FLOAT, [None, 3, 4, 4]),
        ],
    )
    nodes = [
        helper.make_node("ReduceMax", ["images"], ["greatest"], keepdims=0),
        helper.make_node("Greater", ["greatest", "bound"], ["first"]),
        helper.make_node("Loop", ["rounds", "first", "images"], ["summed"], body=body),
        helper.make_node("Flatten", ["summed"], ["logits"]),
    ]
    graph = helper.make_graph(
        nodes,
        "looped",
        [helper.make_tensor_value_info("images", kind.FLOAT, [None, 3, 4, 4])],
        [helper.make_tensor_value_info("logits", kind.FLOAT, [None, 48])],
        [
            helper.make_tensor("rounds", kind.INT64, [], [rounds]),
            helper.make_tensor("bound", kind.FLOAT, [], [-1e9 if endless_from is None else endless_from]),
        ],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(path))
    return path


ENDLESS: dict[str, Callable[[Path], Path]] = {
    "onnx": lambda folder: looped(folder / "net.onnx", 2**62),
    "torchscript": lambda folder: scripted(Loops(endless=True), folder / "net.ts"),
    "torchscript as it is loaded": lambda folder: scripted(Loading(), folder / "net.ts"),
}


@pytest.mark.parametrize("write", ENDLESS.values(), ids=ENDLESS.keys())
def test_a_loop_without_end_is_refused_at_the_deadline(write: Callable[[Path], Path], tmp_path: Path) -> None:
    path = write(tmp_path)
    with pytest.raises(DataError) as refused:
        load_model(path, device="cpu", trust_model=True, deadline=SECONDS).forward(X)
    assert str(refused.value.where).endswith(path.name)


def test_a_refused_batch_is_refused_again_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = load_model(looped(tmp_path / "net.onnx", 2**62), device="cpu")
    tried: list[str] = []

    def time_out(kind: str, *_: Any, **__: Any) -> Outcome:
        tried.append(kind)
        return Outcome.TIMED_OUT

    monkeypatch.setattr(first_batch, "try_program", time_out)
    for attempt in (model.prepare, model.forward, model.forward):
        with pytest.raises(DataError):
            attempt(X)
    assert tried == ["onnx"]


LATER = """
import os, signal, sys, threading, torch
from loaders.harness import load_model
from wordnet_splits.base.errors import DataError

deadline, interrupt = float(sys.argv[2]), sys.argv[3] == "interrupt"
model = load_model(sys.argv[1], device="cpu", trust_model=True, deadline=deadline)
images = torch.ones(3, 3, 4, 4)
model.forward(-images)
if interrupt:
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    model.forward(images)
except DataError as error:
    sys.exit(error.exit_code)
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.mark.parametrize(
    ("seconds", "act", "code"), [(SECONDS, "wait", DataError.exit_code), (600.0, "interrupt", 130)]
)
@pytest.mark.parametrize("form", ["onnx", "torchscript"])
def test_a_later_batch_ends_at_the_deadline_or_by_an_interrupt(
    form: str, seconds: float, act: str, code: int, tmp_path: Path
) -> None:
    write = {
        "onnx": lambda: looped(tmp_path / "net.onnx", 2**62, endless_from=0.0),
        "torchscript": lambda: scripted(Loops(endless=True), tmp_path / "net.ts"),
    }
    command = [sys.executable, "-c", LATER, str(write[form]()), str(seconds), act]
    assert subprocess.run(command, timeout=60, check=False).returncode == code


@pytest.mark.fuzz
def test_a_loop_that_ends_is_computed(tmp_path: Path) -> None:
    summed = load_model(looped(tmp_path / "net.onnx", 2), device="cpu")
    np.testing.assert_allclose(summed.forward(X)[1], 3 * X.flatten(1), rtol=1e-6)
    module = Loops(endless=False)
    rounds = load_model(scripted(module, tmp_path / "net.ts"), device="cpu", trust_model=True)
    torch.testing.assert_close(rounds.forward(X)[1], module(X))


def test_a_program_without_loops_needs_no_other_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> int:
        raise AssertionError("another process")

    monkeypatch.setattr(first_batch, "try_program", refuse)
    module = nn.Sequential(nn.Flatten(), nn.Linear(48, 5))
    path = scripted(module, tmp_path / "net.ts")
    torch.testing.assert_close(load_model(path, device="cpu", trust_model=True).forward(X)[1], module(X))
    torch.export.save(torch.export.export(module, (X,)), tmp_path / "net.pt2")
    load_model(tmp_path / "net.pt2", device="cpu", trust_model=True).forward(X)


@pytest.mark.parametrize("deadline", [0, -1, float("nan"), float("inf"), "60", None, True])
def test_a_deadline_is_a_number_of_seconds(deadline: Any, tmp_path: Path) -> None:
    with pytest.raises(DataError) as refused:
        load_model(nn.Linear(1, 1), deadline=deadline)
    assert refused.value.where == "deadline"
