"""Images in a part of a packed store, memory-mapped and checked by row."""

from __future__ import annotations

import math
import mmap
import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import numpy as np
import pyarrow as pa
from PIL import Image
from pydantic import Field, model_validator

from fix_resize.decode import decode_bytes
from wordnet_splits.base.digests import Pixels
from wordnet_splits.base.errors import DataError, SourceError
from wordnet_splits.base.parquet import schema_of
from wordnet_splits.base.schemas import Count, Name, Sha256, StrictModel
from wordnet_splits.base.untrusted import GiB, check_file, open_untrusted, reason_of, sha256_of
from wordnet_splits.benchmark.images.raw_images import PartImages, RowNumbers, file_extension
from wordnet_splits.benchmark.manifest import Part

REPACK: Final = "pack it again"
StoredSide = Annotated[int, Field(ge=1, le=65_535)]


class PartEntry(StrictModel):
    """One part in ``packed.json``.

    Attributes
    ----------
    layout : ``pixels`` or ``files``.
    shape : (3, h, w) of every image in layout ``pixels``.
    rows : number of packed images; ``missing`` more are left out.
    bytes : size of the .bin file.
    images : the manifest's fingerprint of the part, whose order is the store's.
    pixels : the manifest's fingerprint of its pixels, None if the manifest lacks the digest of an image.
    files : without ``pixels``, a hash of the sizes and times of the root's files.
    spec : id of the resize spec in views other than raw.
    sha256, index_sha256 : of the two files.
    """

    split: Annotated[str, Field(pattern="^(train|val|test)$")]
    group: Name
    source: Name
    view: Name
    spec: str | None
    layout: Literal["pixels", "files"]
    shape: Annotated[tuple[StoredSide, StoredSide, StoredSide], Field(strict=False)] | None
    rows: Count
    missing: Count
    bytes: Count
    images: Sha256
    pixels: Sha256 | None
    files: Sha256 | None
    sha256: Sha256
    index_sha256: Sha256

    @property
    def part(self) -> Part:
        """Return (split, group)."""
        return self.split, self.group

    @model_validator(mode="after")
    def _sizes_fit(self) -> PartEntry:
        if (self.layout == "pixels") != (self.shape is not None):
            raise ValueError(f"layout {self.layout} with shape {self.shape}")
        if self.pixels is not None and self.files is not None:
            raise ValueError("files beside pixels, which are stricter")
        if self.shape is not None and self.shape[0] != 3:
            raise ValueError(f"images have 3 channels, not {self.shape[0]}")
        if self.shape is not None and self.bytes != self.rows * math.prod(self.shape):
            raise ValueError(f"{self.bytes:,} bytes are not {self.rows:,} images of {self.shape}")
        return self


def part_paths(folder: Path, part: Part) -> tuple[Path, Path]:
    """Return the two files of a part: images and index."""
    split, group = part
    return folder / split / f"{group}.bin", folder / split / f"{group}.arrow"


INDEX_SCHEMA: Final = schema_of("image_id row:int64 offset:int64 length:int64 crc32:uint32")
LARGEST_PART: Final = 1024 * GiB
LARGEST_INDEX: Final = 4 * GiB

crc_of: Callable[[bytes | memoryview, int], int] = zlib.crc32
"""Checksum of an image's packed bytes: CRC-32 that starts from its row in the manifest, modulo 2^32."""


