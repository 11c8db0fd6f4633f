"""Detectors on features: distances to the training data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from wordnet_splits.errors import DataError, SplitsError, unknown

from ..arrays import Array, Arrays, Head
from .paper import PAPERS
from .registry import register

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
        if data.n < self.k:
            raise DataError(f"{data.n} training images are too few for the {self.k}-th nearest")
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
        features = np.asarray(data["features"])
        blocks = [features[i : i + QUERIES] for i in range(0, len(features), QUERIES)]
        return np.concatenate(
            [self._score(state.bank, unit_length(block)) for block in blocks] or [np.empty(0)]
        )

    def _score(self, bank: Array, queries: Array) -> Array:
        kth = nearest(bank, queries, self.k)
        return np.asarray(-np.square(queries.astype(np.float64) - bank[kth]).sum(axis=1))


def nearest(bank: Array, queries: Array, k: int) -> Array:
    """Return the row in ``bank`` of the k-th most similar to each query (by product), shape (n,)."""
    best = np.empty((len(queries), 0), np.float32)
    rows = np.empty((len(queries), 0), np.int64)
    for start in range(0, len(bank), BANK):
        products = queries @ bank[start : start + BANK].T
        top = greatest(products, k)
        best = np.concatenate([best, np.take_along_axis(products, top, axis=1)], axis=1)
        rows = np.concatenate([rows, top + start], axis=1)
        top = greatest(best, k)
        best, rows = np.take_along_axis(best, top, axis=1), np.take_along_axis(rows, top, axis=1)
    return np.take_along_axis(rows, best.argmin(axis=1)[:, None], axis=1)[:, 0]


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


class Gaussians(NamedTuple):
    """Class means (C, R) and the map (D, R) to coordinates in which the tied covariance is the identity."""

    centre: Array
    whiten: Array
    means: Array


@register(paper=PAPERS["lee2018"], needs=("{on}", "labels"), fit_on="train", aliases=("mds",))
@dataclass(frozen=True)
class Mahalanobis:
    """Distance to the nearest class mean under the covariance that all classes share."""

    on: str = "features"

    def __post_init__(self) -> None:
        if self.on not in ("features", "logits"):
            raise unknown("array for mahalanobis", self.on, ("features", "logits"))

    def fit(self, data: Arrays, head: Head | None) -> Gaussians:
        """Return class means and whitening of the labelled training images.

        Directions in which the data do not vary, to the precision of their type (numpy's rank tolerance),
        are left out, as a pseudo-inverse leaves them out.

        Raises
        ------
        DataError : no image has a label, or no direction varies within classes.
        """
        labels = np.asarray(data["labels"])
        classes, members = np.unique(labels[labels >= 0], return_counts=True)
        if not len(classes):
            raise DataError("no training image has a label, so there are no class means")
        width = data[self.on].shape[1]
        means = np.zeros((len(classes), width))
        for rows, which in _labelled(data, self.on, labels, classes):
            np.add.at(means, which, rows)
        means /= members[:, None]
        scatter = np.zeros((width, width))
        for rows, which in _labelled(data, self.on, labels, classes):
            rows -= means[which]
            scatter += rows.T @ rows
        variance, directions = eigh(scatter / members.sum())
        tolerance = width * np.finfo(data[self.on].dtype).eps  # of standard deviations
        kept = variance > max(variance[-1], 0.0) * tolerance**2
        if not kept.any():
            raise DataError("training images of one class are all alike, so there is no covariance")
        whiten = directions[:, kept] / np.sqrt(variance[kept])
        centre = means.mean(axis=0)
        return Gaussians(centre, whiten, (means - centre) @ whiten)

    def score(self, state: Gaussians, data: Arrays) -> Array:
        """Return minus the squared Mahalanobis distance to the nearest class mean."""
        points = (np.asarray(data[self.on], dtype=np.float64) - state.centre) @ state.whiten
        lengths = np.square(points).sum(axis=1)[:, None] + np.square(state.means).sum(axis=1)
        return np.asarray(-np.min(lengths - 2 * points @ state.means.T, axis=1))


def _labelled(data: Arrays, on: str, labels: Array, classes: Array) -> Iterator[tuple[Array, Array]]:
    """Yield chunks of the labelled rows in float64, with the position of each row's class."""
    start = 0
    for chunk in data[on].chunks():
        own = labels[start : start + len(chunk)]
        start += len(chunk)
        yield chunk[own >= 0].astype(np.float64), np.searchsorted(classes, own[own >= 0])
