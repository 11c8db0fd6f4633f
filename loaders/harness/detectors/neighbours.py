"""Detectors on the nearest training features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from wordnet_splits.errors import DataError, SplitsError

from ..arrays import Array, Arrays, Head
from .paper import PAPERS
from .registry import register
from .softmax import energy

QUERIES, BANK = 1024, 16_384  # rows of one block of similarities: 64 MB in float32


class Neighbours(NamedTuple):
    """Training features (N, D) float32 scaled to unit length; zero vectors stay zero."""

    bank: Array


@register(
    paper=PAPERS["sun2022"],
    needs=("features",),
    fit_on="train",
    sweep={"k": (50, 100, 200, 500, 1000)},
    aliases=("deepnn",),
    fit_uses=(),
)
@dataclass(frozen=True)
class KNN:
    """Distance to the k-th nearest training feature, all scaled to unit length."""

    k: int = 50

    def __post_init__(self) -> None:
        if self.k < 1:
            raise SplitsError(f"k={self.k} is not positive")

    def fit(self, data: Arrays, head: Head | None) -> Neighbours:
        """Return the training features at unit length.

        Raises
        ------
        DataError : fewer than k training images.
        """
        enough(data.n, self.k)
        bank = np.empty(data["features"].shape, np.float32)
        start = 0
        for chunk in data["features"].chunks():
            bank[start : start + len(chunk)] = unit_length(chunk)
            start += len(chunk)
        return Neighbours(bank)

    def score(self, state: Neighbours, data: Arrays) -> Array:
        """Return minus the squared distance to the k-th nearest.

        Neighbours are found by float32 products; the distance to the one found is then taken by difference
        in float64, so that near ones (products of nearly 1) keep their digits.
        """
        enough(len(state.bank), self.k)
        features = np.asarray(data["features"])
        blocks = [features[i : i + QUERIES] for i in range(0, len(features), QUERIES)]
        return np.concatenate(
            [self._score(state.bank, unit_length(block)) for block in blocks] or [np.empty(0)]
        )

    def _score(self, bank: Array, queries: Array) -> Array:
        products, rows = most_similar(bank, queries, self.k)
        kth = np.take_along_axis(rows, products.argmin(axis=1)[:, None], axis=1)[:, 0]
        return np.asarray(-np.square(queries.astype(np.float64) - bank[kth]).sum(axis=1))


def enough(images: int, k: int) -> None:
    """Refuse fewer training images than neighbours are asked for."""
    if images < k:
        raise DataError(f"{images} training images are too few for the {k}-th nearest")


def most_similar(bank: Array, queries: Array, k: int) -> tuple[Array, Array]:
    """Return each query's k greatest products with rows of ``bank``, and those rows: (n, k), unordered."""
    best = np.empty((len(queries), 0), np.float32)
    rows = np.empty((len(queries), 0), np.int64)
    for start in range(0, len(bank), BANK):
        products = queries @ bank[start : start + BANK].T
        top = greatest(products, k)
        best = np.concatenate([best, np.take_along_axis(products, top, axis=1)], axis=1)
        rows = np.concatenate([rows, top + start], axis=1)
        top = greatest(best, k)
        best, rows = np.take_along_axis(best, top, axis=1), np.take_along_axis(rows, top, axis=1)
    return best, rows


def greatest(values: Array, k: int) -> Array:
    """Return the columns of the k greatest values of each row, in any order; all where there are fewer."""
    kept = min(k, values.shape[1])
    return np.argpartition(values, values.shape[1] - kept, axis=1)[:, -kept:]


def unit_length(features: Array) -> Array:
    """Return features (n, D) as float32 of Euclidean length 1; a row of zeros has no direction and stays."""
    wide = features.astype(np.float64)
    length = np.sqrt(np.square(wide).sum(axis=1, keepdims=True))
    scaled = np.divide(wide, length, out=np.zeros_like(wide), where=length > 0)
    return np.asarray(scaled, dtype=np.float32)


class Guides(NamedTuple):
    """Training features (N, D) float32: directions, each as long as its image's energy."""

    bank: Array


@register(
    paper=PAPERS["park2023"],
    needs=("features", "logits"),
    fit_on="train",
    sweep={"k": (1, 5, 10, 50, 100)},
    fit_uses=(),
)
@dataclass(frozen=True)
class NNGuide:
    """Energy times the mean, over the k nearest training images, of their energy times the cosine to them.

    The bank is the whole training set; its authors take 1% of ImageNet's (OpenOOD too, with k = 100).
    """

    k: int = 10

    def __post_init__(self) -> None:
        if self.k < 1:
            raise SplitsError(f"k={self.k} is not positive")

    def fit(self, data: Arrays, head: Head | None) -> Guides:
        """Return the scaled directions of the training images.

        Raises
        ------
        DataError : fewer than k training images.
        """
        enough(data.n, self.k)
        bank = np.empty(data["features"].shape, np.float32)
        start = 0
        for chunk in data.chunks():
            directions = unit_length(np.asarray(chunk["features"]))
            bank[start : start + chunk.n] = directions * energy(chunk["logits"])[:, None].astype(np.float32)
            start += chunk.n
        return Guides(bank)

    def score(self, state: Guides, data: Arrays) -> Array:
        """Return the energy of each image times its guidance."""
        enough(len(state.bank), self.k)
        queries = unit_length(np.asarray(data["features"]))
        guidance = [
            most_similar(state.bank, queries[i : i + QUERIES], self.k)[0].mean(axis=1, dtype=np.float64)
            for i in range(0, len(queries), QUERIES)
        ]
        return np.concatenate(guidance or [np.empty(0)]) * energy(data["logits"])
