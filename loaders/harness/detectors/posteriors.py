"""Detectors on the whole softmax of an image: its entropy-like sums, divergences and gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from wordnet_splits.base.errors import DataError

from ..arrays import Array, Arrays, Head
from .registry import PAPERS, register, require_positive
from .row_reductions import maxima, products, sums
from .softmax import gaps, gaps_and_top, log_of_others, log_softmax, log_sum_exp, logits_of, softplus

FAINT = -650.0
"""Log of a sum of probabilities below which float64 loses its digits, and soon all of it."""


@register(
    paper=PAPERS["liu2023"],
    needs=("logits",),
    sweep={"gamma": (0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0), "M": (10, 50, 100)},
    fit_parameters=(),
    threads=True,
)
@dataclass(frozen=True)
class GEN:
    """Minus the generalised entropy, the sum of p^gamma (1 - p)^gamma over the M greatest probabilities.

    Probabilities are not cut at 1e-7, as pytorch-ood cuts them: with a gamma of 0.1 the cut would give each
    class of no probability at all a share of 0.2.
    """

    gamma: float = 0.1
    M: int = 100

    def __post_init__(self) -> None:
        require_positive("gamma", self.gamma)
        require_positive("M", self.M)

    def score(self, state: None, data: Arrays) -> Array:
        """Return minus the sum; of M beyond the number of classes, over all of them.

        Raises
        ------
        DataError : there is a background class; the sum over the remaining classes has no meaning.
        """
        return self.score_each([self], state, data)[0]

    @staticmethod
    def score_each(several: Sequence[GEN], state: None, data: Arrays) -> list[Array]:
        """Return the scores by each gamma and M: one softmax, one order of its values, one power a gamma."""
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
        if min(one.M for one in several) < classes:
            others.sort(axis=1)
        others += np.log1p(-np.exp(others))
        found: dict[GEN, Array] = {}
        for gamma in {one.gamma for one in several}:
            greatest = np.exp(gamma * (rest - 2 * total))
            np.exp(np.multiply(others, gamma, out=terms), out=terms)
            for one in several:
                if one.gamma == gamma:
                    # without all, those of the greatest: the last, sorted; the top class is the first, at 0
                    kept = terms if classes <= one.M else terms[:, classes + 1 - one.M :]
                    found[one] = -(greatest + sums(kept))
        return [found[one] for one in several]


class Typical(NamedTuple):
    """Log of the mean softmax (C, K) of the images predicted as each class that is predicted at all."""

    log_mean: Array


@register(paper=PAPERS["hendrycks2022"], needs=("logits",), fit_on="val", threads=True)
@dataclass(frozen=True)
class KLM:
    """Minus the smallest KL divergence from the softmax to the mean one of ID validation images of a class.

    The classes are those that the model predicts, so that no label is needed.
    """

    def fit(self, data: Arrays, head: Head | None) -> Typical:
        """Return the mean softmax by predicted class.

        Raises
        ------
        DataError : there are no validation images.
        """
        if not data.n:
            raise DataError("there is no validation image to take a mean softmax of")
        predicted = np.asarray(data["logits"]).argmax(axis=1)
        below = gaps(_columns(*logits_of(data))[np.argsort(predicted, kind="stable")])
        shares = np.exp(below)
        total = sums(shares)[:, None]
        shares /= total
        sizes = np.bincount(predicted)
        sizes = sizes[sizes > 0]
        starts = np.cumsum(sizes) - sizes
        with np.errstate(divide="ignore"):
            logs = np.log(np.add.reduceat(shares, starts, axis=0))
        # a class of no probability in float64 would have a divergence without end: its sum is taken in logs
        for k, column in zip(*np.nonzero(logs < FAINT), strict=True):
            own = slice(starts[k], starts[k] + sizes[k])
            logs[k, column] = log_sum_exp(below[own, column] - np.log(total[own, 0]))
        return Typical(logs - np.log(sizes)[:, None])

    def score(self, state: Typical, data: Arrays) -> Array:
        """Return minus the divergence to the nearest mean."""
        below = gaps(_columns(*logits_of(data)))
        powers = np.exp(below)
        total = sums(powers)
        # p log p and p log m of powers that are not yet divided by their sum
        least = products(powers, below) - maxima(powers @ state.log_mean.T)
        return np.asarray(np.log(total) - least / total)


def _columns(logits: Array, background: Array | None) -> Array:
    return logits if background is None else np.column_stack([logits, background])


@register(paper=PAPERS["huang2021"], needs=("features", "logits", "head"), threads=True)
@dataclass(frozen=True)
class GradNorm:
    """L1 norm of the gradient, by the head's weights, of the divergence of the softmax from the uniform one.

    The gradient is the outer product of softmax less 1/K and the features, so its norm is the product of
    theirs: no backward pass is needed.
    """

    def score(self, state: None, data: Arrays) -> Array:
        """Return the norm."""
        logits = logits_of(data)[0]
        away = np.abs(np.exp(log_softmax(logits)) - 1 / logits.shape[1]).sum(axis=1)
        return np.asarray(np.abs(np.asarray(data["features"])).sum(axis=1, dtype=np.float64) * away)
