"""Bootstrap intervals over images: stratified by set, with reproducible draws, without sorting again.

A replicate draws, from each set, as many samples as the set has, with replacement. Draw i of replicate r of
a set of n samples is the sample of rank (h_i >> 32) * n >> 32 in the set's canonical order (wrong before
correct, then by score, highest first), where h_i is output i of SplitMix64 seeded with the first 8 bytes,
little-endian, of SHA-256 of "bootstrap", seed, set name and r, joined by U+001F. The draws therefore do not
depend on the order of rows, on a library's generator or on other sets: two OOD sets are compared over the
same ID replicates, and replicates of a mean over sets are the means of their replicates.

Reference: Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators, OOPSLA 2014 (SplitMix64).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from wordnet_splits.base.errors import DataError
from wordnet_splits.metrics.counts import Array, RankCounts
from wordnet_splits.metrics.registry import get_metric, list_metrics
from wordnet_splits.metrics.summary import ScoreSet, pool, split_sides

REPLICATES = 1000
_BLOCK = 1 << 18  # draws per block: the working arrays fit the processor's cache
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


class Interval(NamedTuple):
    """A metric's value on all samples and the percentile interval of its replicates."""

    value: float
    lo: float
    hi: float


def bootstrap(
    sets: Iterable[ScoreSet],
    metrics: Iterable[str] | None = None,
    *,
    replicates: int = REPLICATES,
    seed: int = 0,
    level: float = 0.95,
    full_spectrum: bool = False,
) -> dict[str, Interval]:
    """Return value and bootstrap interval of metrics of the pooled ``sets``.

    Parameters
    ----------
    sets : ID and OOD sets, pooled by side (see `summary.pool`); each is resampled independently.
    metrics : names of metrics; by default all that the sets allow.
    level : share of replicates inside the interval.
    """
    sets = list(sets)
    counts = pool(sets, full_spectrum=full_spectrum)
    by_name = bootstrap_replicates(
        sets, metrics, replicates=replicates, seed=seed, full_spectrum=full_spectrum
    )
    return {
        name: interval(float(get_metric(name).kernel(counts)), values, level=level)
        for name, values in by_name.items()
    }


def bootstrap_replicates(
    sets: Iterable[ScoreSet],
    metrics: Iterable[str] | None = None,
    *,
    replicates: int = REPLICATES,
    seed: int = 0,
    full_spectrum: bool = False,
    paired: bool = False,
) -> dict[str, Array]:
    """Return metric -> (replicates,) values of the pooled ``sets``; NaN where the metric is undefined.

    For a near or far mean, average the arrays of its sets, then compute the `interval`.

    Parameters
    ----------
    paired : draw rows in their own order instead of the canonical one. Replicates of two detectors with the
        same images in the same order then consist of the same images, as a paired bootstrap requires; but
        values depend on the order of the rows.
    """
    if replicates < 1:
        raise DataError(f"the number of bootstrap replicates must be at least 1, not {replicates}")
    sets = list(sets)
    counts = pool(sets, full_spectrum=full_spectrum)
    names = (
        [name for name in list_metrics() if get_metric(name).computable(counts)]
        if metrics is None
        else list(metrics)
    )
    entries = {name: get_metric(name) for name in names}
    for entry in entries.values():
        counts.require(*entry.needs)
    values = {name: np.empty(replicates) for name in entries}
    for rows, resampled in _resamples(sets, counts, replicates, seed, full_spectrum, paired):
        for name, entry in entries.items():
            values[name][rows] = entry.kernel(resampled)
    return values


def interval(value: float, replicates: Array, *, level: float = 0.95) -> Interval:
    """Return ``value`` with the percentile interval of the bootstrap ``replicates`` that are not NaN."""
    if not 0 < level < 1:
        raise DataError(f"level must be between 0 and 1, not {level}", hint="0.95 is usual")
    valid = replicates[~np.isnan(replicates)]
    if not len(valid):
        return Interval(value, float("nan"), float("nan"))
    lo, hi = (float(np.quantile(valid, share)) for share in ((1 - level) / 2, (1 + level) / 2))
    return Interval(value, lo, hi)


def bootstrap_indices(seed: int, name: str, replicate: int, size: int) -> npt.NDArray[np.int64]:
    """Return the ranks, (size,) in 0..size-1, drawn for one replicate of a set (see above)."""
    return np.asarray(_sample_ranks(seed, name, range(replicate, replicate + 1), size)[0])


