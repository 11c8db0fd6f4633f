"""Area under the ROC curve between two sets of scores, with bootstrap intervals from a documented hash."""

from __future__ import annotations

import hashlib
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from wordnet_splits.errors import DataError

Scores = npt.NDArray[np.float64]

REPLICATES: Final = 1000
LEVEL: Final = 0.95
_CELLS: Final = 1 << 22
"""Counts held at a time: replicates x distinct scores."""


class Estimate(NamedTuple):
    """A value with the bounds of its 95% bootstrap interval (percentiles 2.5 and 97.5)."""

    value: float
    lo: float
    hi: float


def auroc(higher: Scores, lower: Scores) -> float:
    """Return the probability that a random score of ``higher`` exceeds one of ``lower``, ties one half.

    Larger means that the first set scores higher; 0.5 means that the two cannot be told apart. Exact up to
    one division: the pairs are counted in integers.

    Raises
    ------
    DataError : a set is empty, or holds NaN or infinity.
    """
    higher, ordered = _checked(higher), np.sort(_checked(lower))
    below = np.searchsorted(ordered, higher, "left") + np.searchsorted(ordered, higher, "right")
    return int(below.sum()) / (2 * len(higher) * len(ordered))


def bootstrap_auroc(higher: Scores, lower: Scores, *, key: str, replicates: int = REPLICATES) -> Estimate:
    """Return `auroc` with its bootstrap interval: both sets are drawn anew, each at its own size.

    Parameters
    ----------
    key : what the draws are keyed by, together with the set and the replicate's number.
    replicates : how many draws.

    Raises
    ------
    DataError : a set is empty, or holds NaN or infinity.
    """
    higher, lower = _checked(higher), _checked(lower)
    distinct, place = np.unique(np.concatenate([higher, lower]), return_inverse=True)
    places = {"higher": place[: len(higher)], "lower": place[len(higher) :]}
    block = max(1, _CELLS // len(distinct))
    values = []
    for first in range(0, replicates, block):
        numbers = range(first, min(first + block, replicates))
        drawn = {
            name: np.stack([_count(where, f"{key}-{name}", n, len(distinct)) for n in numbers])
            for name, where in places.items()
        }
        # A score of `higher` exceeds every `lower` in an earlier place, and half of those in its own.
        exceeded = 2 * drawn["lower"].cumsum(axis=1) - drawn["lower"]
        values.append((drawn["higher"] * exceeded).sum(axis=1) / (2 * len(higher) * len(lower)))
    tail = (1 - LEVEL) / 2
    lo, hi = np.quantile(np.concatenate(values), [tail, 1 - tail])
    return Estimate(auroc(higher, lower), float(lo), float(hi))


def bootstrap_indices(key: str, replicate: int, size: int) -> npt.NDArray[np.int64]:
    """Return ``size`` indices in [0, size), drawn with replacement by a hash instead of a generator.

    The stream is SHAKE-128 of ``"\\x1f".join(["bootstrap", key, str(replicate)])`` in UTF-8, read as
    little-endian 32-bit words; an index is the high half of word * size, (w * size) >> 32. Indices differ in
    probability by less than size / 2**32.
    """
    name = "\x1f".join(["bootstrap", key, str(replicate)]).encode()
    words = np.frombuffer(hashlib.shake_128(name).digest(4 * size), dtype="<u4").astype(np.uint64)
    return ((words * np.uint64(size)) >> np.uint64(32)).astype(np.int64)


def _count(places: npt.NDArray[np.int64], key: str, replicate: int, distinct: int) -> npt.NDArray[np.int64]:
    """Return how often each distinct score occurs in one replicate of a set."""
    return np.bincount(places[bootstrap_indices(key, replicate, len(places))], minlength=distinct)


def _checked(scores: Scores) -> Scores:
    scores = np.asarray(scores, dtype=np.float64)
    if scores.ndim != 1 or not len(scores):
        raise DataError(f"a set of scores must be (n,) with n above zero, not {scores.shape}")
    if not np.isfinite(scores).all():
        raise DataError("a score is NaN or infinite")
    return scores
