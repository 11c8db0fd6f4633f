"""Detectors on the nearest training features, which are read in blocks and never copied whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from pydantic import PositiveInt

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.workers import thread_count

from ..data.arrays import Array, Arrays, ArrayView, Head, map_in_order
from ..data.parameters import parameters
from .registry import PAPERS, SharedScores, register
from .softmax import energy

QUERIES, BANK = 1024, 16_384  # rows and columns of a block of similarities: 64 MB in float32
PART = 128  # queries that one thread selects for at a time
STEP = 256  # rows scaled at a time: they stay in the processor's cache


class Bank(NamedTuple):
    """Training images to search: the directions of their features, scaled to given lengths.

    Attributes
    ----------
    features : (N, D) as stored, in memory or memory-mapped, float16 too.
    lengths : (N,) float32 length of each direction; None: 1.
    """

    features: ArrayView
    lengths: Array | None = None

    def block(self, start: int, stop: int) -> Array:
        """Return rows start..stop-1 (fewer at the end) at their lengths, float32; zeros stay zeros."""
        view = self.features.rows(start, stop)
        block = np.empty(view.shape, np.float32)
        for offset, rows in zip(range(0, len(view), STEP), view.chunks(STEP), strict=True):
            part = block[offset : offset + len(rows)]
            part[:] = rows
            norm = np.sqrt(np.einsum("ij,ij->i", part, part, dtype=np.float64))
            scale = 1.0 if self.lengths is None else self.lengths[start + offset :][: len(rows)]
            part /= np.where(norm > 0, norm / scale, 1.0)[:, None].astype(np.float32)
        return block

    def most_similar(self, queries: Array, k: int) -> tuple[Array, Array]:
        """Return each query's k greatest products with rows of the bank, descending, and those rows: (n, k).

        Every block of the bank is read once, for all queries.
        """
        best = np.full((len(queries), k), -np.inf, np.float32)
        rows = np.zeros((len(queries), k), np.int64)
        for start in range(0, len(self.features), BANK):
            block = self.block(start, start + BANK)
            for i in range(0, len(queries), QUERIES):
                part = slice(i, i + QUERIES)
                _keep(best[part], rows[part], queries[part] @ block.T, start)

        def sort(part: slice) -> None:
            order = np.argsort(-best[part], axis=1, kind="stable")
            best[part] = np.take_along_axis(best[part], order, axis=1)
            rows[part] = np.take_along_axis(rows[part], order, axis=1)

        _each_part(len(queries), sort)
        return best, rows


def _each_part(n: int, function: Callable[[slice], None]) -> None:
    """Call a function for slices of rows 0..n-1 on all threads; NumPy selects and sorts on one thread."""
    map_in_order(function, [slice(i, i + PART) for i in range(0, n, PART)], thread_count())


def _keep(best: Array, rows: Array, products: Array, start: int) -> None:
    """Update ``best`` (n, k) and ``rows`` in place with products (n, m) of the bank's rows from ``start``."""
    _each_part(len(best), lambda part: _keep_part(best[part], rows[part], products[part], start))


def _keep_part(best: Array, rows: Array, products: Array, start: int) -> None:
    """Update a slice of the queries.

    Few products exceed the k-th greatest of the earlier blocks, so that most are only compared once.
    """
    k, columns = best.shape[1], products.shape[1]
    if not start and columns >= k:  # first block
        rows[:] = greatest(products, k)
        best[:] = np.take_along_axis(products, rows, axis=1)
        return
    greater = products > best.min(axis=1)[:, None]
    counts = np.count_nonzero(greater, axis=1)
    width = int(counts.max(initial=0))
    if not width:
        return
    if 8 * width > columns:
        candidates = greatest(products, k)
        values = np.take_along_axis(products, candidates, axis=1)
    else:  # candidates of each query, padded with -inf
        query, column = np.nonzero(greater)
        position = np.arange(len(query)) - np.repeat(np.cumsum(counts) - counts, counts)
        values = np.full((len(products), width), -np.inf, np.float32)
        candidates = np.zeros((len(products), width), np.int64)
        values[query, position], candidates[query, position] = products[query, column], column
    values = np.concatenate([best, values], axis=1)
    candidates = np.concatenate([rows, candidates + start], axis=1)
    top = greatest(values, k)
    best[:] = np.take_along_axis(values, top, axis=1)
    rows[:] = np.take_along_axis(candidates, top, axis=1)


