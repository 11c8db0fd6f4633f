"""Write one part of a packed store: images rendered here or by worker processes, appended in order."""

from __future__ import annotations

import hashlib
import os
from array import array
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from wordnet_splits.base.errors import DataError, MissingImageError, Problem, SourceError
from wordnet_splits.base.progress import Progress
from wordnet_splits.base.workers import run_jobs
from wordnet_splits.manifest import Part
from wordnet_splits.packed.entry import PartEntry
from wordnet_splits.packed.images import INDEX_SCHEMA, crc_of
from wordnet_splits.packed.reading import RAW_VIEW, AlteredImageError, RawImages, spec_id
from wordnet_splits.sources import Source

CHUNK = 64  # images a worker renders at a time: at 100 kB each, 6 MB travel back
SMALL = 96 * 96  # pixels up to which image files, all of one size, are kept decoded
Shape = tuple[int, int, int]


@dataclass(frozen=True)
class PartTask:
    """One part to write: its image table, its source, and their identification in the entry.

    ``images``, ``pixels`` and ``files`` are as in `PartEntry`.
    """

    part: Part
    table: pa.Table
    source: Source
    images: str
    pixels: str | None
    files: str | None

    @property
    def view(self) -> str:
        """Return the view of the part's images."""
        return str(self.table["view"][0].as_py()) if len(self.table) else RAW_VIEW

    def ids(self, start: int, count: int) -> tuple[pa.Array, pa.Array]:
        """Return image ids and digests of some rows, as arrays that pickle to no more than those rows."""
        piece = self.table.slice(start, count)
        ids, digests = (pa.concat_arrays(piece[name].chunks) for name in ("image_id", "digest"))
        return ids, digests

    def image_id(self, row: int) -> str:
        """Return the id of one row."""
        return str(self.table["image_id"][row].as_py())


def write_part(
    task: PartTask, bin_path: Path, index_path: Path, *, workers: int, progress: Progress
) -> tuple[PartEntry, list[Problem]]:
    """Write the two files of a part; return its entry and a problem for each image left out.

    Raises
    ------
    DataError : images that can only be kept as pixels differ in size.
    """
    shape, only_pixels = _layout(task)
    try:
        return _write(task, shape, bin_path, index_path, workers, progress)
    except _OtherShapeError as error:
        if only_pixels:
            raise DataError(
                f"image {error.image_id!r} has another size than the first of its group",
                where=f"{task.part[1]} {task.part[0]}",
            ) from None
        return _write(task, None, bin_path, index_path, workers, progress)


def _layout(task: PartTask) -> tuple[Shape | None, bool]:
    """Return the shape of packed pixels, None for files; and whether only pixels can be packed."""
    for row in range(len(task.table)):  # the first readable image decides
        ids, digests = task.ids(row, 1)
        images = RawImages(task.source, ids, digests, task.view)
        try:
            raw = images.read(0)
            height, width, _ = np.asarray(images.render(raw, task.image_id(row))).shape
        except (SourceError, OSError):
            continue
        only_pixels = task.view != RAW_VIEW or not isinstance(raw, bytes)
        return ((3, height, width) if only_pixels or height * width <= SMALL else None), only_pixels
    return None, False


def _write(
    task: PartTask, shape: Shape | None, bin_path: Path, index_path: Path, workers: int, progress: Progress
) -> tuple[PartEntry, list[Problem]]:
    split, group = task.part
    total = len(task.table)
    index = _Index()
    missing: list[Problem] = []
    with (
        bin_path.open("wb") as file,
        progress.task(f"packing {group} {split}", total) as bar,
        closing(run_jobs(_render, _jobs(task, shape), workers, name=_describe, ordered=True)) as batches,
    ):
        sink = _Hashed(file)
        for row, outcome in enumerate(chain.from_iterable(outcomes for _, outcomes in batches)):
            if outcome.kind == OTHER_SHAPE:
                raise _OtherShapeError(task.image_id(row))
            if outcome.payload is None:
                class_id = task.table["class_id"][row].as_py()
                image_id = task.image_id(row)
                missing.append(Problem(outcome.kind, task.source.name, class_id, image_id, outcome.detail))
            else:
                index.add(row, sink.size, outcome.payload)
                sink.write(outcome.payload)
            bar.advance()
    index.write(index_path, task)
    entry = PartEntry(
        split=split,
        group=group,
        source=task.source.name,
        view=task.view,
        spec=spec_id(task.view),
        layout="files" if shape is None else "pixels",
        shape=shape,
        rows=total - len(missing),
        missing=len(missing),
        bytes=sink.size,
        images=task.images,
        pixels=task.pixels,
        files=task.files,
        sha256=sink.sha256,
        index_sha256=hashlib.sha256(index_path.read_bytes()).hexdigest(),
    )
    return entry, missing


