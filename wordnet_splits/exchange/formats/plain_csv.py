"""CSV with a header: ``images.csv`` and ``classes.csv`` have all columns of the two tables of a manifest.

Digests are in hex, lists and evidence (``wnids``, ``via``) in JSON, unknown values empty. A text that a
spreadsheet would take for a formula has an apostrophe in front (`wordnet_splits.base.tabular.csv_cell`).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

import pyarrow as pa

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.files import replacing
from wordnet_splits.base.tabular import from_csv_cell, write_csv
from wordnet_splits.base.text_formats import csv_rows
from wordnet_splits.benchmark.manifest.tables import IMAGE_SCHEMA
from wordnet_splits.exchange.exporter import ExportTask
from wordnet_splits.exchange.formats import (
    ExchangeFormat,
    ImportTask,
    ListEntry,
    entry_of,
    parse_label,
    register_format,
)

IMAGES, CLASSES = "images.csv", "classes.csv"
IMAGE_COLUMNS = ("source", "image_id")
CLASS_COLUMNS = ("source", "class_id", "role", "group")


@register_format("csv")
class PlainCsv(ExchangeFormat):
    """Both tables as CSV."""

    about = "plain CSV: all columns of the image table, and of the class table"

    def write(self, task: ExportTask, folder: Path) -> None:
        """Write the two files."""
        with replacing(folder / CLASSES) as part, _text(part) as file:
            _write(file, task.manifest.classes)
        with replacing(folder / IMAGES) as part, _text(part) as file:
            head = True
            for _, table in task.tables():
                task.images += table.num_rows
                _write(file, table, head=head)
                head = False
            if head:
                _write(file, IMAGE_SCHEMA.empty_table())

    def read(self, task: ImportTask) -> Iterator[ListEntry]:
        """Yield the rows of ``images.csv`` of a folder, or of a file; only source and image_id are required.

        In a folder, ``classes.csv`` adds an entry without an image for each class of a group, so that classes
        without listed images are kept.
        """
        is_folder = task.path.is_dir()
        for row, where in _read(task.path / IMAGES if is_folder else task.path, IMAGE_COLUMNS):
            label = parse_label(row["label"], where) if row.get("label") else None
            yield entry_of({**row, "label": label}, task.split, where)
        if is_folder and (task.path / CLASSES).exists():
            for row, _ in _read(task.path / CLASSES, CLASS_COLUMNS):
                if row["group"]:
                    yield ListEntry(
                        "",
                        row["group"],
                        source=row["source"],
                        class_id=row["class_id"],
                        image_id="",
                        role=row["role"] or None,
                    )


def _read(path: Path, needed: Collection[str]) -> Iterator[tuple[dict[str, str], str]]:
    """Yield the rows of a file, which must have the columns ``needed``, and the location of each."""
    rows = csv_rows(path)
    head = next(rows, [])
    if missing := [name for name in needed if name not in head]:
        columns = ", ".join(needed)
        raise DataError(f"no column {missing[0]!r}", where=str(path), hint=f"needed: {columns}")
    for number, cells in enumerate(rows, 2):
        where = f"{path}, row {number}"
        if len(cells) != len(head):
            raise DataError(f"a row must have {len(head)} cells, got {len(cells)}", where=where)
        yield dict(zip(head, map(from_csv_cell, cells), strict=True)), where


def _text(path: Path) -> TextIO:
    return path.open("w", encoding="utf-8", newline="")


def _write(file: TextIO, table: pa.Table, *, head: bool = True) -> None:
    if head:
        write_csv(file, [table.column_names])
    for batch in table.to_batches(max_chunksize=4096):
        columns: Sequence[Sequence[Any]] = [column.to_pylist() for column in batch.columns]
        write_csv(file, ([_cell(value) for value in row] for row in zip(*columns, strict=True)))


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list) else str(value)
