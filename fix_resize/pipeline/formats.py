"""The two formats of an output: a tree of PNG files, or Parquet shards that hold the same files.

A picture is the same PNG file in both. What counts, and is hashed, are the pixels. The level of
compression is fixed, so that one version of Pillow writes the same bytes everywhere; others may differ.
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

from fix_resize.pipeline.tables import GO_ON, OWN_FILES, SPEC_KEY, UNFINISHED, BuildItem
from wordnet_splits.base import untrusted
from wordnet_splits.base.digests import Pixels
from wordnet_splits.base.errors import DataError, unknown
from wordnet_splits.base.files import FileId, file_id, replacing, write_bytes
from wordnet_splits.base.parquet import IMAGE, hub_metadata, parquet_file, schema_of

COMPRESSION: Final = 1
"""zlib's fastest level; others hardly make photographs of 32 pixels any smaller."""

LARGEST_PICTURE: Final = 64 * untrusted.MiB
"""Most bytes of a PNG file that is read back; one of 64 pixels a side has 8 KiB."""

PNG_END: Final = b"\0\0\0\0IEND\xaeB`\x82"
"""The last chunk of a PNG file, which Pillow does not ask for."""

LARGEST_FILE: Final = 64 * untrusted.GiB
"""Most bytes of a table or a shard; one of a thousand pictures has a few megabytes."""

ROW_GROUP: Final = 100
"""Pictures read to get at one; the Hub's advice for images."""

PACKED_SCHEMA: Final = schema_of("label:int32 class_id group source image_id").insert(
    0, pa.field("image", IMAGE)
)


_FOLDER_LIKE_A_FILE: Final = r"\.(png|parquet|json)/"


Kept = tuple[Mapping[str, object], bytes]
"""The columns that stand beside a picture in its file, if any, and its PNG file."""


class Format(Protocol):
    """How the pictures of a shard are stored; ``tables`` says whether in a file that is a table itself."""

    tables: bool

    def check(self, paths: pa.Array) -> None:
        """Raise DataError where two pictures, or a picture and another file of ours, would clash."""

    def place(self, path: str, shard: str, row: int) -> tuple[str, int]:
        """Return file and row of the picture that is number ``row`` of a shard."""

    def write(
        self, root: Path, shard: str, spec_id: str, pictures: Iterable[tuple[BuildItem, bytes]]
    ) -> None:
        """Write a shard's pictures, which come as they are made."""

    def read(self, root: Path, file: str) -> Iterator[Kept]:
        """Yield what one file stores, in order."""

    def read_one(self, root: Path, file: str, row: int) -> bytes:
        """Return one PNG file."""


class PngTree:
    """One PNG file per picture."""

    tables = False

    def check(self, paths: pa.Array) -> None:
        """Refuse a folder that has the name of a picture beside it, or of a file of the output."""
        below = paths.filter(pc.match_substring_regex(paths, _FOLDER_LIKE_A_FILE)).to_pylist()
        folders = {path[: place.end() - 1] for path in below for place in re.finditer(r"\.\w+/", path)}
        taken = {
            *OWN_FILES,
            *paths.filter(pc.is_in(paths, value_set=pa.array(folders, pa.string()))).to_pylist(),
        }
        if clash := sorted(folders & taken):
            raise DataError(
                "a folder of pictures would have the name of a file of the output",
                where=clash[0],
                hint="rename it, or give --format parquet",
            )

    def place(self, path: str, shard: str, row: int) -> tuple[str, int]:
        """Return the picture's own path, and row 0 of it."""
        return path, 0

    def write(
        self, root: Path, shard: str, spec_id: str, pictures: Iterable[tuple[BuildItem, bytes]]
    ) -> None:
        """Write the files one by one."""
        for picture, data in pictures:
            write_bytes(root / picture.path, data, hint=GO_ON, aside=root / UNFINISHED)

    def read(self, root: Path, file: str) -> Iterator[Kept]:
        """Yield the one PNG file."""
        yield {}, self.read_one(root, file, 0)

    def read_one(self, root: Path, file: str, row: int) -> bytes:
        """Return the file's bytes."""
        return untrusted.read_bytes(untrusted.path_below(root, file), largest=LARGEST_PICTURE)


