"""Class means of stored arrays, computed by chunk, and rows in an order that does not depend on images."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.sparse import csr_matrix

from wordnet_splits.base.errors import DataError

from ..data.arrays import Array, ArrayView


def classes_of(labels: Array) -> tuple[Array, Array]:
    """Return the sorted classes of labelled images, and the index (n,) of each image's class, -1 for none.

    Raises
    ------
    DataError : no image has a label.
    """
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
    """Return the mean (D,) of all rows in float64.

    Raises
    ------
    DataError : the view is empty.
    """
    if not len(view):
        raise DataError("there is no training image to take a mean of")
    return np.asarray(sum(chunk.sum(axis=0, dtype=np.float64) for chunk in view.chunks()) / len(view))


def canonical(view: ArrayView) -> Array:
    """Return the rows (n, D) in an order that depends on their values, not on the order of the images."""
    rows = np.asarray(view)
    along = np.random.default_rng(0).normal(size=rows.shape[1])
    return np.asarray(rows[np.argsort(np.einsum("ij,j->i", rows, along), kind="stable")])  # row by row
