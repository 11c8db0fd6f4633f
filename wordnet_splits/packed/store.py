"""A packed store: a benchmark's images in one folder, memory-mapped, checked by row.

``packed.json`` lists the parts, and is written anew when a part is finished; a part, the images of one
(split, group), is two files:

``<split>/<group>.bin``
    the images one after the other: uint8 (3, h, w) each (layout ``pixels``), or an image file each (layout
    ``files``).
``<split>/<group>.arrow``
    Arrow IPC, not compressed, so that it is mapped, not read: image_id, row (position in the manifest's
    image table), offset and length in bytes, crc32.

The CRC-32 of an image starts from its row number, so bytes that belong to another row are noticed too. It
is compared when an image is first read in a process. ``packed.json`` holds the SHA-256 of both files, which
`check_store` compares.
"""

from __future__ import annotations

import hashlib
import io
import json
import mmap
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from PIL import Image

from wordnet_splits.errors import DataError, Problem, SourceError
from wordnet_splits.manifest import Manifest, Part
from wordnet_splits.packed.reading import Pixels, Rows, file_extension, png, spec_id, stack
from wordnet_splits.sources.pixels import decode_bytes

SCHEMA = 1
NAME = "packed.json"
Layout = Literal["pixels", "files"]
INDEX_SCHEMA = pa.schema(
    [
        ("image_id", pa.string()),
        ("row", pa.int64()),
        ("offset", pa.int64()),
        ("length", pa.int64()),
        ("crc32", pa.uint32()),
    ]
)
REPACK = "pack it again"

crc_of: Callable[[bytes | memoryview, int], int] = zlib.crc32
"""Checksum of an image's packed bytes: CRC-32 that starts from its row in the manifest, modulo 2^32."""


@dataclass(frozen=True)
class PartEntry:
    """What ``packed.json`` says of one part.

    Attributes
    ----------
    layout : ``pixels`` or ``files``.
    shape : (3, h, w) of every image in layout ``pixels``.
    rows : images held; ``missing`` more are left out.
    bytes : size of the .bin file.
    images : the manifest's fingerprint of the part, whose order is the store's.
    spec : id of the resize spec in views other than raw.
    sha256, index_sha256 : of the two files.
    """

    split: str
    group: str
    source: str
    view: str
    spec: str | None
    layout: Layout
    shape: tuple[int, int, int] | None
    rows: int
    missing: int
    bytes: int
    images: str
    sha256: str
    index_sha256: str

    def as_data(self) -> dict[str, Any]:
        """Return the entry as JSON holds it."""
        return {**asdict(self), "shape": None if self.shape is None else list(self.shape)}

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> PartEntry:
        """Return an entry read from JSON; TypeError or KeyError where it is malformed."""
        shape = data["shape"]
        return cls(**{**data, "shape": None if shape is None else (shape[0], shape[1], shape[2])})


