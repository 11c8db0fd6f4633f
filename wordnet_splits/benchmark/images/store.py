"""A packed store: a benchmark's images in one folder, memory-mapped, checked by row.

``packed.json`` lists the parts; it is rewritten whenever a part is finished. A part holds the images of a
(split, group) pair in two files:

``<split>/<group>.bin``
    the images one after the other: uint8 (3, h, w) each (layout ``pixels``), or an image file each (layout
    ``files``).
``<split>/<group>.arrow``
    Arrow IPC, not compressed, so that it is mapped, not read: image_id, row (position in the manifest's
    image table), offset and length in bytes, crc32.

The CRC-32 of an image starts from its row number, so bytes of another row do not match either. It is
compared when a process first reads an image. ``packed.json`` holds the SHA-256 of both files, which
`check_store` compares, and a checksum over itself.
"""

from __future__ import annotations

import math
import mmap
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import numpy as np
import pyarrow as pa
from PIL import Image
from pydantic import Field, model_validator

from fix_resize.decode import decode_bytes
from wordnet_splits.base.digests import Pixels, digest_file, digest_pixels
from wordnet_splits.base.errors import DataError, Problem, SourceError, SplitsError
from wordnet_splits.base.parquet import schema_of
from wordnet_splits.base.text_formats import (
    BenchmarkName,
    Count,
    Name,
    Sha256,
    StrictModel,
    read_sealed,
    write_sealed,
)
from wordnet_splits.base.untrusted import GiB, check_file, open_untrusted, reason_of, sha256_of
from wordnet_splits.benchmark.images.raw_images import (
    RAW_VIEW,
    PartImages,
    RowNumbers,
    file_extension,
    spec_id,
)
from wordnet_splits.benchmark.manifest import Manifest, Part
from wordnet_splits.datasets.sources import source_class

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
            raise ValueError("files must be null if pixels are known")
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
            return (
                decode_bytes(self.raw(row), where=f"{self.image_id(row)} in {self._bin}")
                for row in rows.tolist()
            )
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
        crcs = np.fromiter(map(zlib.crc32, stored, self.manifest_rows[rows].tolist()), np.uint32, len(rows))
        wrong: list[int] = rows[crcs != self._crcs[rows]].tolist()
        return wrong

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


SCHEMA: Final = 1
NAME: Final = "packed.json"


class StoreFile(StrictModel):
    """The content of ``packed.json`` without its checksum."""

    schema_: Literal[1] = Field(alias="schema", default=SCHEMA)
    benchmark: BenchmarkName
    version: Annotated[int, Field(ge=1)]
    parts: list[PartEntry]

    @model_validator(mode="after")
    def _parts_differ(self) -> StoreFile:
        if len({entry.part for entry in self.parts}) != len(self.parts):
            raise ValueError("a part is listed twice")
        return self


@dataclass
class PackedStore:
    """An open packed store: its parts by (split, group); no image is read yet."""

    folder: Path
    benchmark: str
    version: int
    parts: dict[Part, PartEntry] = field(default_factory=dict)

    def images(self, part: Part) -> PackedImages:
        """Open a part of the store; SourceError if its files are absent, truncated or not packed images."""
        return PackedImages(self.folder, self.parts[part])

    def images_of(self, manifest: Manifest, part: Part) -> PackedImages:
        """Open the images of a part of a manifest.

        Raises SourceError as `images`, or if they differ from the manifest's images in benchmark, rows, ids,
        view or resize spec.
        """
        entry = self.parts[part]
        table = manifest.parts[part]()
        source, view = (table[name][0].as_py() if len(table) else None for name in ("source", "view"))
        problem = None
        if self.benchmark != manifest.name:
            problem = f"holds the images of {self.benchmark}, not of {manifest.name}"
        elif entry.images != manifest.images_fingerprint(part):
            problem = f"packed from other rows than those of {manifest.name} version {manifest.version}"
        elif (pixels := manifest.pixels_fingerprint(part)) is not None and entry.pixels != pixels:
            problem = f"packed from other pixels than those of {manifest.name} version {manifest.version}"
        elif len(table) != entry.rows + entry.missing:
            problem = (
                f"{entry.rows:,} images and {entry.missing:,} missing are not the group's {len(table):,}"
            )
        elif len(table) and (entry.source, entry.view) != (source, view):
            problem = f"holds {entry.source} in view {entry.view}, not {source} in view {view}"
        elif entry.spec != spec_id(entry.view):
            problem = f"packed with another resize spec ({entry.spec}) than {entry.view} is now"
        if problem is None:
            images = self.images(part)
            rows = images.manifest_rows
            inside = not len(rows) or rows[-1] < len(table)
            if inside and table["image_id"].take(pa.array(rows)).equals(pa.chunked_array([images.ids])):
                return images
            problem = "the ids of its index are not those of the group"
        raise SourceError(problem, where=f"{part[1]} {part[0]} in {self.folder}", hint=REPACK)

    def write(self) -> None:
        """Write ``packed.json`` in one step."""
        entries = [self.parts[part] for part in sorted(self.parts)]
        content = StoreFile(benchmark=self.benchmark, version=self.version, parts=entries)
        write_sealed(self.folder / NAME, content.model_dump(mode="json", by_alias=True))


