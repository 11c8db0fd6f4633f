"""Whole runs on tiny data: metadata, selection, losses with negatives, optimizers, mistakes."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch

from loaders.harness.training import runs as module
from loaders.harness.training import trainer
from loaders.harness.training.checkpoint import load_checkpoint
from loaders.harness.training.data import DeviceData, TrainingData
from loaders.harness.training.machine import choose_machine, reproducible
from loaders.harness.training.methods import get_method
from loaders.harness.training.recipe import load_recipe
from loaders.harness.training.runs import plan_runs, train_runs
from tests.raising import raises
from wordnet_splits.base.errors import DataError, OutputError, UnknownNameError
from wordnet_splits.base.progress import Silent

from .toy import CPU, METHODS, recipe, train, weights


def test_metadata_says_what_the_weights_are(data: TrainingData, tmp_path: Path) -> None:
    planned = plan_runs(recipe().with_epochs(2), seeds=(3,))
    (trained,) = train_runs(planned, data, tmp_path, CPU, command="unknown-eval train ...")
    found = json.loads((trained.folder / "model.json").read_text())
    assert found["run"] == "toy-tiny-cnn-e2-s3"
    assert found["seed"] == 3
    assert found["benchmark"] == data.benchmark
    assert found["classes"] == ["dark", "middle", "light"]
    assert found["command"] == "unknown-eval train ..."
    assert found["recipe"]["differs"] == ["2 epochs in place of 4"]
    assert [row["epoch"] for row in found["history"]] == [1, 2]
    assert found["machine"] == {
        "device": "cpu",
        "precision": "float32",
        "threads": 1,
        "torch": str(torch.__version__),
    }
    assert found["selected_epoch"] == found["epochs_trained"] == 2
    assert found["selected"] == found["history"][1]


def test_it_learns(data: TrainingData, tmp_path: Path) -> None:
    (trained,) = train(data, tmp_path, epochs=12, optimizer={"adam": {"rule": "adam", "lr": 0.01}})
    history = trained.metadata["history"]
    assert history[-1]["loss"] < 0.5 * history[0]["loss"]
    assert history[-1]["val_accuracy"] > 0.9
    assert "gamma" not in history[-1]


def test_early_stopping_keeps_the_epoch_of_least_validation_loss(
    data: TrainingData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    losses = iter([0.9, 0.5, 0.7, 0.5, 0.6, 0.1])  # an equal loss is no improvement
    seen: list[dict[str, torch.Tensor]] = []

    def validate(self: Any) -> dict[str, float]:
        seen.append({k: v.clone() for k, v in self.module.state_dict().items()})
        return {"val_loss": next(losses)}

    monkeypatch.setattr(module.Trainer, "validate", validate)  # type: ignore[attr-defined]
    (trained,) = train(data, tmp_path, epochs=50, select="val-loss", patience=3)
    assert trained.metadata["epochs_trained"] == 5
    assert trained.metadata["selected_epoch"] == 2
    kept = load_checkpoint(trained.folder).state_dict()
    assert all(torch.equal(kept[name], seen[1][name]) for name in kept)
    assert any(not torch.equal(kept[name], seen[4][name]) for name in kept)


@pytest.mark.parametrize("method", [*METHODS, {"name": "softmax"}], ids=lambda method: str(method["name"]))
def test_losses_with_negatives_and_selections_by_gamma_log_their_gammas(
    data: TrainingData, tmp_path: Path, method: dict[str, Any]
) -> None:
    (trained,) = train(data, tmp_path, method=method, select="gamma", negatives_per_known=2, epochs=6)
    metadata = trained.metadata
    background = method["name"] == "background"
    assert metadata["network"]["outputs"] == 3 + background
    assert metadata["network"]["background"] == (3 if background else None)
    assert load_checkpoint(trained.folder).background == (3 if background else None)
    for row in metadata["history"]:
        assert row["gamma"] == pytest.approx((row["gamma_plus"] + row["gamma_minus"]) / 2)
    gammas = [row["gamma"] for row in metadata["history"]]
    assert metadata["selected_epoch"] == gammas.index(max(gammas)) + 1
    assert metadata["history"][-1]["loss"] < metadata["history"][0]["loss"]
    if method["name"] not in (
        "energy",
        "softmax",
    ):  # energy asks for high energies of outliers, not for even probabilities
        assert gammas[-1] > gammas[0]


def test_logged_gammas_are_equation_7(data: TrainingData, tmp_path: Path) -> None:
    for method in ("background", "entropic-open-set"):
        (trained,) = train(data, tmp_path, method={"name": method}, name=f"toy-{method}", epochs=1)
        network = load_checkpoint(trained.folder)
        assert data.val is not None
        assert data.val_negatives is not None
        with torch.no_grad():
            known, negative = (
                torch.softmax(network(data.normalise(images.pixels)), 1)[:, :3]
                for images in (data.val, data.val_negatives)
            )
        plus = sum(float(p[y]) for p, y in zip(known, data.val.labels, strict=True)) / len(known)
        offset = 0 if method == "background" else 1 / 3
        minus = sum(1 - float(p.max()) + offset for p in negative) / len(negative)
        row = trained.metadata["history"][0]
        assert (row["gamma_plus"], row["gamma_minus"]) == pytest.approx((plus, minus), abs=1e-6)


def test_gammas_without_external_validation_images(data: TrainingData, tmp_path: Path) -> None:
    without = dataclasses.replace(data, val_negatives=None)
    (trained,) = train(without, tmp_path, method={"name": "entropic-open-set"}, epochs=1)
    row = trained.metadata["selected"]
    assert 0 < row["gamma_plus"] < 1
    assert (row["gamma_minus"], row["gamma"]) == (None, None)
    with raises(DataError, where="blobs"):
        train(without, tmp_path, method={"name": "entropic-open-set"}, select="gamma", name="other")


def test_no_validation_images_at_all(data: TrainingData, tmp_path: Path) -> None:
    without = dataclasses.replace(data, val=None)
    (trained,) = train(without, tmp_path, epochs=1)
    assert "val_loss" not in trained.metadata["selected"]
    with raises(DataError, where="blobs"):
        train(without, tmp_path, select="val-loss", name="other")


def test_a_loss_that_is_not_finite_is_named(data: TrainingData, tmp_path: Path) -> None:
    with raises(DataError, where="'softmax'", naming="toy-tiny-cnn-s0"):
        train(data, tmp_path, optimizer={"sgd": {"rule": "sgd", "lr": 1e30}})


def test_a_long_epoch_ends_soon_after_a_loss_that_is_not_finite(
    data: TrainingData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trainer, "LOSS_SECONDS", 0.0)
    original, steps_taken = trainer.Trainer._step, []

    def counted(self: trainer.Trainer, *arguments: Any) -> Any:
        steps_taken.append(1)
        return original(self, *arguments)

    monkeypatch.setattr(trainer.Trainer, "_step", counted)
    with raises(DataError, naming="2"):
        train(
            data, tmp_path, method={"name": "tests.loaders.harness.training.methods.public_bugs:NotANumber"}
        )
    assert len(steps_taken) == 1 + -(-len(data.train) // recipe().batch)


def test_bf16_trains_on_the_cpu_and_is_recorded(data: TrainingData, tmp_path: Path) -> None:
    runs = plan_runs(recipe(epochs=1), network="resnet20")
    (mixed,) = train_runs(runs, data, tmp_path / "bf16", choose_machine("cpu", "bf16"))
    (plain,) = train_runs(runs, data, tmp_path / "float32", CPU)
    assert mixed.metadata["machine"]["precision"] == "bf16"
    assert mixed.metadata["selected"]["loss"] == pytest.approx(plain.metadata["selected"]["loss"], rel=0.05)
    assert weights(mixed) != weights(plain)


def test_every_optimizer_of_a_recipe_is_a_run_and_shares_its_initialisations(
    data: TrainingData, tmp_path: Path
) -> None:
    rates = {"slow": {"rule": "sgd", "lr": 1e-12}, "slower": {"rule": "sgd", "lr": 1e-13}}
    trained = train(data, tmp_path, seeds=(0, 1), epochs=1, optimizer=rates)
    assert [t.metadata["run"] for t in trained] == [
        "toy-tiny-cnn-slow-s0",
        "toy-tiny-cnn-slow-s1",
        "toy-tiny-cnn-slower-s0",
        "toy-tiny-cnn-slower-s1",
    ]
    heads = [load_checkpoint(t.folder).head.weight for t in trained]
    assert torch.allclose(heads[0], heads[2], atol=1e-9)
    assert not torch.allclose(heads[0], heads[1], atol=1e-3)


def test_machines_and_optimizers_that_are_not_there() -> None:
    with raises(UnknownNameError, where="training recipe toy", near="adam"):
        plan_runs(recipe(), optimizers=("adm",))
    with raises(UnknownNameError, naming="bf61", near="bf16"):
        choose_machine("cpu", "bf61")
    with raises(DataError, naming="fp16"):
        choose_machine("cpu", "fp16")
    with raises(DataError, where="--device", naming="gpu"):
        choose_machine("gpu")


def test_grey_images_give_a_network_of_one_channel(data: TrainingData, tmp_path: Path) -> None:
    pixels = data.train.pixels[:, :1].expand(-1, 3, -1, -1).contiguous()
    grey = dataclasses.replace(data, train=dataclasses.replace(data.train, pixels=pixels))
    (trained,) = train(grey, tmp_path, epochs=1)
    assert trained.metadata["network"]["channels"] == 1
    assert load_checkpoint(trained.folder).features[0].weight.shape[1] == 1
    assert math.isfinite(trained.metadata["selected"]["loss"])


@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("NotANumber", ("2", "NotANumber", "cross_entropy")),
        ("PartNotANumber", "PartNotANumber"),
        ("TwoHeadsTooWide", ("TwoHeadsTooWide", "64")),
        ("HeadWithoutForward", ("HeadWithoutForward", "64")),
        ("HeadOfAnotherType", ("HeadOfAnotherType", "nn.Module")),
    ],
)
def test_mistakes_of_methods_are_one_line(
    data: TrainingData, tmp_path: Path, name: str, named: object
) -> None:
    with raises(DataError, naming=named) as error:
        train(data, tmp_path, method={"name": f"tests.loaders.harness.training.methods.public_bugs:{name}"})
    assert "\n" not in str(error.value)


def test_accumulated_gradients_are_those_of_the_whole_batch(data: TrainingData, tmp_path: Path) -> None:
    changes: dict[str, Any] = {"optimizer": {"sgd": {"rule": "sgd", "lr": 0.01}}, "augment": "none"}
    trained = []
    for name, accumulate in (("whole", None), ("parts", 4)):
        planned = plan_runs(recipe(epochs=1, accumulate=accumulate, name=name, batch=20, **changes))
        with reproducible(CPU.device):
            run = trainer.Trainer(planned[0], DeviceData.from_data(data, CPU.device), CPU)
            for layer in run.module.modules():
                if isinstance(layer, torch.nn.Dropout):
                    layer.p = 0.0
            run.train_epoch(0, Silent())
            assert run.steps == (15 if accumulate else 4)  # the last batch has 12 images: 5, 5 and 2
        trained.append(run.module.state_dict())
    assert all(torch.allclose(trained[0][name], value, atol=1e-6) for name, value in trained[1].items())


def test_a_finished_run_of_another_revision_of_its_method_is_refused(
    data: TrainingData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    choice = {"name": "mcd", "start": 0.0}
    with monkeypatch.context() as before:
        before.setattr(type(get_method("mcd")), "revision", 1)  # as before the hinge of the mean
        (old,) = train(data, tmp_path, method=choice, epochs=1)
    assert "revision" not in old.metadata
    with raises(OutputError, where="toy-tiny-cnn-s0", naming="revision"):
        train(data, tmp_path, method=choice, epochs=1)
    (new,) = train(data, tmp_path / "new", method=choice, epochs=1)
    assert new.metadata["revision"] == 2


def test_a_recipes_own_method_keeps_the_parameters_that_are_not_given() -> None:
    npos = load_recipe("npos/imagenet")
    changed = npos.with_method("npos[formula=code]")
    assert changed.method.parameters == {**npos.method.parameters, "formula": "code"}
    assert changed.name != npos.name
    assert npos.with_method("mcd[margin=1]").method.parameters == {"margin": "1"}
