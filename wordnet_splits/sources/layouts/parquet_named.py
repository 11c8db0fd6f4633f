"""Datasets as the Hugging Face Hub stores them: Parquet shards with an image column (bytes, path)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath

import pyarrow as pa
import pyarrow.parquet as pq

from wordnet_splits.base.errors import SourceError
from wordnet_splits.base.parquet import open_parquet, parquet_errors
from wordnet_splits.base.untrusted import LARGEST_IMAGE, LONGEST_NAME
from wordnet_splits.sources.layouts.names import NameIndex, Naming, split_extension
from wordnet_splits.sources.layouts.parts import Found
from wordnet_splits.sources.layouts.walk import entries, subfolder

# How the Hub calls a split, in a shard's name (validation-00000-of-00014) or its folder's (validation/0000).
SPLIT_WORDS = {"train": "train", "validation": "val", "valid": "val", "val": "val", "test": "test"}
FOLDERS = ("", "data", "default", "train", "validation", "val", "test")
OPEN_SHARDS = 16
FETCH = "fetch this file again"
SMALLEST_PICTURE = 16  # bytes a row takes at least; a file that announces more rows repeats a few
PARQUET_FRAME = 1 << 16

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
                yield shard, group, self._read(shard, group, columns)

    def columns(self) -> tuple[str, ...]:
        """Return the names of the top-level columns."""
        return tuple(self._file(0).schema_arrow.names)

    def image_bytes(self, shard: int, group: int, row: int) -> bytes:
        """Return one image file's bytes; consecutive calls for one row group read it once."""
        where = f"{self.paths[shard]} row group {group} row {row}"
        data = bytes_at(self._group(shard, group), row, where)
        if data is None:
            raise KeyError(where)
        return data

    def _read_group(self, shard: int, group: int) -> pa.ChunkedArray:
        return field(self._read(shard, group, [f"{self.image}.bytes"]), "bytes")

    def _read(self, shard: int, group: int, columns: Sequence[str]) -> pa.Table:
        path = self.paths[shard]
        with parquet_errors(path, error=SourceError, hint=FETCH):
            table = self._file(shard).read_row_group(group, list(columns))
            table.validate(full=True)  # names that are not UTF-8 and indices beyond a dictionary, too
        # Arrow leaves out what a file does not have
        if missing := sorted({column.split(".")[0] for column in columns} - set(table.column_names)):
            what = f"has no column {', '.join(missing)}, which {self.paths[0].name} has"
            raise SourceError(what, where=str(path), hint=FETCH)
        return table

    def _open(self, shard: int) -> pq.ParquetFile:
        path = self.paths[shard]
        plain = open_parquet(path, error=SourceError)
        if plain.metadata.num_rows * SMALLEST_PICTURE > path.stat().st_size + PARQUET_FRAME:
            raise SourceError(
                f"announces {plain.metadata.num_rows:,} rows, more than it can hold", where=str(path)
            )
        image = image_column(plain.schema_arrow, path)
        # a picture or a name that a dictionary repeats a million times stays one
        return open_parquet(path, error=SourceError, read_dictionary=[f"{image}.bytes", f"{image}.path"])


def bytes_at(pictures: pa.Array, row: int, where: str) -> bytes | None:
    """Return an image file's bytes, None where there are none; SourceError where they are too many."""
    scalar = pictures[row]
    if isinstance(scalar, pa.DictionaryScalar):
        scalar = scalar.value
    buffer = None if scalar is None else scalar.as_buffer()
    if buffer is None:
        return None
    if buffer.size > LARGEST_IMAGE:  # before Arrow copies them, twice
        raise SourceError(f"is an image of {buffer.size:,} bytes", where=where)
    data: bytes = buffer.to_pybytes()
    return data


def field(table: pa.Table, name: str) -> pa.Array:
    """Return one field of the struct that is a table's only column."""
    return table.column(0).combine_chunks().field(name)


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
        return HubReader(shards, self._stems(shards))

    def _stems(self, shards: Shards) -> Iterator[tuple[int, int, list[str | None]]]:
        trim = re.compile(f"(?:{self.suffix})$" if self.suffix else "$")
        for shard, group, table in shards.rows(f"{shards.image}.path"):
            names = field(table, "path")
            if isinstance(names, pa.DictionaryArray):
                stems = [_stem(path, trim) for path in names.dictionary.to_pylist()]
                yield shard, group, [None if i is None else stems[i] for i in names.indices.to_pylist()]
            else:
                yield shard, group, [_stem(path, trim) for path in names.to_pylist()]


class HubReader:
    """Finds a file name's row."""

    def __init__(self, shards: Shards, groups: Iterable[tuple[int, int, list[str | None]]]) -> None:
        self._shards = shards
        rows = (
            (stem, (shard, group, row)) for shard, group, stems in groups for row, stem in enumerate(stems)
        )
        self._index = NameIndex(rows, str(shards.paths[0].parent))

    def read(self, class_id: str, stem: str) -> bytes:
        """Return a file's bytes; KeyError where no row has the name, SourceError where two have."""
        return self._shards.image_bytes(*self._index.place(stem))

    def position(self, class_id: str, stem: str) -> tuple[int, ...]:
        """Return (shard, row group, row)."""
        return self._index.place(stem)


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
    if not path or len(path) > LONGEST_NAME:
        return None
    name = PurePosixPath(path.replace(os.sep, "/")).name
    return trim.sub("", split_extension(name) or name, count=1)