@dataclass
class PackedStore:
    """A packed store that was opened: what it holds, by (split, group); the images are not touched yet."""

    folder: Path
    benchmark: str
    version: int
    parts: dict[Part, PartEntry] = field(default_factory=dict)

    def images(self, part: Part) -> PackedImages:
        """Open one (split, group); KeyError where the store has no such part.

        Raises
        ------
        SourceError : its files are absent, truncated or no packed images.
        """
        return PackedImages(self.folder, self.parts[part])

    def images_of(self, manifest: Manifest, part: Part) -> PackedImages:
        """Open one (split, group) as images of a manifest. Raises as `images`, and

        SourceError : another version of the manifest, or of the resize spec, was packed.
        """
        entry = self.parts[part]
        where = f"{part[1]} {part[0]} in {self.folder}"
        if entry.images != manifest.images_fingerprint(part):
            raise SourceError(
                f"packed from other rows than those of {manifest.name} version {manifest.version}",
                where=where,
                hint=REPACK,
            )
        if entry.spec != spec_id(entry.view):
            raise SourceError(
                f"packed with another resize spec ({entry.spec}) than {entry.view} is now",
                where=where,
                hint=REPACK,
            )
        return self.images(part)

    def write(self) -> None:
        """Write ``packed.json`` in one step."""
        data = {
            "schema": SCHEMA,
            "benchmark": self.benchmark,
            "version": self.version,
            "parts": [self.parts[part].as_data() for part in sorted(self.parts)],
        }
        partial = self.folder / f".{NAME}.part"
        partial.write_text(json.dumps(data, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        partial.replace(self.folder / NAME)


def part_paths(folder: Path, part: Part) -> tuple[Path, Path]:
    """Return the two files of a part: images and index."""
    split, group = part
    return folder / split / f"{group}.bin", folder / split / f"{group}.arrow"


def is_store(folder: Path) -> bool:
    """Say whether a folder holds a packed store."""
    return (folder / NAME).is_file()


def open_store(folder: Path | str) -> PackedStore:
    """Open a packed store: one small file is read.

    Raises
    ------
    SourceError : there is none, or its ``packed.json`` is malformed.
    """
    folder = Path(folder)
    try:
        data = json.loads((folder / NAME).read_text(encoding="utf-8"))
        if data["schema"] != SCHEMA:
            raise SourceError(
                f"{NAME} has schema {data['schema']!r}, not {SCHEMA}", where=str(folder), hint=REPACK
            )
        entries = [PartEntry.from_data(entry) for entry in data["parts"]]
        parts = {(entry.split, entry.group): entry for entry in entries}
        return PackedStore(folder, str(data["benchmark"]), int(data["version"]), parts)
    except FileNotFoundError:
        hint = "write one with `wordnet-splits pack BENCHMARK --out DIR`"
        raise SourceError(f"no packed images here: no {NAME}", where=str(folder), hint=hint) from None
    except OSError as error:
        raise SourceError(f"cannot be read: {error.strerror or error}", where=str(folder)) from error
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise SourceError(f"{NAME} is malformed ({error!r})", where=str(folder), hint=REPACK) from error


class PackedImages:
    """The images of one part of a packed store; rows are positions among the images that the store holds.

    The files are mapped, by each process for itself, when an image is first read.

    Attributes
    ----------
    entry : what ``packed.json`` says.
    manifest_rows : int64 (n,), ascending: the row in the manifest's image table of every image held.
    """

    def __init__(self, folder: Path, entry: PartEntry) -> None:
        self.entry = entry
        self._bin, self._index = part_paths(folder, (entry.split, entry.group))
        self._open()

    def _open(self) -> None:
        entry = self.entry
        try:
            with self._bin.open("rb") as file:
                self._check_size(file.seek(0, io.SEEK_END))
                self._map: mmap.mmap | bytes = (
                    mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if entry.bytes else b""
                )
            with pa.memory_map(str(self._index)) as mapped, pa.ipc.open_file(mapped) as reader:
                index = reader.get_batch(0)
        except (OSError, pa.ArrowException) as error:
            reason = getattr(error, "strerror", None) or str(error).split("\n")[0]
            raise SourceError(
                f"packed images cannot be read: {reason}", where=str(self._bin), hint=REPACK
            ) from error
        if not index.schema.equals(INDEX_SCHEMA) or len(index) != entry.rows:
            raise SourceError(
                f"the index does not hold {entry.rows:,} images", where=str(self._index), hint=REPACK
            )
        self._ids = index.column("image_id")
        columns = (index.column(name).to_numpy() for name in INDEX_SCHEMA.names[1:])
        self.manifest_rows, self._offsets, self._lengths, self._crcs = columns
        self._array = self._as_array()
        self._checked = np.zeros(entry.rows, bool)

    def _check_size(self, size: int) -> None:
        if size != self.entry.bytes:
            raise SourceError(
                f"{size:,} bytes where {self.entry.bytes:,} were packed", where=str(self._bin), hint=REPACK
            )

    def _as_array(self) -> Pixels | None:
        """Return the whole part as (n, 3 * h * w), where it holds pixels."""
        if self.entry.shape is None:
            return None
        size = int(np.prod(self.entry.shape))
        if self.entry.bytes != self.entry.rows * size:
            raise SourceError(
                f"{self.entry.bytes:,} bytes are not {self.entry.rows:,} images of {self.entry.shape}",
                where=str(self._bin),
                hint=REPACK,
            )
        return np.frombuffer(self._map, np.uint8).reshape(self.entry.rows, size)

    def __len__(self) -> int:
        return self.entry.rows

    def picture(self, row: int) -> Image.Image:
        """Return one image, RGB; DataError where its bytes do not match their checksum."""
        return next(self.pictures(np.array([row])))

    def pictures(self, rows: Rows) -> Iterator[Image.Image]:
        """Yield some images, RGB; DataError where bytes do not match their checksum."""
        if self._array is None:
            return (self._decode(row) for row in rows.tolist())
        _, height, width = self.entry.shape or (3, 0, 0)
        # one transposition for all of them: Pillow wants the channels of a pixel side by side
        whole = np.ascontiguousarray(self.pixels(rows).transpose(0, 2, 3, 1))
        flat, size = whole.data.cast("B"), 3 * height * width
        starts = range(0, len(rows) * size, size)
        return (Image.frombytes("RGB", (width, height), flat[s : s + size]) for s in starts)

    def pixels(self, rows: Rows) -> Pixels:
        """Return some images, uint8 (n, 3, h, w); DataError where a checksum or a size differs."""
        if self._array is None:
            arrays = [np.asarray(self._decode(row)) for row in rows.tolist()]
            return stack(arrays, [self.image_id(row) for row in rows.tolist()])
        self._check(rows)
        taken: Pixels = self._array.take(rows, axis=0).reshape(len(rows), *(self.entry.shape or ()))
        return taken

    def encoded(self, row: int) -> tuple[bytes, str]:
        """Return an image file's bytes and its extension: the packed file, else PNG."""
        if self._array is None:
            data = self.raw(row)
            return data, file_extension(data)
        return png(self.picture(row)), ".png"

    def raw(self, row: int) -> bytes:
        """Return the bytes that are packed for one image; DataError where they do not match the checksum."""
        self._check(np.array([row]))
        start, length = int(self._offsets[row]), int(self._lengths[row])
        return self._map[start : start + length]

    def image_id(self, row: int) -> str:
        """Return the id of one image."""
        return str(self._ids[row].as_py())

    def damaged(self, rows: Rows | None = None) -> list[int]:
        """Return the rows, of those given or of all, whose bytes do not match their checksum."""
        rows = np.arange(self.entry.rows) if rows is None else rows
        starts = self._offsets[rows]
        stops = starts + self._lengths[rows]
        # no Python code between the rows: it would take as long as the checksums of small images
        stored = map(memoryview(self._map).__getitem__, map(slice, starts.tolist(), stops.tolist()))
        crcs = np.fromiter(map(crc_of, stored, self.manifest_rows[rows].tolist()), np.uint32, len(rows))
        wrong: list[int] = rows[crcs != self._crcs[rows]].tolist()
        return wrong

    def check_index(self) -> None:
        """Raise SourceError where the index is not the one that was written; all of it is read."""
        if _sha256(self._index) != self.entry.index_sha256:
            raise SourceError("the index has another SHA-256", where=str(self._index), hint=REPACK)

    def _decode(self, row: int) -> Image.Image:
        return decode_bytes(self.raw(row), where=f"{self.image_id(row)} in {self._bin}")

    def _check(self, rows: Rows) -> None:
        """Compare the rows that this process has not read before with their checksums."""
        new = rows[~self._checked[rows]]
        if not len(new):
            return
        if wrong := self.damaged(new):
            raise DataError(
                f"the packed bytes of image {self.image_id(wrong[0])!r} do not match their checksum",
                where=str(self._bin),
                hint=f"`wordnet-splits pack --check` lists all that is damaged; {REPACK}",
            )
        self._checked[new] = True

    def __getstate__(self) -> dict[str, Any]:
        return {"entry": self.entry, "_bin": self._bin, "_index": self._index}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open()


def check_store(folder: Path | str) -> list[Problem]:
    """Read every byte of a packed store; return a problem for each damaged image or file.

    Raises
    ------
    SourceError : there is no packed store.
    """
    store = open_store(folder)
    return [problem for part in sorted(store.parts) for problem in _check_part(store, part)]


def _check_part(store: PackedStore, part: Part) -> list[Problem]:
    entry = store.parts[part]
    try:
        images = store.images(part)
        images.check_index()
    except SourceError as error:
        return [Problem("damaged", entry.source, None, None, str(error))]
    bin_path, _ = part_paths(store.folder, part)
    problems = [
        Problem("damaged", entry.source, None, images.image_id(row), f"its bytes in {bin_path} differ")
        for row in images.damaged()
    ]
    if not problems and _sha256(bin_path) != entry.sha256:
        problems.append(Problem("damaged", entry.source, None, None, f"{bin_path} has another SHA-256"))
    return problems


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
