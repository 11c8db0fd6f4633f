"""Rank tests of entries over blocks (benchmarks, classes, subtrees): Friedman, Nemenyi, Conover and Holm.

References
----------
Demsar, Statistical Comparisons of Classifiers over Multiple Data Sets, JMLR 2006, section 3.2.2 (Friedman,
Iman and Davenport's F, Nemenyi's critical difference). Conover, Practical Nonparametric Statistics, 3rd ed.,
1999, section 5.8 (ties, perfect agreement, pairs).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2, f, studentized_range, t

from ..data.arrays import Array


@dataclass(frozen=True)
class RankTest:
    """The test that all entries are equally good.

    Attributes
    ----------
    f, df1, df2, p : Iman and Davenport's F, the main statistic. If all blocks have the same order, F is
        infinite, and p the chance that the others have the order of the first.
    chi2, p_chi2 : Friedman's, corrected for ties, with df1 degrees of freedom; conservative.
    critical_difference : Nemenyi's, of mean ranks.
    """

    f: float
    df1: int
    df2: int
    p: float
    chi2: float
    p_chi2: float
    critical_difference: float


def rank_test(ranks: Array, *, level: float = 0.95) -> tuple[RankTest, Array, Array]:
    """Return the test of all entries, and Nemenyi's and Conover's p of pairs (entries, entries).

    Both are corrected for all pairs, Conover's by Holm's method; his are NaN if all blocks have the same
    order, which leaves his t without variance.

    Parameters
    ----------
    ranks : (blocks, entries), at least 2 and 3; ties share their mean rank.
    """
    n, k = ranks.shape
    deviations = ranks - (k + 1) / 2
    total = float(np.sum(deviations**2)) or math.nan  # NaN: all entries tie in every block
    statistic = (k - 1) * n * n * float(np.sum(deviations.mean(axis=0) ** 2)) / total
    df1, df2, rest = k - 1, (k - 1) * (n - 1), n * (k - 1) - statistic
    if math.isnan(statistic):
        statistic, ratio, p = 0.0, 0.0, 1.0
    elif rest < 1e-9 * n * k:
        _, ties = np.unique(ranks[0], return_counts=True)
        orders = math.lgamma(k + 1) - sum(math.lgamma(count + 1) for count in ties)
        ratio, p = math.inf, math.exp((1 - n) * orders)
    else:
        ratio = (n - 1) * statistic / rest
        p = float(f.sf(ratio, df1, df2))
    means = ranks.mean(axis=0)
    gaps = np.abs(means[:, None] - means)
    unit = math.sqrt(k * (k + 1) / (12 * n))
    distinct, places = np.unique((gaps / unit).round(9), return_inverse=True)  # each p is an integral
    nemenyi = studentized_range.sf(distinct, k, math.inf)[places].reshape(k, k)
    conover = np.full((k, k), 1.0 if ratio < math.inf else math.nan)
    if 0 < ratio < math.inf:
        error = 2 * n * total * (1 - statistic / (n * (k - 1))) / df2
        rows, columns = np.triu_indices(k, 1)
        p_pairs = holm((2 * t.sf(n * gaps[rows, columns] / math.sqrt(error), df2)).tolist())
        conover[rows, columns] = conover[columns, rows] = p_pairs
    difference = float(studentized_range.ppf(level, k, math.inf)) * unit
    p_chi2 = float(chi2.sf(statistic, df1))
    return RankTest(ratio, df1, df2, p, statistic, p_chi2, difference), nemenyi, conover


def holm(values: Sequence[float]) -> list[float]:
    """Return p values corrected for their number (Holm 1979), in the order given."""
    adjusted = [0.0] * len(values)
    highest = 0.0
    for rank, n in enumerate(sorted(range(len(values)), key=lambda n: values[n])):
        highest = max(highest, min(1.0, (len(values) - rank) * values[n]))
        adjusted[n] = highest
    return adjusted


def cliques(means: Sequence[float], critical_difference: float) -> list[tuple[int, int]]:
    """Return the largest runs of entries (first, last) whose mean ranks differ by less than a difference.

    Parameters
    ----------
    means : mean ranks, ascending.
    """
    found: list[tuple[int, int]] = []
    for first, mean in enumerate(means):
        last = max(n for n, other in enumerate(means) if other - mean < critical_difference)
        if last > max(first, found[-1][1] if found else 0):
            found.append((first, last))
    return found