def greatest(values: Array, k: int) -> Array:
    """Return the columns of the k greatest values of each row, in any order; all columns if fewer than k."""
    number = min(k, values.shape[1])
    return np.argpartition(values, values.shape[1] - number, axis=1)[:, -number:]


def unit_length(features: Array) -> Array:
    """Return features (n, D) as float32 of Euclidean length 1; a row of zeros has no direction and stays."""
    wide = features.astype(np.float64)
    length = np.sqrt(np.square(wide).sum(axis=1, keepdims=True))
    scaled = np.divide(wide, length, out=np.zeros_like(wide), where=length > 0)
    return np.asarray(scaled, dtype=np.float32)


def require_images(images: int, k: int) -> None:
    """Raise DataError if there are fewer training images than neighbours to find."""
    if images < k:
        raise DataError(f"{images} training images are too few for the {k}-th nearest")


@register(
    paper=PAPERS["sun2022"],
    needs=("features",),
    fit_on="train",
    sweep={"k": (50, 100, 200, 500, 1000)},
    aliases=("deepnn",),
    fit_parameters=(),
)
@parameters
class KNN(SharedScores):
    """Distance to the k-th nearest training feature, all scaled to unit length."""

    k: PositiveInt = 50

    def fit(self, data: Arrays, head: Head | None) -> Bank:
        """Return the training features, to be scaled to unit length."""
        require_images(data.n, self.k)
        return Bank(data["features"])

    @staticmethod
    def score_each(detectors: Sequence[KNN], state: Bank, data: Arrays) -> list[Array]:
        """Return the scores for each k, from one search.

        Neighbours are found by float32 products; the distance to each is then the difference in float64, so
        that small distances (products of nearly 1) keep their digits.
        """
        queries, (_, rows) = search(state, data, [detector.k for detector in detectors])
        wide = queries.astype(np.float64)
        squared = np.empty((len(detectors), len(wide)))

        def measure(part: slice) -> None:
            for n, detector in enumerate(detectors):
                neighbours = unit_length(state.features[rows[part, detector.k - 1]])
                squared[n, part] = np.square(wide[part] - neighbours).sum(axis=1)

        _each_part(len(wide), measure)
        return list(-squared)


def search(bank: Bank, data: Arrays, ks: Sequence[int]) -> tuple[Array, tuple[Array, Array]]:
    """Return the directions of images, and `Bank.most_similar` for the greatest of ``ks``."""
    require_images(len(bank.features), max(ks))
    queries = unit_length(np.asarray(data["features"]))
    return queries, bank.most_similar(queries, max(ks))


@register(
    paper=PAPERS["park2023"],
    needs=("features", "logits"),
    fit_on="train",
    sweep={"k": (1, 5, 10, 50, 100)},
    fit_parameters=(),
)
@parameters
class NNGuide(SharedScores):
    """Energy times the mean, over the k nearest training images, of their energy times the cosine to them.

    The bank is the whole training set; its authors take 1% of ImageNet's (OpenOOD too, with k = 100).
    """

    k: PositiveInt = 10

    def fit(self, data: Arrays, head: Head | None) -> Bank:
        """Return the directions of the training images, each as long as its image's energy."""
        require_images(data.n, self.k)
        energies = np.concatenate([energy(chunk) for chunk in data["logits"].chunks()])
        return Bank(data["features"], energies.astype(np.float32))

    @staticmethod
    def score_each(detectors: Sequence[NNGuide], state: Bank, data: Arrays) -> list[Array]:
        """Return the scores for each k, from one search."""
        _, (products, _) = search(state, data, [detector.k for detector in detectors])
        energies = energy(data["logits"])
        return [products[:, : detector.k].mean(axis=1, dtype=np.float64) * energies for detector in detectors]
