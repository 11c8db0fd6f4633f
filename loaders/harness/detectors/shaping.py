"""Detectors that change the features, or the head's weights, and take the energy of the logits that result.

The papers change the maps before the last pooling or the pooled features; here, as in OpenOOD, it is the
features, the input of the head. Predictions, and so the accuracy, are read from the changed logits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from wordnet_splits.errors import DataError, SplitsError, unknown

from ..arrays import Array, Arrays, Head
from .classwise import mean_of
from .paper import PAPERS
from .registry import register
from .softmax import energy

PERCENTILES = (65.0, 70.0, 75.0, 80.0, 85.0, 90.0, 95.0)


def percentile(name: str, value: float) -> None:
    """Refuse a parameter that is not a percentile below 100."""
    if not 0 <= value < 100:
        raise SplitsError(f"{name}={value:g} is not a percentile", hint="0 <= percentile < 100")


class _Shaped:
    """Energy and predictions of changed logits."""

    def changed(self, state: Any, data: Arrays) -> Array:
        """Return the changed logits (n, K)."""
        raise NotImplementedError

    def score(self, state: Any, data: Arrays) -> Array:
        """Return the energy of the changed logits."""
        return energy(self.changed(state, data))

    def predict(self, state: Any, data: Arrays) -> Arrays:
        """Return the arrays with the changed logits: what predictions are read from."""
        return data.replace(logits=self.changed(state, data))


def logits_from(features: Array, head: Head) -> Array:
    """Return the head's logits (n, K) float32 of features (n, D)."""
    return np.asarray(features.astype(np.float32, copy=False) @ head.weight.T + head.bias)


class Clipped(NamedTuple):
    """The values between which features are kept, and the head behind."""

    low: float
    high: float
    head: Head


@register(
    paper=PAPERS["sun2021"],
    needs=("features", "logits", "head"),
    fit_on="val",
    sweep={"percentile": (85.0, 90.0, 95.0, 99.0)},
)
@dataclass(frozen=True)
class ReAct(_Shaped):
    """Energy with features cut at a percentile of all their values on ID validation images.

    ``threshold``, where it is not 0, is the value itself (Kim et al. choose 7 and 2); the percentile is then
    of no effect.
    """

    percentile: float = 90.0
    threshold: float = 0.0

    def __post_init__(self) -> None:
        percentile("percentile", self.percentile)
        if not self.threshold >= 0:
            raise SplitsError(f"threshold={self.threshold:g} is negative")

    def fit(self, data: Arrays, head: Head) -> Clipped:
        """Return where features are cut."""
        high = self.threshold or float(values_at(data, self.percentile)[0])
        return Clipped(-np.inf, high, head)

    def changed(self, state: Clipped, data: Arrays) -> Array:
        """Return the logits of the cut features."""
        return logits_from(np.minimum(np.asarray(data["features"]), state.high), state.head)


@register(
    paper=PAPERS["xu2023"],
    needs=("features", "logits", "head"),
    fit_on="val",
    sweep={"low": (10.0, 30.0, 50.0, 60.0), "high": (85.0, 90.0, 95.0, 99.0)},
)
@dataclass(frozen=True)
class VRA(_Shaped):
    """Energy with features below one percentile at 0 and above another cut there (VRA-P)."""

    low: float = 60.0
    high: float = 95.0

    def __post_init__(self) -> None:
        percentile("low", self.low)
        percentile("high", self.high)
        if self.low >= self.high:
            raise SplitsError(f"low={self.low:g} is not below high={self.high:g}")

    def fit(self, data: Arrays, head: Head) -> Clipped:
        """Return the values at the two percentiles of all features of ID validation images."""
        low, high = values_at(data, self.low, self.high)
        return Clipped(float(low), float(high), head)

    def changed(self, state: Clipped, data: Arrays) -> Array:
        """Return the logits of the rectified features."""
        features = np.asarray(data["features"])
        return logits_from(np.where(features < state.low, 0, np.minimum(features, state.high)), state.head)


def values_at(data: Arrays, *percentiles: float) -> Array:
    """Return percentiles of all feature values of all images together.

    Raises
    ------
    DataError : there are no images.
    """
    values = np.asarray(data["features"])
    if not values.size:
        raise DataError("there are no validation images to take a percentile of")
    return np.asarray(np.percentile(values.astype(np.float32, copy=False), percentiles))


def kept_number(width: int, percentile: float) -> int:
    """Return how many of ``width`` features are kept above a percentile, at least one."""
    return max(1, width - round(width * percentile / 100))


