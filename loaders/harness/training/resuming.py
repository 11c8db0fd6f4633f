"""Resume an interrupted run; reject a folder that holds a different run."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from wordnet_splits.base.errors import OutputError

from .checkpoints.files import load_state
from .checkpoints.recipe import TrainingRecipe
from .trainer import Trainer


def resume(
    trainer: Trainer, folder: Path, request: dict[str, Any], notify: Callable[[str], None]
) -> tuple[list[dict[str, Any]], dict[str, Any], list[dict[str, Any]]]:
    """Restore an interrupted run, and return its history, its best epoch and the machines before this one."""
    saved, recipe = load_state(folder), trainer.recipe
    if saved is None:
        return [], {"epoch": 0, "weights": {}}, []
    stored = json.loads(saved["request"])
    machine, changes = stored["machine"], _differences(stored["machine"], request["machine"])
    same_request({**stored, "machine": {**machine, **_resumable(changes)}}, request, folder)
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


def is_stopped(recipe: TrainingRecipe, history: Sequence[Any], best: Mapping[str, Any]) -> bool:
    """Return whether the recipe's patience is over."""
    return recipe.patience is not None and len(history) - best["epoch"] >= recipe.patience


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


def _resumable(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the changes of a machine that still allow a run to be resumed."""
    return {key: value for key, value in changes.items() if key in ("device", "threads", "torch")}
