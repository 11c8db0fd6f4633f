"""One run, from its first epoch to its model: resuming, the epoch kept, the table of costs, logs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wordnet_splits.base.errors import OutputError, unknown
from wordnet_splits.base.lazy import need
from wordnet_splits.base.names import counted
from wordnet_splits.base.progress import Progress
from wordnet_splits.base.tabular import terminal_width, text_table
from wordnet_splits.base.untrusted import user_errors

from ..models.sources.registry import METADATA
from .checkpoint import (
    delete_state,
    load_state,
    read_metadata,
    save_checkpoint,
    save_state,
)
from .recipe import Run, TrainingRecipe
from .steps import Cost
from .trainer import Trainer

Callback = Callable[[str, Mapping[str, Any]], None]
"""(name of the run, row of the history: epoch, rate, loss, parts, validation) -> None."""
SELECTION_COLUMNS: dict[str, tuple[str, int]] = {"val-loss": ("val_loss", -1), "gamma": ("gamma", 1)}
"""Rule of selection -> column of the history and the sign that makes greater better."""
MIN_ANNOUNCED_SECONDS = 60.0
"""Least expected seconds of training that are announced."""
MAX_ROWS = 20
"""Largest number of runs in the table; the sum below it is of all."""


@dataclass(frozen=True)
class TrainedRun:
    """A finished run: its folder, its ``model.json``, and the seconds spent by this call (0: skipped)."""

    folder: Path
    metadata: dict[str, Any]
    seconds: float


def fit(
    trainer: Trainer,
    folder: Path,
    request: dict[str, Any],
    command: str | None,
    callbacks: Sequence[Callback],
    progress: Progress,
    notify: Callable[[str], None],
) -> TrainedRun:
    """Train one run to its end, saving its state after every epoch."""
    recipe, began = trainer.recipe, time.monotonic()
    history, best, earlier_machines = resume(trainer, folder, request, notify)
    ratio = recipe.negatives_per_known if trainer.method.outliers == "beside" else 0
    images = min(trainer.samples, trainer.steps * trainer.batch) * (1 + ratio)
    with progress.task(trainer.run.name, recipe.epochs * images) as task:
        task.skip(len(history) * images)
        while len(history) < recipe.epochs and not is_stopped(recipe, history, best):
            epoch = len(history)
            history.append({"epoch": epoch + 1, **trainer.train_epoch(epoch, task), **trainer.validate()})
            if _improves(recipe, history, best):
                best = {"epoch": epoch + 1, "weights": trainer.kept_weights()}
            state = {
                "trainer": trainer.state(),
                "history": history,
                "best": best,
                "earlier_machines": earlier_machines,
                "request": json.dumps(request),
            }
            if trainer.ranks.first:
                save_state(folder, state)
            for callback in callbacks:
                with user_errors("a callback failed", where=trainer.run.name):
                    callback(trainer.run.name, history[-1])
    trainer.release()
    present = {name for row in history for name in row.get("parts", trainer.method.parts)}
    if absent := [name for name in trainer.method.parts if name not in present]:
        parts = f"the {'part' if len(absent) == 1 else 'parts'} {', '.join(absent)} of the loss"
        notify(f"{trainer.run.name}: {parts} did not begin in {counted(len(history), 'epoch')}")
    metadata = {
        **request,
        "run": trainer.run.name,
        "series": trainer.run.series,
        "epochs_trained": len(history),
        "selected_epoch": best["epoch"],
        "selected": history[best["epoch"] - 1],
        "history": history,
        "method": trainer.method_record(),
        "command": command,
        **({"earlier_machines": earlier_machines} if earlier_machines else {}),
    }
    with trainer.ranks.all_ranks("writing a model"):
        if trainer.ranks.first:
            save_checkpoint(folder, best["weights"], metadata)
            delete_state(folder)
    return TrainedRun(folder, read_metadata(folder), time.monotonic() - began)


def _improves(recipe: TrainingRecipe, history: Sequence[Mapping[str, Any]], best: Mapping[str, Any]) -> bool:
    """Return whether the last epoch replaces the best so far."""
    if recipe.select == "last" or best["epoch"] == 0:
        return True
    column, sign = SELECTION_COLUMNS[recipe.select]
    return bool(sign * history[-1][column] > sign * history[best["epoch"] - 1][column])


def is_stopped(recipe: TrainingRecipe, history: Sequence[Any], best: Mapping[str, Any]) -> bool:
    """Return whether the recipe's patience is over."""
    return recipe.patience is not None and len(history) - best["epoch"] >= recipe.patience


