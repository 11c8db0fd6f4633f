"""A perceptual hash of 128 bits.

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

from functools import cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from wordnet_splits.datasets.catalog.image_pairs import BITS as BITS

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
