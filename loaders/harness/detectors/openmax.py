"""OpenMax: logits revised by their distance from the class means, with extreme-value theory."""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple

import numpy as np
from pydantic import Field, NonNegativeFloat, PositiveInt

from wordnet_splits.base.errors import DataError

from ..data.arrays import Array, Arrays, Head
from ..data.parameters import parameters
from .class_means import class_means
from .registry import PAPERS, register
from .softmax import log_sum_exp, logits_of

SHIFT = 10_000.0
"""Offset that LibMR, the authors' library, adds to distances before it fits a Weibull distribution."""
NOWHERE = 1e300
"""Location of the distribution of a class without images: no distance reaches it, so it revises nothing."""
STEPS = 80  # bisections of a shape between 1e-9 and 1e9 on a log scale: to the last bit


class Weibull(NamedTuple):
    """Smallest distance, shape and location of the tails of C classes; `NOWHERE` for one without images."""

    smallest: Array
    shape: Array
    location: Array

    def cdf(self, distances: Array) -> Array:
        """Return the share (n, C) of each class's images at smaller distances; 0 if a class has no fit."""
        stretched = self.shape * (_stretched(distances - self.smallest) - self.location)
        return np.asarray(-np.expm1(-np.exp(np.minimum(stretched, 700.0))))


class Centres(NamedTuple):
    """Mean logits (K, K) of correctly predicted training images, and the tails of distances to them."""

    means: Array
    tails: Weibull


@register(
    paper=PAPERS["bendale2016"],
    needs=("logits", "labels"),
    fit_on="train",
    sweep={"alpha": (1, 5, 10, 20, 30, 40), "tail": (2, 5, 10, 20, 30, 40)},
    fit_parameters=("tail", "weight", "distance"),
)
@parameters
class OpenMax:
    """Log odds of the known classes against the unknown one, whose logit collects what far top logits lose.

    ``alpha``: number of classes revised; ``tail``: number of distances fitted; ``weight``: weight of the
    Euclidean distance when added to the cosine distance (the authors' code divides it by 200), without effect
    for ``distance="euclidean"`` (OpenOOD's). A nonzero ``omega`` is the weight of the revision of each of the
    ``alpha`` classes, in place of (alpha - i)/alpha for the i-th from 0 (Kim et al.'s code has .5 on CIFAR).
    Predictions are read from the revised logits, with the unknown class as background. The sweep is Kim et
    al.'s.
    """

    alpha: PositiveInt = 3
    tail: Annotated[int, Field(ge=2)] = 20
    weight: NonNegativeFloat = 0.005
    distance: Literal["eucos", "euclidean"] = "eucos"
    omega: Annotated[float, Field(ge=0, le=1)] = 0.0

    def fit(self, data: Arrays, head: Head | None) -> Centres:
        """Return class means and the distributions of the greatest distances to them."""
        labels = np.asarray(data["labels"])
        predicted = np.concatenate([np.asarray(chunk).argmax(axis=1) for chunk in data["logits"].chunks()])
        correct = (labels >= 0) & (predicted == labels)
        if not correct.any():
            raise DataError("no training image is classified correctly, so there are no class means")
        classes = data["logits"].shape[1]
        class_index = np.where(correct, labels, -1)
        means, _ = class_means(data["logits"], class_index, classes)
        own_distances = np.full(data.n, np.nan)
        start = 0
        for chunk in data["logits"].chunks():
            rows = slice(start, start + len(chunk))
            start += len(chunk)
            correct_rows = np.flatnonzero(correct[rows])
            distances = self._distances(chunk[correct_rows].astype(np.float64), means)
            own_distances[rows][correct_rows] = distances[
                np.arange(len(correct_rows)), labels[rows][correct_rows]
            ]
        tails = np.full((classes, self.tail), np.nan)  # the greatest distances of each class
        order = np.lexsort((own_distances, class_index))
        starts, ends = (np.searchsorted(class_index[order], np.arange(classes), s) for s in ("left", "right"))
        for k in range(classes):
            greatest = own_distances[order[max(starts[k], ends[k] - self.tail) : ends[k]]]
            tails[k, : len(greatest)] = greatest
        return Centres(means, weibull(tails))

    def score(self, state: Centres, data: Arrays) -> Array:
        """Return log(P(known) / P(unknown)) of the revised logits."""
        logits, unknown = self._revised(state, data)
        return log_sum_exp(logits) - unknown

    def predict(self, state: Centres, data: Arrays) -> Arrays:
        """Return the revised logits, the unknown class as background."""
        logits, unknown = self._revised(state, data)
        return data.replace(logits=logits, background=unknown)

    def _revised(self, state: Centres, data: Arrays) -> tuple[Array, Array]:
        logits = logits_of(data)[0]
        number = min(self.alpha, logits.shape[1])
        top = np.argsort(-logits, axis=1, kind="stable")[:, :number]
        far = state.tails.cdf(self._distances(logits, state.means))
        removed_share = np.zeros_like(logits)
        shares = self.omega or (number - np.arange(number)) / number
        np.put_along_axis(removed_share, top, np.take_along_axis(far, top, axis=1) * shares, axis=1)
        return logits * (1 - removed_share), np.asarray((logits * removed_share).sum(axis=1))

    def _distances(self, logits: Array, means: Array) -> Array:
        """Return weight |z - m| + 1 - cos(z, m), or |z - m|, of every image and class."""
        products = logits @ means.T
        lengths, sizes = (np.linalg.norm(a, axis=1) for a in (logits, means))
        squared = np.square(lengths)[:, None] + np.square(sizes) - 2 * products
        euclidean = np.sqrt(np.maximum(squared, 0.0))
        if self.distance == "euclidean":
            return np.asarray(euclidean)
        norm_products = lengths[:, None] * sizes
        cosine = np.divide(products, norm_products, out=np.zeros_like(products), where=norm_products != 0)
        return np.asarray(self.weight * euclidean + 1 - cosine)


