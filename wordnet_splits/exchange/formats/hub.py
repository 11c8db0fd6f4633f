"""A Hub dataset: Parquet files ``data/<split>/<group>-<number>.parquet`` and a dataset card.

``datasets.load_dataset(DIR, GROUP)`` reads a group, with images in the column ``image`` unless
``--ids-only``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from itertools import groupby, islice
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.files import replacing, write_text
from wordnet_splits.base.parquet import IMAGE, hub_metadata, open_parquet, parquet_errors, schema_of
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.benchmark.manifest.carried import FOLDER as SOURCES
from wordnet_splits.exchange.exporter import ExportTask
from wordnet_splits.exchange.formats import (
    TEXT_COLUMNS,
    ExchangeFormat,
    ImportTask,
    ListEntry,
    entry_of,
    list_files,
    register_format,
    text_row,
)

ROWS_PER_FILE: Final = 5_000
"""Largest number of images in a file; about 500 MB of photographs."""
ROWS_PER_GROUP: Final = 100
"""Images in a row group, as the Hub recommends."""
IDS_SCHEMA: Final = schema_of("label:int64 class_id group source image_id role split view digest")
SCHEMA: Final = IDS_SCHEMA.insert(0, pa.field("image", IMAGE))


@register_format("hub")
class Hub(ExchangeFormat):
    """Parquet files with a dataset card."""

    about = "a Hub dataset: Parquet with images (or --ids-only), a configuration for each group"
    has_images = True

    def write(self, task: ExportTask, folder: Path) -> None:
        """Write the files of each part, and the card."""
        schema = IDS_SCHEMA if task.ids_only else SCHEMA
        schema = schema.with_metadata(hub_metadata(schema, task.manifest.class_names()))
        for (split, group), table in task.tables():
            numbered = enumerate(self._rows(task, (split, group), table))
            name, files = f"data/{split}/{group}", 0
            for _, rows in groupby(numbered, key=lambda item: item[0] // ROWS_PER_FILE):
                _write(folder / f"{name}-{files:05d}.parquet", schema, (row for _, row in rows))
                files += 1
            if not files:  # `datasets` requires a file of each split
                _write(folder / f"{name}-00000.parquet", schema, iter(()))
        write_text(folder / "README.md", _card(task.manifest))

    def _rows(self, task: ExportTask, part: tuple[str, str], table: pa.Table) -> Iterator[dict[str, Any]]:
        if task.ids_only:
            yield from map(text_row, task.rows(table))
            return
        for image in task.read_images(part, table):
            cell = {"bytes": image.data, "path": f"{image.row['image_id']}{image.extension}"}
            yield {**text_row(image.row), "image": cell}

    def read(self, task: ImportTask) -> Iterator[ListEntry]:
        """Yield the rows of a Parquet file, or of all below a folder; images are not read."""
        for file in list_files(task.path, ".parquet", recursive=True):
            if file.parent != task.path / SOURCES:  # the inventories of users' datasets
                yield from _read_rows(file, task.split)


def _write(path: Path, schema: pa.Schema, rows: Iterator[dict[str, Any]]) -> None:
    with replacing(path) as part, pq.ParquetWriter(part, schema, compression="zstd") as file:
        while batch := list(islice(rows, ROWS_PER_GROUP)):
            file.write_table(pa.Table.from_pylist(batch, schema=schema), ROWS_PER_GROUP)


def _read_rows(path: Path, split: str) -> Iterator[ListEntry]:
    opened = open_parquet(path)
    with closing(opened), parquet_errors(path):
        column_names = opened.schema_arrow.names
        if missing := [name for name in ("source", "image_id") if name not in column_names]:
            message = f"has no column {missing[0]!r}"
            raise DataError(message, where=str(path), hint=f"columns: {', '.join(column_names)}")
        columns = [name for name in (*TEXT_COLUMNS, "label") if name in column_names]
        number = 0
        for batch in opened.iter_batches(4096, columns=columns):
            for row in batch.to_pylist():
                number += 1
                yield entry_of(row, split, f"{path}, row {number}")


def _card(manifest: Manifest) -> str:
    """Return the dataset card, with the configurations that `datasets` reads."""
    splits: dict[str, list[str]] = {}
    for split, group in manifest.parts:
        splits.setdefault(group, []).append(split)
    lines = ["---", "configs:"]
    for group, splits_of_group in splits.items():
        lines += [f"- config_name: {json.dumps(group)}", "  data_files:"]
        for split in splits_of_group:
            lines += [f"  - split: {split}", f"    path: {json.dumps(f'data/{split}/{group}-*.parquet')}"]
    lines += ["---", "", f"# {manifest.name}", ""]
    lines += [f"Version {manifest.version}, written by `wordnet-splits export --format hub`: one"]
    lines += ["configuration for each group; `label` is -1 for images that are not in-distribution.", ""]
    return "\n".join(lines)
