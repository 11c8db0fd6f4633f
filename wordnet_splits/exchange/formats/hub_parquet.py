"""A Hub dataset: Parquet files ``data/<split>/<group>-<number>.parquet``, and a card that names them.

``datasets.load_dataset(DIR, GROUP)`` reads a group, ``image`` as a picture; ``--ids-only`` leaves that column
out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.files import replacing, write_text
from wordnet_splits.base.parquet import IMAGE, hub_metadata, open_parquet, parquet_errors, schema_of
from wordnet_splits.exchange.entries import ImportTask, ListEntry
from wordnet_splits.exchange.outgoing import Export
from wordnet_splits.exchange.rows import TEXTS, entry_of, plain_row

SHARD: Final = 5_000
"""Pictures of a file: 500 MB of photographs."""
ROW_GROUP: Final = 100
"""Pictures read to get at one; the Hub's advice for images."""
IDS_SCHEMA: Final = schema_of("label:int64 class_id group source image_id role split view digest")
SCHEMA: Final = IDS_SCHEMA.insert(0, pa.field("image", IMAGE))


class Hub:
    """Parquet files with a dataset card."""

    about = "a Hub dataset: Parquet with pictures (or --ids-only), a configuration a group"
    pictures = True

    def write(self, export: Export, folder: Path) -> None:
        """Write the files of each part, and the card."""
        schema = IDS_SCHEMA if export.ids_only else SCHEMA
        schema = schema.with_metadata(hub_metadata(schema, export.manifest.class_names()))
        for (split, group), table in export.tables():
            rows = self._rows(export, (split, group), table)
            next_row = next(rows, None)
            number = 0
            while next_row is not None or number == 0:
                path = folder / "data" / split / f"{group}-{number:05d}.parquet"
                some = islice(chain([] if next_row is None else [next_row], rows), SHARD)
                with replacing(path) as part, pq.ParquetWriter(part, schema, compression="zstd") as file:
                    while batch := list(islice(some, ROW_GROUP)):
                        file.write_table(pa.Table.from_pylist(batch, schema=schema), ROW_GROUP)
                next_row, number = next(rows, None), number + 1
        write_text(folder / "README.md", _card(export))

    def _rows(self, export: Export, part: tuple[str, str], table: pa.Table) -> Iterator[dict[str, Any]]:
        if export.ids_only:
            yield from map(plain_row, export.rows(table))
            return
        for picture in export.pictures(part, table):
            image = {"bytes": picture.data, "path": f"{picture.row['image_id']}{picture.extension}"}
            yield {**plain_row(picture.row), "image": image}

    def read(self, reading: ImportTask) -> Iterator[ListEntry]:
        """Yield the rows of a Parquet file, or of all below a folder; pictures are not read."""
        path = reading.path
        files = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
        if not files:
            raise DataError("no file *.parquet here", where=str(path), hint="give a folder of them, or one")
        for file in files:
            yield from _read(file, reading)


def _read(path: Path, reading: ImportTask) -> Iterator[ListEntry]:
    opened = open_parquet(path)
    with closing(opened), parquet_errors(path):
        column_names = opened.schema_arrow.names
        if missing := [name for name in ("source", "image_id") if name not in column_names]:
            raise DataError(
                f"has no column {missing[0]!r}", where=str(path), hint=f"it holds {', '.join(column_names)}"
            )
        columns = [name for name in (*TEXTS, "label") if name in column_names]
        number = 0
        for batch in opened.iter_batches(4096, columns=columns):
            for row in batch.to_pylist():
                number += 1
                yield entry_of(row, reading, f"{path}, row {number}")


def _card(export: Export) -> str:
    """Return the dataset card, whose head `datasets` reads."""
    splits: dict[str, list[str]] = {}
    for split, group in export.manifest.parts:
        splits.setdefault(group, []).append(split)
    lines = ["---", "configs:"]
    for group, splits_of_group in splits.items():
        lines += [f"- config_name: {json.dumps(group)}", "  data_files:"]
        for split in splits_of_group:
            lines += [f"  - split: {split}", f"    path: {json.dumps(f'data/{split}/{group}-*.parquet')}"]
    lines += ["---", "", f"# {export.manifest.name}", ""]
    lines += [f"Version {export.manifest.version}, written by `wordnet-splits export --format hub`: one"]
    lines += ["configuration a group, `label` -1 for what is not in-distribution.", ""]
    return "\n".join(lines)