def _stretched(above: Array) -> Array:
    """Return log(1 + above/SHIFT) SHIFT: log of LibMR's shifted distances, near ``above`` itself."""
    return np.asarray(SHIFT * np.log1p(np.maximum(above / SHIFT, -0.999_999)))


def weibull(tails: Array) -> Weibull:
    """Fit Weibull distributions to rows of distances (C, T), padded with NaN, by maximum likelihood.

    The likelihood has one maximum, where sum(x^k log x)/sum(x^k) - 1/k is the mean of log x; all rows are
    solved together by bisection. One distance, or equal ones, give a step.
    """
    present = np.isfinite(tails)
    nonempty = present.any(axis=1)
    smallest = np.where(nonempty, np.where(present, tails, np.inf).min(axis=1), 0.0)
    logs = np.where(present, _stretched(tails - smallest[:, None]), 0.0)
    count = np.maximum(present.sum(axis=1), 1)
    mean = logs.sum(axis=1) / count
    top = logs.max(axis=1)
    spread = np.sqrt(np.where(present, np.square(logs - mean[:, None]), 0.0).sum(axis=1) / count)
    unit = 1 / np.maximum(spread, 1e-9 * np.maximum(1.0, np.abs(top)))

    def weights(shape: Array) -> Array:
        return np.where(present, np.exp(shape[:, None] * (logs - top[:, None])), 0.0)

    low, high = np.full(len(tails), np.log(1e-9)), np.full(len(tails), np.log(1e9))
    for _ in range(STEPS):
        middle = (low + high) / 2
        shape = unit * np.exp(middle)
        powers = weights(shape)
        slope = (powers * logs).sum(axis=1) / np.maximum(powers.sum(axis=1), 1e-300) - mean - 1 / shape
        low, high = np.where(slope < 0, middle, low), np.where(slope < 0, high, middle)
    shape = np.where(spread > 0, unit * np.exp((low + high) / 2), unit)
    location = top + np.log(np.maximum(weights(shape).sum(axis=1), 1e-300) / count) / shape
    return Weibull(smallest, np.where(nonempty, shape, 1.0), np.where(nonempty, location, NOWHERE))
