"""Draws of a bootstrap: how often each image of a set counts in each replicate, by a stable hash.

A replicate draws, from each set, as many images as the set has, with replacement. Draw i of replicate r of a
set of n images is the image of rank (h_i >> 32) * n >> 32, where h_i is output i of SplitMix64 seeded with
the first 8 bytes, little-endian, of SHA-256 of "bootstrap", seed, set name and r, joined by U+001F. The draws
therefore do not depend on a library's generator, on other sets or on the number of threads: two OOD sets are
compared over the same ID replicates, and replicates of a mean over sets are the means of their replicates.

With clusters (classes, or subtrees of classes), the images of an ID set are drawn within theirs, which are
strata, since the classes of a classifier are not random: image j of the set sorted by cluster is replaced by
that of rank (h_j >> 32) * s >> 32 of the s images of its cluster. From an OOD set with several clusters
clusters are drawn, each with all its images; images drawn again within them would count their variance
twice, which is part of the variance between clusters. Over all replicates each cluster is drawn equally often
(balanced): with k clusters, in ascending order, replicate r has those at places r k to r k + k - 1 of the
list of k clusters repeated for every replicate, in the order of the outputs of SplitMix64 seeded with
"clusters", seed and set. The images of the cluster of an OOD set with one cluster are drawn, as a stratum.

References
----------
Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators, OOPSLA 2014 (SplitMix64). Davison and
Hinkley, Bootstrap Methods and their Application, 1997, sections 3.8 (hierarchical data) and 9.2.1 (balanced).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType

import numpy as np
import numpy.typing as npt

from wordnet_splits.metrics.summary import ScoreSet

BLOCK = 1 << 18
"""Images of a block of replicates whose metrics are computed together: arrays fit the processor's cache."""
Weights = npt.NDArray[np.uint16]
"""How often each image counts in each replicate, (replicates, images)."""
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def bootstrap_indices(seed: int, name: str, replicate: int, size: int) -> npt.NDArray[np.int64]:
    """Return the ranks, (size,) in 0..size-1, drawn for one replicate of a set (see above)."""
    return np.asarray(_ranks(seed, name, range(replicate, replicate + 1), np.full(size, size))[0])


def resample_counts(
    sizes: Mapping[str, int], *, replicates: int, seed: int
) -> Iterator[npt.NDArray[np.int64]]:
    """Yield blocks (r, n) of how often each of n images is drawn, each set being resampled on its own.

    Parameters
    ----------
    sizes : name of a set -> number of images; columns are the images of all sets, in order.
    """
    block = max(1, BLOCK // sum(sizes.values()))
    for start in range(0, replicates, block):
        rows = range(start, min(start + block, replicates))
        parts = [_counts(_ranks(seed, name, rows, np.full(size, size))) for name, size in sizes.items()]
        yield np.concatenate(parts, axis=1)


@dataclass(frozen=True, eq=False)
class SetDraws:
    """The draws of a set.

    Attributes
    ----------
    order : (n,) its images, sorted by stratum.
    starts, sizes : (n,) first place and size of the stratum of each place in this order.
    clusters : (n,) number of the cluster of each image, if these are drawn.
    times : (replicates, k) how often each cluster is drawn.
    """

    name: str
    seed: int
    order: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]
    clusters: npt.NDArray[np.int64] | None = None
    times: Weights | None = None

    @classmethod
    def from_set(cls, part: ScoreSet, replicates: int, seed: int) -> SetDraws:
        """Return the draws of a set of scores, images in the order of its rows."""
        n = len(part.confidence)
        given = np.zeros(n, dtype=np.int64) if part.clusters is None else part.clusters
        _, codes, sizes = np.unique(given, return_inverse=True, return_counts=True)
        order = np.argsort(codes, kind="stable")
        starts = np.cumsum(sizes) - sizes
        strata = order, np.repeat(starts, sizes), np.repeat(sizes, sizes)
        if part.is_id or len(sizes) < 2:
            return cls(part.name, seed, *strata)
        times = cluster_draws(seed, part.name, replicates, len(sizes)).astype(np.uint16)
        return cls(part.name, seed, *strata, codes, times)

    def weights(self, replicates: range, compiled: ModuleType | None = None) -> Weights:
        """Return how often each image counts in some replicates.

        Parameters
        ----------
        compiled : the module of that name, if it can be imported.
        """
        if self.times is not None and self.clusters is not None:
            return self.times[replicates.start : replicates.stop].take(self.clusters, axis=1)
        if compiled is None:
            ranks = _ranks(self.seed, self.name, replicates, self.sizes)
            ranks += self.starts
            return _counts(self.order.take(ranks)).astype(np.uint16)
        states = _states("bootstrap", self.seed, self.name, replicates)
        weights = np.zeros((len(replicates), len(self.order)), dtype=np.uint16)
        compiled.add_draws(states, self.order, self.starts, self.sizes, weights)
        return weights


def cluster_draws(seed: int, name: str, replicates: int, clusters: int) -> npt.NDArray[np.int64]:
    """Return how often each cluster of a set is drawn, (replicates, clusters): each ``replicates`` times."""
    words = random_words("clusters", seed, name, [None], replicates * clusters)[0]
    return _counts(np.argsort(words, kind="stable").reshape(replicates, clusters) % clusters)


def _ranks(seed: int, name: str, replicates: range, sizes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return (replicates, n) ranks, that at place i in 0..sizes[i]-1."""
    word = random_words("bootstrap", seed, name, replicates, len(sizes))
    word *= sizes.astype(np.uint64)
    word >>= np.uint64(32)
    return word.view(np.int64)


def _counts(drawn: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return how often each number of 0..n-1 is in each row of (r, n) numbers, which are overwritten."""
    rows, n = drawn.shape
    drawn += n * np.arange(rows)[:, None]
    return np.bincount(drawn.ravel(), minlength=n * rows).reshape(rows, n)


def random_words(
    purpose: str, seed: int, name: str, numbers: Iterable[int | None], size: int
) -> npt.NDArray[np.uint64]:
    """Return 32 random bits, (len(numbers), size), of a stable hash of the arguments (see above).

    Parameters
    ----------
    purpose : the first word of the hash: draws for different purposes are independent.
    numbers : of replicates; None for draws that belong to all of them.
    """
    state = _states(purpose, seed, name, numbers)[:, None]
    word = state + np.arange(1, size + 1, dtype=np.uint64) * _GOLDEN  # modulo 2^64
    for shift, factor in zip((30, 27), _MIX, strict=True):
        word ^= word >> np.uint64(shift)
        word *= factor
    word ^= word >> np.uint64(31)
    word >>= np.uint64(32)
    return word


def _states(purpose: str, seed: int, name: str, numbers: Iterable[int | None]) -> npt.NDArray[np.uint64]:
    """Return the 64 bits from which SplitMix64 starts for each number."""
    texts = ([purpose, str(seed), name, *([] if n is None else [str(n)])] for n in numbers)
    keys = (hashlib.sha256("\x1f".join(words).encode()).digest()[:8] for words in texts)
    return np.array([int.from_bytes(key, "little") for key in keys], dtype=np.uint64)
