"""Read the output folder of ``fix-resize build``: its resize spec, its table, and the pixels of any image.

>>> output = open_output("lsun-fix")  # doctest: +SKIP
>>> output.spec_id, output.pixels("train/bedroom/0a3f...").shape  # doctest: +SKIP
('0a1b2c3d4e5f', (32, 32, 3))
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image
from pydantic import Field

from fix_resize.spec import ResizeSpec
from wordnet_splits.base import untrusted
from wordnet_splits.base.digests import Pixels, digest_pixels
from wordnet_splits.base.errors import DataError, MissingImageError, OutputError
from wordnet_splits.base.files import FileId, file_id
from wordnet_splits.base.parquet import IMAGE, parquet_file, schema_of
from wordnet_splits.base.text_formats import Count, Sha256, StrictModel, read_sealed

IMAGES: Final = "images.parquet"
OUTPUT: Final = "output.json"
"""Written last: a folder without it is not a finished output."""

IMAGE_SCHEMA: Final = schema_of(
    "image_id source class_id group split label:int32 digest:sha256 pixel_sha256:sha256 width:int32 "
    "height:int32 mode spec source_width:int32 source_height:int32 source_mode notes file row:int32"
)
"""Columns of the table of images, one row per resized image.

``digest`` identifies the source image (`wordnet_splits.base.digests`), ``pixel_sha256`` the resized image.
``width``, ``height`` and ``mode`` describe the resized image, ``source_*`` the source image, ``notes`` the
conversions to RGB (`fix_resize.decode.NOTES`). ``spec`` is the id of the resize spec; ``file`` and ``row``
locate the resized image.
"""

SHARD_SCHEMA: Final = schema_of("label:int32 class_id group source image_id").insert(
    0, pa.field("image", IMAGE)
)
"""Columns of a Parquet shard of images."""

ROWS_PER_GROUP: Final = 100
"""Rows per row group of a shard, as the Hub recommends; a whole group is read for a single image."""

MAX_PNG_BYTES: Final = 64 * untrusted.MiB
"""Largest PNG file that is read, in bytes; a file of 64 x 64 pixels has 8 KiB."""

PNG_END: Final = b"\0\0\0\0IEND\xaeB`\x82"
"""Last chunk of a PNG file, which Pillow does not check."""

SCHEMA: Final = 2


class Description(StrictModel):
    """The content of ``output.json``.

    Attributes
    ----------
    name : the set, with ``@local`` if it was drawn from a root that may be incomplete.
    spec : description of the resize spec, with the versions of decoding and resizing libraries.
    format : ``png`` for a tree of files, or ``parquet`` for shards.
    images, quarantined, missing : numbers of rows of the three tables.
    shortfalls : classes with fewer images than the draw requires.
    complete : whether no image is missing and no class has a shortfall.
    population : number of images from which each class of a local draw was drawn, by group.
    unexpected : number of files with unexpected names, by source.
    selection : fingerprint of the images to build.
    fingerprint : SHA-256 over the resized images.
    tables : SHA-256 of the file of each table and shard.
    provenance : versions of the tools.
    """

    schema_: Literal[2] = Field(alias="schema")
    name: str
    spec: dict[str, Any]
    format: Literal["png", "parquet"]
    images: Count
    quarantined: Count
    missing: Count
    shortfalls: list[dict[str, str | int]]
    complete: bool
    population: dict[str, dict[str, Count]]
    unexpected: dict[str, Count]
    selection: Sha256
    fingerprint: Sha256
    tables: dict[str, Sha256]
    provenance: dict[str, str]


class Output:
    """A finished output folder. Pickling drops its cached tables.

    Attributes
    ----------
    about : the content of ``output.json``.
    spec : the resize spec of the build.
    """

    def __init__(self, folder: Path) -> None:
        path = folder / OUTPUT
        if not path.exists():
            raise OutputError(
                "is not a finished output of fix-resize: it has no output.json",
                where=str(folder),
                hint="run the build again; it continues where it stopped",
            )
        self.folder = folder
        self.about = read_sealed(path, Description, hint="build it again")
        self.spec = ResizeSpec.from_description(self.about.spec)
        self._table: pa.Table | None = None
        self._rows: dict[str, list[int]] | None = None

    @property
    def spec_id(self) -> str:
        """The id of the spec: outputs with the same id have the same pixels."""
        return self.spec.id

    @property
    def fingerprint(self) -> str:
        """SHA-256 over the resized images."""
        return self.about.fingerprint

    @property
    def table(self) -> pa.Table:
        """The table of images (`IMAGE_SCHEMA`), read on first use."""
        if self._table is None:
            with open_images(self.folder) as file:
                self._table = file.read().replace_schema_metadata(None)
        return self._table

    def __len__(self) -> int:
        return len(self.table)

    def __contains__(self, image_id: object) -> bool:
        return image_id in self._index()

    def pixels(self, image_id: str, source: str | None = None) -> Pixels:
        """Return an image, (side, side, 3) uint8, after comparing it with its hash.

        Parameters
        ----------
        source : source of the image; required if two sources have an image with this id.

        Raises
        ------
        MissingImageError : the output has no such image.
        DataError : the image is damaged or altered, or two sources have an image with this id.
        """
        rows = [n for n in self._index().get(image_id, ()) if source in (None, self._cell("source", n))]
        if not rows:
            raise MissingImageError(
                f"image {image_id!r} is not in this output",
                where=str(self.folder),
                hint="missing.parquet and quarantine.parquet list images that were left out, with reasons",
            )
        hashes = {self._cell("pixel_sha256", n) for n in rows}
        if len(hashes) > 1:
            raise DataError(
                f"two images have the id {image_id!r}", hint="pass source=", where=str(self.folder)
            )
        file = self._cell("file", rows[0])
        where = str(self.folder / file)
        pixels = decode_png(self._stored_image(file, self._cell("row", rows[0])), where)
        if digest_pixels(pixels) not in hashes:
            raise DataError(
                f"the pixels of {image_id!r} were altered after the build",
                where=where,
                hint="'fix-resize verify' lists all altered images; build them again",
            )
        return pixels

    def stored_images(self, file: str) -> Iterator[tuple[Mapping[str, object], bytes]]:
        """Yield each image of a file, unchecked: the columns stored with it in a shard, and its PNG file."""
        if self.about.format == "png":
            yield {}, self._stored_image(file, 0)
            return
        with _open_shard(untrusted.path_below(self.folder, file)) as shard:
            for batch in shard.iter_batches(ROWS_PER_GROUP):
                for row in batch.to_pylist():
                    image = row.pop("image") or {"path": "", "bytes": b""}
                    yield {**row, "path": image["path"]}, image["bytes"] or b""

    def _stored_image(self, file: str, row: int) -> bytes:
        """Return the PNG file of an image; the row group of a shard is cached."""
        path = untrusted.path_below(self.folder, file)
        if self.about.format == "png":
            return untrusted.read_bytes(path, largest=MAX_PNG_BYTES)
        group, row_in_group = divmod(row, ROWS_PER_GROUP)
        try:
            data: bytes | None = _row_group(path, file_id(path), group)[row_in_group].as_py()
        except OSError as error:
            raise DataError(f"cannot be read: {error.strerror}", where=str(path)) from None
        except IndexError:
            raise DataError(f"has no row {row}", where=str(path)) from None
        return data or b""

    def _cell(self, column: str, row: int) -> Any:
        return self.table[column][row].as_py()

    def _index(self) -> dict[str, list[int]]:
        if self._rows is None:
            self._rows = {}
            for row, image_id in enumerate(self.table["image_id"].to_pylist()):
                self._rows.setdefault(image_id, []).append(row)
        return self._rows

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_table": None, "_rows": None}

    def __repr__(self) -> str:
        return f"Output({str(self.folder)!r}, spec={self.spec.name!r})"


def open_output(folder: Path | str) -> Output:
    """Open the output folder of a finished build.

    Raises
    ------
    OutputError : the folder is not an output, or its build was interrupted.
    DataError : ``output.json`` was altered or cannot be read.
    """
    return Output(Path(folder))


@contextmanager
def open_images(folder: Path) -> Iterator[pq.ParquetFile]:
    """Yield the table of images of an output; DataError if it cannot be read or has other columns."""
    path = folder / IMAGES
    with parquet_file(path) as file:
        if not file.schema_arrow.equals(IMAGE_SCHEMA):
            raise DataError("does not have the columns of a table of images", where=str(path))
        yield file


@contextmanager
def _open_shard(path: Path) -> Iterator[pq.ParquetFile]:
    with parquet_file(path) as shard:
        if not shard.schema_arrow.equals(SHARD_SCHEMA):
            raise DataError("does not have the columns of a shard of images", where=str(path))
        yield shard


@lru_cache(maxsize=64)
def _row_group(path: Path, identity: FileId, group: int) -> pa.Array:
    """Return the PNG files of a row group; ``identity`` makes the cache notice a replaced file."""
    with _open_shard(path) as shard:
        if not 0 <= group < shard.metadata.num_row_groups:
            raise IndexError(group)
        table = shard.read_row_group(group, columns=["image.bytes"])
        return table["image"].combine_chunks().field("bytes")


def decode_png(data: bytes, where: str) -> Pixels:
    """Return the pixels of a PNG file, (h, w, 3) uint8."""
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
