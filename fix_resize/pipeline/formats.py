"""The two formats of an output: a tree of PNG files, or Parquet shards that contain the same files.

Hashes and fingerprints cover the pixels. The compression level is fixed, so that a given version of Pillow
always writes the same bytes; other versions may differ.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from fix_resize.pipeline.tables import OUTPUT_FILES, RESUME_HINT, SPEC_KEY, UNFINISHED, BuildItem
from wordnet_splits.base import untrusted
from wordnet_splits.base.digests import Pixels
from wordnet_splits.base.errors import DataError, unknown
from wordnet_splits.base.files import FileId, file_id, replacing, write_bytes
from wordnet_splits.base.parquet import IMAGE, hub_metadata, parquet_file, schema_of

PNG_COMPRESSION: Final = 1
"""zlib's fastest level; higher levels hardly reduce the size of 32-pixel photographs."""

MAX_PNG_BYTES: Final = 64 * untrusted.MiB
"""Largest PNG file that is read, in bytes; a file of 64 x 64 pixels has 8 KiB."""

PNG_END: Final = b"\0\0\0\0IEND\xaeB`\x82"
"""The last chunk of a PNG file, which Pillow does not check."""

MAX_FILE_BYTES: Final = 64 * untrusted.GiB
"""Largest table or shard that is read, in bytes; a thousand pictures take a few megabytes."""

ROWS_PER_GROUP: Final = 100
"""Rows per row group, as the Hub recommends for images; a whole group is read for a single picture."""

PACKED_SCHEMA: Final = schema_of("label:int32 class_id group source image_id").insert(
    0, pa.field("image", IMAGE)
)
_FOLDER_NAMED_AS_FILE: Final = r"\.(png|parquet|json)/"

StoredPicture = tuple[Mapping[str, object], bytes]
"""Metadata columns of a picture, if the format stores any, and its PNG file."""


class Format(Protocol):
    """How the pictures of a shard are stored; ``sharded`` if in one table per shard."""

    sharded: bool

    def check_paths(self, paths: pa.Array) -> None:
        """Raise DataError if the paths of two pictures, or of a picture and an output file, would clash."""

    def location(self, path: str, shard: str, row: int) -> tuple[str, int]:
        """Return the file of picture number ``row`` of a shard, and its row there."""

    def write(
        self, root: Path, shard: str, spec_id: str, pictures: Iterable[tuple[BuildItem, bytes]]
    ) -> None:
        """Write the pictures of a shard."""

    def read(self, root: Path, file: str) -> Iterator[StoredPicture]:
        """Yield the pictures of a file, in order."""

    def read_one(self, root: Path, file: str, row: int) -> bytes:
        """Return one PNG file."""


class PngTree:
    """One PNG file per picture."""

    sharded = False

    def check_paths(self, paths: pa.Array) -> None:
        """Raise DataError if a folder would have the name of a picture or of an output file."""
        below = paths.filter(pc.match_substring_regex(paths, _FOLDER_NAMED_AS_FILE)).to_pylist()
        folders = {path[: match.end() - 1] for path in below for match in re.finditer(r"\.\w+/", path)}
        file_names = {
            *OUTPUT_FILES,
            *paths.filter(pc.is_in(paths, value_set=pa.array(folders, pa.string()))).to_pylist(),
        }
        if clash := sorted(folders & file_names):
            raise DataError(
                "a folder of pictures would have the name of an output file",
                where=clash[0],
                hint="rename it, or use --format parquet",
            )

    def location(self, path: str, shard: str, row: int) -> tuple[str, int]:
        """Return the path of the picture, and row 0."""
        return path, 0

    def write(
        self, root: Path, shard: str, spec_id: str, pictures: Iterable[tuple[BuildItem, bytes]]
    ) -> None:
        """Write one file per picture."""
        for picture, data in pictures:
            write_bytes(root / picture.path, data, hint=RESUME_HINT, aside=root / UNFINISHED)

    def read(self, root: Path, file: str) -> Iterator[StoredPicture]:
        """Yield the PNG file."""
        yield {}, self.read_one(root, file, 0)

    def read_one(self, root: Path, file: str, row: int) -> bytes:
        """Return the bytes of the file."""
        return untrusted.read_bytes(untrusted.path_below(root, file), largest=MAX_PNG_BYTES)


