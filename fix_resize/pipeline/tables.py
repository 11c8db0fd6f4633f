"""The tables of an output: its images, what was quarantined, and what was missing."""

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

WORK: Final = ".shards"
"""Folder in an output for the records of its shards."""

UNFINISHED: Final = f"{WORK}/unfinished"
"""Where files are written before they are moved into place; cleared when a build begins."""

GO_ON: Final = "check permissions and free space; the same command continues from here"
"""Hint where an output cannot be written."""

IMAGES: Final = "images.parquet"
QUARANTINE: Final = "quarantine.parquet"
MISSING: Final = "missing.parquet"
TABLES: Final = (IMAGES, QUARANTINE, MISSING)
OUTPUT: Final = "output.json"
"""Written last: its presence means that the folder is finished."""

OWN_FILES: Final = (OUTPUT, *TABLES)

IMAGE_SCHEMA: Final = schema_of(
    "image_id source class_id group split label:int32 digest:sha256 pixel_sha256:sha256 width:int32 "
    "height:int32 mode spec source_width:int32 source_height:int32 source_mode notes file row:int32"
)
"""One row per picture.

``digest`` is of the source's image (`wordnet_splits.base.digests`: of its file, or of its pixels where the
source is lossless), ``pixel_sha256`` of the picture (`digests.digest_pixels`). ``width``, ``height`` and
``mode`` are the picture's, ``source_*`` those of what it was made from, ``notes`` what the colour rule did
(`wordnet_splits.sources.pixels.NOTES`). ``spec`` is the id of the resize spec; ``file`` and ``row`` say where
the picture is.
"""

ABOUT: Final = ("image_id", "source", "class_id", "group", "split")
QUARANTINE_SCHEMA: Final = schema_of(" ".join([*ABOUT, "reason", "detail"]))
"""``reason`` is a key of `fix_resize.decode.REASONS`."""

MISSING_SCHEMA: Final = schema_of(" ".join([*ABOUT, "kind", "detail"]))
"""``kind`` is missing, unreadable, or altered (the image has another digest than the manifest's)."""

IDENTITY: Final = ("source", "image_id", "class_id", "group", "split", "label", "spec", "pixel_sha256")
"""What the fingerprint covers: the same pixels have the same one, whatever copy they were made from."""

_BATCH: Final = 16_384


class BuildItem(NamedTuple):
    """An image to build; see `selection.SELECTION_SCHEMA`, and `stamps` for what ``stamp`` is."""

    source: str
    image_id: str
    class_id: str
    group: str
    split: str
    label: int
    digest: bytes | None
    path: str
    stamp: int = 0

    def about(self) -> dict[str, str]:
        """Return the columns that identify the image in every table."""
        return {name: getattr(self, name) for name in ABOUT}


def plain(text: str) -> str:
    """Return text that any file can hold: paths may contain bytes that are not UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode()


@contextmanager
def table_writer(
    path: Path, schema: pa.Schema, spec_id: str, *, aside: Path | None = None
) -> Iterator[pq.ParquetWriter]:
    """Yield a writer of tables; the file appears in one step when the block ends well.

    Raises
    ------
    OutputError : it cannot be written.
    """
    hashes = {name for name in schema.names if pa.types.is_fixed_size_binary(schema.field(name).type)}
    with (
        replacing(path, hint=GO_ON, aside=aside) as part,
        pq.ParquetWriter(
            part,
            schema.with_metadata({SPEC_KEY: spec_id}),
            compression={n: "NONE" if n in hashes else "ZSTD" for n in schema.names},
            use_dictionary=[n for n in schema.names if n not in hashes and n not in ("image_id", "file")],
        ) as writer,
    ):
        yield writer


def write_rows(
    path: Path, schema: pa.Schema, spec_id: str, rows: Iterable[dict[str, Any]], *, aside: Path | None = None
) -> None:
    """Write a whole table. Errors as of `table_writer`."""
    with table_writer(path, schema, spec_id, aside=aside) as writer:
        writer.write_table(pa.Table.from_pylist(list(rows), schema=schema))


class Fingerprint:
    """SHA-256 over the rows of a table of images, added batch by batch."""

    def __init__(self) -> None:
        self._state = hashlib.sha256()

    def add(self, table: pa.Table) -> None:
        """Add rows, in the table's order."""
        for batch in table.select(list(IDENTITY)).to_batches(max_chunksize=_BATCH):
            for row in batch.to_pylist():
                sha256 = row["pixel_sha256"]  # null only where the table was altered
                line = row_line({**row, "pixel_sha256": sha256.hex() if sha256 else None})
                self._state.update(line.encode())

    def hexdigest(self) -> str:
        """Return the fingerprint of what was added."""
        return self._state.hexdigest()
