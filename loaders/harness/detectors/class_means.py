"""Class means of stored arrays, and Mahalanobis distances of features to them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.sparse import csr_matrix

from wordnet_splits.base.errors import DataError

from ..data.arrays import Array, Arrays, ArrayView, Head
from ..data.parameters import parameters
from .registry import PAPERS, register
from .softmax import products


def classes_of(labels: Array) -> tuple[Array, Array]:
    """Return the sorted classes of labelled images, and the index (n,) of each image's class, -1 for none."""
    labels = np.asarray(labels)
    classes = np.unique(labels[labels >= 0])
    if not len(classes):
        raise DataError("no training image has a label, so there are no class means")
    return classes, np.where(labels >= 0, np.searchsorted(classes, labels), -1)


def labelled_chunks(view: ArrayView, class_index: Array) -> Iterator[tuple[Array, Array]]:
    """Yield chunks of the rows whose class index (n,) is not -1, in float64, and their class indices."""
    start = 0
    for chunk in view.chunks():
        chunk_classes = class_index[start : start + len(chunk)]
        start += len(chunk)
        labelled = chunk_classes >= 0
        yield (chunk if labelled.all() else chunk[labelled]).astype(np.float64), chunk_classes[labelled]


def class_means(view: ArrayView, class_index: Array, count: int) -> tuple[Array, Array]:
    """Return the mean (count, D) of each class, zeros for one without rows, and the number of rows (count,).

    Parameters
    ----------
    class_index : (n,) class of each row, 0..count-1, or -1 to leave the row out.
    """
    totals = np.zeros((count, view.shape[1]))
    for rows, classes in labelled_chunks(view, class_index):
        totals += _members(classes, count) @ rows
    members = np.bincount(class_index[class_index >= 0], minlength=count)
    return totals / np.maximum(members, 1)[:, None], members


def _members(class_index: Array, count: int) -> csr_matrix:
    """Return the matrix (count, n) that sums rows by class."""
    n = len(class_index)
    return csr_matrix((np.ones(n), (class_index, np.arange(n))), shape=(count, n))


def mean_of(view: ArrayView) -> Array:
    """Return the mean (D,) of all rows in float64."""
    if not len(view):
        raise DataError("there is no training image to take a mean of")
    return np.asarray(sum(chunk.sum(axis=0, dtype=np.float64) for chunk in view.chunks()) / len(view))


def canonical(view: ArrayView) -> Array:
    """Return the rows (n, D) in an order that depends on their values, not on the order of the images."""
    rows = np.asarray(view)
    along = np.random.default_rng(0).normal(size=rows.shape[1])
    return np.asarray(rows[np.argsort(np.einsum("ij,j->i", rows, along), kind="stable")])  # row by row


class Gaussians(NamedTuple):
    """Means (C, R) and the map (D, R) that makes their common covariance the identity."""

    centre: Array
    whiten: Array
    means: Array

    def distances(self, rows: Array) -> Array:
        """Return the squared Mahalanobis distances (n, C) of rows (n, D) to the means."""
        points = (rows - self.centre) @ self.whiten
        lengths = products(points, points)[:, None] + products(self.means, self.means)
        return np.asarray(lengths - 2 * points @ self.means.T)


class Moments(NamedTuple):
    """Class means (C, D), images of each class (C,), and the scatter (D, D) around the class means."""

    means: Array
    members: Array
    scatter: Array
    tolerance: float

    def within(self) -> Gaussians:
        """Return a Gaussian around each class mean, all with the same covariance."""
        return _gaussians(self.means, self.scatter / self.members.sum(), self.tolerance)

    def overall(self) -> Gaussians:
        """Return a single Gaussian of all images, regardless of class."""
        shares = self.members / self.members.sum()
        centre = shares @ self.means
        between = (self.means - centre) * np.sqrt(shares)[:, None]
        covariance = self.scatter / self.members.sum() + between.T @ between
        return _gaussians(centre[None], covariance, self.tolerance)


def moments(view: ArrayView, labels: Array) -> Moments:
    """Return the moments of the labelled rows of an array (n, D)."""
    classes, class_index = classes_of(labels)
    width = view.shape[1]
    means, members = class_means(view, class_index, len(classes))
    scatter = np.zeros((width, width))
    for rows, row_classes in labelled_chunks(view, class_index):
        rows -= means[row_classes]
        scatter += rows.T @ rows
    return Moments(means, members, scatter, _tolerance(width, view.dtype))


def _tolerance(width: int, dtype: np.dtype[Any]) -> float:
    """Return numpy's rank tolerance; for float16, where it would exceed 1, its epsilon."""
    epsilon, single_epsilon = (float(np.finfo(kind).eps) for kind in (dtype, np.float32))
    return min(width * epsilon, max(epsilon, width * single_epsilon))


def _gaussians(means: Array, covariance: Array, tolerance: float) -> Gaussians:
    """Whiten by a covariance.

    Directions without variance, up to numpy's rank tolerance of standard deviations, are left out, as in a
    pseudo-inverse.
    """
    variance, directions = eigh(covariance)
    varying = variance > max(variance[-1], 0.0) * tolerance**2
    if not varying.any():
        raise DataError("training images of one class are all alike, so there is no covariance")
    whiten = directions[:, varying] / np.sqrt(variance[varying])
    centre = means.mean(axis=0)
    return Gaussians(centre, whiten, (means - centre) @ whiten)


@register(paper=PAPERS["lee2018"], needs=("{on}", "labels"), fit_on="train", aliases=("mds",), threads=True)
@parameters
class Mahalanobis:
    """Distance to the nearest class mean under the covariance that all classes share."""

    on: Literal["features", "logits"] = "features"

    def fit(self, data: Arrays, head: Head | None) -> Gaussians:
        """Return class means and whitening of the labelled training images."""
        return moments(data[self.on], np.asarray(data["labels"])).within()

    def score(self, state: Gaussians, data: Arrays) -> Array:
        """Return minus the squared Mahalanobis distance to the nearest class mean."""
        return np.asarray(-state.distances(np.asarray(data[self.on])).min(axis=1))


class RMDSState(NamedTuple):
    """Gaussians of the classes, and a single Gaussian of all images."""

    classes: Gaussians
    everything: Gaussians


@register(paper=PAPERS["ren2021"], needs=("features", "labels"), fit_on="train", threads=True)
@parameters
class RMDS:
    """Distance to the nearest class mean less that to the mean of all, each under its own covariance."""

    def fit(self, data: Arrays, head: Head | None) -> RMDSState:
        """Return the Gaussians of the classes and of all labelled training images."""
        class_moments = moments(data["features"], np.asarray(data["labels"]))
        return RMDSState(class_moments.within(), class_moments.overall())

    def score(self, state: RMDSState, data: Arrays) -> Array:
        """Return the squared distance to the mean of all images minus the distance to the nearest class."""
        rows = np.asarray(data["features"])
        nearest = state.classes.distances(rows).min(axis=1)
        return np.asarray(state.everything.distances(rows)[:, 0] - nearest)
