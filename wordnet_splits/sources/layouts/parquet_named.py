"""Datasets as the Hugging Face Hub stores them: Parquet shards with an image column (bytes, path)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from wordnet_splits.errors import SourceError
from wordnet_splits.sources.layouts.names import Naming, split_extension
from wordnet_splits.sources.layouts.parts import Found
from wordnet_splits.sources.layouts.walk import entries, subfolder

# How the Hub calls a split, in a shard's name (validation-00000-of-00014) or its folder's (validation/0000).
SPLIT_WORDS = {"train": "train", "validation": "val", "valid": "val", "val": "val", "test": "test"}
FOLDERS = ("", "data", "default", "train", "validation", "val", "test")
OPEN_SHARDS = 16

_WORD = re.compile(r"(?:partial-)?([a-z]+)(?:[-_.0-9].*)?")


def find_shards(base: Path, root: Path) -> dict[str, tuple[Path, ...]]:
    """Return split (train, val, test) -> its shards in order, for Parquet files in or just below ``base``."""
    found: dict[str, list[Path]] = {}
    for folder in _shard_folders(base, root):
        names = (entry.name for entry in entries(folder, root, _is_shard))
        for name in sorted(filter(_is_shard, names)):
            split = _split_of(name) or _split_of(folder.name)
            if split is not None:
                found.setdefault(split, []).append(folder / name)
    return {split: tuple(paths) for split, paths in found.items()}


def _shard_folders(base: Path, root: Path) -> Iterator[Path]:
    outer = [folder for name in FOLDERS if (folder := subfolder(base, name, root))]
    inner = [f for top in outer[1:] for name in SPLIT_WORDS if (f := subfolder(top, name, root))]
    yield from dict.fromkeys((*outer, *inner))


def _is_shard(name: str) -> bool:
    return name.endswith(".parquet")


def _split_of(name: str) -> str | None:
    match = _WORD.fullmatch(name)
    return SPLIT_WORDS.get(match[1]) if match else None


class Shards:
    """Random access to the images of Parquet shards, a row group at a time.

    ``image`` is the name of the column of structs (bytes, path); others are read by :meth:`column`.
    """

    def __init__(self, paths: tuple[Path, ...]) -> None:
        self.paths = paths
        self._file = lru_cache(maxsize=OPEN_SHARDS)(self._open)
        self._group = lru_cache(maxsize=1)(self._read_group)  # up to some 10 MB of files each
        self.image = image_column(self._file(0).schema_arrow, paths[0])

    def rows(self, *columns: str) -> Iterator[tuple[int, int, pa.Table]]:
        """Yield (shard, row group, table of ``columns``) of every row group; image bytes stay unread.

        A column of the image struct is named like ``image.path``.
        """
        for shard in range(len(self.paths)):
            file = self._file(shard)
            for group in range(file.num_row_groups):
                yield shard, group, self._guard(shard, file.read_row_group, group, list(columns))

    def columns(self) -> tuple[str, ...]:
        """Return the names of the top-level columns."""
        return tuple(self._file(0).schema_arrow.names)

    def image_bytes(self, shard: int, group: int, row: int) -> bytes:
        """Return one image file's bytes; consecutive calls for one row group read it once."""
        data: bytes | None = self._group(shard, group)[row].as_py()
        if data is None:
            raise KeyError(f"{self.paths[shard]} row group {group} row {row}")
        return data

    def _read_group(self, shard: int, group: int) -> pa.ChunkedArray:
        file = self._file(shard)
        table = self._guard(shard, file.read_row_group, group, [f"{self.image}.bytes"])
        column = table.column(0).combine_chunks()
        return column.field("bytes")

    def _open(self, shard: int) -> pq.ParquetFile:
        return self._guard(shard, pq.ParquetFile, self.paths[shard])

    def _guard(self, shard: int, call: Any, *args: Any) -> Any:
        try:
            return call(*args)
        except (pa.ArrowException, OSError) as error:
            line = str(error).splitlines()[0]
            raise SourceError(
                f"the Parquet file is truncated or corrupt ({line})",
                where=str(self.paths[shard]),
                hint="fetch this file again",
            ) from error


def image_column(schema: pa.Schema, path: Path) -> str:
    """Return the name of the column of structs (bytes, path)."""
    for field in schema:
        if pa.types.is_struct(field.type) and {"bytes", "path"} <= {f.name for f in field.type}:
            name: str = field.name
            return name
    raise SourceError(
        f"no image column (a struct of bytes and path) among {', '.join(schema.names)}", where=str(path)
    )


@dataclass(frozen=True)
class HubPart:
    """The shards of one split whose rows carry the publisher's file names.

    ``suffix`` is a regular expression of what the Hub put behind the name, taken away where it stands.
    """

    paths: tuple[Path, ...]
    root: Path
    naming: Naming
    suffix: str = ""
    layout: str = "parquet"

    def names(self) -> Iterator[Found]:
        """Yield every row's file name."""
        for _, _, stems in self._stems(Shards(self.paths)):
            yield from ((None, stem, stem or "(a row without a file name)") for stem in stems)

    def reader(self) -> HubReader:
        """Index the shards."""
        shards = Shards(self.paths)
        return HubReader(shards, list(self._stems(shards)))

    def _stems(self, shards: Shards) -> Iterator[tuple[int, int, list[str | None]]]:
        trim = re.compile(f"(?:{self.suffix})$" if self.suffix else "$")
        for shard, group, table in shards.rows(f"{shards.image}.path"):
            paths = table.column(0).combine_chunks().field("path").to_pylist()
            yield shard, group, [_stem(path, trim) for path in paths]


class HubReader:
    """Finds a file name's row; the index holds 12 bytes a row beside the name."""

    def __init__(self, shards: Shards, groups: list[tuple[int, int, list[str | None]]]) -> None:
        self._shards = shards
        stems = [stem or "" for _, _, group in groups for stem in group]
        places = [(shard, group, row) for shard, group, names in groups for row in range(len(names))]
        names = np.array(stems or [""], dtype=np.bytes_)
        order = np.argsort(names, kind="stable")
        self._names = names[order]
        self._places = np.array(places or [(0, 0, 0)], dtype=np.int32)[order]

    def read(self, class_id: str, stem: str) -> bytes:
        """Return a file's bytes; KeyError where no row has the name."""
        return self._shards.image_bytes(*self.position(class_id, stem))

    def position(self, class_id: str, stem: str) -> tuple[int, int, int]:
        """Return (shard, row group, row)."""
        key = stem.encode()
        found = int(np.searchsorted(self._names, key))
        if found == len(self._names) or self._names[found] != key:
            raise KeyError(stem)
        shard, group, row = (int(value) for value in self._places[found])
        return shard, group, row


def hub_part(base: Path, root: Path, split: str, naming: Naming, suffix: str = "") -> HubPart | None:
    """Return the shards of one split as a part, None where there are none; refuse rows without names."""
    paths = find_shards(base, root).get(split)
    if not paths:
        return None
    part = HubPart(paths, root, naming, suffix)
    first = next(iter(part.names()), None)
    if first is not None and first[1] is None:
        raise SourceError(
            f"this Parquet copy of {naming.source} has no file names, so its images cannot be told apart",
            where=str(paths[0]),
            hint="use a copy whose image.path holds the publisher's file names, or the publisher's files",
        )
    return part


def _stem(path: str | None, trim: re.Pattern[str]) -> str | None:
    if not path:
        return None
    name = PurePosixPath(path.replace(os.sep, "/")).name
    return trim.sub("", split_extension(name) or name, count=1)
