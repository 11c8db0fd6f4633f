"""Agreement of two orderings: mean ranks and Kendall's tau."""

from __future__ import annotations

import numpy as np

from wordnet_splits.base.errors import DataError
from wordnet_splits.metrics.counts import Array, Scores, as_scores, ratio


def mean_ranks(values: Scores) -> Array:
    """Return the rank of each value, 1 for the smallest; tied values get the mean of their ranks.

    Example
    -------
    >>> mean_ranks([0.2, 0.9, 0.2]).tolist()
    [1.5, 3.0, 1.5]
    """
    _, group, sizes = np.unique(as_scores(values), return_inverse=True, return_counts=True)
    ends = np.cumsum(sizes)
    return np.asarray((ends - (sizes - 1) / 2)[group])


def kendall_tau(a: Scores, b: Scores) -> float:
    """Return Kendall's tau-b of two arrays of shape (n,): 1 for the same order, -1 for the reverse order.

    (concordant - discordant pairs) / sqrt(pairs not tied in a x pairs not tied in b); NaN if either array is
    constant or n < 2.

    Reference: Kendall, The Treatment of Ties in Ranking Problems, Biometrika 1945.

    Example
    -------
    >>> kendall_tau([1, 2, 3, 4], [1, 2, 4, 3])  # 5 pairs agree, 1 does not
    0.6666666666666666
    """
    x, y = as_scores(a, side="first ordering"), as_scores(b, side="second ordering")
    if len(x) != len(y):
        raise DataError(f"the orderings have {len(x)} and {len(y)} values: equal lengths expected")
    signs = [np.sign(values[:, None] - values[None, :]) for values in (x, y)]
    untied = [float(np.sum(sign**2)) for sign in signs]  # each pair twice, as in the numerator
    return float(ratio(np.sum(signs[0] * signs[1]), np.sqrt(np.asarray(untied[0] * untied[1]))))
