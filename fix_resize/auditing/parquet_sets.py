"""Pictures in Parquet files: an ``image`` column of bytes, as `datasets` writes it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from wordnet_splits.errors import DataError, SourceError

COLUMNS: Final = ("image", "img")
"""Columns that may hold pictures: a struct of bytes and path, as `datasets` writes it, or bytes."""

ROWS: Final = 256
"""Rows of Parquet held at a time."""

Place = tuple[int, int]
"""Which Parquet file, and which row of it."""


def holds_pictures(path: Path) -> bool:
    """Say whether a Parquet file has a column of pictures; SourceError where it cannot be read."""
    with _opened(path) as file:
        return _column(file.schema_arrow) is not None


def _column(schema: pa.Schema) -> str | None:
    return next((n for n in COLUMNS if n in schema.names and _bytes_in(schema.field(n).type)), None)


def _pictures_in(file: pq.ParquetFile) -> str:
    column = _column(file.schema_arrow)
    assert column is not None, "only files that hold pictures are read"
    return column


def _bytes_in(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return bool(kind.get_field_index("bytes") >= 0)
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def name_rows(files: Sequence[Path]) -> dict[str, Place]:
    """Return where the picture of each name is.

    A row's name is its ``image_id``, else the path beside the bytes without extension; where there is none,
    or an earlier row has it, ``<folder>/<file>/<row>``.

    Raises
    ------
    DataError : two rows have one name.
    SourceError : a file cannot be read.
    """
    places: dict[str, Place] = {}
    for number, path in enumerate(files):
        with _opened(path) as file:
            for row, given in enumerate(_names(file, path)):
                name = given if given and given not in places else f"{path.parent.name}/{path.stem}/{row}"
                if name in places:
                    raise DataError(f"two rows are called {name!r}", where=str(path))
                places[name] = (number, row)
    return places


def read_rows(files: Sequence[Path], places: Collection[Place]) -> Iterator[tuple[Place, bytes]]:
    """Yield (place, bytes) of the pictures at ``places``, in order of files and rows.

    Raises
    ------
    SourceError : a file cannot be read.
    """
    for number, path in enumerate(files):
        if wanted := {row for which, row in places if which == number}:
            with _opened(path) as file:
                yield from (((number, row), data) for row, data in _bytes(file, wanted, path))


def _names(file: pq.ParquetFile, path: Path) -> Iterator[str]:
    """Yield what each row is called, "" where it has no name."""
    schema, column = file.schema_arrow, _pictures_in(file)
    if "image_id" in schema.names:
        yield from (
            str(v or "") for batch in _batches(file, ["image_id"], path) for v in batch[0].to_pylist()
        )
    elif pa.types.is_struct(kind := schema.field(column).type) and kind.get_field_index("path") >= 0:
        for batch in _batches(file, [f"{column}.path"], path):
            yield from (_without_extension(v and v["path"]) for v in batch[0].to_pylist())
    else:
        yield from ("" for _ in range(file.metadata.num_rows))


def _without_extension(path: str | None) -> str:
    return PurePosixPath(path).with_suffix("").as_posix() if path and PurePosixPath(path).name else ""


def _bytes(file: pq.ParquetFile, wanted: set[int], path: Path) -> Iterator[tuple[int, bytes]]:
    start = 0
    for batch in _batches(file, [_pictures_in(file)], path):
        rows = [row for row in range(start, start + len(batch)) if row in wanted]
        values = batch.column(0).take(pa.array([row - start for row in rows], pa.int64())).to_pylist()
        for row, value in zip(rows, values, strict=True):
            yield row, (value.get("bytes") if isinstance(value, dict) else value) or b""
        start += len(batch)


def _batches(file: pq.ParquetFile, columns: list[str], path: Path) -> Iterator[pa.RecordBatch]:
    try:
        yield from file.iter_batches(batch_size=ROWS, columns=columns)
    except (pa.ArrowException, OSError) as error:
        raise _damaged(path, error) from error


def _opened(path: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        raise _damaged(path, error) from error


def _damaged(path: Path, error: BaseException) -> SourceError:
    return SourceError(
        "is not a Parquet file that can be read", where=str(path), hint=str(error).split("\n")[0][:200]
    )
