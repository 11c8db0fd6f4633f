"""Detectors that change the features or the head's weights, and score the energy of the resulting logits.

The papers change the maps before the last pooling or the pooled features; here, as in OpenOOD, the features
(input of the head) are changed. Predictions and accuracy are computed from the changed logits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import Field, NonNegativeFloat

from wordnet_splits.base.errors import DataError, SplitsError

from ..data.arrays import Array, Arrays, Head
from ..data.parameters import parameters
from .class_means import mean_of
from .registry import PAPERS, register
from .softmax import energy, sums

PERCENTILES = (65.0, 70.0, 75.0, 80.0, 85.0, 90.0, 95.0)
Percentile = Annotated[float, Field(ge=0, lt=100)]


class _Shaped(ABC):
    """Energy and predictions of changed logits."""

    @abstractmethod
    def changed(self, state: Any, data: Arrays) -> Array:
        """Return the changed logits (n, K)."""

    def score(self, state: Any, data: Arrays) -> Array:
        """Return the energy of the changed logits."""
        return energy(self.changed(state, data))

    def predict(self, state: Any, data: Arrays) -> Arrays:
        """Return the arrays with the changed logits, for predictions."""
        return data.replace(logits=self.changed(state, data))


def logits_from(features: Array, head: Head) -> Array:
    """Return the head's logits (n, K) float32 of features (n, D)."""
    logits = features.astype(np.float32, copy=False) @ head.weight.T
    logits += head.bias
    return np.asarray(logits)


class Values(NamedTuple):
    """All feature values of ID validation images (m,) float32, ascending, and the head behind."""

    ascending: Array
    head: Head

    @classmethod
    def from_arrays(cls, data: Arrays, head: Head) -> Values:
        """Return the sorted features and the head; sorting is faster than computing a percentile."""
        values = np.array(data["features"], dtype=np.float32).ravel()
        if not values.size:
            raise DataError("there are no validation images to take a percentile of")
        values.sort()
        return cls(values, head)

    def at(self, percentile: float) -> float:
        """Return a percentile of the sorted values."""
        return percentile_of(self.ascending, percentile)


def percentile_of(ascending: Array, percentile: float) -> float:
    """Return a percentile of sorted values by linear interpolation, as numpy does."""
    position = percentile / 100 * (len(ascending) - 1)
    below = int(position)
    low, high = (float(ascending[min(i, len(ascending) - 1)]) for i in (below, below + 1))
    return low + (high - low) * (position - below)


@register(
    paper=PAPERS["sun2021"],
    needs=("features", "logits", "head"),
    fit_on="val",
    sweep={"percentile": (85.0, 90.0, 95.0, 99.0)},
    fit_parameters=(),
    threads=True,
)
@parameters
class ReAct(_Shaped):
    """Energy with features clipped at a percentile of all their values on ID validation images.

    A nonzero ``threshold`` replaces the value at the percentile (Kim et al. choose 7 and 2); the percentile
    then has no effect.
    """

    percentile: Percentile = 90.0
    threshold: NonNegativeFloat = 0.0

    def fit(self, data: Arrays, head: Head) -> Values:
        """Return the feature values of the validation images."""
        return Values.from_arrays(data, head)

    def changed(self, state: Values, data: Arrays) -> Array:
        """Return the logits of the clipped features."""
        high = self.threshold or state.at(self.percentile)
        return logits_from(np.minimum(np.asarray(data["features"]), high), state.head)


@register(
    paper=PAPERS["xu2023"],
    needs=("features", "logits", "head"),
    fit_on="val",
    sweep={"low": (10.0, 30.0, 50.0, 60.0), "high": (85.0, 90.0, 95.0, 99.0)},
    fit_parameters=(),
    threads=True,
)
@parameters
class VRA(_Shaped):
    """Energy with features set to 0 below one percentile and clipped at another (VRA-P)."""

    low: Percentile = 60.0
    high: Percentile = 95.0

    def __post_init__(self) -> None:
        if self.low >= self.high:
            raise SplitsError(f"low={self.low:g} is not below high={self.high:g}")

    def fit(self, data: Arrays, head: Head) -> Values:
        """Return the feature values of the validation images."""
        return Values.from_arrays(data, head)

    def changed(self, state: Values, data: Arrays) -> Array:
        """Return the logits of the rectified features."""
        features = np.asarray(data["features"])
        rectified = np.minimum(features, state.at(self.high))
        rectified *= features >= state.at(self.low)
        return logits_from(rectified, state.head)


def kept_number(width: int, percentile: float) -> int:
    """Return how many of ``width`` features are kept above a percentile, at least one."""
    return max(1, width - round(width * percentile / 100))


