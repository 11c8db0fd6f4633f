"""Perceptual hashes of the images of a set, in a file that an interrupted run continues."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from wordnet_splits.base.errors import DataError, MissingImageError, Problem, SourceError
from wordnet_splits.base.files import locked, replacing, writing
from wordnet_splits.base.progress import Progress, Silent
from wordnet_splits.base.workers import run_jobs
from wordnet_splits.datasets.sources.image_set import ImageSet, Reader
from wordnet_splits.duplicates import perceptual_hash as ph

IMAGES_PER_JOB = 128
RECORD = ph.BYTES + 1
"""Bytes of a hash in a file of hashes: 1, or 0 for an image that cannot be read, and the hash."""
HEADER = 32
"""Bytes of the digest of the images at the head of a file of hashes."""

HashJob = tuple[Reader, str, Sequence[str], Sequence[str]]
"""Reader, name of the set, image ids and keys."""

HashedChunk = tuple[list[bytes | None], list[Problem]]


def hash_chunk(job: HashJob) -> HashedChunk:
    """Return the hashes of images, None for an unreadable image, and a problem for each of these."""
    reader, name, ids, keys = job
    grids: list[ph.Grid] = []
    unreadable: set[int] = set()
    problems: list[Problem] = []
    for n, (image_id, key) in enumerate(zip(ids, keys, strict=True)):
        try:
            grids.append(ph.cells(reader.image(key)))
        except (SourceError, DataError) as error:
            kind = "missing" if isinstance(error, MissingImageError) else "unreadable"
            unreadable.add(n)
            problems.append(Problem(kind, name, None, image_id, str(error)))
    rows = iter(ph.hash_cells(np.stack(grids))) if grids else iter(())
    return [None if n in unreadable else next(rows).tobytes() for n in range(len(ids))], problems


def chunk_name(job: HashJob) -> str:
    """Return the name of a chunk for errors."""
    return f"{job[1]} {job[2][0]} to {job[2][-1]}"


def hash_set(
    images: ImageSet, path: Path, *, workers: int = 1, progress: Progress | None = None
) -> list[Problem]:
    """Hash a set into a file, or continue an interrupted run; return a problem for each unreadable image.

    Images that could not be read are tried again. The file is written from the start if images were added,
    removed or changed, by the sizes and times of their files.

    Raises
    ------
    OutputError : the file cannot be written.
    """
    with locked(path, busy="", wait=True), writing(path):
        head = images.digest(stamped=True)
        if not path.is_file() or _head(path) != head:
            with replacing(path) as part:
                part.write_bytes(head)
        done = (path.stat().st_size - HEADER) // RECORD
        failed = np.flatnonzero(~_records(path, done)[:, 0].astype(bool)).tolist()
        todo = [*failed, *range(done, len(images))]
        ids, keys = (
            images.table[name].take(pa.array(todo, pa.int64())).to_pylist() for name in ("image_id", "key")
        )
        chunks = [slice(n, n + IMAGES_PER_JOB) for n in range(0, len(todo), IMAGES_PER_JOB)]
        jobs = ((images.reader, images.name, ids[chunk], keys[chunk]) for chunk in chunks)
        problems: list[Problem] = []
        with (
            path.open("r+b") as file,
            (progress or Silent()).task(f"hashing {images.name}", len(todo)) as task,
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
    """Return the hashes (n, 16) in a complete file of ``count`` images, and the row of each image."""
    records = _records(path, count)
    rows = np.flatnonzero(records[:, 0])
    return records[rows, 1:], rows


def _records(path: Path, count: int) -> ph.Hashes:
    if not count:
        return np.empty((0, RECORD), np.uint8)
    return np.memmap(path, np.uint8, "r", HEADER, (count, RECORD))
