"""Callbacks that log a training to TensorBoard or W&B after every epoch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from wordnet_splits.base.errors import unknown
from wordnet_splits.base.lazy import need

Callback = Callable[[str, Mapping[str, Any]], None]
"""(name of the run, row of the history: epoch, rate, loss, parts, validation) -> None."""


def numbers_of(row: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers of a row of the history by name, parts of the loss as ``parts/NAME``."""
    flat = {key: value for key, value in row.items() if isinstance(value, int | float)}
    return flat | {f"parts/{name}": value for name, value in (row.get("parts") or {}).items()}


def tensorboard(folder: str | Path) -> Callback:
    """Return a callback that writes event files of every run below a folder."""
    need("tensorboard", "tensorboard", where="tensorboard")
    module = need("torch.utils.tensorboard", "tensorboard", where="tensorboard")

    def write(run: str, row: Mapping[str, Any]) -> None:
        with module.SummaryWriter(str(Path(folder) / run)) as writer:
            for name, value in numbers_of(row).items():
                writer.add_scalar(name, value, row["epoch"])

    return write


def wandb(project: str) -> Callback:
    """Return a callback that logs every run to a project of Weights & Biases."""
    module = need("wandb", "wandb", where="wandb")
    runs: dict[str, Any] = {}

    def write(run: str, row: Mapping[str, Any]) -> None:
        if run not in runs:
            runs[run] = module.init(project=project, id=run, name=run, resume="allow", reinit="create_new")
        runs[run].log(numbers_of(row), step=row["epoch"])

    return write


LOGS = {"tensorboard": tensorboard, "wandb": wandb}


def parse_log(text: str) -> Callback:
    """Return the callback of ``tensorboard:FOLDER`` or ``wandb:PROJECT``.

    Raises
    ------
    UnknownNameError : neither. MissingPackageError : the package is not installed.
    """
    name, _, target = text.partition(":")
    if name not in LOGS:
        raise unknown("log", name, LOGS, where="--log")
    return LOGS[name](target or "runs")
