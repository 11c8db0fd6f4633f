"""Datasets as the Hugging Face Hub stores them: Parquet shards with an image column (bytes, path)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from wordnet_splits.base.digests import Pixels
from wordnet_splits.base.errors import DataError, SourceError
from wordnet_splits.base.names import printable
from wordnet_splits.base.parquet import MAX_ROWS, open_parquet, parquet_errors
from wordnet_splits.base.text_formats import parse_json
from wordnet_splits.base.untrusted import LARGEST_IMAGE, LONGEST_NAME, GiB, check_file
from wordnet_splits.datasets.sources.layouts.conventions import find_shards
from wordnet_splits.datasets.sources.layouts.matched_images import (
    Listing,
    MatchedImages,
    Shape,
    decode_pixels,
)
from wordnet_splits.datasets.sources.layouts.named_files import (
    Entry,
    IndexedFiles,
    Naming,
    Position,
    split_extension,
)
from wordnet_splits.datasets.sources.layouts.walk import bases

OPEN_SHARDS = 16
FETCH = "fetch this file again"
SMALLEST_IMAGE = 16  # least bytes a row; a file that announces more rows repeats a few
PARQUET_FRAME = 1 << 16
LARGEST_SPLIT = 4 << 30  # bytes, unpacked; the largest known split has 1.5 GB
LARGEST_ARROW: Final = 1024 * GiB
"""Largest size of an Arrow file in bytes; it is mapped, not read."""


class ParquetTable:
    """A Parquet file; its groups are its row groups.

    Parameters
    ----------
    dictionaries : columns that may repeat an image or a name a million times: it is kept in memory once.
    """

    def __init__(self, path: Path, *, dictionaries: Sequence[str] = ()) -> None:
        self._path = path
        self._file: pq.ParquetFile = open_parquet(path, error=SourceError, read_dictionary=list(dictionaries))
        self.schema: pa.Schema = self._file.schema_arrow
        self.groups: int = self._file.num_row_groups
        self.rows: int = self._file.metadata.num_rows

    def read(self, group: int, columns: Sequence[str]) -> pa.Table:
        """Return some columns of a row group, a field of a struct as ``image.path``. Raises SourceError."""
        with parquet_errors(self._path, error=SourceError, hint=FETCH):
            table = self._file.read_row_group(group, list(columns))
            table.validate(full=True)  # names that are not UTF-8 and indices beyond a dictionary, too
        return table


class ArrowTable:
    """A file of Arrow's stream format; its groups are its record batches.

    Mapped batches together are at most as large as the file; larger batches are compressed, which
    ``datasets`` never writes, and might expand to any size.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        size = check_file(path, largest=LARGEST_ARROW, error=SourceError)
        self._batches: list[pa.RecordBatch] = []
        try:
            stream = pa.ipc.open_stream(pa.memory_map(os.fsencode(path)))
            self.schema: pa.Schema = stream.schema
            rows = mapped_bytes = 0
            for batch in stream:
                rows += batch.num_rows
                mapped_bytes += batch.get_total_buffer_size()
                if rows > MAX_ROWS or mapped_bytes > size:
                    raise SourceError(f"announces {rows:,} rows, more than it can hold", where=str(path))
                self._batches.append(batch)
        except (pa.ArrowException, OSError) as cause:
            raise self._unreadable(cause) from None
        self.groups: int = len(self._batches)

    def read(self, group: int, columns: Sequence[str]) -> pa.Table:
        """Return the columns, whole ones for fields of a struct, not copied. Raises SourceError."""
        names = [column if column in self.schema.names else column.split(".")[0] for column in columns]
        try:
            batch = self._batches[group].select(list(dict.fromkeys(names)))
            batch.validate(full=True)  # offsets in a file may be wrong
        except MemoryError:
            raise
        except (pa.ArrowException, KeyError) as cause:
            raise self._unreadable(cause) from None
        return pa.Table.from_batches([batch])

    def _unreadable(self, cause: Exception) -> SourceError:
        reason = printable(str(cause).split("\n")[0])
        return SourceError(
            f"is not an Arrow file that can be read: {reason}", where=str(self._path), hint="save it again"
        )


Table = ParquetTable | ArrowTable
"""An opened file of rows, read a group at a time; a column of a struct is named like ``img.path``."""


def open_table(path: Path) -> Table:
    """Open a file by its ending. Raises SourceError."""
    return ArrowTable(path) if path.suffix == ".arrow" else ParquetTable(path)