def resample_counts(
    sizes: Mapping[str, int], *, replicates: int, seed: int
) -> Iterator[npt.NDArray[np.int64]]:
    """Yield blocks (r, n) of how often each of n images is drawn, each set being resampled on its own.

    Parameters
    ----------
    sizes : name of a set -> number of images; columns are the images of all sets, in order.
    """
    total = sum(sizes.values())
    block = max(1, _BLOCK // total)
    for start in range(0, replicates, block):
        rows = range(start, min(start + block, replicates))
        parts = []
        for name, size in sizes.items():
            ranks = _sample_ranks(seed, name, rows, size)
            ranks += size * np.arange(len(rows))[:, None]
            parts.append(np.bincount(ranks.ravel(), minlength=size * len(rows)).reshape(len(rows), size))
        yield np.concatenate(parts, axis=1)


def _sample_ranks(seed: int, name: str, replicates: range, size: int) -> npt.NDArray[np.int64]:
    """Return the ranks drawn for replicates of a set, shape (len(replicates), size)."""
    word = random_words("bootstrap", seed, name, replicates, size)
    word *= np.uint64(size)
    word >>= np.uint64(32)
    return word.view(np.int64)


def random_words(
    purpose: str, seed: int, name: str, numbers: Iterable[int | None], size: int
) -> npt.NDArray[np.uint64]:
    """Return 32 random bits, (len(numbers), size), of a stable hash of the arguments (see above).

    Parameters
    ----------
    purpose : the first word of the hash: draws for different purposes are independent.
    numbers : of replicates; None for draws that belong to all of them.
    """
    keys = (
        hashlib.sha256(
            "\x1f".join([purpose, str(seed), name, *([] if n is None else [str(n)])]).encode()
        ).digest()[:8]
        for n in numbers
    )
    state = np.array([int.from_bytes(key, "little") for key in keys], dtype=np.uint64)[:, None]
    word = state + np.arange(1, size + 1, dtype=np.uint64) * _GOLDEN  # modulo 2^64
    for shift, factor in zip((30, 27), _MIX, strict=True):
        word ^= word >> np.uint64(shift)
        word *= factor
    word ^= word >> np.uint64(31)
    word >>= np.uint64(32)
    return word


def _resamples(
    sets: list[ScoreSet], counts: RankCounts, replicates: int, seed: int, full_spectrum: bool, paired: bool
) -> Iterator[tuple[slice, RankCounts]]:
    """Yield blocks of replicates as counts over the thresholds of ``counts``, one replicate per row."""
    inside, outside = split_sides(sets, full_spectrum=full_spectrum)
    strata = [(part.name, _cells(part, counts)) for part in inside + outside if len(part.confidence)]
    if not paired:
        strata = [(name, np.sort(cells)) for name, cells in strata]
    if len({name for name, _ in strata}) < len(strata):
        raise DataError("two sets have the same name", hint="draws depend on the name of the set")
    width = len(counts.thresholds)
    total = sum(len(cells) for _, cells in strata)
    block = max(1, _BLOCK // total)
    for start in range(0, replicates, block):
        rows = range(start, min(start + block, replicates))
        offset = 3 * width * np.arange(len(rows))[:, None]
        resampled_cells = np.concatenate(
            [cells.take(_sample_ranks(seed, name, rows, len(cells))) for name, cells in strata], axis=1
        )
        resampled_cells += offset
        table = np.bincount(resampled_cells.ravel(), minlength=3 * width * len(rows))
        wrong, correct, outer = np.moveaxis(table.reshape(len(rows), 3, width).cumsum(axis=-1), 1, 0)
        resampled = RankCounts(
            thresholds=counts.thresholds,
            cum_id=wrong + correct,
            cum_ood=outer,
            cum_correct=None if counts.cum_correct is None else correct,
        )
        yield slice(rows.start, rows.stop), resampled


def _cells(part: ScoreSet, counts: RankCounts) -> npt.NDArray[np.int64]:
    """Return each row's outcome (0 ID, wrong or unknown; 1 ID, correct; 2 OOD) x m + slot.

    Sorting them gives the canonical order.
    """
    slot = len(counts.thresholds) - 1 - np.searchsorted(counts.thresholds[::-1], part.confidence)
    outcome = np.full(len(slot), 0 if part.is_id else 2)
    if part.correct is not None:
        outcome = part.correct.astype(np.int64)
    return np.asarray(outcome * len(counts.thresholds) + slot)
