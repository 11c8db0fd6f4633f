"""Write one part of a packed store: images rendered here or by worker processes, appended in order."""

from __future__ import annotations

import hashlib
import os
from array import array
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa

from wordnet_splits.base.errors import DataError, MissingImageError, Problem, SourceError
from wordnet_splits.base.progress import Progress
from wordnet_splits.base.workers import run_jobs
from wordnet_splits.benchmark.images.packed_part import INDEX_SCHEMA, PartEntry, crc_of
from wordnet_splits.benchmark.images.raw_images import RAW_VIEW, AlteredImageError, RawImages, spec_id
from wordnet_splits.benchmark.manifest import Part
from wordnet_splits.datasets.sources import Source

CHUNK = 64  # images a worker renders at a time: at 100 kB each, 6 MB travel back
SMALL = 96 * 96  # largest number of pixels for which image files of equal size are stored decoded
Shape = tuple[int, int, int]

Job = tuple[RawImages, Shape | None]
"""Some images, and the shape of their pixels, None for file bytes."""


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

    def rows(self, start: int, count: int) -> RawImages:
        """Return the images of some rows, which pickle to no more than those rows."""
        piece = self.table.slice(start, count)
        ids, digests = (pa.concat_arrays(piece[name].chunks) for name in ("image_id", "digest"))
        return RawImages(self.source, ids, digests, self.view)


def write_part(
    task: PartTask, bin_path: Path, index_path: Path, *, workers: int, progress: Progress
) -> tuple[PartEntry, list[Problem]]:
    """Write the two files of a part; return its entry and a problem for each image left out.

    Raises DataError if images that can only be kept as pixels differ in size.
    """
    shape, only_pixels = _layout(task)
    try:
        return _write(task, shape, bin_path, index_path, workers, progress)
    except _OtherShapeError as error:
        if only_pixels:
            message = f"image {str(error)!r} has another size than the first of its group"
            raise DataError(message, where=f"{task.part[1]} {task.part[0]}") from None
        return _write(task, None, bin_path, index_path, workers, progress)


def _layout(task: PartTask) -> tuple[Shape | None, bool]:
    """Return the shape of packed pixels, None for files; and whether only pixels can be packed."""
    for row in range(len(task.table)):  # the first readable image decides
        images = task.rows(row, 1)
        try:
            raw = images.read(0)
            height, width, _ = np.asarray(images.render(raw, images.image_id(0))).shape
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
    jobs = ((task.rows(start, CHUNK), shape) for start in range(0, total, CHUNK))
    index = array("q"), array("q"), array("q"), array("I")
    sha256, size = hashlib.sha256(), 0
    missing: list[Problem] = []
    with (
        bin_path.open("wb") as file,
        progress.task(f"packing {group} {split}", total) as bar,
        closing(run_jobs(_render, jobs, workers, name=_describe, ordered=True)) as batches,
    ):
        for row, packed in enumerate(chain.from_iterable(outcomes for _, outcomes in batches)):
            if isinstance(packed, bytes):
                for column, value in zip(index, (row, size, len(packed), crc_of(packed, row)), strict=True):
                    column.append(value)
                file.write(packed)
                sha256.update(packed)
                size += len(packed)
            else:
                kind, detail = packed
                image_id, class_id = (task.table[name][row].as_py() for name in ("image_id", "class_id"))
                if kind == OTHER_SHAPE:
                    raise _OtherShapeError(image_id)
                missing.append(Problem(kind, task.source.name, class_id, image_id, detail))
            bar.advance()
    _write_index(index_path, task, index)
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
        bytes=size,
        images=task.images,
        pixels=task.pixels,
        files=task.files,
        sha256=sha256.hexdigest(),
        index_sha256=hashlib.sha256(index_path.read_bytes()).hexdigest(),
    )
    return entry, missing


class _OtherShapeError(Exception):
    """An image, whose id is the message, does not have the shape of the images before it."""


def _write_index(path: Path, task: PartTask, columns: tuple[array[int], ...]) -> None:
    """Write the index (id, row, offset, length and CRC of each packed image) in a single record batch."""
    numbers = [pa.array(np.frombuffer(column, column.typecode)) for column in columns]
    ids = pa.concat_arrays([pa.array([], pa.string()), *task.table["image_id"].chunks])
    arrays = [ids.take(numbers[0]), *numbers]
    batch = pa.RecordBatch.from_arrays(arrays, schema=INDEX_SCHEMA)
    with pa.OSFile(os.fsencode(path), "wb") as file, pa.ipc.new_file(file, INDEX_SCHEMA) as writer:
        writer.write_batch(batch)


# -- in the workers ------------------------------------------------------------------------------------------

OTHER_SHAPE = "other-shape"

Outcome = bytes | tuple[str, str]
"""The packed bytes of an image, or the kind of problem and its detail."""


def _describe(job: Job) -> str:
    images, _ = job
    return f"{images.source.name} {images.image_id(0)} to {images.image_id(len(images) - 1)}"


def _render(job: Job) -> list[Outcome]:
    images, shape = job
    return [_outcome(images, row, shape) for row in range(len(images))]


def _outcome(images: RawImages, row: int, shape: Shape | None) -> Outcome:
    try:
        raw = images.read(row)
        if shape is not None:
            pixels = np.asarray(images.render(raw, images.image_id(row))).transpose(2, 0, 1)
            return pixels.tobytes() if pixels.shape == shape else (OTHER_SHAPE, "")
        if not isinstance(raw, bytes):
            return "unreadable", "its source gives pixels, not a file"
        reason = images.source.check_image(raw)
        return raw if reason is None else ("unreadable", reason)
    except MissingImageError as error:
        return "missing", str(error)
    except AlteredImageError as error:
        return "altered", str(error)
    except (SourceError, OSError) as error:
        return "unreadable", str(error)