class Shards:
    """Random access to the images of Parquet shards, a row group at a time.

    ``image`` is the name of the column of structs (bytes, path).
    """

    def __init__(self, paths: tuple[Path, ...]) -> None:
        self.paths = paths
        self._table = lru_cache(maxsize=OPEN_SHARDS)(self._open)
        self._group = lru_cache(maxsize=1)(self._read_group)  # up to some 10 MB of files each
        self.image = image_column(self._table(0).schema, paths[0])

    def rows(self, *columns: str) -> Iterator[tuple[int, int, pa.Table]]:
        """Yield (shard, row group, table of ``columns``) of every row group; image bytes stay unread."""
        for shard in range(len(self.paths)):
            for group in range(self._table(shard).groups):
                yield shard, group, self._read(shard, group, columns)

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
        table = self._table(shard).read(group, columns)
        # Arrow leaves out columns that a file does not have
        if missing := sorted({column.split(".")[0] for column in columns} - set(table.column_names)):
            message = f"has no column {', '.join(missing)}, which {self.paths[0].name} has"
            raise SourceError(message, where=str(self.paths[shard]), hint=FETCH)
        return table

    def _open(self, shard: int) -> ParquetTable:
        path = self.paths[shard]
        plain = ParquetTable(path)
        if plain.rows * SMALLEST_IMAGE > path.stat().st_size + PARQUET_FRAME:
            raise SourceError(f"announces {plain.rows:,} rows, more than it can hold", where=str(path))
        image = image_column(plain.schema, path)
        return ParquetTable(path, dictionaries=(f"{image}.bytes", f"{image}.path"))


def bytes_at(images: pa.Array, row: int, where: str) -> bytes | None:
    """Return an image file's bytes, None if the row has no bytes; SourceError if they are too many."""
    scalar = images[row]
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
    message = f"no image column (a struct of bytes and path) among {', '.join(schema.names)}"
    raise SourceError(message, where=str(path))


def row_paths(table: pa.Table) -> list[str | None]:
    """Return the path stored with each image of a table of structs; None if absent or too long."""
    paths = field(table, "path")
    if isinstance(paths, pa.DictionaryArray):  # a long path that a million rows share is one object
        distinct = paths.dictionary.to_pylist()
        values = (None if index is None else distinct[index] for index in paths.indices.to_pylist())
    else:
        values = iter(paths.to_pylist())
    return [path if path and len(path) <= LONGEST_NAME else None for path in values]


class NamedRows(IndexedFiles):
    """The shards of a split whose rows have the publisher's file names.

    ``path`` is the folder of the first of ``paths``, ``suffix`` a regular expression of the suffix that the
    Hub appends to some names, which is removed. A position is (shard, row group, row).
    """

    name = "parquet"

    def __init__(self, paths: tuple[Path, ...], naming: Naming, suffix: str = "") -> None:
        self.path, self.paths, self.naming = paths[0].parent, paths, naming
        self._trim = re.compile(f"(?:{suffix})$" if suffix else "$")

    def members(self, class_id: str | None = None) -> Iterator[tuple[Entry, Position]]:
        """Yield every row's file name."""
        shards = self._shards()
        for shard, group, table in shards.rows(f"{shards.image}.path"):
            for row, stem in enumerate(map(self._stem, row_paths(table))):
                yield (None, stem, stem or "(a row without a file name)"), (shard, group, row)

    def read_at(self, position: Position) -> bytes:
        """Return the bytes of a row's image."""
        return self._shards().image_bytes(*position)

    def _shards(self) -> Shards:
        return self.cached("shards", lambda: Shards(self.paths))

    def _stem(self, path: str | None) -> str | None:
        if not path:
            return None
        name = PurePosixPath(path.replace(os.sep, "/")).name
        return self._trim.sub("", split_extension(name) or name, count=1)


def find_named_rows(base: Path, root: Path, split: str, naming: Naming, suffix: str = "") -> NamedRows | None:
    """Return the shards of a split as a layout, None without shards; refuse rows without names."""
    paths = find_shards(base, root).get(split)
    if not paths:
        return None
    layout = NamedRows(paths, naming, suffix)
    entry = next(layout.entries(), None)
    if entry is not None and entry[1] is None:
        raise SourceError(
            f"this Parquet copy of {naming.source} must have file names, which identify its images",
            where=str(paths[0]),
            hint="use a copy whose image.path holds the publisher's file names, or the publisher's files",
        )
    return layout


class _Row(NamedTuple):
    shard: int
    group: int
    row: int
    label: int | None


