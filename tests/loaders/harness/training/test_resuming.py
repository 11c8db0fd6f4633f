"""Equal bytes: of equal seeds, of resumed and of finished runs; what a run starts from; refusals."""

from __future__ import annotations

import dataclasses
import importlib
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from filelock import FileLock

from loaders.harness.training import trainer
from loaders.harness.training.checkpoint import load_checkpoint, load_state
from loaders.harness.training.data import DeviceData, TrainingData
from loaders.harness.training.fitting import TrainedRun
from loaders.harness.training.machine import Machine, choose_machine, reproducible
from loaders.harness.training.runs import plan_runs, train_runs
from tests.raising import raises
from wordnet_splits.base.errors import DataError, OutputError
from wordnet_splits.base.progress import Silent

from .toy import CPU, METHODS, Interrupting, recipe, train, weights


def test_the_same_seed_gives_the_same_bytes_whatever_else_is_trained(
    data: TrainingData, tmp_path: Path
) -> None:
    torch.manual_seed(123)
    first = train(data, tmp_path / "a", seeds=(0, 1))
    torch.manual_seed(456)
    second = train(data, tmp_path / "b", seeds=(1, 0))
    assert weights(first[0]) == weights(second[1])
    assert weights(first[1]) == weights(second[0])
    assert weights(first[0]) != weights(first[1])
    assert (first[0].folder / "model.json").read_bytes() == (second[1].folder / "model.json").read_bytes()


def test_the_caller_s_random_numbers_are_left_alone(data: TrainingData, tmp_path: Path) -> None:
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    trained = train(data, tmp_path, epochs=1)
    load_checkpoint(trained[0].folder)
    assert torch.equal(torch.rand(3), expected)
    assert not torch.are_deterministic_algorithms_enabled()


@pytest.mark.parametrize(
    "optimizer", [{"rule": "sgd", "lr": 0.05, "momentum": 0.9}, {"rule": "keras-adamax", "lr": 0.005}]
)
def test_a_run_interrupted_in_mid_epoch_goes_on_to_the_same_bytes(
    data: TrainingData, tmp_path: Path, optimizer: dict[str, Any]
) -> None:
    changes: dict[str, Any] = {"optimizer": {"o": optimizer}, "select": "val-loss"}
    whole = train(data, tmp_path / "whole", **changes)
    planned, said = plan_runs(recipe(**changes)), []
    with pytest.raises(KeyboardInterrupt):
        train_runs(planned, data, tmp_path / "cut", CPU, progress=Interrupting())
    folder = tmp_path / "cut" / "blobs" / "toy-tiny-cnn-s0"
    state = load_state(folder)
    assert state is not None
    assert len(state["history"]) == 2
    assert not (folder / "model.json").exists()
    resumed = train_runs(planned, data, tmp_path / "cut", CPU, notify=said.append)
    assert said == ["toy-tiny-cnn-s0: resumed after epoch 2"]
    assert weights(resumed[0]) == weights(whole[0])
    assert resumed[0].metadata == whole[0].metadata
    assert sorted(f.name for f in folder.iterdir()) == ["model.json", "model.pt"]


