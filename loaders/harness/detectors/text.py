"""Detectors of zero-shot vision-language classifiers; `mls` is the maximum logit on text."""

from __future__ import annotations

from typing import Any

import numpy as np
from pydantic import PositiveFloat, PositiveInt

from wordnet_splits.base.errors import DataError
from wordnet_splits.metrics.counts import to_numpy

from ..data.arrays import COSINE_SCALE, Array, Arrays
from ..data.parameters import parameters
from .registry import PAPERS, register
from .softmax import log_sum_exp, logits_of, scaled_odds, softplus


@register(paper=PAPERS["ming2022"], needs=("logits", "cosine/scale"), threads=True)
@parameters
class MCM:
    """Maximum concept matching: the maximum softmax of cosine similarities at temperature tau (eq. 1)."""

    tau: PositiveFloat = 1.0

    def score(self, state: None, data: Arrays) -> Array:
        """Return the odds of the maximum softmax on a log scale."""
        scale = float(np.max(data["cosine/scale"], initial=0.0)) or COSINE_SCALE
        return scaled_odds(*logits_of(data, classes=2, dtype=np.float32), [scale * self.tau])[0]


@register(
    paper=PAPERS["jiang2024"], needs=("logits", "negatives[groups={groups},T={T:g}]/log_sums"), threads=True
)
@parameters
class NegLabel:
    """Softmax mass of the class names beside a group of negative words, averaged over groups (eq. 6-8).

    The confidence is the log of the odds of that mean, which orders images as the mean does and never
    saturates.
    """

    groups: PositiveInt = 100
    T: PositiveFloat = 1.0

    def score(self, state: None, data: Arrays) -> Array:
        """Return log S - log(1 - S), S the mean over groups g of sum_id / (sum_id + sum_g)."""
        logits, background = logits_of(data)
        if background is not None:
            logits = np.column_stack([logits, background])
        names = log_sum_exp(logits / self.T)
        words = np.asarray(data[f"negatives[groups={self.groups},T={self.T:g}]/log_sums"], np.float64)
        below = words - names[:, None]
        inside, outside = (log_sum_exp(-softplus(odds)) for odds in (below, -below))
        return np.asarray(inside - outside)


def zero_shot_arrays(
    images: Array, names: Array, negatives: Array | None = None, *, groups: int = 100, T: float = 1.0
) -> dict[str, Array]:
    """Return the arrays of a zero-shot classifier from the embeddings that the caller has computed.

    Parameters
    ----------
    images : (n, d) embeddings.
    names : (K, d), of the class names in label order.
    negatives : (M, d), of the
        negative words, in random order.
    groups, T : as of `NegLabel`; words that do not fill the groups are left out.

    Returns
    -------
    ``features`` (n, d) of length 1, ``logits`` (n, K), ``cosine/scale`` (n,) and, with negatives, log sums by
    group (n, groups).

    Raises
    ------
    DataError : embeddings are not a matrix of finite numbers, have a row of zeros or differ in width; fewer
        negatives than groups.
    """
    NegLabel(groups=groups, T=T)  # checks both
    images, names = _embeddings(images, "images"), _embeddings(names, "names")
    negatives = None if negatives is None else _embeddings(negatives, "negatives")
    widths = {rows.shape[1] for rows in (images, names, negatives) if rows is not None}
    if len(widths) > 1:
        raise DataError(f"embeddings differ in width: {sorted(widths)}", hint="take one encoder for all")
    features = _unit(images)
    arrays = {
        "features": features,
        "logits": COSINE_SCALE * features @ _unit(names).T,
        "cosine/scale": np.full(len(features), COSINE_SCALE, np.float32),
    }
    if negatives is not None:
        size = len(negatives) // groups
        if size == 0:
            raise DataError(
                f"{len(negatives):,} negative words do not fill {groups:,} groups", hint="take fewer groups"
            )
        similarities = COSINE_SCALE / T * features @ _unit(negatives[: size * groups]).T
        log_sums = log_sum_exp(similarities.reshape(len(features), groups, size))
        arrays[f"negatives[groups={groups},T={T:g}]/log_sums"] = log_sums.astype(np.float32)
    return arrays


def _embeddings(rows: Any, where: str) -> Array:
    array = to_numpy(rows, where=where)
    if array.ndim != 2 or not array.size or array.dtype.kind not in "fiu":
        message = f"embeddings (n, d) must be numbers, got {array.dtype} of shape {array.shape}"
        raise DataError(message, where=where)
    if not np.isfinite(array).all() or not array.any(axis=1).all():
        raise DataError("an embedding is zero, or holds NaN or infinity", where=where)
    return array.astype(np.float32, copy=False)


def _unit(rows: Array) -> Array:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))
