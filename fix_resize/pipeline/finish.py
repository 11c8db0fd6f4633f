"""The end of a build: the shards' tables joined, and ``output.json``, which describes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from fix_resize.pipeline import tables
from fix_resize.pipeline.formats import checksum, get_format
from fix_resize.pipeline.output import SCHEMA, Description
from fix_resize.pipeline.selection import Worklist
from fix_resize.pipeline.shards import ShardOutcome, table_of
from fix_resize.spec import ResizeSpec
from wordnet_splits.base.errors import OutputError
from wordnet_splits.base.files import writing
from wordnet_splits.base.parquet import read_table
from wordnet_splits.base.schemas import write_sealed

_ROWS: Final = 65_536
"""Rows of a row group, and of what is held at a time."""


def finish(
    out: Path,
    selection: Worklist,
    spec: ResizeSpec,
    file_format: str,
    records: Sequence[ShardOutcome],
    absent: Sequence[dict[str, str]],
) -> Description:
    """Write the tables of a build whose shards are done; return the content of ``output.json``.

    Parameters
    ----------
    records : of every shard, in order.
    absent : rows of `tables.MISSING_SCHEMA` that no shard was given.

    Raises
    ------
    OutputError : something cannot be written.
    """
    with writing(out, hint=tables.GO_ON):
        (out / tables.OUTPUT).unlink(missing_ok=True)  # until the tables are complete again
    missing = [*absent, *(row for record in records for row in record.missing)]
    quarantined = [row for record in records for row in record.quarantined]
    keep = get_format(file_format)
    shards = {keep.place("", r.shard, 0)[0]: r.data for r in records if r.images and keep.tables}
    fingerprint = tables.Fingerprint()
    with tables.table_writer(out / tables.IMAGES, tables.IMAGE_SCHEMA, spec.id) as writer:
        for table in _joined(out, records):
            fingerprint.add(table)
            writer.write_table(table, row_group_size=_ROWS)
    tables.write_rows(out / tables.QUARANTINE, tables.QUARANTINE_SCHEMA, spec.id, quarantined)
    tables.write_rows(out / tables.MISSING, tables.MISSING_SCHEMA, spec.id, missing)
    about: dict[str, Any] = {
        "schema": SCHEMA,
        "name": selection.name,
        "spec": {**spec.describe(), "libraries": _libraries(records)},
        "format": file_format,
        "images": sum(record.images for record in records),
        "quarantined": len(quarantined),
        "missing": len(missing),
        "shortfalls": [vars(short) for short in selection.shortfalls],
        "complete": not missing and not selection.shortfalls,
        "population": selection.population,
        "unexpected": {name: sum(counts.values()) for name, counts in selection.unexpected.items()},
        "selection": selection.fingerprint,
        "fingerprint": fingerprint.hexdigest(),
        "tables": {**{file: checksum(out, [file]) for file in tables.TABLES}, **shards},
        "provenance": {"wordnet-splits": version("wordnet-splits")},
    }
    write_sealed(out / tables.OUTPUT, about, hint=tables.GO_ON)
    return Description.model_validate(about)


def _joined(out: Path, records: Iterable[ShardOutcome]) -> Iterator[pa.Table]:
    """Yield the shards' tables, as many together as make a row group."""
    waiting: list[pa.Table] = []
    for record in records:
        waiting.append(read_table(out / table_of(record.shard), error=OutputError).cast(tables.IMAGE_SCHEMA))
        if sum(map(len, waiting)) >= _ROWS:
            yield pa.concat_tables(waiting).combine_chunks()
            waiting = []
    if waiting:
        yield pa.concat_tables(waiting).combine_chunks()


def _libraries(records: Iterable[ShardOutcome]) -> dict[str, str]:
    """Return the versions that the pixels depend on; all of them where workers differed."""
    found: dict[str, set[str]] = {}
    for record in records:
        for name, number in record.libraries.items():
            found.setdefault(name, set()).add(number)
    return {name: " + ".join(sorted(numbers)) for name, numbers in sorted(found.items())}
