"""The interface of training methods: heads, state, parts, parameters, evaluation; killed and resumed."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from loaders.harness import evaluate, train_recipe
from loaders.harness.training import trainer as trainer_module
from loaders.harness.training.checkpoint import load_checkpoint
from loaders.harness.training.data import DeviceData, TrainingData
from loaders.harness.training.fitting import TrainedRun
from loaders.harness.training.machine import Machine, choose_machine, reproducible
from loaders.harness.training.methods import (
    Batch,
    Method,
    Network,
    Part,
    State,
    Term,
    declare,
    list_methods,
)
from loaders.harness.training.methods.classification import Softmax
from loaders.harness.training.methods.interface import Terms
from loaders.harness.training.runs import plan_runs, train_runs
from loaders.harness.training.steps import Cost, copied, derive_seed, epoch_batches
from loaders.harness.training.trainer import Trainer
from tests.raising import raises
from wordnet_splits.base import untrusted
from wordnet_splits.base.errors import DataError, UnsafeDataError
from wordnet_splits.base.progress import Silent

from .stand_ins import recipe_of, small_data, spec_of

CPU = choose_machine("cpu")


def train(method: str, out: Path, data: TrainingData | None = None, **arguments: Any) -> TrainedRun:
    data = data or small_data()
    (run,) = train_runs(plan_runs(recipe_of(method)), data, out, CPU, **arguments)
    return run


def reference_loss(name: str, logits: Tensor, labels: Tensor) -> Tensor:
    """The losses as one line of torch each, reduced as their authors reduce them."""
    known = labels >= 0
    if name == "softmax":
        return functional.cross_entropy(logits, labels)
    uniform = -functional.log_softmax(logits[~known], 1).mean(1)
    return functional.cross_entropy(logits[known], labels[known]) + 0.5 * uniform.mean()


@pytest.mark.parametrize("name", ["softmax", "outlier-exposure"])
def test_an_epoch_gives_the_bytes_of_a_plain_loop(name: str) -> None:
    data, recipe = small_data(), recipe_of(name)
    beside = name == "outlier-exposure"
    with reproducible(CPU.device):
        (run,) = plan_runs(recipe)
        trainer = Trainer(run, DeviceData.from_data(data, CPU.device), CPU)
        plain = Trainer(run, DeviceData.from_data(data, CPU.device), CPU).module
        trainer.train_epoch(0, Silent().task("", 1).__enter__())
        optimizer = torch.optim.Adam(plain.parameters(), lr=0.003)
        torch.manual_seed(derive_seed(0, "dropout", 0))
        generator = torch.Generator().manual_seed(derive_seed(0, "batches", 0))
        plain.train()
        rows = epoch_batches(42, 18, "beside" if beside else "none", 16, 1, generator)
        pool = DeviceData.from_data(data, CPU.device).pool
        for step, batch in enumerate(rows):
            optimizer.param_groups[0]["lr"] = 0.003 * recipe.schedule.factor(step, 3, 3)
            images = data.normalise(pool.pixels[batch]).contiguous(memory_format=torch.channels_last)
            loss = reference_loss(name, plain(images), pool.labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    expected = dict(plain.named_parameters())
    assert all(torch.equal(value, expected[key]) for key, value in trainer.module.named_parameters())


class Stop(Exception):
    """Ends a training after its second epoch."""


@pytest.mark.sampled("faults", one_in=4)
@pytest.mark.parametrize("name", list_methods())
def test_killed_and_resumed_gives_the_same_bytes(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = spec_of(name, tmp_path)
    whole = train(name, tmp_path / "whole")
    original = Trainer.train_epoch

    def stopping(self: Trainer, epoch: int, task: Any) -> dict[str, Any]:
        if epoch == 2:
            raise Stop
        return original(self, epoch, task)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "train_epoch", stopping)
        with pytest.raises(Stop):
            train(name, tmp_path / "cut")
    said: list[str] = []
    resumed = train(name, tmp_path / "cut", notify=said.append)
    assert "toy-tiny-cnn-s0: resumed after epoch 2" in said
    for file in ("model.pt", "model.json"):
        assert (resumed.folder / file).read_bytes() == (whole.folder / file).read_bytes()


@pytest.mark.parametrize("name", list_methods())
def test_a_checkpoint_evaluates_as_the_trained_network(name: str, tmp_path: Path) -> None:
    spec = spec_of(name, tmp_path)
    network = load_checkpoint(train(spec, tmp_path / "models").folder)
    trainer = Trainer(plan_runs(recipe_of(spec))[0], DeviceData.from_data(small_data(), CPU.device), CPU)
    trainer.module.load_state_dict(network.state_dict())
    images = torch.randn(6, 3, 8, 8, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        torch.testing.assert_close(network(images), trainer.module.eval()(images))
        if network.trained_by is not None and network.trained_by.method.outputs:
            trained = network.trained_by
            outputs = trained.method.confidences(trained.model, images)
            expected = trainer.method.confidences(trainer.model, images)
            assert set(outputs) == set(expected) == set(trained.method.outputs)
            for output, values in outputs.items():
                torch.testing.assert_close(values, expected[output])


class Overridden(Softmax):
    """A step that nobody saw replayed."""

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        return super().step(model, batch, state)


@pytest.mark.parametrize(
    ("changes", "precision", "replays"),
    [
        ({}, "float32", True),
        ({}, "bf16", False),
        ({"accumulate": 2}, "float32", False),
        ({"network": f"{__name__}:small_network"}, "float32", False),
    ],
)
def test_graphs_are_of_networks_and_steps_that_were_compared(
    changes: dict[str, Any], precision: Any, replays: bool
) -> None:
    (run,) = plan_runs(recipe_of("softmax", **changes))
    trainer = Trainer(run, DeviceData.from_data(small_data(), CPU.device), CPU)
    assert not trainer.replays
    trainer.machine = Machine(torch.device("cuda"), precision)
    assert trainer.replays == replays
    trainer.method = Overridden()
    assert not trainer.replays


def small_network(outputs: int) -> nn.Module:
    """A network that is not ours."""
    return nn.Sequential(nn.Flatten(), nn.Linear(192, outputs))


def test_csi_linear_changes_its_heads_alone() -> None:
    run = plan_runs(recipe_of("csi-linear", network="resnet20"))[0]
    trainer = Trainer(run, DeviceData.from_data(small_data(), CPU.device), CPU)
    before = copied(trainer.module.state_dict())
    trainer.train_epoch(0, Silent())
    changed = {name for name, value in trainer.module.state_dict().items() if (value != before[name]).any()}
    assert changed == {
        f"{head}.{name}" for head in ("fc", "method_heads.joint") for name in ("weight", "bias")
    }


@pytest.mark.parametrize(
    ("method", "forward", "backward"),
    [("softmax", 1, 1), ("rotpred", 4, 4), ("csi-linear", 4, 0), ("npos", 2, 2)],
)
def test_images_are_counted_in_steps_alone(
    method: str, forward: float, backward: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trainer_module, "TIMED_STEPS", 3)
    data = small_data()
    trainer = Trainer(
        plan_runs(recipe_of(method))[0],
        DeviceData.from_data(dataclasses.replace(data, val=data.train), CPU.device),
        CPU,
    )
    costs: list[Cost] = []
    trainer.announce = costs.append
    for epoch in range(2):  # validation and the end of an epoch come between the three steps of an epoch
        trainer.train_epoch(epoch, Silent())
        trainer.validate()
    assert [(cost.forward, cost.backward) for cost in costs] == [(forward, backward)]


def test_parts_that_did_not_begin_are_announced(tmp_path: Path) -> None:
    said: list[str] = []
    train("mcd", tmp_path / "late", notify=said.append)  # from 0.9 of 3 epochs on
    assert said == ["toy-tiny-cnn-s0: the part discrepancy of the loss did not begin in 3 epochs"]
    train("mcd[start=0]", tmp_path / "soon", notify=said.append)
    train("softmax", tmp_path / "plain", notify=said.append)
    assert len(said) == 1


def test_a_method_without_a_backbone_to_train_asks_for_a_start(tmp_path: Path) -> None:
    said: list[str] = []
    train("csi-linear", tmp_path, notify=said.append)
    assert said == ["toy-tiny-cnn-s0: csi-linear trains heads alone, and no --start is given"]


def test_heads_are_saved_and_the_output_is_evaluated(tmp_path: Path) -> None:
    run = train("confbranch", tmp_path)
    module: Any = load_checkpoint(run.folder)
    trained, x = module.trained_by, torch.rand(5, 3, 8, 8)
    features, logits = trained.model(x)
    assert torch.equal(logits, module(x))
    assert torch.equal(module.get_submodule(trained.model.head_name)(features), logits)
    branch = module.method_heads["confidence"]
    values = trained.method.confidences(trained.model, x)["confidence"]
    assert torch.allclose(values, (features @ branch.weight.T + branch.bias)[:, 0])
    assert {"task", "confidence"} == set(
        json.loads((run.folder / "model.json").read_text())["selected"]["parts"]
    )


def test_the_output_detector_ranks_by_the_output(tmp_path: Path) -> None:
    recipe = recipe_of("confbranch", epochs=1)
    (run,) = train_recipe(recipe, "digits", tmp_path, device="cpu")
    results = evaluate(
        f"trained:{run.folder}", "digits", "output, output[name=confidence], msp", groups=["uniform"]
    )
    by_default, by_name = (
        results.values("auroc", group="uniform", detector=d)["value"].tolist()
        for d in ("output", "output[name=confidence]")
    )
    assert by_default == by_name
    with raises(DataError, where="digits/toy-tiny-cnn-s0", naming=("rotation", "confbranch", "output")):
        evaluate(f"trained:{run.folder}", "digits", "output[name=rotation]", groups=["uniform"])


def test_a_model_without_outputs_says_so(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Flatten(), nn.Linear(192, 6))
    with raises(DataError, where="Sequential", naming="output"):
        evaluate(model, "digits", "output", groups=["uniform"])


def test_a_head_called_head_replaces_the_classifier(tmp_path: Path) -> None:
    run = train("cider", tmp_path)
    module: Any = load_checkpoint(run.folder)
    x = torch.rand(4, 3, 8, 8)
    assert module(x).shape == (4, 3)
    assert type(module.head).__name__ == "PrototypeHead"
    assert torch.allclose(module.head.prototypes.norm(dim=1), torch.ones(3), atol=1e-6)


class PositiveFeatures(nn.Linear):
    """A classifier of the features that are positive in any image: its shapes depend on values."""

    def forward(self, features: Tensor) -> Tensor:
        columns = (features > 0).any(0).nonzero()[:, 0]
        return functional.linear(features[:, columns], self.weight[:, columns], self.bias)


@dataclass(frozen=True)
class TrainsPositiveFeatures(Method):
    """Cross-entropy of `PositiveFeatures`."""

    parts = declare(cross_entropy=Part())

    def heads(self, model: Network, classes: int) -> Mapping[str, nn.Module]:
        return {"head": PositiveFeatures(model.width, classes)}

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        return {
            "cross_entropy": functional.cross_entropy(model(batch.images)[1], batch.labels, reduction="none")
        }


def test_a_head_may_select_columns_by_their_values(tmp_path: Path) -> None:
    run = train(f"{__name__}:TrainsPositiveFeatures", tmp_path)
    network: Any = load_checkpoint(run.folder)
    assert network(torch.rand(4, 3, 8, 8)).shape == (4, 3)


@dataclass(frozen=True)
class Remembering(Method):
    """Cross-entropy that counts images in its state, and trains its head at half the rate."""

    parts = declare(cross_entropy=Part(), penalty=Part())

    def heads(self, model: Network, classes: int) -> Mapping[str, nn.Module]:
        return {"scale": nn.Linear(model.width, classes)}

    def setup(self, model: Network, data: Any, state: State) -> None:
        state["seen"] = torch.zeros(len(data.labels), dtype=torch.int64)
        state["epochs"] = []

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        features, logits = model(batch.images)
        state["seen"][batch.index] += 1
        values = functional.cross_entropy(
            logits + model.heads["scale"](features), batch.labels, reduction="none"
        )
        return {"cross_entropy": values, "penalty": Term(logits.square().mean(1), 0.01)}

    def after_epoch(self, model: Network, data: Any, state: State) -> None:
        features, logits = data.extract()
        assert (len(features), len(logits)) == (42, 42)
        state["epochs"].append(state.epoch)

    def parameter_groups(self, model: Network) -> list[dict[str, Any]]:
        groups = model.parameters()
        return [
            {"params": groups["backbone"] + groups["head"]},
            {"params": groups["scale"], "weight_decay": 0.1, "scale": 0.5},
        ]


def test_state_index_and_parameter_groups(tmp_path: Path) -> None:
    (run,) = plan_runs(recipe_of(f"{__name__}:Remembering"))
    with reproducible(CPU.device):
        trainer = Trainer(run, DeviceData.from_data(small_data(), CPU.device), CPU)
        for epoch in range(2):
            row = trainer.train_epoch(epoch, Silent().task("", 1).__enter__())
    assert trainer.method_state["seen"].tolist() == [2] * 42
    assert trainer.method_state["epochs"] == [0, 1]
    rates = [group["lr"] for group in trainer.optimizer.param_groups]
    assert rates[1] == 0.5 * rates[0] > 0
    assert trainer.optimizer.param_groups[1]["weight_decay"] == 0.1
    assert row["loss"] == pytest.approx(row["parts"]["cross_entropy"] + 0.01 * row["parts"]["penalty"])


def test_code_that_a_model_names_is_not_imported_unasked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = train(f"{__name__}:Remembering", tmp_path)
    assert load_checkpoint(run.folder) is not None
    monkeypatch.setattr(untrusted, "_imported", set())  # as in a process in which nobody named it
    with pytest.raises(UnsafeDataError) as refused:
        load_checkpoint(run.folder)
    assert str(refused.value.where).endswith("model.pt")
    assert load_checkpoint(run.folder, trust=True) is not None


def chained(outputs: int) -> nn.Module:
    """A network from outside, whose parts are called in a chain."""
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, outputs))


def wide(outputs: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(192, 7))


@pytest.mark.parametrize("network", [f"{__name__}:chained", "timm:mobilenetv3_small_050"])
def test_networks_from_outside_are_trained_saved_and_evaluated(network: str, tmp_path: Path) -> None:
    pytest.importorskip("timm")
    (run,) = train_recipe(
        "digits-demo",
        "digits",
        tmp_path,
        network=network,
        method="confbranch",
        epochs=1,
        images=60,
        device="cpu",
    )
    assert run.metadata["recipe"]["name"] == "digits-demo-confbranch"
    assert "method confbranch in place of softmax" in run.metadata["recipe"]["differs"]
    results = evaluate(f"trained:{run.folder}", "digits", "output", groups=["uniform"])
    assert results.values("auroc", group="uniform")["value"].tolist()


def of_nothing() -> nn.Module:
    """A network that does not take the number of outputs."""
    return nn.Linear(1, 1)


@pytest.mark.parametrize(
    ("network", "named"),
    [
        (f"{__name__}:wide", ("2", "7", "6")),
        (f"{__name__}:small_data", "nn.Module"),
        (f"{__name__}:of_nothing", ()),
        ("timm:resnet99999", ()),
        ("torchvision:squeezenet1_1", "8"),
    ],
)
def test_networks_that_do_not_fit_are_refused(network: str, named: object, tmp_path: Path) -> None:
    pytest.importorskip("timm")
    with raises(DataError, where="--network", naming=named):
        train_recipe("digits-demo", "digits", tmp_path, network=network, epochs=1, device="cpu")