class ParquetImages(MatchedImages):
    """Parquet files, whose images are identified by pixels or by position.

    Parameters
    ----------
    paths : the shards of each split.
    label : name of the column of labels.
    shape : (h, w, 3) of every image.
    """

    name = "parquet"

    def __init__(
        self,
        source: str,
        root: Path,
        paths: Mapping[str, tuple[Path, ...]],
        label: str,
        shape: Shape,
        *,
        positional: bool,
    ) -> None:
        super().__init__(source, root, positional=positional)
        self._paths, self._label, self._shape = paths, label, shape

    def listing(self, split: str) -> Listing:
        """Return the rows of a split, in the order stored."""
        rows = self._rows(split)
        ids = self.class_ids
        labels = (row.label for row in rows)
        classes = [ids[n] if n is not None and 0 <= n < len(ids) else None for n in labels]

        def describe(index: int) -> str:
            problem = "unknown label" if classes[index] is None else "pixels of no known image"
            return f"{self._paths[split][rows[index].shard].name}: {problem}"

        return Listing(classes, describe)

    def pixels(self, split: str, index: int) -> Pixels:
        """Return an image, uint8 (h, w, 3)."""
        shard, group, row, _ = self._rows(split)[index]
        images = self.cached(f"images {split}", lambda: self._load(split))
        where = f"{self._paths[split][shard]}, row group {group}, row {row}"
        data = bytes_at(images[shard, group], row, where)
        if data is None:
            raise SourceError("the row has no image", where=where)
        return decode_pixels(data, where=where, shape=self._shape)

    def _rows(self, split: str) -> list[_Row]:
        return self.cached(f"rows {split}", lambda: self._read_rows(self._paths.get(split, ())))

    def _read_rows(self, paths: tuple[Path, ...]) -> list[_Row]:
        rows: list[_Row] = []
        for shard, group, table in Shards(paths).rows(self._label) if paths else ():
            labels = table.column(0)
            if not pa.types.is_integer(labels.type):
                message = f"its column {self._label} does not hold integers"
                raise SourceError(message, where=str(paths[shard]), hint=FETCH)
            rows += [_Row(shard, group, row, label) for row, label in enumerate(labels.to_pylist())]
        return rows

    def _load(self, split: str) -> dict[tuple[int, int], pa.Array]:
        """Return the encoded images by shard and row group; they are read in any order."""
        shards = Shards(self._paths[split])
        files = [open_parquet(path, error=SourceError).metadata for path in shards.paths]
        size = sum(file.row_group(n).total_byte_size for file in files for n in range(file.num_row_groups))
        if size > LARGEST_SPLIT:
            raise SourceError(f"{split} would unpack to {size:,} bytes", where=str(shards.paths[0].parent))
        columns = shards.rows(f"{shards.image}.bytes")
        return {(s, g): field(table, "bytes") for s, g, table in columns}


def find_parquet_images(
    source: str,
    root: Path,
    *,
    configs: tuple[str, ...],
    in_config: bool = False,
    image: str = "image",
    label: str = "label",
    shape: Shape,
    misspelt: Mapping[str, str] = MappingProxyType({}),
    positional: bool = False,
) -> ParquetImages | None:
    """Return the Parquet files of a dataset, None if the root has no such files.

    Parameters
    ----------
    configs : folders that may hold the files. ``in_config`` requires such a folder, because other datasets
        have the same columns.
    image, label : names of the columns.
    misspelt : class name in the Hub's files -> the publisher's, where they differ.

    Raises SourceError if there are files, but none can be read.
    """
    for base in bases(root, *configs):
        if in_config and not set(base.parts) & set(configs):
            continue
        shards = find_shards(base, root)
        layout = ParquetImages(source, root, shards, label, shape, positional=positional)
        paths = [path for split, paths in shards.items() if split in layout.splits for path in paths]
        if paths and _fits(paths, image, label, layout.class_ids, misspelt):
            return layout
    return None


def _fits(
    paths: list[Path], image: str, label: str, class_ids: tuple[str, ...], misspelt: Mapping[str, str]
) -> bool:
    """Return whether the first readable file has our columns and, if it names its classes, ours."""
    for path in paths:
        try:
            schema = open_parquet(path, error=SourceError).schema_arrow
        except SourceError:
            continue
        types = {column.name: column.type for column in schema}
        struct = types.get(image, pa.null())
        has_images = pa.types.is_struct(struct) and struct.get_field_index("bytes") >= 0
        has_labels = pa.types.is_integer(types.get(label, pa.null()))
        names = tuple(misspelt.get(name, name) for name in label_names(schema, label))
        return has_images and has_labels and names in ((), class_ids)
    raise SourceError("cannot be read as Parquet", where=str(paths[0]), hint=FETCH)


def label_names(schema: pa.Schema, label: str) -> tuple[str, ...]:
    """Return the class names that ``datasets`` wrote into the file; empty without class names."""
    written = (schema.metadata or {}).get(b"huggingface")
    if not written:
        return ()
    try:
        about = parse_json(written.decode("utf-8", "replace"), where="huggingface")
        return tuple(str(name) for name in about["info"]["features"][label]["names"])
    except (DataError, KeyError, TypeError):
        return ()
