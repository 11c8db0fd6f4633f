"""Exact search for pairs of images with similar features (compare the search for close perceptual hashes)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from wordnet_splits.base.errors import DataError, SplitsError

from ..models.reproducibility import deterministic_kernels, get_device

MAX_PAIRS = 5_000_000
TILE = 8192
"""Rows of each side that are multiplied at once: 256 MiB of products."""
ROWS = 4096
"""Pairs that are computed again at once."""
UNIT_ROUNDOFF = 2.0**-24

Pairs = tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]
"""Rows of the first side, rows of the second side, and cosine similarities."""


def similar_pairs(
    a: NDArray[Any], b: NDArray[Any], least: float, *, device: str | None = None, most: int = MAX_PAIRS
) -> Iterator[Pairs]:
    """Yield all pairs of rows whose cosine similarity is at least ``least``, each once.

    Tiles are multiplied in float32, and pairs that rounding could bring over the limit are computed again in
    float64, so that a GPU gives the same pairs as the CPU.

    Parameters
    ----------
    a, b : features (n, d) and (m, d) by the same model, memory-mapped or not.
    least : smallest similarity, above -1 and at most 1.
    device : as of `get_device`; by default a GPU if there is one.
    most : greatest number of pairs, with those that rounding could bring over the limit.

    Raises
    ------
    DataError : the features do not fit together, or a row is zero or not finite.
    SplitsError : ``least`` is out of range, or there are more than ``most`` pairs.
    """
    if not -1 < least <= 1:
        raise SplitsError(f"the similarity must be above -1 and at most 1, got {least:g}")
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1]:
        raise DataError(
            f"features of shapes {a.shape} and {b.shape} cannot be compared", hint="(n, d), (m, d)"
        )
    # rounding of both rows and of a sum of d products of unit vectors
    limit = least - (a.shape[1] + 8) * UNIT_ROUNDOFF
    where = get_device(device)
    count = 0
    for top in range(0, len(a), TILE):
        rows = _unit_rows(a, top, "the first")
        on_device = torch.from_numpy(rows.astype(np.float32)).to(where)
        for start in range(0, len(b), TILE):
            columns = _unit_rows(b, start, "the second")
            with deterministic_kernels(full_float32=True):
                product = on_device @ torch.from_numpy(columns.astype(np.float32)).to(where).T
            in_a, in_b = (index.cpu().numpy() for index in torch.nonzero(product >= limit, as_tuple=True))
            count += len(in_a)
            if count > most:
                raise SplitsError(
                    f"more than {most:,} pairs have a similarity of about {least:g} or more",
                    hint="give a greater similarity",
                )
            for n in range(0, len(in_a), ROWS):
                part_a, part_b = in_a[n : n + ROWS], in_b[n : n + ROWS]
                similarity = np.einsum("nd,nd->n", rows[part_a], columns[part_b])
                near = similarity >= least
                if near.any():
                    yield part_a[near] + top, part_b[near] + start, similarity[near]


def _unit_rows(features: NDArray[Any], top: int, side: str) -> NDArray[np.float64]:
    """Return a tile of rows in float64, each divided by its length."""
    rows = np.asarray(features[top : top + TILE], np.float64)
    lengths = np.linalg.norm(rows, axis=1)
    bad = np.flatnonzero(~(np.isfinite(lengths) & (lengths > 0)))
    if len(bad):
        raise DataError(f"row {top + bad[0]:,} of {side} features is zero or not finite")
    unit: NDArray[np.float64] = rows / lengths[:, None]
    return unit
