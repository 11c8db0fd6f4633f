"""Networks that ``unknown-eval train`` wrote: ``trained:FOLDER``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from wordnet_splits.base.errors import DataError

from ...training.checkpoints.files import METADATA, load_checkpoint
from ..transforms import Normalise
from .registry import LoadedModel, ModelRequest, register_model_source

PREFIX = "trained:"


@register_model_source("trained")
def trained_network(name: str, request: ModelRequest) -> LoadedModel:
    """Load a trained network; its classes are those of its training.

    Raises
    ------
    DataError : there is no finished model, or weights are given in addition.
    """
    if request.weights is not None:
        raise DataError("a trained model has weights of its own", where=PREFIX + name)
    module = load_checkpoint(name, trust=request.trust)
    benchmark, run = module.metadata["benchmark"]["name"], module.metadata["run"]
    return LoadedModel(
        f"{benchmark}/{run}",
        module,
        repr(module),
        series=f"{benchmark}/{module.metadata['series']}",
        **training_facts(module),
    )


def training_facts(module: Any) -> dict[str, Any]:
    """Return the classes, background column, normalisation and head of a network of `load_checkpoint`."""
    inputs = module.metadata["input"]
    return {
        "classes": module.classes,
        "background": module.background,
        "normalise": Normalise.of(inputs["mean"], inputs["std"]),
        "head": (module.metadata.get("method") or {}).get("head"),
    }


def trained_folders(name: str) -> list[Path]:
    """Return the sorted folders of models at a path: a model's folder, a folder of them, or a pattern.

    Raises
    ------
    DataError : there is none.
    """
    path = Path(name)
    if any(c in name for c in "*?["):
        candidates = sorted(Path(path.anchor or ".").glob(str(path.relative_to(path.anchor))))
    elif (path / METADATA).exists() or not path.is_dir():
        candidates = [path]
    else:
        candidates = sorted(path.iterdir())
    folders = [folder for folder in candidates if (folder / METADATA).is_file()]
    if not folders:
        raise DataError(
            "no trained model here", where=name, hint="give a folder that `unknown-eval train` has written"
        )
    return folders