def greatest_mask(features: Array, number: int) -> Array:
    """Return which of the features (n, D) are the greatest of their row; of equal ones the first."""
    width = features.shape[1]
    edge = np.partition(features, width - number, axis=1)[:, width - number, None]
    kept = features >= edge
    crowded = np.flatnonzero(kept.sum(axis=1) > number)
    if len(crowded):
        above = features[crowded] > edge[crowded]
        level = kept[crowded] & ~above
        room = number - above.sum(axis=1, keepdims=True)
        kept[crowded] = above | (level & (level.cumsum(axis=1) <= room))
    return np.asarray(kept)


def ratio(part: Array, whole: Array) -> Array:
    """Return whole / part, 1 where the part is 0 (features that are all 0)."""
    return np.divide(whole, part, out=np.ones_like(whole), where=part != 0)


def _pruned(features: Array, kept: Array) -> Array:
    return np.where(kept, features, 0)


def _binarised(features: Array, kept: Array) -> Array:
    """Every kept value becomes their common share of the sum of all."""
    share = features.sum(axis=1, dtype=np.float64) / kept.sum(axis=1)
    return np.asarray(kept * share.astype(np.float32)[:, None])


def _sharpened(features: Array, kept: Array) -> Array:
    pruned = _pruned(features, kept)
    sums = (pruned.sum(axis=1, dtype=np.float64), features.sum(axis=1, dtype=np.float64))
    return pruned * np.exp(ratio(*sums)).astype(np.float32)[:, None]


VARIANTS = {"p": _pruned, "b": _binarised, "s": _sharpened}


@register(
    paper=PAPERS["djurisic2023"],
    needs=("features", "logits", "head"),
    sweep={"percentile": PERCENTILES},
    fit_uses=(),
)
@dataclass(frozen=True)
class ASH(_Shaped):
    """Energy with only the greatest features of an image kept, and those shaped.

    ``variant``: ``b`` (OpenOOD's) gives all that are kept the same value, which keeps their sum; ``s``
    multiplies them by exp(sum before / sum after); ``p`` leaves them as they are.
    """

    percentile: float = 90.0
    variant: str = "b"

    def __post_init__(self) -> None:
        percentile("percentile", self.percentile)
        if self.variant not in VARIANTS:
            raise unknown("variant of ash", self.variant, VARIANTS)

    def fit(self, data: Arrays, head: Head) -> Head:
        """Return the head."""
        return head

    def changed(self, state: Head, data: Arrays) -> Array:
        """Return the logits of the shaped features."""
        features = np.asarray(data["features"], dtype=np.float32)
        kept = greatest_mask(features, kept_number(features.shape[1], self.percentile))
        return logits_from(VARIANTS[self.variant](features, kept), state)


@register(
    paper=PAPERS["xu2024"],
    needs=("features", "logits", "head"),
    sweep={"percentile": PERCENTILES},
    fit_uses=(),
)
@dataclass(frozen=True)
class SCALE(_Shaped):
    """Energy with all features multiplied by exp(their sum / the sum of the greatest of them)."""

    percentile: float = 85.0

    def __post_init__(self) -> None:
        percentile("percentile", self.percentile)

    def fit(self, data: Arrays, head: Head) -> Head:
        """Return the head."""
        return head

    def changed(self, state: Head, data: Arrays) -> Array:
        """Return the logits of the scaled features: the image's own, scaled but for the bias."""
        features = np.asarray(data["features"], dtype=np.float32)
        width = features.shape[1]
        rest = width - kept_number(width, self.percentile)
        greatest = np.partition(features, rest, axis=1)[:, rest:].sum(axis=1, dtype=np.float64)
        factor = np.exp(ratio(greatest, features.sum(axis=1, dtype=np.float64)))[:, None]
        bias = state.bias.astype(np.float64)
        return np.asarray((np.asarray(data["logits"]) - bias) * factor + bias)


@register(
    paper=PAPERS["sun2022dice"],
    needs=("features", "logits", "head"),
    fit_on="train",
    sweep={"p": (10.0, 30.0, 50.0, 70.0, 90.0)},
)
@dataclass(frozen=True)
class DICE(_Shaped):
    """Energy with only those weights of the head that contribute most on training images.

    The contribution of a weight is its product with the mean of its feature; the p percent of least
    contribution, over all classes, are set to 0. The authors sweep nothing but 90; the other values are ours.
    """

    p: float = 90.0

    def __post_init__(self) -> None:
        percentile("p", self.p)

    def fit(self, data: Arrays, head: Head) -> Head:
        """Return the head with the weights of least contribution at 0."""
        contribution = mean_of(data["features"]) * head.weight
        kept = contribution > np.percentile(contribution, self.p)
        return Head(np.where(kept, head.weight, 0), head.bias)

    def changed(self, state: Head, data: Arrays) -> Array:
        """Return the logits of the sparse head."""
        return logits_from(np.asarray(data["features"]), state)