def resume(
    trainer: Trainer, folder: Path, request: dict[str, Any], notify: Callable[[str], None]
) -> tuple[list[dict[str, Any]], dict[str, Any], list[dict[str, Any]]]:
    """Restore an interrupted run, and return its history, its best epoch and the machines before this one."""
    saved, recipe = load_state(folder), trainer.recipe
    if saved is None:
        return [], {"epoch": 0, "weights": {}}, []
    stored = json.loads(saved["request"])
    machine, changes = stored["machine"], _differences(stored["machine"], request["machine"])
    resumable = {key: changes[key] for key in ("device", "threads", "torch") if key in changes}
    same_request({**stored, "machine": machine | resumable}, request, folder)
    trainer.restore(saved["trainer"])
    history, best, earlier_machines = saved["history"], saved["best"], saved["earlier_machines"]
    message = f"{trainer.run.name}: resumed after epoch {len(history)}"
    if len(history) == recipe.epochs or is_stopped(recipe, history, best):
        request["machine"] = machine  # nothing is left to train on this one
    elif changes:
        earlier_machines.append({**machine, "last_epoch": len(history)})
        earlier_values = ", ".join(f"{key} {machine.get(key)}" for key in changes)
        message += f" on another machine ({earlier_values} before), so not to the bytes of one machine"
    notify(message)
    return history, best, earlier_machines


def same_request(stored: dict[str, Any], request: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return ``stored`` if it matches ``request``, else raise OutputError with the differing keys."""
    different = [key for key, value in request.items() if stored.get(key) != value]
    hint = "give another --out, or delete the folder"
    if different == ["machine"]:
        different = list(_differences(stored["machine"], request["machine"]))
        if different == ["precision"]:
            hint = f"--precision {stored['machine']['precision']} continues it; or {hint}"
    if different:
        raise OutputError(
            f"this folder holds a run with another {', '.join(different)}", where=str(folder), hint=hint
        )
    return stored


def _differences(stored: Mapping[str, Any], requested: Mapping[str, Any]) -> dict[str, Any]:
    """Return the requested values of the keys whose values differ."""
    return {
        key: requested.get(key)
        for key in sorted({*stored, *requested})
        if stored.get(key) != requested.get(key)
    }


def announce_cost(
    trainer: Trainer, runs: Sequence[Run], folder: Path, notify: Callable[[str], None], cost: Cost
) -> None:
    """Announce the cost of the unfinished runs; ``trainer`` holds the first of these runs."""
    unfinished = [run for run in runs if not (folder / run.name / METADATA).exists()]
    epochs = [(run.name, run.recipe.epochs) for run in unfinished]
    epochs[0] = (trainer.run.name, trainer.recipe.epochs - trainer.method_state.epoch)
    size = sum(tensor.nbytes for tensor in trainer.module.state_dict().values())
    for line in cost_table(cost, epochs, trainer.data.n_known, size, folder):
        notify(line)


def cost_table(cost: Cost, epochs: Sequence[tuple[str, int]], images: int, size: int, out: Path) -> list[str]:
    """Return the lines of the table, empty if all runs together take less than `MIN_ANNOUNCED_SECONDS`.

    Parameters
    ----------
    epochs : name of each run and the number of epochs that it still has to train.
    images : number of ID
        images.
    size : bytes of a model.
    out : folder of the models.
    """
    total = sum(number for _, number in epochs) * cost.seconds
    if total < MIN_ANNOUNCED_SECONDS:
        return []
    counts = f"{images:,}", f"{cost.forward:.3g}", f"{cost.backward:.3g}"
    rows = [(run, f"{number:,}", *counts, _hours(number * cost.seconds)) for run, number in epochs]
    columns = ("run", "epochs", "ID images", "forward", "backward", "hours")
    lines, _ = text_table(columns, rows[:MAX_ROWS], right=columns[1:], width=terminal_width())
    if len(rows) > MAX_ROWS:
        lines.append(f"and {len(rows) - MAX_ROWS:,} more runs")
    return [
        *lines,
        f"together {_hours(total)} hours, {len(rows) * size / 1e6:,.1f} MB in {out}",
        "forward, backward: images per ID image; plain cross-entropy has 1 and 1",
    ]


def _hours(seconds: float) -> str:
    hours = seconds / 3600
    return f"{hours:,.0f}" if hours >= 10 else f"{hours:.2g}"


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
    """Return the callback of ``tensorboard:FOLDER`` or ``wandb:PROJECT``."""
    name, _, target = text.partition(":")
    if name not in LOGS:
        raise unknown("log", name, LOGS, where="--log")
    return LOGS[name](target or "runs")