class ParquetShards:
    """One Parquet file per shard, its column ``image`` as Hugging Face's `datasets` keeps images."""

    tables = True

    def check(self, paths: pa.Array) -> None:
        """Accept any names: they are not names of files."""

    def place(self, path: str, shard: str, row: int) -> tuple[str, int]:
        """Return the shard's file, and the row."""
        return f"data/{shard}.parquet", row

    def write(
        self, root: Path, shard: str, spec_id: str, pictures: Iterable[tuple[BuildItem, bytes]]
    ) -> None:
        """Write the shard's file, if it has any picture."""
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
        path = root / self.place("", shard, 0)[0]
        with replacing(path, hint=GO_ON, aside=root / UNFINISHED) as part:
            pq.write_table(table, part, row_group_size=ROW_GROUP, compression="zstd", use_dictionary=False)

    def read(self, root: Path, file: str) -> Iterator[Kept]:
        """Yield the PNG files of a shard, each with its other columns."""
        with _shard(untrusted.path_below(root, file)) as parquet:
            for batch in parquet.iter_batches(ROW_GROUP):
                for row in batch.to_pylist():
                    image = row.pop("image") or {"path": "", "bytes": b""}
                    yield {**row, "path": image["path"]}, image["bytes"] or b""

    def read_one(self, root: Path, file: str, row: int) -> bytes:
        """Return one PNG file; the row group that holds it is kept for the next."""
        group, place = divmod(row, ROW_GROUP)
        path = untrusted.path_below(root, file)
        try:
            data: bytes | None = _row_group(path, file_id(path), group)[place].as_py()
        except OSError as error:
            raise DataError(f"cannot be read: {error.strerror}", where=str(path)) from None
        except IndexError:
            raise DataError(f"has no row {row}", where=str(path)) from None
        return data or b""


@lru_cache(maxsize=64)
def _row_group(path: Path, identity: FileId, group: int) -> pa.Array:
    """Return the PNG files of a row group; ``identity`` is there so that another file is read anew."""
    with _shard(path) as parquet:
        if not 0 <= group < parquet.metadata.num_row_groups:
            raise IndexError(group)
        table = parquet.read_row_group(group, columns=["image.bytes"])
        return table["image"].combine_chunks().field("bytes")


@contextmanager
def _shard(path: Path) -> Iterator[pq.ParquetFile]:
    with parquet_file(path) as parquet:
        if not parquet.schema_arrow.equals(PACKED_SCHEMA):
            raise DataError("has other columns than a shard of pictures", where=str(path))
        yield parquet


def encode_png(pixels: Pixels, spec_id: str) -> bytes:
    """Return a PNG file of (h, w, 3) uint8 that names its spec."""
    text = PngInfo()
    text.add_text(SPEC_KEY, spec_id)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG", pnginfo=text, compress_level=COMPRESSION)
    return buffer.getvalue()


def decode_png(data: bytes, where: str) -> Pixels:
    """Return the pixels of a PNG file, (h, w, 3) uint8.

    Raises
    ------
    DataError : it is damaged, or not a PNG file.
    """
    try:
        with Image.open(io.BytesIO(data), formats=["PNG"]) as image:
            if image.mode != "RGB":
                raise DataError(f"its mode is {image.mode}, not RGB", where=where)
            pixels = np.asarray(image)
        if not data.endswith(PNG_END):
            raise DataError("is cut off, or goes on after its end", where=where, hint="build it again")
        return pixels
    except DataError:
        raise
    except Exception as error:  # damaged files make Pillow raise nearly anything
        raise DataError("cannot be decoded", where=where, hint="build it again") from error


FORMATS: Final[dict[str, Format]] = {"png": PngTree(), "parquet": ParquetShards()}


def get_format(name: str) -> Format:
    """Return the format of that name.

    Raises
    ------
    UnknownNameError : there is none.
    """
    try:
        return FORMATS[name]
    except KeyError:
        raise unknown("format", name, FORMATS) from None


def checksum(root: Path, files: Iterable[str]) -> str | None:
    """Return SHA-256 over the bytes of files in sequence, each once; None where one is not a regular file."""
    state = hashlib.sha256()
    for file in dict.fromkeys(files):
        try:
            with untrusted.open_untrusted(untrusted.path_below(root, file), largest=LARGEST_FILE) as opened:
                while block := opened.read(untrusted.MiB):
                    state.update(block)
        except DataError:
            return None
    return state.hexdigest()