class Ranked(NamedTuple):
    """Features (n, D) float32, and the same sorted by row: one sort serves all percentiles."""

    features: Array
    ascending: Array

    @classmethod
    def from_arrays(cls, data: Arrays) -> Ranked:
        """Sort the features of images."""
        features = np.asarray(data["features"], dtype=np.float32)
        return cls(features, np.sort(features, axis=1))

    def greatest(self, number: int) -> Array:
        """Return a mask (n, D) of the greatest features of each row; of equal ones, the first."""
        width = self.features.shape[1]
        edge = self.ascending[:, width - number, None]
        selected = self.features >= edge
        if number == width:
            return np.asarray(selected)
        crowded = np.flatnonzero(self.ascending[:, width - number - 1] == edge[:, 0])
        if len(crowded):
            above = self.features[crowded] > edge[crowded]
            tied = selected[crowded] & ~above
            room = number - above.sum(axis=1, keepdims=True)
            selected[crowded] = above | (tied & (tied.cumsum(axis=1) <= room))
        return np.asarray(selected)

    def sum_of_greatest(self, number: int) -> Array:
        """Return the sum (n,) of the greatest features of each row."""
        return sums(self.ascending[:, -number:])

    @property
    def sum_of_all(self) -> Array:
        """The sum (n,) of the features of each row."""
        return sums(self.features)


def ratio(part: Array, whole: Array) -> Array:
    """Return whole / part, 1 where the part is 0 (features that are all 0)."""
    return np.divide(whole, part, out=np.ones_like(whole), where=part != 0)


class _OfRanked(_Shaped):
    """Logits of features that depend on the greatest features of an image."""

    def fit(self, data: Arrays, head: Head) -> Head:
        """Return the head."""
        return head

    def changed(self, state: Head, data: Arrays) -> Array:
        """Return the logits of the shaped features."""
        return self.shaped(state, data, Ranked.from_arrays(data))

    @abstractmethod
    def shaped(self, head: Head, data: Arrays, ranked: Ranked) -> Array:
        """Return `changed` from sorted features."""

    @staticmethod
    def score_each(detectors: Sequence[_OfRanked], state: Head, data: Arrays) -> list[Array]:
        """Return the scores for each parameter; features are sorted once."""
        ranked = Ranked.from_arrays(data)
        return [energy(detector.shaped(state, data, ranked)) for detector in detectors]


@register(
    paper=PAPERS["djurisic2023"],
    needs=("features", "logits", "head"),
    sweep={"percentile": PERCENTILES},
    fit_parameters=(),
    threads=True,
)
@parameters
class ASH(_OfRanked):
    """Energy with only the greatest features of an image kept and reshaped.

    ``variant``: ``b`` (OpenOOD's) sets the kept features to one value of the same sum; ``s`` multiplies them
    by exp(sum before / sum after); ``p`` leaves them unchanged.
    """

    percentile: Percentile = 90.0
    variant: Literal["p", "b", "s"] = "b"

    def shaped(self, head: Head, data: Arrays, ranked: Ranked) -> Array:
        """Return the logits of the shaped features."""
        number = kept_number(ranked.features.shape[1], self.percentile)
        kept = ranked.greatest(number)
        if self.variant == "b":  # an equal share of the sum of all for every kept value
            share = (ranked.sum_of_all / number).astype(np.float32)
            return np.asarray((kept.astype(np.float32) @ head.weight.T) * share[:, None] + head.bias)
        features = ranked.features * kept
        if self.variant == "s":
            factor = np.exp(ratio(ranked.sum_of_greatest(number), ranked.sum_of_all))
            features *= factor.astype(np.float32)[:, None]
        return logits_from(features, head)


@register(
    paper=PAPERS["xu2024"],
    needs=("features", "logits", "head"),
    sweep={"percentile": PERCENTILES},
    fit_parameters=(),
    threads=True,
)
@parameters
class SCALE(_OfRanked):
    """Energy with all features multiplied by exp(their sum / the sum of the greatest of them)."""

    percentile: Percentile = 85.0

    def shaped(self, head: Head, data: Arrays, ranked: Ranked) -> Array:
        """Return the logits of the scaled features: the image's logits, scaled without the bias."""
        greatest = ranked.sum_of_greatest(kept_number(ranked.features.shape[1], self.percentile))
        factor = np.exp(ratio(greatest, ranked.sum_of_all))
        without = np.asarray(data["logits"], dtype=np.float32) - head.bias
        return np.asarray(without * factor.astype(np.float32)[:, None] + head.bias)


class Contributions(NamedTuple):
    """The contribution (K, D) of each weight of the head, the same (K D,) ascending, and the head."""

    each: Array
    ascending: Array
    head: Head


@register(
    paper=PAPERS["sun2022dice"],
    needs=("features", "logits", "head"),
    fit_on="train",
    sweep={"p": (10.0, 30.0, 50.0, 70.0, 90.0)},
    fit_parameters=(),
    threads=True,
)
@parameters
class DICE(_Shaped):
    """Energy with only the weights of the head that contribute most on training images.

    The contribution of a weight is its product with the mean of its feature; the p percent of weights with
    the least contribution over all classes are set to 0. The authors use only p = 90; this package adds the
    other values of the sweep.
    """

    p: Percentile = 90.0

    def fit(self, data: Arrays, head: Head) -> Contributions:
        """Return the contribution of each weight."""
        each = mean_of(data["features"]) * head.weight
        return Contributions(each, np.sort(each, axis=None), head)

    def changed(self, state: Contributions, data: Arrays) -> Array:
        """Return the logits of the head with the weights of least contribution at 0."""
        weight = state.head.weight * (state.each > percentile_of(state.ascending, self.p))
        return logits_from(np.asarray(data["features"]), Head(weight, state.head.bias))
