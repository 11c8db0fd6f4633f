"""Whole runs on tiny data: bytes, resuming, selection, losses with negatives, refusals."""

from __future__ import annotations

import dataclasses
import importlib
import json
import math
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from filelock import FileLock

from loaders.harness.checkpoints.files import load_checkpoint, load_state
from loaders.harness.checkpoints.recipe import TrainingRecipe
from loaders.harness.training import callbacks, costs, steps, trainer
from loaders.harness.training import runs as module
from loaders.harness.training.data import TrainingData
from loaders.harness.training.runs import TrainedRun, choose_machine, plan_runs, train_runs
from loaders.harness.training.steps import Machine
from wordnet_splits.base.errors import DataError, OutputError, UnknownNameError
from wordnet_splits.base.progress import Silent

CPU = choose_machine("cpu")


def recipe(**changes: Any) -> TrainingRecipe:
    base = {
        "schema": 1,
        "name": "toy",
        "title": "toy",
        "network": "tiny-cnn",
        "method": {"name": "softmax"},
        "epochs": 4,
        "batch": 16,
        "augment": "crop4-flip",
        "schedule": {"kind": "one-cycle"},
        "select": "last",
        "optimizer": {"adam": {"rule": "adam", "lr": 0.005}},
    }
    return TrainingRecipe.model_validate({**base, **changes})


def train(
    data: TrainingData, out: Path, seeds: Any = (0,), series: str | None = None, **changes: Any
) -> list[TrainedRun]:
    return train_runs(plan_runs(recipe(**changes), seeds=seeds), data, out, CPU, start=series)


def weights(trained: TrainedRun) -> bytes:
    return (trained.folder / "model.pt").read_bytes()


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


class Interrupting(Silent):
    """Raises in the middle of the third epoch, as Ctrl-C would."""

    left = 72 * 2 + 40

    @contextmanager
    def task(self, what: str, total: int) -> Iterator[Interrupting]:
        yield self

    def advance(self, steps: int = 1, *, note: str = "") -> None:
        self.left -= steps
        if self.left < 0:
            raise KeyboardInterrupt


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
    with pytest.raises(OutputError, match="run with another machine"):
        train_runs(planned, data, tmp_path, choose_machine("cpu", "bf16"))
    original = Machine.as_dict
    monkeypatch.setattr(Machine, "as_dict", lambda machine: {**original(machine), "device": "NVIDIA H200"})
    (trained,) = train_runs(planned, data, tmp_path, CPU, notify=said.append)
    (message,) = said
    assert message.startswith(
        "toy-tiny-cnn-s0: resumed after epoch 2, on another machine (before: device cpu)"
    )
    assert trained.metadata["machine"]["device"] == "NVIDIA H200"
    assert trained.metadata["earlier_machines"] == [{**original(CPU), "last_epoch": 2}]
    assert train_runs(planned, data, tmp_path, CPU)[0].seconds == 0


def test_a_finished_run_is_kept_and_one_of_other_settings_refused(data: TrainingData, tmp_path: Path) -> None:
    (first,) = train(data, tmp_path, epochs=1)
    before = first.folder.joinpath("model.json").stat().st_mtime_ns
    (again,) = train(data, tmp_path, epochs=1)
    assert again.seconds == 0
    assert again.metadata == first.metadata
    assert first.folder.joinpath("model.json").stat().st_mtime_ns == before
    with pytest.raises(OutputError, match="run with another recipe"):
        train(data, tmp_path, epochs=1, batch=8)
    other = dataclasses.replace(data, benchmark={**data.benchmark, "version": 2})
    with pytest.raises(OutputError, match="run with another benchmark"):
        train(other, tmp_path, epochs=1)


def test_a_folder_in_use_is_refused(data: TrainingData, tmp_path: Path) -> None:
    folder = tmp_path / "blobs" / "toy-tiny-cnn-s0"
    folder.mkdir(parents=True)
    with (
        FileLock(str(folder.with_name(f".{folder.name}.lock"))),
        pytest.raises(OutputError, match="another training is writing here"),
    ):
        train(data, tmp_path)


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


