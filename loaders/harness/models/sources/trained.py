"""Folders of networks that ``unknown-eval train`` wrote, and the facts that such a network states."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from wordnet_splits.base.errors import DataError

from ..transforms import Normalise

PREFIX = "trained:"
METADATA = "model.json"
"""File of a folder that `unknown-eval train` has finished."""


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
    """Return the sorted folders of models at a path: a model's folder, a folder of models, or a pattern.

    Raises
    ------
    DataError : the path has no models.
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
