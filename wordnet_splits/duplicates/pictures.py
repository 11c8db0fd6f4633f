"""The pictures of a source, a folder or a packed store, and their perceptual hashes."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from PIL import Image

from fix_resize.decode import EXTENSIONS, decode_bytes
from wordnet_splits.base.errors import MissingImageError, Problem, SourceError, SplitsError, UnknownNameError
from wordnet_splits.base.files import locked, replacing, writing
from wordnet_splits.base.names import is_one_line, printable
from wordnet_splits.base.progress import Progress, Silent
from wordnet_splits.base.untrusted import read_image
from wordnet_splits.base.workers import run_jobs
from wordnet_splits.catalog.declarations import declared_name, register_declaration
from wordnet_splits.duplicates import perceptual_hash as ph
from wordnet_splits.packed import open_store
from wordnet_splits.packed.images import PackedImages
from wordnet_splits.packed.store import is_store
from wordnet_splits.sources import Source, open_source, source_class
from wordnet_splits.sources.layouts.walk import check_root, entries
from wordnet_splits.sources.roots import Roots
from wordnet_splits.sources.stamps import stamps

PICTURE_COLUMNS = ("source", "split", "class_id", "image_id")
IMAGES_PER_JOB = 128
RECORD = ph.BYTES + 1
"""Bytes of a hash in a file of hashes: 1, or 0 for a picture that cannot be read, and the hash."""
HEADER = 32
"""Bytes of the digest of the pictures at the head of a file of hashes."""


class Reader(Protocol):
    """Reads pictures by their keys; picklable."""

    def picture(self, key: str) -> Image.Image:
        """Return a picture, RGB. Raises SourceError or OSError where it cannot be read."""


@dataclass(frozen=True)
class SourceReader:
    """Reads the pictures of a source by their ids."""

    source: Source

    def picture(self, key: str) -> Image.Image:
        """Return a picture, RGB."""
        return self.source.decode(self.source.read([key])[0], key)


@dataclass(frozen=True)
class FolderReader:
    """Reads the pictures of a folder by their paths below it."""

    root: Path

    def picture(self, key: str) -> Image.Image:
        """Return a picture, RGB."""
        path = self.root / key
        return decode_bytes(read_image(path, self.root), where=str(path))


@dataclass(frozen=True)
class StoreReader:
    """Reads the pictures of a packed store by ``part/row``."""

    parts: Sequence[PackedImages]

    def picture(self, key: str) -> Image.Image:
        """Return a picture, RGB."""
        part, row = key.split("/")
        return self.parts[int(part)].picture(int(row))


@dataclass(frozen=True)
class PictureSet:
    """Pictures to compare.

    Attributes
    ----------
    name : the text that names the set.
    table : columns `PICTURE_COLUMNS` and ``key``, by which ``reader`` reads a picture; in a fixed order.
    root : folder whose files, by size and time, show whether a picture has changed; None if nothing can.
    """

    name: str
    table: pa.Table
    reader: Reader
    root: Path | None

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def equals(self, other: PictureSet) -> bool:
        """Return whether another set has the same pictures in the same folder."""
        return self.root == other.root and self.table.equals(other.table)

    def named_by_path(self) -> PictureSet:
        """Return the set with its ``name`` as the source of every picture."""
        names = pa.array([self.name] * len(self), pa.string())
        column = self.table.column_names.index("source")
        return replace(self, table=self.table.set_column(column, "source", names))

    def part(self, number: int, count: int) -> PictureSet:
        """Return part ``number``, from 1, of ``count`` parts of nearly equal size."""
        start, end = ((n * len(self)) // count for n in (number - 1, number))
        return PictureSet(self.name, self.table.slice(start, end - start), self.reader, self.root)

    def row(self, number: int) -> dict[str, str]:
        """Return the columns of a picture."""
        row: dict[str, str] = self.table.slice(number, 1).to_pylist()[0]
        return row

    def missing(self, pictures: Collection[tuple[str, str]]) -> set[tuple[str, str]]:
        """Return the (source, image_id) pairs of pictures that the set does not have."""
        ids = pa.array([image_id for _, image_id in pictures], pa.string())
        rows = self.table.filter(pc.is_in(self.table["image_id"], value_set=ids))
        return set(pictures) - set(zip(*(rows[c].to_pylist() for c in ("source", "image_id")), strict=True))

    def digest(self, *, stamped: bool) -> bytes:
        """Return the SHA-256 of the ids, with ``stamped`` of the files' sizes and times, too."""
        digest = hashlib.sha256()
        for name in PICTURE_COLUMNS:
            for value in self.table[name].to_pylist():
                digest.update(value.encode("utf-8", "surrogateescape") + b"\0")
        if stamped and self.root is not None:
            digest.update(stamps(self.root, self.table["image_id"].combine_chunks()).tobytes())
        return digest.digest()


