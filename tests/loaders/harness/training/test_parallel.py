"""Two processes of torchrun train as one does, and resume to the same bytes."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn

from loaders.harness.cli.main import app
from loaders.harness.models.reproducibility import Ranks
from loaders.harness.training.checkpoint import load_checkpoint
from loaders.harness.training.data import DeviceData, TrainingData
from loaders.harness.training.machine import average_buffers, average_gradients, choose_machine, share_of
from loaders.harness.training.methods import Batch, Method, Network, State, get_method
from loaders.harness.training.methods.interface import Data, Terms, cross_entropy
from loaders.harness.training.recipe import load_recipe
from loaders.harness.training.runs import plan_runs
from loaders.harness.training.trainer import Trainer
from tests.wordnet_splits.command import REPOSITORY
from wordnet_splits.base.progress import Silent
from wordnet_splits.base.terminal.runner import run

RECIPE = """
extends = "digits-demo"
name = "pair"
title = "pair"
batch = 25
schedule = { kind = "constant" }
optimizer.sgd = { rule = "sgd", lr = 0.05 }
"""
NETWORK = """
from torch import nn

def linear(outputs):
    return nn.Sequential(nn.Flatten(), nn.Linear(192, outputs))
"""


def test_shares_cover_a_batch_with_both_kinds_on_every_rank() -> None:
    rows = torch.tensor([3, 1, 7, 2, 20, 21, 22])
    shares, weights = zip(*(share_of(rows, 10, Ranks(rank, 2)) for rank in range(2)), strict=True)
    assert sorted(torch.cat(shares).tolist()) == sorted(rows.tolist())
    assert all((share < 10).any() and (share >= 10).any() for share in shares)
    means = [float(share.double().mean()) for share in shares]
    weighted = [weight * mean for weight, mean in zip(weights, means, strict=True)]
    assert sum(weighted) / 2 == pytest.approx(float(rows.double().mean()))
    share, weight = share_of(torch.tensor([5]), 10, Ranks(1, 2))
    assert (share.tolist(), weight) == ([5], 1.0)


def test_a_parameter_without_gradients_is_left_alone_and_one_rank_s_is_halved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    everywhere, here, there, nowhere = parameters = [nn.Parameter(torch.zeros(2)) for _ in range(4)]
    everywhere.grad, here.grad = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
    on_the_other = iter([[1, 0, 1, 0], [5.0, 6.0], [0.0, 0.0], [7.0, 8.0]])

    def all_reduce(tensor: Tensor) -> None:
        tensor.add_(torch.tensor(next(on_the_other), dtype=tensor.dtype))

    monkeypatch.setattr(dist, "all_reduce", all_reduce)
    average_gradients(parameters, Ranks(0, 2))
    assert [None if p.grad is None else p.grad.tolist() for p in (everywhere, here, there, nowhere)] == [
        [3.0, 4.0],
        [1.5, 2.0],
        [3.5, 4.0],
        None,
    ]


def test_float_buffers_are_averaged_and_counts_are_those_of_rank_0(monkeypatch: pytest.MonkeyPatch) -> None:
    mean, count = torch.tensor([1.0]), torch.tensor(3)
    monkeypatch.setattr(dist, "all_reduce", lambda tensor: tensor.add_(4.0))
    monkeypatch.setattr(dist, "broadcast", lambda tensor, source: tensor.fill_(7))
    average_buffers([mean, count], Ranks(1, 2))
    assert (mean.item(), count.item()) == (2.5, 7)


@dataclass(frozen=True)
class Drawing(Method):
    """Cross-entropy that keeps a random number of each phase."""

    def setup(self, model: Network, data: Data, state: State) -> None:
        state["setup"] = torch.rand(2, generator=state.generator) + torch.rand(2)

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        state["step"] = torch.rand(2, generator=state.generator) + torch.rand(2)
        return {"cross_entropy": cross_entropy(model.logits(batch.images), batch.labels)}

    def after_epoch(self, model: Network, data: Data, state: State) -> None:
        state["after"] = torch.rand(2, generator=state.generator) + torch.rand(2)


def trainer_of(data: TrainingData, method: Method, ranks: Ranks, **changes: Any) -> Trainer:
    recipe = load_recipe("digits-demo").model_copy(update={"batch": 24, **changes})
    (run,) = plan_runs(recipe)
    machine = dataclasses.replace(choose_machine("cpu"), ranks=ranks)
    return Trainer(run, DeviceData.from_data(data, machine.device), machine, method=method)


def test_ranks_draw_the_same_numbers_between_epochs_and_others_within(
    data: TrainingData, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dist, "all_reduce", lambda tensor: None)
    monkeypatch.setattr(dist, "broadcast", lambda tensor, source: None)
    states = []
    for rank in range(2):
        trainer = trainer_of(data, Drawing(), Ranks(rank, 2))
        trainer.train_epoch(0, Silent())
        states.append(trainer.method_state)
    first, second = states
    assert {name: torch.equal(first[name], second[name]) for name in first} == {
        "setup": True,
        "step": False,
        "after": True,
    }


def test_the_moving_average_of_buffers_is_that_of_all_ranks(
    data: TrainingData, monkeypatch: pytest.MonkeyPatch
) -> None:
    averaged: list[int] = []
    monkeypatch.setattr(dist, "all_reduce", lambda tensor: averaged.append(tensor.data_ptr()))
    monkeypatch.setattr(dist, "broadcast", lambda tensor, source: None)
    trainer = trainer_of(data, get_method("softmax"), Ranks(0, 2), ema=0.5, network="resnet20")
    trainer.train_epoch(0, Silent())
    means = {name: value for name, value in trainer.average.items() if name.endswith("running_mean")}
    assert means
    assert {value.data_ptr() for value in means.values()} <= set(averaged)


def test_two_processes_give_the_weights_of_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "pair.toml").write_text(RECIPE)
    (tmp_path / "linear_net.py").write_text(NETWORK)
    monkeypatch.chdir(tmp_path)
    words = ["train", "--benchmark", "digits", "--recipe", "pair.toml", "--network", "linear_net:linear"]
    words += ["--images", "576", "--epochs", "1", "--device", "cpu", "--threads", "1", "--out"]
    assert run(app, [*words, "one"], "unknown-eval") == 0
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    path = os.pathsep.join((str(REPOSITORY), str(tmp_path)))
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*launcher, "-m", "loaders.harness.cli.main", *words, "two"],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    trained = "digits/pair-linear_net-linear-e1-n576-s0"
    one, two = (load_checkpoint(tmp_path / name / trained, trust=True) for name in ("one", "two"))
    assert two.metadata["machine"]["ranks"] == 2
    assert two.metadata["selected"]["loss"] == pytest.approx(one.metadata["selected"]["loss"], rel=1e-4)
    for a, b in zip(one.parameters(), two.parameters(), strict=True):
        assert torch.allclose(a, b, atol=1e-5)
