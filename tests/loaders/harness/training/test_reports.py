"""What a training reports: progress, the table of costs, callbacks."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from loaders.harness.training import fitting, steps, trainer
from loaders.harness.training.data import TrainingData
from loaders.harness.training.runs import plan_runs, train_runs
from tests.raising import raises
from wordnet_splits.base.errors import DataError, UnknownNameError
from wordnet_splits.base.progress import Silent
from wordnet_splits.base.tabular import PAGE_WIDTH

from .toy import CPU, METHODS, Interrupting, recipe


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
    monkeypatch.setattr(fitting, "MIN_ANNOUNCED_SECONDS", 0.0)
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
    monkeypatch.setattr(fitting, "MIN_ANNOUNCED_SECONDS", 0.0)
    planned, said = plan_runs(recipe(epochs=12)), []
    interrupt = Interrupting()
    interrupt.left = 72 * 6 + 40
    with pytest.raises(KeyboardInterrupt):
        train_runs(planned, data, tmp_path, CPU, progress=interrupt)
    train_runs(planned, data, tmp_path, CPU, notify=said.append)
    assert said[0] == "toy-tiny-cnn-s0: resumed after epoch 6"
    assert said[3].split()[:2] == ["toy-tiny-cnn-s0", "2"]


def test_the_table_of_a_long_training_fits_a_page() -> None:
    cost, folder = steps.Cost(3600.0, 2.0, 1.25), Path("out")
    assert fitting.cost_table(steps.Cost(1.0, 1.0, 1.0), [("run", 59)], 100, 1, folder) == []
    name = "openood-cifar100-resnet18-32x32-e100-n50000-s{}"
    lines = fitting.cost_table(cost, [(name.format(n), 100) for n in range(30)], 50_000, 10**6, folder)
    assert max(map(len, lines)) <= PAGE_WIDTH
    assert lines[2].split()[1:] == ["100", "50,000", "2", "1.25", "100"]
    assert lines[-3:-1] == ["and 10 more runs", "together 3,000 hours, 30.0 MB in out"]
    (short,) = fitting.cost_table(steps.Cost(60.0, 1, 1), [("run", 1)], 100, 1, folder)[2:3]
    assert short.split() == ["run", "1", "100", "1", "1", "0.017"]


def test_callbacks_get_every_epoch_and_their_errors_are_one_line(data: TrainingData, tmp_path: Path) -> None:
    rows: list[tuple[str, int]] = []
    runs = plan_runs(recipe(epochs=2))
    train_runs(runs, data, tmp_path, CPU, callbacks=[lambda run, row: rows.append((run, row["epoch"]))])
    assert rows == [("toy-tiny-cnn-s0", 1), ("toy-tiny-cnn-s0", 2)]
    with raises(DataError, where="toy-tiny-cnn-s0"):
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

    monkeypatch.setattr(fitting, "need", fake)
    row = {"epoch": 3, "loss": 0.5, "parts": {"task": 0.25}, "val_loss": None}
    fitting.parse_log(f"tensorboard:{tmp_path}")("run", row)
    assert written == [
        ("folder", str(tmp_path / "run")),
        ("epoch", 3, 3),
        ("loss", 0.5, 3),
        ("parts/task", 0.25, 3),
    ]
    fitting.parse_log("wandb:project")("run", row)
    assert written[-1] == ({"epoch": 3, "loss": 0.5, "parts/task": 0.25}, 3)
    with raises(UnknownNameError, where="--log", near="wandb"):
        fitting.parse_log("wandbb:x")