def open_pictures(text: str, roots: Roots) -> PictureSet:
    """Return the pictures of ``NAME`` or ``NAME:SPLIT,SPLIT``, a source, or of a path with a slash in it.

    A path leads to a packed store, to a dataset with a ``dataset.toml``, or to any folder of image files.

    Raises
    ------
    UnknownNameError : no such source or split. SourceError : no root, or there is no picture.
    """
    path = Path(text)
    if "/" not in text and os.sep not in text and text not in (".", ".."):
        name, _, splits = text.partition(":")
        try:
            rooted = source_class(name).rooted
        except UnknownNameError as error:
            if not path.is_dir():
                raise
            raise UnknownNameError(error.what, hint=f"./{text} for the folder of this name") from None
        pictures = _of_source(text, open_source(name, roots.get(name) if rooted else None), splits)
    elif path.is_dir() and is_store(path):
        pictures = _of_store(text, path)
    elif (declared := declared_name(path)) is not None:
        register_declaration(path, declared)
        pictures = _of_source(text, open_source(declared, path), "")
    else:
        pictures = _of_folder(text, path)
    if not len(pictures):
        raise SourceError("holds no pictures", where=text)
    return pictures


def _set(name: str, rows: Sequence[tuple[str, ...]], reader: Reader, root: Path | None) -> PictureSet:
    columns = [*zip(*sorted(rows), strict=True)] or [()] * 5
    names = (*PICTURE_COLUMNS, "key")
    table = pa.table({n: pa.array(c, pa.string()) for n, c in zip(names, columns, strict=True)})
    return PictureSet(name, table, reader, root)


def _of_source(text: str, source: Source, splits: str) -> PictureSet:
    rows: list[tuple[str, ...]] = []
    for batch in source.scan(splits.split(",") if splits else None):
        columns = (batch.column(name).to_pylist() for name in ("split", "class_id", "image_id"))
        rows += [(source.name, s, c, i, i) for s, c, i in zip(*columns, strict=True)]
    return _set(text, rows, SourceReader(source), source.root)


def _of_store(text: str, folder: Path) -> PictureSet:
    store = open_store(folder)
    parts = [store.images(part) for part in sorted(store.parts)]
    rows = [
        (images.entry.source, images.entry.split, "", image_id, f"{n}/{row}")
        for n, images in enumerate(parts)
        for row, image_id in enumerate(images.ids.to_pylist())
    ]
    return _set(text, rows, StoreReader(parts), folder)


def _of_folder(text: str, folder: Path) -> PictureSet:
    root = check_root(folder, text)
    keys: list[Path] = []
    rows, folders = [], [root]
    while folders:
        for entry in entries(folders.pop(), root):
            if entry.is_dir():
                folders.append(Path(entry.path))
            elif Path(entry.name).suffix[1:].lower() in EXTENSIONS:
                key = Path(entry.path).relative_to(root)
                if not is_one_line(key.as_posix()):
                    message = "has a name that a table of text cannot hold"
                    raise SourceError(message, where=printable(entry.path), hint="rename it")
                keys.append(key)
    stems = Counter(key.with_suffix("") for key in keys)
    for key in keys:
        class_id = key.parts[0] if len(key.parts) > 1 else ""
        image_id = key.with_suffix("") if stems[key.with_suffix("")] == 1 else key
        rows.append((root.name, "", class_id, image_id.as_posix(), key.as_posix()))
    return _set(text, rows, FolderReader(root), root)


