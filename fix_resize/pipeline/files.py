"""Writing files so that a kill, a full disk or a second writer leaves whole files only."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa

from wordnet_splits.errors import OutputError

WORK: Final = ".shards"
"""Folder below an output that holds what a build knows of its shards."""

_UNFINISHED: Final = "unfinished"


@contextmanager
def replacing(root: Path, file: str) -> Iterator[Path]:
    """Yield a path to write to, which becomes ``root/file`` in one step when the block ends well.

    Raises
    ------
    OutputError : it cannot be written.
    """
    target, part = root / file, root / WORK / _UNFINISHED / uuid4().hex
    with writing(target):
        try:
            yield part
            _place(part, target)
        except BaseException:
            part.unlink(missing_ok=True)
            raise


def _place(part: Path, target: Path) -> None:
    try:
        part.replace(target)
    except FileNotFoundError:  # the first file of its folder
        target.parent.mkdir(parents=True, exist_ok=True)
        part.replace(target)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn what the system says against writing ``path`` into an OutputError."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        number = getattr(error, "errno", None)
        raise OutputError(
            f"cannot be written: {os.strerror(number) if number else error}",
            where=str(path),
            hint="check its rights and the space left; the same command goes on from here",
        ) from error


def write_bytes(root: Path, file: str, data: bytes) -> None:
    """Write a whole file in one step. Raises as `replacing`."""
    with replacing(root, file) as part:
        part.write_bytes(data)


def write_json(root: Path, file: str, value: Mapping[str, Any]) -> None:
    """Write an object in one step, keys sorted. Raises as `replacing`."""
    text = json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    write_bytes(root, file, text.encode())


def prepare(root: Path) -> None:
    """Make a folder that can be written to by this module, without what killed writers left unfinished.

    Raises
    ------
    OutputError : it cannot be written.
    """
    clear(root)
    with writing(root):
        (root / WORK / _UNFINISHED).mkdir(parents=True, exist_ok=True)


def clear(root: Path) -> None:
    """Remove what is unfinished, and the place for it."""
    shutil.rmtree(root / WORK / _UNFINISHED, ignore_errors=True)
