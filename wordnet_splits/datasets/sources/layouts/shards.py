"""The files of a dataset in shards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from wordnet_splits.base.errors import SourceError
from wordnet_splits.base.names import printable
from wordnet_splits.datasets.sources.layouts.split_words import SPLIT_WORDS, parse_split
from wordnet_splits.datasets.sources.layouts.walk import entries, subfolder

DEEPEST: Final = 3
"""Largest number of folders between the root and its shards."""

FOLDERS = ("", "data", "default", "train", "validation", "val", "test")


def shards(root: Path, pattern: str | None, extension: str, kind: str) -> list[Path]:
    """Return the files below a root that have an extension and match a pattern, sorted.

    Parameters
    ----------
    kind : such a file in words, for the error.

    Raises
    ------
    SourceError : the folder has no shard.
    """
    paths = sorted(_files(root, root, extension))
    if pattern is not None:
        paths = [path for path in paths if path.relative_to(root).match(pattern)]
    if not paths:
        message = f"no {kind} matches {printable(pattern)}" if pattern else f"there is no {kind}"
        hint = f"as in ROOT/train{extension} or ROOT/data/train-00000-of-00001{extension}"
        raise SourceError(message, where=str(root), hint=hint)
    return paths


def _files(folder: Path, root: Path, extension: str, level: int = 0) -> Iterator[Path]:
    for entry in entries(folder, root, lambda name: name.endswith(extension)):
        if entry.is_dir():
            if level < DEEPEST:
                yield from _files(folder / entry.name, root, extension, level + 1)
        elif entry.name.endswith(extension) and not entry.name.endswith(".inventory.parquet"):
            yield folder / entry.name


def find_shards(base: Path, root: Path) -> dict[str, tuple[Path, ...]]:
    """Return split (train, val, test) -> its shards in order, for Parquet files in or just below ``base``."""
    shards: dict[str, list[Path]] = {}
    for folder in _shard_folders(base, root):
        names = (entry.name for entry in entries(folder, root, _is_shard))
        for name in sorted(filter(_is_shard, names)):
            split = _hub_split(name) or _hub_split(folder.name)
            if split is not None:
                shards.setdefault(split, []).append(folder / name)
    return {split: tuple(paths) for split, paths in shards.items()}


def _shard_folders(base: Path, root: Path) -> Iterator[Path]:
    outer = [folder for name in FOLDERS if (folder := subfolder(base, name, root))]
    inner = [f for top in outer[1:] for name in SPLIT_WORDS if (f := subfolder(top, name, root))]
    yield from dict.fromkeys((*outer, *inner))


def _is_shard(name: str) -> bool:
    return name.endswith(".parquet")


def _hub_split(name: str) -> str | None:
    split = parse_split(name.removesuffix(".parquet"))
    return split.kind if split is not None and not split.more and split.kind in FOLDERS else None
