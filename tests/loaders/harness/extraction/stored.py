"""What tests look at in a store of activations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from loaders import UnknownDetectionSet
from loaders.harness.models.transforms import to_uint8

SHARD = 128


def contents(store: Path) -> dict[str, bytes]:
    """Every file of a store but the lock."""
    files = (path for path in store.rglob("*") if path.is_file() and path.suffix != ".lock")
    return {str(path.relative_to(store)): path.read_bytes() for path in files}


def pixels(data: UnknownDetectionSet) -> Any:
    return torch.stack([to_uint8(data[i][0]) for i in range(len(data))]).float() / 255


def folder_of(store: Path) -> Path:
    (found,) = store.rglob("list.json")
    return found.parent
