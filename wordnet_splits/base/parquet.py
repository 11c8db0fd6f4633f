"""Parquet: written with fixed settings, so that equal rows give equal bytes; read only within bounds."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.files import replacing, write_text
from wordnet_splits.base.names import printable
from wordnet_splits.base.tabular import write_csv
from wordnet_splits.base.untrusted import ErrorType, GiB, MiB, check_file, reason_of

ROW_GROUP_ROWS: Final = 131_072
COMPRESSION_LEVEL: Final = 19
# Sorted names share long prefixes: front coding, then zstd, beats a dictionary of unique values.
FRONT_CODED: Final = frozenset({"image_id"})
# SHA-256 is incompressible and (nearly) unique: neither dictionary nor compression pays.
RAW: Final = frozenset({"digest"})

LARGEST_TABLE: Final = 8 * GiB
"""Largest expanded size that a file may declare, in bytes (14 million rows of ours take 2 GiB)."""
LARGEST_ROW_GROUP: Final = 512 * MiB
"""Largest size of an expanded row group, in bytes."""
MAX_ROWS: Final = 100_000_000
FEW_ROWS: Final = 1_000_000
"""Largest number of rows exempt from `MAX_ROWS_PER_BYTE`."""
MAX_ROWS_PER_BYTE: Final = 4
"""Most rows per byte of the file (ours have 1)."""
SMALL_TABLE: Final = 256 * MiB
"""Largest expanded size exempt from `MAX_EXPANSION`, in bytes."""
MAX_EXPANSION: Final = 64
"""Largest ratio of expanded bytes to bytes of the file (ours reach 30)."""

NUMBER: Final = pa.field("image", pa.int32())
"""Column of ascending numbers of images; only their differences are stored, in almost no space."""
IMAGE: Final = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
"""Type of a column of images, as Hugging Face's `datasets` stores them."""


def schema_of(columns: str) -> pa.Schema:
    """Return the schema of ``NAME`` or ``NAME:TYPE`` columns: text without a type, ``sha256`` 32 bytes.

    >>> schema_of("image_id label:int32").types
    [DataType(string), DataType(int32)]
    """
    parts = (column.partition(":") for column in columns.split())
    kinds = {"": pa.string(), "sha256": pa.binary(32)}
    return pa.schema([(name, kinds.get(kind) or pa.type_for_alias(kind)) for name, _, kind in parts])


def hub_metadata(schema: pa.Schema, classes: Sequence[str] = ()) -> dict[str, str]:
    """Return the metadata that makes `datasets` read columns of `IMAGE` as images.

    Parameters
    ----------
    classes : names of the values of a column ``label`` from 0 on, which becomes a ClassLabel.
    """
    features: dict[str, dict[str, Any]] = {
        field.name: {"_type": "Image"}
        if field.type.equals(IMAGE)
        else {"dtype": str(field.type), "_type": "Value"}
        for field in schema
    }
    if classes and "label" in features:
        features["label"] = {"names": list(classes), "_type": "ClassLabel"}
    return {"huggingface": json.dumps({"info": {"features": features}})}


def write_table(
    table: pa.Table,
    path: Path,
    *,
    metadata: Mapping[str, str] | None = None,
    compression_level: int = COMPRESSION_LEVEL,
    split_bytes: bool = False,
) -> None:
    """Write ``table`` to ``path`` in one step: readers see the old file or the whole new one.

    The settings are fixed (zstd, row groups of 131,072 rows, fewer in tables of hundreds of columns,
    front-coded ``image_id``, float32 by byte,
    differences of numbers ``image``, uncompressed ``digest``, neither pandas metadata nor times);
    ``metadata`` becomes the schema's metadata and replaces the table's. ``split_bytes`` stores float64 byte
    by byte, too, which suits confidences.

    Raises
    ------
    OutputError : ``path`` cannot be written (no permission, disk full).
    """
    table = table.replace_schema_metadata(dict(metadata) if metadata else None)
    with replacing(Path(path)) as part:
        _write(table, part, compression_level, split_bytes=split_bytes)


def write_table_file(table: pa.Table, path: Path, *, metadata: Mapping[str, str] | None = None) -> None:
    """Write ``table`` as ``.csv`` (texts by `tabular.csv_cell`) or ``.parquet``, in one step.

    Raises
    ------
    DataError : another ending. OutputError : ``path`` cannot be written.
    """
    check_table_file(path)
    if path.suffix == ".parquet":
        write_table(table, path, metadata=metadata)
        return
    text = io.StringIO()
    write_csv(text, [table.column_names, *(row.values() for row in table.to_pylist())])
    write_text(path, text.getvalue())


def check_table_file(path: Path) -> None:
    """Raise DataError for a file that `write_table_file` does not write, by its ending."""
    if path.suffix not in (".csv", ".parquet"):
        raise DataError("tables are written as .csv or .parquet", where=str(path), hint=f"{path.stem}.csv")