class _OtherShapeError(Exception):
    """An image does not have the shape of the images before it."""

    def __init__(self, image_id: str) -> None:
        super().__init__(image_id)
        self.image_id = image_id


class _Index:
    """The index of a part, as it grows: 28 bytes per image."""

    def __init__(self) -> None:
        self._columns = (array("q"), array("q"), array("q"), array("I"))

    def add(self, row: int, offset: int, payload: bytes) -> None:
        """Enter one image."""
        values = (row, offset, len(payload), crc_of(payload, row))
        for column, value in zip(self._columns, values, strict=True):
            column.append(value)

    def write(self, path: Path, task: PartTask) -> None:
        """Write the index as one record batch, also where it is empty."""
        numbers = [pa.array(np.frombuffer(c, c.typecode), pa.int64()) for c in self._columns[:3]]
        crcs = pa.array(np.frombuffer(self._columns[3], np.uint32), pa.uint32())
        ids = pa.concat_arrays([pa.array([], pa.string()), *task.table["image_id"].chunks])
        batch = pa.RecordBatch.from_arrays([ids.take(numbers[0]), *numbers, crcs], schema=INDEX_SCHEMA)
        with pa.OSFile(os.fsencode(path), "wb") as file, pa.ipc.new_file(file, INDEX_SCHEMA) as writer:
            writer.write_batch(batch)


class _Hashed:
    """A file being written, its size and its SHA-256."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._hash = hashlib.sha256()
        self.size = 0

    def write(self, data: bytes) -> None:
        """Append some bytes."""
        self._file.write(data)
        self._hash.update(data)
        self.size += len(data)

    @property
    def sha256(self) -> str:
        """Return the SHA-256 of the written bytes, in hex."""
        return self._hash.hexdigest()


# -- in the workers ------------------------------------------------------------------------------------------

OTHER_SHAPE = "other-shape"


@dataclass(frozen=True)
class _Job:
    """Some images to render; ``shape`` None asks for file bytes."""

    source: Source
    view: str
    ids: pa.Array
    digests: pa.Array
    shape: Shape | None


@dataclass(frozen=True)
class _Outcome:
    """The packed bytes of one image, or the reason why it has none."""

    payload: bytes | None
    kind: str = ""
    detail: str = ""


def _jobs(task: PartTask, shape: Shape | None) -> Iterator[_Job]:
    for start in range(0, len(task.table), CHUNK):
        yield _Job(task.source, task.view, *task.ids(start, CHUNK), shape)


def _describe(job: _Job) -> str:
    return f"{job.source.name} {job.ids[0].as_py()} to {job.ids[-1].as_py()}"


def _render(job: _Job) -> list[_Outcome]:
    images = RawImages(job.source, job.ids, job.digests, job.view)
    return [_outcome(images, row, str(job.ids[row].as_py()), job.shape) for row in range(len(job.ids))]


def _outcome(images: RawImages, row: int, image_id: str, shape: Shape | None) -> _Outcome:
    try:
        raw = images.read(row)
        if shape is not None:
            pixels: Any = np.asarray(images.render(raw, image_id)).transpose(2, 0, 1)
            return _Outcome(pixels.tobytes()) if pixels.shape == shape else _Outcome(None, OTHER_SHAPE)
        if not isinstance(raw, bytes):
            return _Outcome(None, "unreadable", "its source gives pixels, not a file")
        reason = images.source.check_image(raw)
        return _Outcome(raw) if reason is None else _Outcome(None, "unreadable", reason)
    except MissingImageError as error:
        return _Outcome(None, "missing", str(error))
    except AlteredImageError as error:
        return _Outcome(None, "altered", str(error))
    except (SourceError, OSError) as error:
        return _Outcome(None, "unreadable", str(error))
