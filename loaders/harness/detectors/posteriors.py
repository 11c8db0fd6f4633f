"""Detectors on the whole softmax: generalised entropy, divergences and gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from pydantic import PositiveFloat, PositiveInt

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.workers import thread_count

from ..data.arrays import Array, Arrays, Head, map_in_order
from ..data.parameters import parameters
from .registry import PAPERS, SharedScores, register
from .softmax import (
    gaps,
    gaps_and_top,
    log_of_others,
    log_softmax,
    log_sum_exp,
    logits_of,
    maxima,
    products,
    softplus,
    sums,
)

FAINT = -650.0
"""Log of a sum of probabilities below which float64 loses digits."""
PART = 512
"""Approximate number of images per block: with 100 classes, a block's values fit in a core's cache."""


@register(
    paper=PAPERS["liu2023"],
    needs=("logits",),
    sweep={"gamma": (0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0), "M": (10, 50, 100)},
    fit_parameters=(),
    threads=True,
)
@parameters
class GEN(SharedScores):
    """Minus the generalised entropy, the sum of p^gamma (1 - p)^gamma over the M greatest probabilities.

    Probabilities are not clipped at 1e-7, as in pytorch-ood: with a gamma of 0.1 clipping would add 0.2 for
    each class of probability 0.
    """

    gamma: PositiveFloat = 0.1
    M: PositiveInt = 100

    @staticmethod
    def score_each(detectors: Sequence[GEN], state: None, data: Arrays) -> list[Array]:
        """Return minus the sums for each gamma and M; softmax, its order and each power are computed once."""
        logits, background = logits_of(data, dtype=np.float32)
        if background is not None:
            raise DataError("gen is not defined once a background column is dropped", hint="use msp")
        classes = logits.shape[1]
        others, top = gaps_and_top(logits)
        terms = np.exp(others)
        rest = log_of_others(others, top, terms)  # 1 - p of the top class would round to 0
        total = softplus(rest)
        np.put_along_axis(others, top, -np.inf, axis=1)
        others -= total[:, None].astype(np.float32)
        if min(detector.M for detector in detectors) < classes:
            others.sort(axis=1)
        others += np.log1p(-np.exp(others))
        scores: dict[GEN, Array] = {}
        for gamma in {detector.gamma for detector in detectors}:
            greatest = np.exp(gamma * (rest - 2 * total))
            np.exp(np.multiply(others, gamma, out=terms), out=terms)
            for detector in detectors:
                if detector.gamma == gamma:
                    # sorted: the greatest are last, the top class (0) is first
                    largest_terms = terms if classes <= detector.M else terms[:, classes + 1 - detector.M :]
                    scores[detector] = -(greatest + sums(largest_terms))
        return [scores[detector] for detector in detectors]


class KLMState(NamedTuple):
    """Log of the mean softmax (C, K) of the images of each predicted class."""

    log_mean: Array


@register(paper=PAPERS["hendrycks2022"], needs=("logits",), fit_on="val", threads=True)
@parameters
class KLM:
    """Minus the smallest KL divergence of the softmax from the mean softmax of a class on ID val images.

    Images are grouped by predicted class, so that no label is needed.
    """

    def fit(self, data: Arrays, head: Head | None) -> KLMState:
        """Return the mean softmax by predicted class."""
        if not data.n:
            raise DataError("there is no validation image to take a mean softmax of")
        logits, predicted = _columns(data), np.asarray(data["logits"]).argmax(axis=1)
        order, sizes = np.argsort(predicted, kind="stable"), np.bincount(predicted)
        sizes = sizes[sizes > 0]
        starts = np.cumsum(sizes) - sizes

        def log_sums(classes: Array) -> Array:
            """Return the log of the sum of the softmax over the images of each of consecutive classes."""
            first = starts[classes[0]]
            rows = order[first : starts[classes[-1]] + sizes[classes[-1]]]
            below = gaps(logits[rows], dtype=np.float64)
            shares = np.exp(below)
            total = sums(shares)[:, None]
            shares /= total
            with np.errstate(divide="ignore"):
                logs = np.log(np.add.reduceat(shares, starts[classes] - first, axis=0))
            # where probabilities underflow float64, the divergence would be infinite: sum in logs
            for k, column in zip(*np.nonzero(logs < FAINT), strict=True):
                start = starts[classes[k]] - first
                of_class = slice(start, start + sizes[classes[k]])
                logs[k, column] = log_sum_exp(below[of_class, column] - np.log(total[of_class, 0]))
            return logs

        parts = np.split(np.arange(len(sizes)), np.flatnonzero(np.diff(starts // PART)) + 1)
        logs = np.concatenate(map_in_order(log_sums, parts, thread_count()))
        return KLMState(logs - np.log(sizes)[:, None])

    def score(self, state: KLMState, data: Arrays) -> Array:
        """Return minus the divergence to the nearest mean."""
        # in parts of much the same size: a product with a single row would round differently
        divergences = []
        for logits in np.array_split(_columns(data), -(-data.n // PART) or 1):
            below = gaps(logits, dtype=np.float64)
            powers = np.exp(below)
            total = sums(powers)
            # p log p - p log m, times the sum of the powers
            least = products(powers, below) - maxima(powers @ state.log_mean.T)
            divergences.append(least / total - np.log(total))
        return -np.concatenate(divergences)


def _columns(data: Arrays) -> Array:
    """Return the stored logits (n, K), with the background's as an additional last column."""
    logits, background = logits_of(data, dtype=None)
    return logits if background is None else np.column_stack([logits, background])


@register(paper=PAPERS["huang2021"], needs=("features", "logits", "head"), threads=True)
@parameters
class GradNorm:
    """L1 norm of the gradient, by the head's weights, of the divergence of the softmax from the uniform one.

    The gradient is the outer product of (softmax - 1/K) and the features, so its norm is the product of their
    norms and no backward pass is needed.
    """

    def score(self, state: None, data: Arrays) -> Array:
        """Return the norm."""
        logits = logits_of(data)[0]
        away = np.abs(np.exp(log_softmax(logits)) - 1 / logits.shape[1]).sum(axis=1)
        return np.asarray(np.abs(np.asarray(data["features"])).sum(axis=1, dtype=np.float64) * away)
