"""Write the files of an output: its images, as PNG files or in Parquet shards, and its tables.

Hashes and fingerprints cover the pixels. The compression level is fixed, so that a given version of Pillow
always writes the same bytes; other versions may differ.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from fix_resize.output import IMAGES, OUTPUT, ROWS_PER_GROUP, SHARD_SCHEMA
from wordnet_splits.base import untrusted
from wordnet_splits.base.digests import Pixels
from wordnet_splits.base.errors import DataError
from wordnet_splits.base.files import replacing, write_bytes
from wordnet_splits.base.parquet import hub_metadata, schema_of
from wordnet_splits.benchmark.manifest.tables import row_line

FORMATS: Final = ("png", "parquet")
"""Formats of an output: a tree of PNG files, or Parquet shards that contain the same files."""

PNG_COMPRESSION: Final = 1
"""zlib's fastest level; higher levels hardly reduce the size of 32-pixel photographs."""

MAX_FILE_BYTES: Final = 64 * untrusted.GiB
"""Largest table or shard that is read, in bytes; a thousand images take a few megabytes."""

SPEC_KEY: Final = "resize-spec"
"""Key of the spec's id in every PNG file and in the metadata of every table."""

WORK_FOLDER: Final = ".shards"
"""Folder in an output for the markers and tables of its shards."""

UNFINISHED: Final = f"{WORK_FOLDER}/unfinished"
"""Folder where files are written before they are moved into place; cleared when a build begins."""

RESUME_HINT: Final = "check permissions and free space; the same command continues from here"

QUARANTINE: Final = "quarantine.parquet"
MISSING: Final = "missing.parquet"
TABLES: Final = (IMAGES, QUARANTINE, MISSING)

KEY_COLUMNS: Final = ("image_id", "source", "class_id", "group", "split")
QUARANTINE_SCHEMA: Final = schema_of(" ".join([*KEY_COLUMNS, "reason", "detail"]))
"""``reason`` is a key of `fix_resize.decode.REASONS`."""

MISSING_SCHEMA: Final = schema_of(" ".join([*KEY_COLUMNS, "kind", "detail"]))
"""``kind`` is missing, unreadable, or altered (the digest differs from the manifest's)."""

IDENTITY: Final = ("source", "image_id", "class_id", "group", "split", "label", "spec", "pixel_sha256")
"""Columns that the fingerprint covers; they do not depend on the copy of the source."""

_BATCH: Final = 16_384
_FOLDER_NAMED_AS_FILE: Final = r"\.(png|parquet|json)/"


class BuildItem(NamedTuple):
    """An image to build: a row of `selection.SELECTION_SCHEMA` and its stamp (`Selection.stamps`)."""

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


def check_paths(paths: pa.Array) -> None:
    """Raise DataError if a folder of PNG files would have the name of an image or of an output file."""
    below = paths.filter(pc.match_substring_regex(paths, _FOLDER_NAMED_AS_FILE)).to_pylist()
    folders = {path[: match.end() - 1] for path in below for match in re.finditer(r"\.\w+/", path)}
    same = paths.filter(pc.is_in(paths, value_set=pa.array(folders, pa.string()))).to_pylist()
    if clash := sorted(folders & {OUTPUT, *TABLES, *same}):
        raise DataError(
            "a folder of images would have the name of an output file",
            where=clash[0],
            hint="rename it, or use --format parquet",
        )


def image_location(file_format: str, path: str, shard: str, row: int) -> tuple[str, int]:
    """Return the file of image number ``row`` of a shard, and its row in this file."""
    return (path, 0) if file_format == "png" else (f"data/{shard}.parquet", row)


def write_images(
    out: Path, file_format: str, shard: str, spec_id: str, images: Iterable[tuple[BuildItem, bytes]]
) -> None:
    """Write the PNG files of a shard: each to its path, or all into one Parquet file."""
    if file_format == "png":
        for item, data in images:
            write_bytes(out / item.path, data, hint=RESUME_HINT, aside=out / UNFINISHED)
        return
    rows = [
        {
            "image": {"bytes": data, "path": item.path},
            **{name: getattr(item, name) for name in SHARD_SCHEMA.names[1:]},
        }
        for item, data in images
    ]
    if not rows:
        return
    metadata = {**hub_metadata(SHARD_SCHEMA), SPEC_KEY: spec_id}
    table = pa.Table.from_pylist(rows, schema=SHARD_SCHEMA.with_metadata(metadata))
    path = out / image_location(file_format, "", shard, 0)[0]
    with replacing(path, hint=RESUME_HINT, aside=out / UNFINISHED) as part:
        pq.write_table(table, part, row_group_size=ROWS_PER_GROUP, compression="zstd", use_dictionary=False)


def encode_png(pixels: Pixels, spec_id: str) -> bytes:
    """Return (h, w, 3) uint8 pixels as a PNG file with the id of the spec in its metadata."""
    text = PngInfo()
    text.add_text(SPEC_KEY, spec_id)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG", pnginfo=text, compress_level=PNG_COMPRESSION)
    return buffer.getvalue()


def checksum(root: Path, files: Iterable[str]) -> str | None:
    """Return SHA-256 over the bytes of distinct files in sequence; None if any is not a regular file."""
    state = hashlib.sha256()
    for file in dict.fromkeys(files):
        try:
            with untrusted.open_untrusted(untrusted.path_below(root, file), largest=MAX_FILE_BYTES) as opened:
                while block := opened.read(untrusted.MiB):
                    state.update(block)
        except DataError:
            return None
    return state.hexdigest()


def as_utf8(text: str) -> str:
    """Return text as valid UTF-8, with escapes for other bytes, which paths may contain."""
    return text.encode("utf-8", "backslashreplace").decode()


@contextmanager
def table_writer(
    path: Path, schema: pa.Schema, spec_id: str, *, aside: Path | None = None
) -> Iterator[pq.ParquetWriter]:
    """Yield a writer of a table; the file appears, complete, when the block ends without an error."""
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
