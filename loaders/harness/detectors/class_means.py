"""Sums and means of stored arrays by class, chunk by chunk, and rows in an order of their own."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.sparse import csr_matrix

from wordnet_splits.base.errors import DataError

from ..arrays import Array, ArrayView


def classes_of(labels: Array) -> tuple[Array, Array]:
    """Return the classes that images have, and the position of each image's class in them, -1 for none.

    Raises
    ------
    DataError : no image has a label.
    """
    labels = np.asarray(labels)
    classes = np.unique(labels[labels >= 0])
    if not len(classes):
        raise DataError("no training image has a label, so there are no class means")
    return classes, np.where(labels >= 0, np.searchsorted(classes, labels), -1)


def labelled_chunks(view: ArrayView, which: Array) -> Iterator[tuple[Array, Array]]:
    """Yield chunks of the rows whose class ``which`` (n,) is not -1, in float64, and their classes."""
    start = 0
    for chunk in view.chunks():
        own = which[start : start + len(chunk)]
        start += len(chunk)
        kept = own >= 0
        yield (chunk if kept.all() else chunk[kept]).astype(np.float64), own[kept]


def class_means(view: ArrayView, which: Array, count: int) -> tuple[Array, Array]:
    """Return the mean (count, D) of the rows of each class (zeros for one without rows) and their numbers.

    Parameters
    ----------
    which : (n,) the class of each row, 0..count-1, or -1 to leave it out.
    """
    sums = np.zeros((count, view.shape[1]))
    for rows, own in labelled_chunks(view, which):
        sums += _members(own, count) @ rows
    members = np.bincount(which[which >= 0], minlength=count)
    return sums / np.maximum(members, 1)[:, None], members


def _members(which: Array, count: int) -> csr_matrix:
    """Return the matrix (count, n) that adds rows up by class."""
    n = len(which)
    return csr_matrix((np.ones(n), (which, np.arange(n))), shape=(count, n))


def mean_of(view: ArrayView) -> Array:
    """Return the mean (D,) of all rows in float64.

    Raises
    ------
    DataError : there are no rows.
    """
    if not len(view):
        raise DataError("there is no training image to take a mean of")
    return np.asarray(sum(chunk.sum(axis=0, dtype=np.float64) for chunk in view.chunks()) / len(view))


def canonical(view: ArrayView) -> Array:
    """Return the rows (n, D) in an order that depends on their values alone.

    What learns by going over them, step by step, then does not depend on the order of the images.
    """
    rows = np.asarray(view)
    along = np.random.default_rng(0).normal(size=rows.shape[1])
    return np.asarray(rows[np.argsort(np.einsum("ij,j->i", rows, along), kind="stable")])  # row by row