def _write(table: pa.Table, path: Path, compression_level: int, *, split_bytes: bool) -> None:
    leaves = _leaf_paths(table.schema)
    encodings = {leaf: "DELTA_BYTE_ARRAY" for leaf in leaves if leaf in FRONT_CODED}
    # confidences share their exponents: byte by byte they take two thirds of the room
    split = (pa.float32(), pa.float64()) if split_bytes else (pa.float32(),)
    encodings |= {field.name: "BYTE_STREAM_SPLIT" for field in table.schema if field.type in split}
    encodings |= {field.name: "DELTA_BINARY_PACKED" for field in table.schema if field.equals(NUMBER)}
    with path.open("wb") as sink:
        pq.write_table(
            table,
            sink,
            version="2.6",
            data_page_version="1.0",
            row_group_size=max(1, min(ROW_GROUP_ROWS, LARGEST_ROW_GROUP // (16 * len(leaves)))),
            compression={leaf: "NONE" if leaf in RAW else "ZSTD" for leaf in leaves},
            compression_level={leaf: compression_level for leaf in leaves if leaf not in RAW},
            use_dictionary=[leaf for leaf in leaves if leaf not in RAW and leaf not in encodings] or False,
            column_encoding=encodings or None,
            write_statistics=[leaf for leaf in leaves if leaf not in RAW] or False,
        )


def _leaf_paths(schema: pa.Schema) -> list[str]:
    """Return the dotted names of the leaf columns, as the writer's per-column settings require."""
    sink = io.BytesIO()
    pq.write_table(schema.empty_table(), sink)
    leaves = pq.read_metadata(io.BytesIO(sink.getvalue())).schema
    return [leaves.column(i).path for i in range(len(leaves))]


def read_table(
    path: Path,
    columns: Sequence[str] | None = None,
    *,
    error: ErrorType = DataError,
    max_rows: int = MAX_ROWS,
) -> pa.Table:
    """Return the table at ``path``, or its top-level ``columns`` in the order given.

    Raises
    ------
    error : as `parquet_file`, or a column is absent.
    """
    with parquet_file(Path(path), error=error, max_rows=max_rows) as file:
        names = file.schema_arrow.names
        if missing := [name for name in columns or () if name not in names]:
            hint = f"it holds {', '.join(names)}"
            raise error(f"has no column {missing[0]!r}", where=str(path), hint=hint)
        return file.read(columns=None if columns is None else list(columns))


@contextmanager
def parquet_file(
    path: Path, *, error: ErrorType = DataError, max_rows: int = MAX_ROWS
) -> Iterator[pq.ParquetFile]:
    """Yield a Parquet file, open for reading.

    Raises
    ------
    error : the file is absent, not a regular file, not Parquet, damaged, has more than ``max_rows`` rows, or
        is too large when expanded.
    """
    with parquet_errors(path, error=error), open_parquet(path, error=error, max_rows=max_rows) as file:
        _check_texts(file, path, error)
        yield file


def _check_texts(file: pq.ParquetFile, path: Path, error: ErrorType) -> None:
    """Raise an error for a column of text that expands to more than `LARGEST_ROW_GROUP` in a row group.

    The header lacks this size: a dictionary, or front coding, stores a text of megabytes once for all rows.
    But no text is longer than its column's bytes, so a few rows at a time can be read without harm.
    """
    for number in range(file.metadata.num_row_groups):
        group = file.metadata.row_group(number)
        for index in range(group.num_columns):
            column = group.column(index)
            longest = column.total_uncompressed_size
            if column.physical_type != "BYTE_ARRAY" or longest * group.num_rows <= LARGEST_ROW_GROUP:
                continue
            if "UTF8" not in (file.metadata.schema.column(index).converted_type or ""):
                continue  # images, which their readers take a few at a time
            rows = max(1, LARGEST_ROW_GROUP // (4 * max(longest, 1)))
            size = 0
            for batch in file.iter_batches(rows, row_groups=[number], columns=[column.path_in_schema]):
                size += batch.nbytes
                if size > LARGEST_ROW_GROUP:
                    raise error(f"{column.path_in_schema} expands to more than is read", where=str(path))


def open_parquet(
    path: Path,
    *,
    error: ErrorType = DataError,
    max_rows: int = MAX_ROWS,
    read_dictionary: Sequence[str] | None = None,
) -> pq.ParquetFile:
    """Return a Parquet file to be kept open; wrap reads in `parquet_errors`.

    ``read_dictionary`` names columns whose repeated values are kept once, however often the file repeats
    them. Raises as `parquet_file`.
    """
    size = check_file(path, largest=LARGEST_TABLE, error=error)
    with parquet_errors(path, error=error):
        # as bytes: the only form that Arrow accepts for a name that this locale cannot decode
        file = pq.ParquetFile(pa.OSFile(os.fsencode(path)), read_dictionary=read_dictionary)
        names = file.schema_arrow.names
    if len(set(names)) < len(names):  # a reader by name would take either, or raise KeyError
        name = next(name for name in names if names.count(name) > 1)
        raise error(f"holds two columns called {printable(name)!r}", where=str(path))
    header = file.metadata
    groups = [header.row_group(i).total_byte_size for i in range(header.num_row_groups)]
    too_large = (
        header.num_rows > min(max_rows, max(FEW_ROWS, MAX_ROWS_PER_BYTE * size))
        or sum(groups) > min(LARGEST_TABLE, max(SMALL_TABLE, MAX_EXPANSION * size))
        or max(groups, default=0) > LARGEST_ROW_GROUP
    )
    if too_large or min(groups, default=0) < 0:
        raise error(
            f"announces {header.num_rows:,} rows of {sum(groups):,} bytes, more than is read", where=str(path)
        )
    return file


@contextmanager
def parquet_errors(path: Path, *, error: ErrorType = DataError, hint: str | None = None) -> Iterator[None]:
    """Turn Arrow's errors about a damaged Parquet file into ``error``; pass on MemoryError unchanged."""
    try:
        yield
    except MemoryError:
        raise
    except (pa.ArrowException, OSError, OverflowError, UnicodeDecodeError) as cause:
        message = f"is not a Parquet file that can be read: {reason_of(cause)}"
        raise error(message, where=str(path), hint=hint) from cause