class PackedImages(PartImages):
    """Images in a part of a packed store; rows are positions among the packed images.

    Each process maps the files when an image is first read.

    Attributes
    ----------
    entry : the part in ``packed.json``.
    ids : image_id of every image.
    manifest_rows : int64 (n,), ascending: the row of every image in the manifest's image table.
    """

    def __init__(self, folder: Path, entry: PartEntry) -> None:
        self.entry = entry
        self._bin, self._index = part_paths(folder, (entry.split, entry.group))
        self._open()

    def _open(self) -> None:
        entry = self.entry
        try:
            with open_untrusted(self._bin, largest=LARGEST_PART, error=SourceError) as file:
                if (size := os.fstat(file.fileno()).st_size) != entry.bytes:
                    message = f"{size:,} bytes where {entry.bytes:,} were packed"
                    raise SourceError(message, where=str(self._bin))
                self._map: mmap.mmap | bytes = (
                    mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if entry.bytes else b""
                )
            check_file(self._index, largest=LARGEST_INDEX, error=SourceError)
            with pa.memory_map(os.fsencode(self._index)) as mapped, pa.ipc.open_file(mapped) as reader:
                index = reader.get_batch(0)
            if not index.schema.equals(INDEX_SCHEMA) or len(index) != entry.rows:
                raise self._not_the_index()
            index.validate(full=True)
        except SourceError as error:
            raise SourceError(error.what, where=error.where, hint=REPACK) from error
        except MemoryError:
            raise
        except (OSError, ValueError, pa.ArrowException) as error:
            message = f"packed images cannot be read: {reason_of(error)}"
            raise SourceError(message, where=str(self._bin), hint=REPACK) from error
        if any(column.null_count for column in index.columns):
            raise self._not_the_index()
        self.ids: pa.StringArray = index.column("image_id")
        columns = (index.column(name).to_numpy() for name in INDEX_SCHEMA.names[1:])
        self.manifest_rows, self._offsets, self._lengths, self._crcs = columns
        ends = self._offsets + self._lengths
        inside = (self._offsets >= 0) & (self._lengths >= 0) & (ends >= self._offsets) & (ends <= entry.bytes)
        if not inside.all() or (np.diff(self.manifest_rows) <= 0).any() or (self.manifest_rows < 0).any():
            raise self._not_the_index()
        # the whole part as (n, 3 * h * w), None if it holds files
        self._array: Pixels | None = None
        if entry.shape is not None:
            flat = np.frombuffer(self._map, np.uint8)
            self._array = flat.reshape(entry.rows, math.prod(entry.shape))
        self._checked = np.zeros(entry.rows, bool)

    def _not_the_index(self) -> SourceError:
        message = f"the index does not hold {self.entry.rows:,} images"
        return SourceError(message, where=str(self._index), hint=REPACK)

    def __len__(self) -> int:
        return self.entry.rows

    def pictures(self, rows: RowNumbers) -> Iterator[Image.Image]:
        """Yield some images, RGB; DataError where bytes do not match their checksum."""
        if self._array is None:
            return (self._decode(row) for row in rows.tolist())
        _, height, width = self.entry.shape or (3, 0, 0)
        # a single transposition for all images, because Pillow expects channels last
        whole = np.ascontiguousarray(self.pixels(rows).transpose(0, 2, 3, 1))
        flat, size = whole.data.cast("B"), 3 * height * width
        starts = range(0, len(rows) * size, size)
        return (Image.frombytes("RGB", (width, height), flat[s : s + size]) for s in starts)

    def pixels(self, rows: RowNumbers) -> Pixels:
        """Return some images, uint8 (n, 3, h, w); DataError where a checksum or a size differs."""
        if self._array is None:
            return super().pixels(rows)
        self._check(rows)
        pixels: Pixels = self._array.take(rows, axis=0).reshape(len(rows), *(self.entry.shape or ()))
        return pixels

    def encoded(self, row: int) -> tuple[bytes, str]:
        """Return an image file's bytes and its extension: the packed file, else PNG."""
        if self._array is not None:
            return super().encoded(row)
        data = self.raw(row)
        return data, file_extension(data)

    def raw(self, row: int) -> bytes:
        """Return the packed bytes of an image; DataError if they do not match the checksum."""
        self._check(np.array([row]))
        start, length = int(self._offsets[row]), int(self._lengths[row])
        return self._map[start : start + length]

    def image_id(self, row: int) -> str:
        """Return the id of an image."""
        return str(self.ids[row].as_py())

    def damaged(self, rows: RowNumbers | None = None) -> list[int]:
        """Return the rows, among those given or among all, whose bytes do not match their checksum."""
        rows = np.arange(self.entry.rows) if rows is None else rows
        starts = self._offsets[rows]
        stops = starts + self._lengths[rows]
        # no Python code between the rows: it would take as long as the checksums of small images
        stored = map(memoryview(self._map).__getitem__, map(slice, starts.tolist(), stops.tolist()))
        crcs = np.fromiter(map(crc_of, stored, self.manifest_rows[rows].tolist()), np.uint32, len(rows))
        wrong: list[int] = rows[crcs != self._crcs[rows]].tolist()
        return wrong

    def check_index(self) -> None:
        """Read the whole index; raise SourceError if it was altered."""
        if sha256_of(self._index, largest=LARGEST_INDEX, error=SourceError) != self.entry.index_sha256:
            raise SourceError("the index has another SHA-256", where=str(self._index), hint=REPACK)

    def _decode(self, row: int) -> Image.Image:
        return decode_bytes(self.raw(row), where=f"{self.image_id(row)} in {self._bin}")

    def _check(self, rows: RowNumbers) -> None:
        """Compare the rows that this process reads for the first time with their checksums."""
        new = rows[~self._checked[rows]]
        if not len(new):
            return
        if wrong := self.damaged(new):
            message = f"the packed bytes of image {self.image_id(wrong[0])!r} do not match their checksum"
            hint = f"`wordnet-splits pack --check` lists all that is damaged; {REPACK}"
            raise DataError(message, where=str(self._bin), hint=hint)
        self._checked[new] = True

    def __getstate__(self) -> dict[str, Any]:
        return {"entry": self.entry, "_bin": self._bin, "_index": self._index}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open()
