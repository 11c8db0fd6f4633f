"""One way to write and read every Parquet file: the same rows give the same bytes with the same library."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from wordnet_splits.base.errors import DataError, SplitsError
from wordnet_splits.base.files import replacing
from wordnet_splits.base.untrusted import MOST_ROWS, parquet

ROW_GROUP_ROWS = 131_072
COMPRESSION_LEVEL = 19
# Sorted names share long prefixes: front coding, then zstd, beats a dictionary of unique values.
FRONT_CODED = frozenset({"image_id"})
# SHA-256 is incompressible and (nearly) unique: neither dictionary nor compression pays.
RAW = frozenset({"digest"})


def schema_of(columns: str) -> pa.Schema:
    """Return the schema of ``NAME`` or ``NAME:TYPE`` columns: text without a type, ``sha256`` 32 bytes.

    >>> schema_of("image_id label:int32").types
    [DataType(string), DataType(int32)]
    """
    parts = (column.partition(":") for column in columns.split())
    kinds = {"": pa.string(), "sha256": pa.binary(32)}
    return pa.schema([(name, kinds.get(kind) or pa.type_for_alias(kind)) for name, _, kind in parts])


IMAGE: Final = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
"""A column of pictures as Hugging Face's `datasets` keeps them."""


def hub_metadata(schema: pa.Schema, classes: Sequence[str] = ()) -> dict[str, str]:
    """Return the metadata by which `datasets` gives a column of `IMAGE` back as pictures and not as bytes.

    Parameters
    ----------
    classes : names of the values of a column ``label`` from 0 on, which is then a ClassLabel.
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


def write_table(table: pa.Table, path: Path, *, metadata: Mapping[str, str] | None = None) -> None:
    """Write ``table`` to ``path`` in one step: readers see the old file or the whole new one.

    The settings are fixed (zstd, row groups of 131,072 rows, front-coded ``image_id``, uncompressed
    ``digest``, neither pandas metadata nor times); ``metadata`` becomes the schema's metadata and replaces
    what the table carries.

    Raises
    ------
    OutputError : ``path`` cannot be written (no permission, disk full).
    """
    table = table.replace_schema_metadata(dict(metadata) if metadata else None)
    with replacing(Path(path)) as part:
        _write(table, part)


def read_table(
    path: Path,
    columns: Sequence[str] | None = None,
    *,
    error: type[SplitsError] = DataError,
    most_rows: int = MOST_ROWS,
) -> pa.Table:
    """Read ``path`` whole, or the named top-level ``columns`` in the order given, of ``most_rows`` at most.

    Raises
    ------
    error : (default DataError) the file is absent, unreadable, not Parquet, damaged, or lacks a column.
    """
    with parquet(Path(path), error=error, most_rows=most_rows) as file:
        missing = [name for name in columns or () if name not in file.schema_arrow.names]
        if missing:
            held = ", ".join(file.schema_arrow.names)
            raise error(f"has no column {missing[0]!r}", where=str(path), hint=f"it holds {held}")
        return file.read(columns=None if columns is None else list(columns))


def _write(table: pa.Table, path: Path) -> None:
    leaves = _leaf_paths(table.schema)
    front = [leaf for leaf in leaves if leaf in FRONT_CODED]
    with path.open("wb") as sink:
        pq.write_table(
            table,
            sink,
            version="2.6",
            data_page_version="1.0",
            row_group_size=ROW_GROUP_ROWS,
            compression={leaf: "NONE" if leaf in RAW else "ZSTD" for leaf in leaves},
            compression_level={leaf: COMPRESSION_LEVEL for leaf in leaves if leaf not in RAW},
            use_dictionary=[leaf for leaf in leaves if leaf not in FRONT_CODED | RAW] or False,
            column_encoding=dict.fromkeys(front, "DELTA_BYTE_ARRAY") or None,
            write_statistics=[leaf for leaf in leaves if leaf not in RAW] or False,
        )


def _leaf_paths(schema: pa.Schema) -> list[str]:
    """Return the dotted names of the leaf columns, as the writer's per-column settings want them."""
    sink = io.BytesIO()
    pq.write_table(schema.empty_table(), sink)
    leaves = pq.read_metadata(io.BytesIO(sink.getvalue())).schema
    return [leaves.column(i).path for i in range(len(leaves))]
