"""Scores and predictions as they are stored: image ids once, and a column for each detector and run.

In memory these tables have a row per detector, run and image. On disk the ids of the images would be most of
them, so `widen` writes them once where every detector and run has the same images in the same order, which is
nearly always; other tables are stored as they are. The metadata of the file names the detector and run of
each column.
"""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.compute as pc

from wordnet_splits.base.errors import DataError

from .schema import CALIBRATION_COLUMNS

KEY = ("detector", "run")
BLOCKS = "blocks"
"""Key of the metadata that lists [detector, run] of each block of columns."""
VALUES = {
    "scores": ("confidence",),
    "predictions": ("prediction", "target_probability", "max_probability", *CALIBRATION_COLUMNS),
}
"""Table -> its columns that differ between detectors and runs."""
ADDED = {"predictions": CALIBRATION_COLUMNS}
"""Table -> its columns that older files lack, which are then null."""


def widen(name: str, table: pa.Table) -> tuple[pa.Table, dict[str, str]]:
    """Return the table ``name`` as it is stored, and the metadata of its file.

    Parameters
    ----------
    table : a block of rows for each detector and run.
    """
    if name not in VALUES or not table.num_rows:
        return table, {}
    starts = _block_starts(table)
    rows = starts[1] if len(starts) > 1 else table.num_rows
    blocks = [table.slice(start, rows) for start in starts]
    ids = table.column_names
    ids = [column for column in ids if column not in KEY and column not in VALUES[name]]
    first = blocks[0].select(ids)
    if starts != list(range(0, table.num_rows, rows)) or not all(first.equals(b.select(ids)) for b in blocks):
        return table, {}
    columns = {column: first[column] for column in ids}
    for number, block in enumerate(blocks):
        columns |= {f"{value}.{number}": block[value] for value in VALUES[name]}
    keys = [[block["detector"][0].as_py(), block["run"][0].as_py()] for block in blocks]
    return pa.table(columns), {BLOCKS: json.dumps(keys, ensure_ascii=False)}


def lengthen(name: str, table: pa.Table, schema: pa.Schema, *, max_rows: int, where: str) -> pa.Table:
    """Return the table that `widen` stored: a row per detector, run and image, of columns ``schema``.

    Raises
    ------
    DataError : the columns are not those of the blocks in its metadata, or there are more than ``max_rows``.
    """
    stored = (table.schema.metadata or {}).get(BLOCKS.encode())
    table = table.replace_schema_metadata(None)
    if name not in VALUES:
        return table
    absent = tuple(column for column in ADDED.get(name, ()) if not _has_column(table, column))
    if absent:
        older = pa.schema([field for field in schema if field.name not in absent])
        table = _lengthened(name, table, stored, older, max_rows=max_rows, where=where)
        for column in absent:
            table = table.append_column(column, pa.nulls(table.num_rows, schema.field(column).type))
        return table.select(schema.names) if set(schema.names) <= set(table.column_names) else table
    return _lengthened(name, table, stored, schema, max_rows=max_rows, where=where)


def _has_column(table: pa.Table, column: str) -> bool:
    return any(name.partition(".")[0] == column for name in table.column_names)


def _lengthened(
    name: str, table: pa.Table, stored: bytes | None, schema: pa.Schema, *, max_rows: int, where: str
) -> pa.Table:
    if stored is None:
        return table
    keys = _blocks(stored, where)
    if len(keys) * table.num_rows > max_rows:
        raise DataError(f"holds more than {max_rows:,} rows of {name}", where=where)
    value_columns = [value for value in VALUES[name] if value in schema.names]
    values = [[f"{value}.{number}" for value in value_columns] for number in range(len(keys))]
    ids = [column for column in schema.names if column not in KEY and column not in VALUES[name]]
    if table.column_names != [*ids, *(column for block in values for column in block)]:
        raise DataError(f"its columns are not those of {name}", where=where, hint="evaluate again")
    blocks = []
    for (detector, run), columns in zip(keys, values, strict=True):
        block = table.select([*ids, *columns]).rename_columns([*ids, *value_columns])
        for column, value in zip(KEY, (detector, run), strict=True):
            constant = pa.repeat(pa.scalar(value, schema.field(column).type), table.num_rows)
            block = block.append_column(column, constant)
        blocks.append(block.select(schema.names))
    return pa.concat_tables(blocks) if blocks else schema.empty_table()


def _block_starts(table: pa.Table) -> list[int]:
    """Return the row at which each block of one detector and run starts."""
    changes = [0]
    if table.num_rows > 1:
        columns = [table[column].combine_chunks() for column in KEY]
        differs = [pc.not_equal(c.slice(1), c.slice(0, len(c) - 1)) for c in columns]
        changed = pc.fill_null(pc.or_(*differs), True)
        changes += [row + 1 for row in pc.indices_nonzero(changed).to_pylist()]
    return changes


def _blocks(stored: bytes, where: str) -> list[tuple[str, int]]:
    try:
        keys = [(detector, run) for detector, run in json.loads(stored)]
    except (ValueError, TypeError, RecursionError):
        keys = [("", "")]
    if not all(
        isinstance(detector, str) and type(run) is int and abs(run) < 1 << 31 for detector, run in keys
    ):
        raise DataError(
            "its metadata names no detector and run of each column", where=where, hint="evaluate again"
        )
    return keys
