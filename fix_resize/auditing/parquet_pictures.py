"""Pictures in Parquet files with an image column, as `datasets` writes them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from wordnet_splits.base.errors import DataError, SourceError
from wordnet_splits.base.parquet import open_parquet, parquet_errors
from wordnet_splits.base.untrusted import LARGEST_IMAGE, LONGEST_NAME

COLUMNS: Final = ("image", "img")
"""Columns that may contain pictures: a struct of bytes and path, as `datasets` writes, or bytes."""

ROWS: Final = 256
"""Rows in memory at a time."""

Position = tuple[int, int]
"""Index of a file, and row in it."""


def has_pictures(path: Path) -> bool:
    """Return whether a Parquet file has a column of pictures; SourceError if it cannot be read."""
    return _column(open_parquet(path, error=SourceError).schema_arrow) is not None


def _column(schema: pa.Schema) -> str | None:
    return next((n for n in COLUMNS if n in schema.names and _bytes_in(schema.field(n).type)), None)


def _picture_column(file: pq.ParquetFile) -> str:
    column = _column(file.schema_arrow)
    assert column is not None, "only files with pictures are read"
    return column


def _bytes_in(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return bool(kind.get_field_index("bytes") >= 0)
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def name_rows(files: Sequence[Path]) -> dict[str, Position]:
    """Return the position of each picture by name.

    The name of a row is its ``image_id``, else the path in the image column without extension, else, or if an
    earlier row has the same name, ``<folder>/<file>/<row>``.

    Raises
    ------
    DataError : two rows have the same name.
    SourceError : a file cannot be read.
    """
    positions: dict[str, Position] = {}
    for index, path in enumerate(files):
        with _open_file(path) as file:
            for row, stored_name in enumerate(_names(file, path)):
                name = stored_name
                if not name or name in positions:
                    name = f"{path.parent.name}/{path.stem}/{row}"
                if name in positions:
                    raise DataError(f"two rows are called {name!r}", where=str(path))
                positions[name] = (index, row)
    return positions


def read_rows(files: Sequence[Path], positions: Collection[Position]) -> Iterator[tuple[Position, bytes]]:
    """Yield (position, bytes) of pictures, in order of files and rows.

    Raises
    ------
    SourceError : a file cannot be read.
    """
    for index, path in enumerate(files):
        if rows := {row for file_index, row in positions if file_index == index}:
            with _open_file(path) as file:
                yield from (((index, row), data) for row, data in _bytes(file, rows, path))


def _names(file: pq.ParquetFile, path: Path) -> Iterator[str]:
    """Yield the name stored in each row, "" if there is none."""
    schema, column = file.schema_arrow, _picture_column(file)
    if "image_id" in schema.names:
        yield from (str(name or "") for name in _texts(file, "image_id", path))
    elif pa.types.is_struct(kind := schema.field(column).type) and kind.get_field_index("path") >= 0:
        yield from map(_without_extension, _texts(file, f"{column}.path", path))
    else:
        yield from ("" for _ in range(file.metadata.num_rows))


def _without_extension(path: str | None) -> str:
    return PurePosixPath(path).with_suffix("").as_posix() if path and PurePosixPath(path).name else ""


def _texts(file: pq.ParquetFile, column: str, path: Path) -> Iterator[str | None]:
    for values in _batches(file, column, path):
        distinct = values.dictionary if isinstance(values, pa.DictionaryArray) else values
        if (
            distinct.type in (pa.string(), pa.large_string())
            and (pc.max(pc.binary_length(distinct)).as_py() or 0) > LONGEST_NAME
        ):
            raise SourceError(f"has a name of more than {LONGEST_NAME:,} bytes", where=str(path))
        yield from values.to_pylist()


def _bytes(file: pq.ParquetFile, rows: set[int], path: Path) -> Iterator[tuple[int, bytes]]:
    start, column = 0, _picture_column(file)
    leaf = f"{column}.bytes" if pa.types.is_struct(file.schema_arrow.field(column).type) else column
    for values in _batches(file, leaf, path):
        for row in sorted(rows.intersection(range(start, start + len(values)))):
            data = values[row - start].as_py() or b""  # one by one: a dictionary may repeat a large picture
            if len(data) > LARGEST_IMAGE:
                raise SourceError(f"row {row} has a picture of {len(data):,} bytes", where=str(path))
            yield row, data
        start += len(values)


def _batches(file: pq.ParquetFile, column: str, path: Path) -> Iterator[pa.Array]:
    """Yield the values of a column, or of a field of a struct, in batches."""
    with parquet_errors(path, error=SourceError):
        for batch in file.iter_batches(batch_size=ROWS, columns=[column]):
            values = batch.column(0)
            yield values.field(0) if pa.types.is_struct(values.type) else values


def _open_file(path: Path) -> pq.ParquetFile:
    header = open_parquet(path, error=SourceError).metadata
    leaves = [header.schema.column(n) for n in range(header.num_columns)]
    # a picture or name that a dictionary repeats a million times takes memory only once
    byte_columns = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]
    return open_parquet(path, error=SourceError, read_dictionary=byte_columns)
