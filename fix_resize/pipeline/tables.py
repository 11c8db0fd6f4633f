"""The tables of an output: its images, quarantined images, and missing images."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from wordnet_splits.base.files import replacing
from wordnet_splits.base.parquet import schema_of
from wordnet_splits.manifest.fingerprint import row_line

SPEC_KEY: Final = "resize-spec"
"""Key of the spec's id in every PNG file and in the metadata of every table."""

WORK_FOLDER: Final = ".shards"
"""Folder in an output for the markers and tables of its shards."""

UNFINISHED: Final = f"{WORK_FOLDER}/unfinished"
"""Folder where files are written before they are moved into place; cleared when a build begins."""

RESUME_HINT: Final = "check permissions and free space; the same command continues from here"

IMAGES: Final = "images.parquet"
QUARANTINE: Final = "quarantine.parquet"
MISSING: Final = "missing.parquet"
TABLES: Final = (IMAGES, QUARANTINE, MISSING)
OUTPUT: Final = "output.json"
"""Written last: its presence marks the folder as finished."""
OUTPUT_FILES: Final = (OUTPUT, *TABLES)

IMAGE_SCHEMA: Final = schema_of(
    "image_id source class_id group split label:int32 digest:sha256 pixel_sha256:sha256 width:int32 "
    "height:int32 mode spec source_width:int32 source_height:int32 source_mode notes file row:int32"
)
"""One row per picture.

``digest`` is that of the source image (`wordnet_splits.base.digests`), ``pixel_sha256`` that of the picture.
``width``, ``height`` and ``mode`` describe the picture, ``source_*`` the source image, ``notes`` conversions
by the colour rule (`wordnet_splits.sources.pixels.NOTES`). ``spec`` is the id of the resize spec; ``file``
and ``row`` locate the picture.
"""

KEY_COLUMNS: Final = ("image_id", "source", "class_id", "group", "split")
QUARANTINE_SCHEMA: Final = schema_of(" ".join([*KEY_COLUMNS, "reason", "detail"]))
"""``reason`` is a key of `fix_resize.decode.REASONS`."""

MISSING_SCHEMA: Final = schema_of(" ".join([*KEY_COLUMNS, "kind", "detail"]))
"""``kind`` is missing, unreadable, or altered (the digest differs from the manifest's)."""

IDENTITY: Final = ("source", "image_id", "class_id", "group", "split", "label", "spec", "pixel_sha256")
"""Columns that the fingerprint covers: those that do not depend on the copy of the source."""

_BATCH: Final = 16_384


class BuildItem(NamedTuple):
    """An image to build, as a row of `selection.SELECTION_SCHEMA` and its stamp (`Selection.stamps`)."""

    source: str
    image_id: str
    class_id: str
    group: str
    split: str
    label: int
    digest: bytes | None
    path: str
    stamp: int = 0

    def key_columns(self) -> dict[str, str]:
        """Return the columns that identify the image in every table."""
        return {name: getattr(self, name) for name in KEY_COLUMNS}


def as_utf8(text: str) -> str:
    """Return text as valid UTF-8, with escapes for other bytes, which paths may contain."""
    return text.encode("utf-8", "backslashreplace").decode()


@contextmanager
def table_writer(
    path: Path, schema: pa.Schema, spec_id: str, *, aside: Path | None = None
) -> Iterator[pq.ParquetWriter]:
    """Yield a writer of a table; the file appears, complete, when the block ends without an error.

    Raises
    ------
    OutputError : the file cannot be written.
    """
    hashes = {name for name in schema.names if pa.types.is_fixed_size_binary(schema.field(name).type)}
    with (
        replacing(path, hint=RESUME_HINT, aside=aside) as unfinished,
        pq.ParquetWriter(
            unfinished,
            schema.with_metadata({SPEC_KEY: spec_id}),
            compression={n: "NONE" if n in hashes else "ZSTD" for n in schema.names},
            use_dictionary=[n for n in schema.names if n not in hashes and n not in ("image_id", "file")],
        ) as writer,
    ):
        yield writer


def write_rows(
    path: Path, schema: pa.Schema, spec_id: str, rows: Iterable[dict[str, Any]], *, aside: Path | None = None
) -> None:
    """Write a whole table. Raises as `table_writer`."""
    with table_writer(path, schema, spec_id, aside=aside) as writer:
        writer.write_table(pa.Table.from_pylist(list(rows), schema=schema))


class Fingerprint:
    """SHA-256 over the rows of a table of images, added batch by batch."""

    def __init__(self) -> None:
        self._state = hashlib.sha256()

    def add(self, table: pa.Table) -> None:
        """Add rows, in the order of the table."""
        for batch in table.select(list(IDENTITY)).to_batches(max_chunksize=_BATCH):
            for row in batch.to_pylist():
                sha256 = row["pixel_sha256"]  # null only if the table was altered
                line = row_line({**row, "pixel_sha256": sha256.hex() if sha256 else None})
                self._state.update(line.encode())

    def hexdigest(self) -> str:
        """Return the fingerprint of the rows so far."""
        return self._state.hexdigest()
