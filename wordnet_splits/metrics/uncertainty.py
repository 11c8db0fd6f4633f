"""Bootstrap intervals over images: stratified by set, from documented draws, without sorting again.

A replicate draws, from each set, as many samples as the set has, with replacement. Draw i of replicate r of
a set of n samples is the sample of rank (h_i >> 32) * n >> 32 in the set's canonical order (wrong before
correct, then by score, highest first), where h_i is output i of SplitMix64 seeded with the first 8 bytes,
little-endian, of SHA-256 of "bootstrap", seed, set name and r, joined by U+001F. So the draws do not depend
on the order of rows, on a library's generator or on the other sets: two OOD sets are compared over the same
ID replicates, and replicates of a mean over sets are the means of their replicates.

Reference: Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators, OOPSLA 2014 (SplitMix64).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from wordnet_splits.base.errors import DataError
from wordnet_splits.metrics.counts import Array, RankCounts
from wordnet_splits.metrics.registry import METRICS, get_metric
from wordnet_splits.metrics.summary import ScoreSet, pool, split_sides

REPLICATES = 1000
_BLOCK = 1 << 18  # draws made at once: the working arrays stay in the processor's cache
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
    sets : ID and OOD sets, pooled by side (see `summary.pool`); each is resampled on its own.
    metrics : names; by default all that the sets allow.
    level : share of replicates inside the interval.
    """
    sets = list(sets)
    counts = pool(sets, full_spectrum=full_spectrum)
    drawn = bootstrap_replicates(sets, metrics, replicates=replicates, seed=seed, full_spectrum=full_spectrum)
    return {
        name: interval(float(get_metric(name).kernel(counts)), values, level=level)
        for name, values in drawn.items()
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
    """Return metric -> (replicates,) values of the pooled ``sets``; NaN where a replicate leaves none.

    For a near or far mean, average the arrays of its sets, then take the `interval`.

    Parameters
    ----------
    paired : draw rows in the order given in place of the canonical one. Two detectors whose rows are the same
        images in the same order then share the images of every replicate, and the differences of their
        replicates are those of a paired bootstrap; but the order of the rows plays a part.
    """
    if replicates < 1:
        raise DataError(f"{replicates} bootstrap replicates", hint="at least 1, by default 1,000")
    sets = list(sets)
    counts = pool(sets, full_spectrum=full_spectrum)
    names = (
        sorted(name for name, entry in METRICS.items() if entry.computable(counts))
        if metrics is None
        else list(metrics)
    )
    chosen = {name: get_metric(name) for name in names}
    for entry in chosen.values():
        counts.require(*entry.needs)
    values = {name: np.empty(replicates) for name in chosen}
    for rows, resampled in _resamples(sets, counts, replicates, seed, full_spectrum, paired):
        for name, entry in chosen.items():
            values[name][rows] = entry.kernel(resampled)
    return values


def interval(value: float, replicates: Array, *, level: float = 0.95) -> Interval:
    """Return the percentile interval of bootstrap ``replicates``, NaN ones left out, with ``value``."""
    if not 0 < level < 1:
        raise DataError(f"level {level} is not between 0 and 1", hint="0.95 is the usual one")
    held = replicates[~np.isnan(replicates)]
    if not len(held):
        return Interval(value, float("nan"), float("nan"))
    lo, hi = (float(np.quantile(held, share)) for share in ((1 - level) / 2, (1 + level) / 2))
    return Interval(value, lo, hi)


def bootstrap_indices(seed: int, name: str, replicate: int, size: int) -> npt.NDArray[np.int64]:
    """Return the ``size`` draws, each in 0..size-1, of one replicate of one set (see the module's text)."""
    return np.asarray(_draws(seed, name, range(replicate, replicate + 1), size)[0])


def _draws(seed: int, name: str, replicates: range, size: int) -> npt.NDArray[np.int64]:
    """Draws of several replicates of one set, shape (len(replicates), size)."""
    keys = (
        hashlib.sha256("\x1f".join(["bootstrap", str(seed), name, str(replicate)]).encode()).digest()[:8]
        for replicate in replicates
    )
    state = np.array([int.from_bytes(key, "little") for key in keys], dtype=np.uint64)[:, None]
    word = state + np.arange(1, size + 1, dtype=np.uint64) * _GOLDEN  # modulo 2^64
    for shift, factor in zip((30, 27), _MIX, strict=True):
        word ^= word >> np.uint64(shift)
        word *= factor
    word ^= word >> np.uint64(31)
    word >>= np.uint64(32)
    word *= np.uint64(size)
    word >>= np.uint64(32)
    return word.view(np.int64)


def _resamples(
    sets: list[ScoreSet], counts: RankCounts, replicates: int, seed: int, full_spectrum: bool, paired: bool
) -> Iterator[tuple[slice, RankCounts]]:
    """Yield blocks of replicates as counts over the thresholds of ``counts``, leading axis = replicate."""
    inside, outside = split_sides(sets, full_spectrum=full_spectrum)
    strata = [(part.name, _cells(part, counts)) for part in inside + outside if len(part.confidence)]
    if not paired:
        strata = [(name, np.sort(cells)) for name, cells in strata]
    if len({name for name, _ in strata}) < len(strata):
        raise DataError("two sets have the same name", hint="the draws of a set depend on its name")
    width = len(counts.thresholds)
    total = sum(len(cells) for _, cells in strata)
    block = max(1, _BLOCK // total)
    for start in range(0, replicates, block):
        rows = range(start, min(start + block, replicates))
        offset = 3 * width * np.arange(len(rows))[:, None]
        drawn = np.concatenate(
            [cells.take(_draws(seed, name, rows, len(cells))) for name, cells in strata], axis=1
        )
        drawn += offset
        table = np.bincount(drawn.ravel(), minlength=3 * width * len(rows))
        wrong, correct, outer = np.moveaxis(table.reshape(len(rows), 3, width).cumsum(axis=-1), 1, 0)
        resampled = RankCounts(
            thresholds=counts.thresholds,
            cum_id=wrong + correct,
            cum_ood=outer,
            cum_correct=None if counts.cum_correct is None else correct,
        )
        yield slice(rows.start, rows.stop), resampled


def _cells(part: ScoreSet, counts: RankCounts) -> npt.NDArray[np.int64]:
    """Return each row's outcome (0 ID, wrong or not known; 1 ID, correct; 2 OOD) x m + slot.

    Sorted, they are in canonical order.
    """
    slot = len(counts.thresholds) - 1 - np.searchsorted(counts.thresholds[::-1], part.confidence)
    outcome = np.full(len(slot), 0 if part.is_id else 2)
    if part.correct is not None:
        outcome = part.correct.astype(np.int64)
    return np.asarray(outcome * len(counts.thresholds) + slot)