HashedChunk = tuple[list[bytes | None], list[Problem]]


def hash_chunk(job: tuple[Reader, str, Sequence[str], Sequence[str]]) -> HashedChunk:
    """Hash pictures: (reader, name, image ids, keys). Return None for those that cannot be read."""
    reader, name, ids, keys = job
    grids: list[ph.Grid] = []
    unreadable: set[int] = set()
    problems: list[Problem] = []
    for n, (image_id, key) in enumerate(zip(ids, keys, strict=True)):
        try:
            grids.append(ph.cells(reader.picture(key)))
        except (SplitsError, OSError) as error:
            kind = "missing" if isinstance(error, MissingImageError) else "unreadable"
            unreadable.add(n)
            problems.append(Problem(kind, name, None, image_id, str(error)))
    rows = iter(ph.hash_cells(np.stack(grids))) if grids else iter(())
    return [None if n in unreadable else next(rows).tobytes() for n in range(len(ids))], problems


def chunk_name(job: tuple[Reader, str, Sequence[str], Sequence[str]]) -> str:
    """Return the name of a chunk for errors."""
    return f"{job[1]} {job[2][0]} to {job[2][-1]}"


def hash_pictures(
    pictures: PictureSet, path: Path, *, workers: int = 1, progress: Progress | None = None
) -> list[Problem]:
    """Hash a set into a file, continuing where an interrupted run stopped; return a problem for each failure.

    Pictures that could not be read are tried again. The file begins anew if pictures were added, removed or
    changed, by the sizes and times of their files.

    Raises
    ------
    OutputError : the file cannot be written.
    """
    with locked(path, busy="", wait=True), writing(path):
        head = pictures.digest(stamped=True)
        if not path.is_file() or _head(path) != head:
            with replacing(path) as part:
                part.write_bytes(head)
        done = (path.stat().st_size - HEADER) // RECORD
        failed = np.flatnonzero(~_records(path, done)[:, 0].astype(bool)).tolist()
        todo = [*failed, *range(done, len(pictures))]
        ids, keys = (
            pictures.table[name].take(pa.array(todo, pa.int64())).to_pylist() for name in ("image_id", "key")
        )
        chunks = [slice(n, n + IMAGES_PER_JOB) for n in range(0, len(todo), IMAGES_PER_JOB)]
        jobs = ((pictures.reader, pictures.name, ids[chunk], keys[chunk]) for chunk in chunks)
        problems: list[Problem] = []
        with (
            path.open("r+b") as file,
            (progress or Silent()).task(f"hashing {pictures.name}", len(todo)) as task,
            closing(run_jobs(hash_chunk, jobs, workers, name=chunk_name, ordered=True)) as results,
        ):
            for chunk, (_, (hashes, bad)) in zip(chunks, results, strict=False):
                for row, value in zip(todo[chunk], hashes, strict=True):
                    file.seek(HEADER + row * RECORD)
                    file.write(bytes(RECORD) if value is None else b"\1" + value)
                file.flush()
                problems += bad
                task.advance(len(hashes))
    return problems


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(HEADER)


def read_hashes(path: Path, count: int) -> tuple[ph.Hashes, npt.NDArray[np.intp]]:
    """Return the hashes (n, 16) of a complete file of ``count`` pictures, and the row of each picture."""
    records = _records(path, count)
    rows = np.flatnonzero(records[:, 0])
    return records[rows, 1:], rows


def _records(path: Path, count: int) -> ph.Hashes:
    if not count:
        return np.empty((0, RECORD), np.uint8)
    return np.memmap(path, np.uint8, "r", HEADER, (count, RECORD))