def is_store(folder: Path) -> bool:
    """Return whether a folder holds a packed store."""
    return (folder / NAME).is_file()


def open_store(folder: Path | str) -> PackedStore:
    """Open a packed store: read ``packed.json``; SourceError if it is absent, malformed or altered."""
    path = Path(folder) / NAME
    if not path.exists():
        hint = "write one with `wordnet-splits pack BENCHMARK --out DIR`"
        raise SourceError(f"no packed images here: no {NAME}", where=str(folder), hint=hint)
    content = read_sealed(path, StoreFile, error=SourceError, hint=REPACK)
    parts = {entry.part: entry for entry in content.parts}
    return PackedStore(path.parent, content.benchmark, content.version, parts)


def check_store(folder: Path | str, manifest: Manifest | None = None) -> list[Problem]:
    """Read every byte of a packed store; return a problem for each damaged image or file.

    Parameters
    ----------
    manifest : the benchmark of the images: its rows, ids, views and digests are compared, too.

    Raises
    ------
    SourceError : the store's ``packed.json`` is absent, malformed or altered.
    """
    store = open_store(folder)
    problems = [p for part in sorted(store.parts) for p in _check_part(store, part, manifest)]
    if not store.parts:
        problems.append(Problem("damaged", "", None, None, f"{store.folder} has no images"))
    if manifest is not None and store.version != manifest.version:
        detail = f"packed from version {store.version} of {store.benchmark}, not {manifest.version}"
        problems.append(Problem("damaged", "", None, None, detail))
    return problems


def _check_part(store: PackedStore, part: Part, manifest: Manifest | None) -> list[Problem]:
    entry = store.parts[part]
    bin_path, index_path = part_paths(store.folder, part)
    try:
        if manifest is not None and part not in manifest.parts:
            message = f"{manifest.name} has no images of {part[1]} {part[0]}"
            raise SplitsError(message, where=str(store.folder))
        images = store.images(part) if manifest is None else store.images_of(manifest, part)
        if sha256_of(index_path, largest=LARGEST_INDEX, error=SourceError) != entry.index_sha256:
            raise SourceError("the index has another SHA-256", where=str(index_path), hint=REPACK)
        problems = [
            Problem("damaged", entry.source, None, images.image_id(row), f"its bytes in {bin_path} differ")
            for row in images.damaged()
        ]
        if not problems and sha256_of(bin_path, largest=LARGEST_PART, error=SourceError) != entry.sha256:
            problems.append(Problem("damaged", entry.source, None, None, f"{bin_path} has another SHA-256"))
        if not problems and manifest is not None and entry.view == RAW_VIEW:
            problems += _altered_images(images, manifest, part)
    except SplitsError as error:
        return [Problem("damaged", entry.source, None, None, str(error))]
    return problems


def _altered_images(images: PackedImages, manifest: Manifest, part: Part) -> Iterator[Problem]:
    """Yield a problem for each image whose digest is not the manifest's."""
    digests = manifest.parts[part]()["digest"].take(pa.array(images.manifest_rows))
    lossless = source_class(images.entry.source, manifest.datasets).lossless
    if not lossless and images.entry.layout == "pixels":
        return  # the digest is of the file, and only pixels of small images are kept
    for row, digest in enumerate(digests):
        if digest.as_py() is None:
            continue
        actual = digest_pixels(np.asarray(images.picture(row))) if lossless else digest_file(images.raw(row))
        if actual != digest.as_py():
            image_id = images.image_id(row)
            yield Problem("altered", images.entry.source, None, image_id, "is not the manifest's image")
