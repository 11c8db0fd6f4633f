"""The files that a dataset in shards consists of, and the split that the name of each says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from wordnet_splits.base.errors import SourceError
from wordnet_splits.base.names import printable
from wordnet_splits.sources.layouts.parquet_named import SPLIT_WORDS
from wordnet_splits.sources.layouts.walk import entries
from wordnet_splits.sources.own.layout import ALL

DEEPEST: Final = 3
"""Folders between the root and its shards."""

_WORD = re.compile(r"([a-zA-Z]+)(?:[-_.0-9].*)?")


def shards(root: Path, pattern: str | None, ending: str, what: str) -> list[Path]:
    """Return the files of an ending below a root, sorted, of those that match a pattern.

    Parameters
    ----------
    what : such a file in words, for the error.

    Raises
    ------
    SourceError : there is none.
    """
    found = sorted(_files(root, root, ending))
    if pattern is not None:
        found = [path for path in found if path.relative_to(root).match(pattern)]
    if not found:
        raise SourceError(
            f"no {what} matches {printable(pattern)}" if pattern else f"there is no {what}",
            where=str(root),
            hint=f"as in ROOT/train{ending} or ROOT/data/train-00000-of-00001{ending}",
        )
    return found


def split_of(relative: Path) -> str:
    """Return the split of a shard by its name or that of a folder above it; ``all`` without one."""
    for name in (relative.name, *(parent.name for parent in relative.parents)):
        match = _WORD.fullmatch(name)
        if match and match[1].lower() in SPLIT_WORDS:
            return SPLIT_WORDS[match[1].lower()]
    return ALL


def _files(folder: Path, root: Path, ending: str, level: int = 0) -> Iterator[Path]:
    for entry in entries(folder, root, lambda name: name.endswith(ending)):
        if entry.is_dir():
            if level < DEEPEST:
                yield from _files(folder / entry.name, root, ending, level + 1)
        elif entry.name.endswith(ending) and not entry.name.endswith(".inventory.parquet"):
            yield folder / entry.name
