"""A perceptual hash of 128 bits, and the hashes of a set in a file that an interrupted run continues.

The hash is called ``dct-128``. Pillow converts the image to grey (ITU-R 601-2), which is averaged over the
areas of a 32 x 32 grid and transformed by the discrete cosine transform (type II). Each of the 128 lowest
frequencies except the mean, ordered by u + v and then u, gives a bit: whether its coefficient exceeds the
lower median of the 128. Brightness and contrast do not change the hash, scaling and recompression change few
bits; mirrored and rotated images have different hashes.

Every step is exact: sums and products are whole numbers below 2**53, so that the same pixels give the same
bits on every machine, with any linear algebra library and number of threads.

After Zauner, Implementation and Benchmarking of Perceptual Image Hash Functions, 2010, section 3.2 (there
64 bits of an 8 x 8 block). On CIFAR-100, images of the same scene are up to about 24 bits apart; a
difference hash of 128 bits already confuses skies and seas at 12 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from numpy.typing import NDArray
from PIL import Image

from wordnet_splits.base.errors import DataError, MissingImageError, Problem, SourceError
from wordnet_splits.base.files import locked, replacing, writing
from wordnet_splits.base.progress import Progress, Silent
from wordnet_splits.base.workers import run_jobs
from wordnet_splits.datasets.catalog.image_pairs import BITS as BITS
from wordnet_splits.datasets.sources.image_set import ImageSet, Reader

NAME = "dct-128"
BYTES = BITS // 8
SIDE = 32
FREQUENCIES = 16  # u, v < 16: the 135 with 0 < u + v < 16 include the 128 lowest
CELL_SCALE = 256  # cells keep 8 bits of fraction
COSINE_SCALE = 4096  # cosines keep 12: 255 * 256 * (32 * 4096)**2 < 2**53

Hashes = NDArray[np.uint8]
"""(n, 16): a row of packed bits per image."""
Grid = NDArray[np.float64]


def perceptual_hash(image: Image.Image) -> bytes:
    """Return the 16 bytes of the hash of an image with any mode and size."""
    return hash_cells(cells(image)[None]).tobytes()


def cells(image: Image.Image) -> Grid:
    """Return the mean grey of the areas of a 32 x 32 grid, (32, 32), whole numbers in 0..65280.

    A pixel on the edge of an area counts by its part inside. Smaller images are stretched in the same way.
    """
    grey = np.asarray(image.convert("L"), dtype=np.float64)
    height, width = grey.shape
    sums = _overlaps(height) @ grey @ _overlaps(width).T  # each area weighs height * width in all
    means: Grid = np.floor((sums * CELL_SCALE * 2 + height * width) / (2 * height * width))
    return means


def hash_cells(grids: Grid) -> Hashes:
    """Return the hashes of (n, 32, 32) grids of `cells`, as (n, 16) uint8."""
    return hash_coefficients(low_frequencies(grids))


def low_frequencies(grids: Grid) -> Grid:
    """Return the 128 lowest coefficients except the mean, (n, 128), of (n, 32, 32) grids of `cells`."""
    cosines = _cosines()
    u, v = frequencies()
    coefficients: Grid = (cosines @ grids @ cosines.T)[:, u, v]
    return coefficients


def hash_coefficients(coefficients: Grid) -> Hashes:
    """Return the hashes of (n, 128) coefficients of `low_frequencies`, as (n, 16) uint8."""
    median = np.partition(coefficients, BITS // 2 - 1, axis=1)[:, BITS // 2 - 1, None]
    return np.packbits(coefficients > median, axis=1)


@cache
def _overlaps(size: int) -> Grid:
    """Return how much of each of ``size`` pixels is in each of 32 cells, (32, size), in 32nds of a pixel."""
    edges, pixels = np.arange(SIDE + 1) * size, np.arange(size + 1) * SIDE
    starts = np.maximum(edges[:-1, None], pixels[None, :-1])
    ends = np.minimum(edges[1:, None], pixels[None, 1:])
    overlaps: Grid = np.clip(ends - starts, 0, None).astype(np.float64)
    return overlaps


@cache
def _cosines() -> Grid:
    """Return the transform's matrix (16, 32), cosines in 4096ths, rounded."""
    frequency, position = np.arange(FREQUENCIES)[:, None], np.arange(SIDE)[None, :]
    cosines: Grid = np.rint(np.cos(np.pi * (2 * position + 1) * frequency / (2 * SIDE)) * COSINE_SCALE)
    return cosines


@cache
def frequencies() -> tuple[list[int], list[int]]:
    """Return the vertical and the horizontal frequency of each of the 128 coefficients."""
    by_diagonal = sorted((u + v, u, v) for u in range(FREQUENCIES) for v in range(FREQUENCIES))
    lowest = by_diagonal[1 : BITS + 1]
    return [u for _, u, _ in lowest], [v for _, _, v in lowest]


IMAGES_PER_JOB = 128
RECORD = BYTES + 1
"""Bytes of a hash in a file of hashes: 1, or 0 for an image that cannot be read, and the hash."""
HEADER = 32
"""Bytes of the digest of the images at the head of a file of hashes."""

HashJob = tuple[Reader, str, Sequence[str], Sequence[str]]
"""Reader, name of the set, image ids and keys."""

HashedChunk = tuple[list[bytes | None], list[Problem]]


def hash_chunk(job: HashJob) -> HashedChunk:
    """Return the hashes of images, None for an unreadable image, and a problem for each of these."""
    reader, name, ids, keys = job
    grids: list[Grid] = []
    unreadable: set[int] = set()
    problems: list[Problem] = []
    for n, (image_id, key) in enumerate(zip(ids, keys, strict=True)):
        try:
            grids.append(cells(reader.image(key)))
        except (SourceError, DataError) as error:
            kind = "missing" if isinstance(error, MissingImageError) else "unreadable"
            unreadable.add(n)
            problems.append(Problem(kind, name, None, image_id, str(error)))
    rows = iter(hash_cells(np.stack(grids))) if grids else iter(())
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


def read_hashes(path: Path, count: int) -> tuple[Hashes, npt.NDArray[np.intp]]:
    """Return the hashes (n, 16) in a complete file of ``count`` images, and the row of each image."""
    records = _records(path, count)
    rows = np.flatnonzero(records[:, 0])
    return records[rows, 1:], rows


def _records(path: Path, count: int) -> Hashes:
    if not count:
        return np.empty((0, RECORD), np.uint8)
    return np.memmap(path, np.uint8, "r", HEADER, (count, RECORD))
