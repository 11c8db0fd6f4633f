"""Agreement of two orderings: Kendall's tau."""

from __future__ import annotations

from wordnet_splits.base.errors import DataError
from wordnet_splits.metrics.counts import Scores, as_scores


def kendall_tau(a: Scores, b: Scores) -> float:
    """Return Kendall's tau-b of two arrays of shape (n,): 1 for the same order, -1 for the reverse order.

    (concordant - discordant pairs) / sqrt(pairs not tied in a x pairs not tied in b); NaN if either array is
    constant or n < 2.

    Reference: Kendall, The Treatment of Ties in Ranking Problems, Biometrika 1945.

    Example
    -------
    >>> round(kendall_tau([1, 2, 3, 4], [1, 2, 4, 3]), 4)  # 5 pairs agree, 1 does not
    0.6667
    """
    x, y = as_scores(a, side="first ordering"), as_scores(b, side="second ordering")
    if len(x) != len(y):
        raise DataError(f"the orderings have {len(x)} and {len(y)} values: equal lengths expected")
    from scipy.stats import kendalltau  # takes a while to import

    return float(kendalltau(x, y).statistic) if len(x) else float("nan")