class ParquetShards:
    """One Parquet file per shard, with a column ``image`` as in Hugging Face's `datasets`."""

    sharded = True

    def check_paths(self, paths: pa.Array) -> None:
        """Accept any paths: they do not become files."""

    def location(self, path: str, shard: str, row: int) -> tuple[str, int]:
        """Return the file of the shard, and the row."""
        return f"data/{shard}.parquet", row

    def write(
        self, root: Path, shard: str, spec_id: str, pictures: Iterable[tuple[BuildItem, bytes]]
    ) -> None:
        """Write the file of the shard, unless it has no pictures."""
        rows = [
            {
                "image": {"bytes": data, "path": picture.path},
                **{name: getattr(picture, name) for name in PACKED_SCHEMA.names[1:]},
            }
            for picture, data in pictures
        ]
        if not rows:
            return
        metadata = {**hub_metadata(PACKED_SCHEMA), SPEC_KEY: spec_id}
        table = pa.Table.from_pylist(rows, schema=PACKED_SCHEMA.with_metadata(metadata))
        path = root / self.location("", shard, 0)[0]
        with replacing(path, hint=RESUME_HINT, aside=root / UNFINISHED) as part:
            pq.write_table(
                table, part, row_group_size=ROWS_PER_GROUP, compression="zstd", use_dictionary=False
            )

    def read(self, root: Path, file: str) -> Iterator[StoredPicture]:
        """Yield the PNG files of a shard, each with its metadata columns."""
        with _shard(untrusted.path_below(root, file)) as parquet:
            for batch in parquet.iter_batches(ROWS_PER_GROUP):
                for row in batch.to_pylist():
                    image = row.pop("image") or {"path": "", "bytes": b""}
                    yield {**row, "path": image["path"]}, image["bytes"] or b""

    def read_one(self, root: Path, file: str, row: int) -> bytes:
        """Return one PNG file; its row group is cached."""
        group, row_in_group = divmod(row, ROWS_PER_GROUP)
        path = untrusted.path_below(root, file)
        try:
            data: bytes | None = _row_group(path, file_id(path), group)[row_in_group].as_py()
        except OSError as error:
            raise DataError(f"cannot be read: {error.strerror}", where=str(path)) from None
        except IndexError:
            raise DataError(f"has no row {row}", where=str(path)) from None
        return data or b""


@lru_cache(maxsize=64)
def _row_group(path: Path, identity: FileId, group: int) -> pa.Array:
    """Return the PNG files of a row group; ``identity`` makes the cache notice a replaced file."""
    with _shard(path) as parquet:
        if not 0 <= group < parquet.metadata.num_row_groups:
            raise IndexError(group)
        table = parquet.read_row_group(group, columns=["image.bytes"])
        return table["image"].combine_chunks().field("bytes")


@contextmanager
def _shard(path: Path) -> Iterator[pq.ParquetFile]:
    with parquet_file(path) as parquet:
        if not parquet.schema_arrow.equals(PACKED_SCHEMA):
            raise DataError("does not have the columns of a shard of pictures", where=str(path))
        yield parquet


def encode_png(pixels: Pixels, spec_id: str) -> bytes:
    """Return (h, w, 3) uint8 pixels as a PNG file with the id of the spec in its metadata."""
    text = PngInfo()
    text.add_text(SPEC_KEY, spec_id)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG", pnginfo=text, compress_level=PNG_COMPRESSION)
    return buffer.getvalue()


def decode_png(data: bytes, where: str) -> Pixels:
    """Return the pixels of a PNG file, (h, w, 3) uint8.

    Raises
    ------
    DataError : the file is damaged, or not a PNG file.
    """
    try:
        with Image.open(io.BytesIO(data), formats=["PNG"]) as image:
            if image.mode != "RGB":
                raise DataError(f"its mode is {image.mode}, not RGB", where=where)
            pixels = np.asarray(image)
        if not data.endswith(PNG_END):
            raise DataError("is truncated, or has data after its end", where=where, hint="build it again")
        return pixels
    except DataError:
        raise
    except Exception as error:  # damaged files make Pillow raise nearly anything
        raise DataError("cannot be decoded", where=where, hint="build it again") from error


FORMATS: Final[dict[str, Format]] = {"png": PngTree(), "parquet": ParquetShards()}


def get_format(name: str) -> Format:
    """Return the format called ``name``; UnknownNameError if there is none."""
    if name not in FORMATS:
        raise unknown("format", name, FORMATS)
    return FORMATS[name]


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