METHODS: list[dict[str, Any]] = [
    {"name": "background"},
    {"name": "entropic-open-set"},
    {"name": "outlier-exposure", "weight": 0.5},
    {"name": "energy", "m_in": -5, "m_out": -1, "weight": 0.1},
]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: str(method["name"]))
def test_losses_with_negatives_log_their_gammas(
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
    if method["name"] != "energy":  # it asks for high energies of outliers, not for even probabilities
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
    with pytest.raises(DataError, match="no external validation images"):
        train(without, tmp_path, method={"name": "entropic-open-set"}, select="gamma", name="other")


def test_no_validation_images_at_all(data: TrainingData, tmp_path: Path) -> None:
    without = dataclasses.replace(data, val=None)
    (trained,) = train(without, tmp_path, epochs=1)
    assert "val_loss" not in trained.metadata["selected"]
    with pytest.raises(DataError, match="no ID validation images"):
        train(without, tmp_path, select="val-loss", name="other")


def test_fine_tuning_starts_from_the_run_of_the_same_seed(data: TrainingData, tmp_path: Path) -> None:
    tuned: dict[str, Any] = {
        "name": "tuned",
        "start": "toy",
        "epochs": 1,
        "optimizer": {"sgd": {"rule": "sgd", "lr": 1e-12}},
        "method": METHODS[3],
    }
    with pytest.raises(DataError, match="trains 'toy-tiny-cnn-s1' further, which is not there"):
        train(data, tmp_path, seeds=(1,), **tuned)
    first = train(data, tmp_path, seeds=(0, 1), epochs=2)
    (second,) = train(data, tmp_path, seeds=(1,), **tuned)
    old, new = (dict(load_checkpoint(t.folder).named_parameters()) for t in (first[1], second))
    assert all(torch.allclose(old[name], new[name], atol=1e-9) for name in old)
    origin = {"run": "toy-tiny-cnn-s1", "sha256": first[1].metadata["weights"]["sha256"]}
    assert second.metadata["start"] == origin
    with pytest.raises(DataError, match="another network"):
        train(
            data,
            tmp_path,
            seeds=(1,),
            **{**tuned, "network": "small-cnn", "name": "t"},
            series="toy-tiny-cnn",
        )


def test_a_loss_that_is_not_finite_is_named(data: TrainingData, tmp_path: Path) -> None:
    message = r"toy-tiny-cnn-s0, epoch \d: training method 'softmax': the part .* of its loss is (nan|inf)"
    with pytest.raises(DataError, match=message):
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
    with pytest.raises(DataError, match="epoch 2"):
        train(data, tmp_path, method={"name": "tests.loaders.harness.methods.public_bugs:NotANumber"})
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
    with pytest.raises(UnknownNameError, match="did you mean 'adam'"):
        plan_runs(recipe(), optimizers=("adm",))
    with pytest.raises(UnknownNameError, match="unknown precision 'bf61'; did you mean 'bf16'"):
        choose_machine("cpu", "bf61")
    with pytest.raises(DataError, match="fp16 trains on CUDA only"):
        choose_machine("cpu", "fp16")
    with pytest.raises(DataError, match="device 'gpu' is not available"):
        choose_machine("gpu")


def test_grey_images_give_a_network_of_one_channel(data: TrainingData, tmp_path: Path) -> None:
    pixels = data.train.pixels[:, :1].expand(-1, 3, -1, -1).contiguous()
    grey = dataclasses.replace(data, train=dataclasses.replace(data.train, pixels=pixels))
    (trained,) = train(grey, tmp_path, epochs=1)
    assert trained.metadata["network"]["channels"] == 1
    assert load_checkpoint(trained.folder).features[0].weight.shape[1] == 1
    assert math.isfinite(trained.metadata["selected"]["loss"])


class Noting(Silent):
    """Keeps what is shown beside the work."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    @contextmanager
    def task(self, what: str, total: int) -> Iterator[Noting]:
        yield self

    def advance(self, steps: int = 1, *, note: str = "") -> None:
        self.notes += [note] if note else []


def test_progress_shows_the_loss_of_each_epoch(
    data: TrainingData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trainer, "LOSS_SECONDS", math.inf)
    progress = Noting()
    (trained,) = train_runs(plan_runs(recipe()), data, tmp_path, CPU, progress=progress)
    losses = [row["loss"] for row in trained.metadata["history"]]
    assert [re.sub(r", [\d,]+ images/s$", "", note) for note in progress.notes] == [
        f"epoch {e} of 4, loss {loss:.3g}" for e, loss in enumerate(losses, 1)
    ]
    assert all(note.endswith(" images/s") for note in progress.notes)


def test_progress_shows_the_loss_within_an_epoch(
    data: TrainingData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trainer, "LOSS_SECONDS", 0.0)
    progress = Noting()
    (trained,) = train_runs(plan_runs(recipe()), data, tmp_path, CPU, progress=progress)
    first = [note for note in progress.notes if note.startswith("epoch 1 of 4, ")]
    assert len(first) > 2  # a note a step, of the mean so far, and the epoch's
    expected = f"epoch 1 of 4, loss {trained.metadata['history'][0]['loss']:.3g}, "
    assert first[-1].startswith(expected)
    assert first[-2].startswith(expected)
    assert not first[0].startswith(expected)


def test_parts_of_the_loss_are_shown(data: TrainingData, tmp_path: Path) -> None:
    progress = Noting()
    train_runs(plan_runs(recipe(method=METHODS[2])), data, tmp_path, CPU, progress=progress)
    assert re.match(
        r"epoch 1 of 4, loss \S+ \(cross_entropy \S+, uniform \S+\), [\d,]+ images/s", progress.notes[0]
    )


def test_the_cost_of_the_unfinished_runs_is_a_table_after_the_first_steps(
    data: TrainingData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(costs, "MIN_ANNOUNCED_SECONDS", 0.0)
    planned = plan_runs(recipe(method={"name": "outlier-exposure"}, epochs=6), seeds=(0, 1, 2))
    train_runs(planned[:1], data, tmp_path, CPU)
    train_runs(planned, data, tmp_path, CPU, notify=said.append)
    size = (tmp_path / "blobs" / planned[0].name / "model.pt").stat().st_size / 1e6
    assert said[1].split() == ["run", "epochs", "ID", "images", "forward", "backward", "hours"]
    rows = [line.split() for line in said[3:5]]
    # of the first run, the table comes in the fifth epoch: 21 steps of 5 each
    assert [row[:5] for row in rows] == [
        ["toy-tiny-cnn-s1", "2", "72", "2", "2"],
        ["toy-tiny-cnn-s2", "6", "72", "2", "2"],
    ]
    first, second = (float(row[5]) for row in rows)
    together = re.fullmatch(rf"together (\S+) hours, (\d+\.\d) MB in {tmp_path / 'blobs'}", said[5])
    assert together is not None
    assert second == pytest.approx(3 * first, rel=0.2)
    assert float(together[1]) == pytest.approx(first + second, rel=0.2)
    assert float(together[2]) == pytest.approx(2 * size, abs=0.1)
    assert said[6:] == ["forward, backward: images per ID image; plain cross-entropy has 1 and 1"]


def test_a_resumed_training_announces_the_epochs_that_are_left(
    data: TrainingData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(costs, "MIN_ANNOUNCED_SECONDS", 0.0)
    planned, said = plan_runs(recipe(epochs=12)), []
    interrupt = Interrupting()
    interrupt.left = 72 * 6 + 40
    with pytest.raises(KeyboardInterrupt):
        train_runs(planned, data, tmp_path, CPU, progress=interrupt)
    train_runs(planned, data, tmp_path, CPU, notify=said.append)
    assert said[0] == "toy-tiny-cnn-s0: resumed after epoch 6"
    assert said[3].split()[:2] == ["toy-tiny-cnn-s0", "2"]


def test_the_table_of_a_long_training_fits_80_columns() -> None:
    cost, folder = costs.Cost(3600.0, 2.0, 1.25), Path("out")
    assert costs.cost_table(costs.Cost(1.0, 1.0, 1.0), [("run", 59)], 100, 1, folder) == []
    name = "openood-cifar100-resnet18-32x32-e100-n50000-s{}"
    lines = costs.cost_table(cost, [(name.format(n), 100) for n in range(30)], 50_000, 10**6, folder)
    assert max(map(len, lines)) <= 80
    assert lines[2].split()[1:] == ["100", "50,000", "2", "1.25", "100"]
    assert lines[-3:-1] == ["and 10 more runs", "together 3,000 hours, 30.0 MB in out"]
    (short,) = costs.cost_table(costs.Cost(60.0, 1, 1), [("run", 1)], 100, 1, folder)[2:3]
    assert short.split() == ["run", "1", "100", "1", "1", "0.017"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("NotANumber", "-s0, epoch 2: .* '.*NotANumber': the part 'cross_entropy' of its loss is nan"),
        ("PartNotANumber", "'.*PartNotANumber': the part 'extra' of its loss is nan"),
        ("NoNames", "its step returned a Tensor, not the named parts of a loss"),
        ("NoGradient", "'.*NoGradient': its loss has no gradient"),
        ("TwoHeadsTooWide", "'.*TwoHeadsTooWide': its head does not take features of width 64"),
        ("HeadWithoutForward", "'.*HeadWithoutForward': its head does not take features of width 64"),
        ("HeadOfAnotherType", "'.*HeadOfAnotherType': head 'head' is int, not an nn.Module"),
    ],
)
def test_mistakes_of_methods_are_one_line(
    data: TrainingData, tmp_path: Path, name: str, message: str
) -> None:
    with pytest.raises(DataError, match=message) as error:
        train(data, tmp_path, method={"name": f"tests.loaders.harness.methods.public_bugs:{name}"})
    assert "\n" not in str(error.value)


def test_the_moving_average_is_kept_and_resumed(data: TrainingData, tmp_path: Path) -> None:
    plain = train(data, tmp_path / "plain", epochs=2)
    (whole,) = train(data, tmp_path / "whole", epochs=2, ema=0.9)
    assert weights(whole) != weights(plain[0])
    (run,) = plan_runs(recipe(epochs=2, ema=0.9))
    with steps.reproducible(CPU.device):
        by_hand = trainer.Trainer(run, steps.DeviceData.of(data, CPU.device), CPU)
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


def test_accumulated_gradients_are_those_of_the_whole_batch(data: TrainingData, tmp_path: Path) -> None:
    changes: dict[str, Any] = {"optimizer": {"sgd": {"rule": "sgd", "lr": 0.01}}, "augment": "none"}
    trained = []
    for name, accumulate in (("whole", None), ("parts", 4)):
        planned = plan_runs(recipe(epochs=1, accumulate=accumulate, name=name, batch=20, **changes))
        with steps.reproducible(CPU.device):
            run = trainer.Trainer(planned[0], steps.DeviceData.of(data, CPU.device), CPU)
            for layer in run.module.modules():
                if isinstance(layer, torch.nn.Dropout):
                    layer.p = 0.0
            run.train_epoch(0, Silent())
            assert run.steps == (15 if accumulate else 4)  # the last batch has 12 images: 5, 5 and 2
        trained.append(run.module.state_dict())
    assert all(torch.allclose(trained[0][name], value, atol=1e-6) for name, value in trained[1].items())


def test_callbacks_get_every_epoch_and_their_errors_are_one_line(data: TrainingData, tmp_path: Path) -> None:
    rows: list[tuple[str, int]] = []
    runs = plan_runs(recipe(epochs=2))
    train_runs(runs, data, tmp_path, CPU, callbacks=[lambda run, row: rows.append((run, row["epoch"]))])
    assert rows == [("toy-tiny-cnn-s0", 1), ("toy-tiny-cnn-s0", 2)]
    with pytest.raises(DataError, match="a callback failed: ZeroDivisionError"):
        train_runs(runs, data, tmp_path / "b", CPU, callbacks=[lambda run, row: 1 / 0])


def test_tensorboard_and_wandb_get_the_numbers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    written: list[tuple[Any, ...]] = []

    class Writer:
        def __init__(self, folder: str) -> None:
            written.append(("folder", folder))

        def __enter__(self) -> Writer:
            return self

        def __exit__(self, *error: object) -> None:
            pass

        def add_scalar(self, name: str, value: float, step: int) -> None:
            written.append((name, value, step))

    def fake(package: str, extra: str, *, where: str) -> Any:
        return SimpleNamespace(SummaryWriter=Writer, init=lambda **options: SimpleNamespace(log=log))

    def log(numbers: dict[str, float], step: int) -> None:
        written.append((numbers, step))

    monkeypatch.setattr(callbacks, "need", fake)
    row = {"epoch": 3, "loss": 0.5, "parts": {"task": 0.25}, "val_loss": None}
    callbacks.parse_log(f"tensorboard:{tmp_path}")("run", row)
    assert written == [
        ("folder", str(tmp_path / "run")),
        ("epoch", 3, 3),
        ("loss", 0.5, 3),
        ("parts/task", 0.25, 3),
    ]
    callbacks.parse_log("wandb:project")("run", row)
    assert written[-1] == ({"epoch": 3, "loss": 0.5, "parts/task": 0.25}, 3)
    with pytest.raises(UnknownNameError, match="did you mean 'wandb'"):
        callbacks.parse_log("wandbb:x")


METHOD = """
from dataclasses import dataclass
from loaders.harness.methods import Method, cross_entropy

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
    with pytest.raises(OutputError, match="holds a run with another code"):
        train_with("10")