def test_a_run_goes_on_elsewhere_and_says_so(
    data: TrainingData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned, said = plan_runs(recipe()), []
    with pytest.raises(KeyboardInterrupt):
        train_runs(planned, data, tmp_path, CPU, progress=Interrupting())
    with raises(OutputError, where="toy-tiny-cnn-s0", naming=("--precision", "float32")):
        train_runs(planned, data, tmp_path, choose_machine("cpu", "bf16"))
    original = Machine.as_dict
    monkeypatch.setattr(Machine, "as_dict", lambda machine: {**original(machine), "device": "NVIDIA H200"})
    (trained,) = train_runs(planned, data, tmp_path, CPU, notify=said.append)
    (message,) = said
    assert message.startswith("toy-tiny-cnn-s0: resumed after epoch 2 on another machine (device cpu before)")
    assert trained.metadata["machine"]["device"] == "NVIDIA H200"
    assert trained.metadata["earlier_machines"] == [{**original(CPU), "last_epoch": 2}]
    assert train_runs(planned, data, tmp_path, CPU)[0].seconds == 0


def test_every_machine_of_a_run_is_named_in_turn(
    data: TrainingData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned, original = plan_runs(recipe()), Machine.as_dict

    def train_on(device: str, epochs: float) -> list[TrainedRun]:
        monkeypatch.setattr(Machine, "as_dict", lambda machine: {**original(machine), "device": device})
        progress = Interrupting()
        progress.left = int(72 * epochs)
        return train_runs(planned, data, tmp_path, CPU, progress=progress)

    for device in ("A", "B"):
        with pytest.raises(KeyboardInterrupt):
            train_on(device, 1.5)
    (trained,) = train_on("A", 9)
    earlier = trained.metadata["earlier_machines"]
    assert [(machine["device"], machine["last_epoch"]) for machine in earlier] == [("A", 1), ("B", 2)]
    assert trained.metadata["machine"]["device"] == "A"


def test_a_machine_that_trains_no_epoch_is_not_named(
    data: TrainingData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = plan_runs(recipe(epochs=1))
    with monkeypatch.context() as patch:
        patch.setattr("loaders.harness.training.fitting.save_checkpoint", interrupt)
        with pytest.raises(KeyboardInterrupt):
            train_runs(planned, data, tmp_path, CPU)
    original = Machine.as_dict
    monkeypatch.setattr(Machine, "as_dict", lambda machine: {**original(machine), "device": "NVIDIA H200"})
    (trained,) = train_runs(planned, data, tmp_path, CPU)
    assert trained.metadata["machine"] == original(CPU)
    assert "earlier_machines" not in trained.metadata


def interrupt(*arguments: object) -> None:
    raise KeyboardInterrupt


def test_a_finished_run_is_kept_and_one_of_other_settings_refused(data: TrainingData, tmp_path: Path) -> None:
    (first,) = train(data, tmp_path, epochs=1)
    before = first.folder.joinpath("model.json").stat().st_mtime_ns
    (again,) = train(data, tmp_path, epochs=1)
    assert again.seconds == 0
    assert again.metadata == first.metadata
    assert first.folder.joinpath("model.json").stat().st_mtime_ns == before
    with raises(OutputError, where="toy-tiny-cnn-s0"):
        train(data, tmp_path, epochs=1, batch=8)
    other = dataclasses.replace(data, benchmark={**data.benchmark, "version": 2})
    with raises(OutputError, where="toy-tiny-cnn-s0"):
        train(other, tmp_path, epochs=1)


def test_a_folder_in_use_is_refused(data: TrainingData, tmp_path: Path) -> None:
    folder = tmp_path / "blobs" / "toy-tiny-cnn-s0"
    folder.mkdir(parents=True)
    with (
        FileLock(str(folder.with_name(f".{folder.name}.lock"))),
        raises(OutputError, where="toy-tiny-cnn-s0"),
    ):
        train(data, tmp_path)


def test_fine_tuning_starts_from_the_run_of_the_same_seed(data: TrainingData, tmp_path: Path) -> None:
    tuned: dict[str, Any] = {
        "name": "tuned",
        "start": "toy",
        "epochs": 1,
        "optimizer": {"sgd": {"rule": "sgd", "lr": 1e-12}},
        "method": METHODS[3],
    }
    with raises(DataError, where="blobs", naming="toy-tiny-cnn-s1"):
        train(data, tmp_path, seeds=(1,), **tuned)
    first = train(data, tmp_path, seeds=(0, 1), epochs=2)
    (second,) = train(data, tmp_path, seeds=(1,), **tuned)
    old, new = (dict(load_checkpoint(t.folder).named_parameters()) for t in (first[1], second))
    assert all(torch.allclose(old[name], new[name], atol=1e-9) for name in old)
    origin = {"run": "toy-tiny-cnn-s1", "sha256": first[1].metadata["weights"]["sha256"]}
    assert second.metadata["start"] == origin
    with raises(DataError, where="blobs", naming="network"):
        train(
            data,
            tmp_path,
            seeds=(1,),
            **{**tuned, "network": "small-cnn", "name": "t"},
            series="toy-tiny-cnn",
        )


def test_the_moving_average_is_kept_and_resumed(data: TrainingData, tmp_path: Path) -> None:
    plain = train(data, tmp_path / "plain", epochs=2)
    (whole,) = train(data, tmp_path / "whole", epochs=2, ema=0.9)
    assert weights(whole) != weights(plain[0])
    (run,) = plan_runs(recipe(epochs=2, ema=0.9))
    with reproducible(CPU.device):
        by_hand = trainer.Trainer(run, DeviceData.from_data(data, CPU.device), CPU)
        average = by_hand.module.state_dict()["head.weight"].double().clone()
        original = by_hand.optimizer.step

        def step() -> None:
            original()
            average.mul_(0.9).add_(by_hand.module.state_dict()["head.weight"].double(), alpha=0.1)

        by_hand.optimizer.step = step  # type: ignore[method-assign, assignment]
        for epoch in range(2):
            by_hand.train_epoch(epoch, Silent())
    kept = load_checkpoint(whole.folder).state_dict()["head.weight"]
    assert torch.allclose(kept.double(), average, atol=1e-6)


METHOD = """
from dataclasses import dataclass
from loaders.harness.training.methods import Method, cross_entropy

@dataclass(frozen=True)
class Scaled(Method):
    def step(self, model, batch, state):
        return {"cross_entropy": cross_entropy(FACTOR * model.logits(batch.images), batch.labels)}
"""


def test_a_run_is_not_kept_where_the_code_of_its_method_changed(
    data: TrainingData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    source = {"method": {"name": "scaled_method:Scaled"}, "epochs": 1}

    def train_with(factor: str) -> TrainedRun:
        monkeypatch.delitem(sys.modules, "scaled_method", raising=False)
        (tmp_path / "scaled_method.py").write_text(f"FACTOR = {factor}\n{METHOD}")
        importlib.invalidate_caches()
        return train(data, tmp_path / "out", **source)[0]

    (code,) = train_with("1").metadata["code"]
    assert re.fullmatch(r"scaled_method:Scaled [0-9a-f]{12}", code)
    assert train_with("1").seconds == 0
    with raises(OutputError, where="toy-tiny-cnn-s0", naming="code"):
        train_with("10")
