"""Runs of a few seconds: a recipe of four epochs, methods, an interruption in the third epoch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from loaders.harness.training.data import TrainingData
from loaders.harness.training.fitting import TrainedRun
from loaders.harness.training.machine import choose_machine
from loaders.harness.training.recipe import TrainingRecipe
from loaders.harness.training.runs import plan_runs, train_runs
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


METHODS: list[dict[str, Any]] = [
    {"name": "background"},
    {"name": "entropic-open-set"},
    {"name": "outlier-exposure", "weight": 0.5},
    {"name": "energy", "m_in": -5, "m_out": -1, "weight": 0.1},
]
