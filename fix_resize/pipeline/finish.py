"""The last step of a build: join the tables of the shards, and write ``output.json``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from fix_resize.pipeline import tables
from fix_resize.pipeline.formats import checksum, get_format
from fix_resize.pipeline.output import SCHEMA, Description
from fix_resize.pipeline.selection import Selection
from fix_resize.pipeline.shards import ShardOutcome, table_of
from fix_resize.spec import ResizeSpec
from wordnet_splits.base.errors import OutputError
from wordnet_splits.base.files import writing
from wordnet_splits.base.parquet import read_table
from wordnet_splits.base.schemas import write_sealed

_ROWS: Final = 65_536
"""Rows per row group, and in memory at a time."""


def write_output(
    out: Path,
    selection: Selection,
    spec: ResizeSpec,
    file_format: str,
    outcomes: Sequence[ShardOutcome],
    not_under_root: Sequence[dict[str, str]],
) -> Description:
    """Write the tables of a build with completed shards; return the content of ``output.json``.

    Parameters
    ----------
    outcomes : outcomes of all shards, in order.
    not_under_root : rows of `tables.MISSING_SCHEMA` of images that belong to no shard.

    Raises
    ------
    OutputError : a file cannot be written.
    """
    with writing(out, hint=tables.RESUME_HINT):
        (out / tables.OUTPUT).unlink(missing_ok=True)  # until the tables are complete again
    missing = [*not_under_root, *(row for outcome in outcomes for row in outcome.missing)]
    quarantined = [row for outcome in outcomes for row in outcome.quarantined]
    layout = get_format(file_format)
    shards = {layout.location("", o.shard, 0)[0]: o.data for o in outcomes if o.images and layout.sharded}
    fingerprint = tables.Fingerprint()
    with tables.table_writer(out / tables.IMAGES, tables.IMAGE_SCHEMA, spec.id) as writer:
        for table in _joined(out, outcomes):
            fingerprint.add(table)
            writer.write_table(table, row_group_size=_ROWS)
    tables.write_rows(out / tables.QUARANTINE, tables.QUARANTINE_SCHEMA, spec.id, quarantined)
    tables.write_rows(out / tables.MISSING, tables.MISSING_SCHEMA, spec.id, missing)
    description: dict[str, Any] = {
        "schema": SCHEMA,
        "name": selection.name,
        "spec": {**spec.describe(), "libraries": _libraries(outcomes)},
        "format": file_format,
        "images": sum(outcome.images for outcome in outcomes),
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
    write_sealed(out / tables.OUTPUT, description, hint=tables.RESUME_HINT)
    return Description.model_validate(description)


def _joined(out: Path, outcomes: Iterable[ShardOutcome]) -> Iterator[pa.Table]:
    """Yield the tables of the shards, joined to row groups."""
    tables_of_group: list[pa.Table] = []
    for outcome in outcomes:
        tables_of_group.append(
            read_table(out / table_of(outcome.shard), error=OutputError).cast(tables.IMAGE_SCHEMA)
        )
        if sum(map(len, tables_of_group)) >= _ROWS:
            yield pa.concat_tables(tables_of_group).combine_chunks()
            tables_of_group = []
    if tables_of_group:
        yield pa.concat_tables(tables_of_group).combine_chunks()


def _libraries(outcomes: Iterable[ShardOutcome]) -> dict[str, str]:
    """Return the versions of libraries that the pixels depend on; all of them if workers differed."""
    versions: dict[str, set[str]] = {}
    for outcome in outcomes:
        for name, number in outcome.libraries.items():
            versions.setdefault(name, set()).add(number)
    return {name: " + ".join(sorted(numbers)) for name, numbers in sorted(versions.items())}
