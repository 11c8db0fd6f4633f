"""Detectors on where features lie: beside the head's weights, class patterns, the training subspace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from wordnet_splits.base.errors import DataError

from ..arrays import Array, Arrays, Head
from .class_means import class_means, mean_of
from .registry import PAPERS, register, require_nonnegative, require_positive
from .row_reductions import at_least_single, lengths, products, sums
from .softmax import energy, gaps, logits_of


@register(paper=PAPERS["zhang2023"], needs=("features", "logits", "labels"), fit_on="train", threads=True)
@dataclass(frozen=True)
class SHE:
    """Inner product with the predicted class's mean features, over rightly predicted training images.

    A class that is never predicted rightly has the mean of all its training images.
    """

    def fit(self, data: Arrays, head: Head | None) -> Array:
        """Return the patterns (K, D) float32 of the classes.

        Raises
        ------
        DataError : no image has a label.
        """
        labels = np.asarray(data["labels"])
        if not (labels >= 0).any():
            raise DataError("no training image has a label, so there are no class patterns")
        classes = data["logits"].shape[1]
        said = np.concatenate([np.asarray(chunk).argmax(axis=1) for chunk in data["logits"].chunks()])
        patterns, right = class_means(data["features"], np.where(said == labels, labels, -1), classes)
        if not right.all():
            missed = np.where(right[labels] == 0, labels, -1)
            means, _ = class_means(data["features"], missed, classes)
            patterns = np.where(right[:, None] > 0, patterns, means)
        return patterns.astype(np.float32)

    def score(self, state: Array, data: Arrays) -> Array:
        """Return the inner product with the pattern of the predicted class."""
        predicted = np.asarray(data["logits"]).argmax(axis=1)
        return products(at_least_single(data["features"]), state[predicted])


class Boundaries(NamedTuple):
    """The mean (D,) of training features and, of two classes (K, K), 1 / the distance of their weights.

    Both float32; 0 where the weights are the same.
    """

    centre: Array
    near: Array


@register("fdbd", paper=PAPERS["liu2024"], needs=("features", "logits", "head"), fit_on="train", threads=True)
@dataclass(frozen=True)
class FDBD:
    """Mean distance to the decision boundaries, relative to that from the training images' mean."""

    def fit(self, data: Arrays, head: Head) -> Boundaries:
        """Return the training mean and what distances to boundaries are multiplied by."""
        weight = head.weight.astype(np.float64)
        apart = cdist(weight, weight)
        near = np.divide(1.0, apart, out=np.zeros_like(apart), where=apart > 0)
        return Boundaries(mean_of(data["features"]).astype(np.float32), near.astype(np.float32))

    def score(self, state: Boundaries, data: Arrays) -> Array:
        """Return the mean over other classes of (z_top - z_j) / |w_top - w_j|, over the distance."""
        logits = logits_of(data, dtype=np.float32)[0]
        distances = -products(gaps(logits), state.near[logits.argmax(axis=1)])
        away = lengths(at_least_single(data["features"]) - state.centre)
        others = max(1, logits.shape[1] - 1)
        return np.asarray(distances / others / np.maximum(away, np.finfo(np.float32).tiny))


class Collapsed(NamedTuple):
    """The mean (D,) of training features, and the head."""

    centre: Array
    head: Head


@register(
    paper=PAPERS["liu2025"],
    needs=("features", "logits", "head"),
    fit_on="train",
    sweep={"alpha": (0.0, 0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0)},
    fit_parameters=(),
    threads=True,
)
@dataclass(frozen=True)
class NCI:
    """The predicted class's weights along the features' way from the mean, plus alpha |features|_1."""

    alpha: float = 0.001

    def __post_init__(self) -> None:
        require_nonnegative("alpha", self.alpha)

    def fit(self, data: Arrays, head: Head) -> Collapsed:
        """Return the training mean."""
        return Collapsed(mean_of(data["features"]).astype(np.float32), head)

    def score(self, state: Collapsed, data: Arrays) -> Array:
        """Return the projection and the weighted norm; the projection of features at the mean is 0."""
        return self.score_each([self], state, data)[0]

    @staticmethod
    def score_each(several: Sequence[NCI], state: Collapsed, data: Arrays) -> list[Array]:
        """Return the scores by each alpha, of one projection and one norm."""
        features = at_least_single(data["features"])
        weights = state.head.weight[np.asarray(data["logits"]).argmax(axis=1)]
        centred = features - state.centre
        along = products(centred, weights)
        length = lengths(centred)
        projection = np.divide(along, length, out=np.zeros_like(along), where=length > 0)
        norm = sums(np.abs(features))
        return [projection + one.alpha * norm for one in several]


AMPLE = 0.05
"""Share of features' length from which on single precision keeps six digits of it."""


class Subspace(NamedTuple):
    """The directions of the training features around the origin, those of least variance first.

    Attributes
    ----------
    origin : (D,) the features that give equal logits.
    directions : (D, D) orthonormal columns.
    rest : (D + 1,) sum over the training images of the length of their features in the first of them.
    tops : sum over the training images of their greatest logit.
    """

    origin: Array
    directions: Array
    rest: Array
    tops: float

    def residuals(self, features: Array, first: Sequence[int]) -> list[Array]:
        """Return the lengths (n,) float64 of features in the first directions.

        Those of a small rest come from float64, and of the first directions and the others only the fewer are
        looked at. Where they are the fewer, and the training images have a good share of their length there,
        single precision is as good; each number then has a product of its own, so that others change nothing.
        """
        few = {number for number in first if 2 * number <= len(self.origin) and self._ample(number)}
        single = at_least_single(features) - self.origin.astype(np.float32) if few else features
        found = {number: lengths(single @ self.directions[:, :number].astype(np.float32)) for number in few}
        if others := sorted(set(first) - few):
            found |= self._small(features - self.origin, others)
        return [found[number] for number in first]

    def _ample(self, number: int) -> bool:
        return bool(self.rest[number] > AMPLE * self.rest[-1])

    def _small(self, rows: Array, first: Sequence[int]) -> dict[int, Array]:
        least, most = first[0], first[-1]
        if most <= len(self.origin) - least:
            points = rows @ self.directions[:, :most]
            return {number: lengths(points[:, :number]) for number in first}
        points = rows @ self.directions[:, least:]
        whole = np.square(lengths(rows))
        kept = {number: np.square(lengths(points[:, number - least :])) for number in first}
        return {number: np.sqrt(np.maximum(whole - length, 0.0)) for number, length in kept.items()}


@register(
    "vim",
    paper=PAPERS["wang2022"],
    needs=("features", "logits", "head"),
    fit_on="train",
    sweep={"dim": (256, 1000)},
    fit_parameters=(),
    threads=True,
)
@dataclass(frozen=True)
class ViM:
    """Energy less the scaled length of the features outside the training data's main subspace.

    That length is the virtual logit. ``dim`` is that of the main subspace, half the width where there are no
    more features than that.
    """

    dim: int = 256

    def __post_init__(self) -> None:
        require_positive("dim", self.dim)

    def fit(self, data: Arrays, head: Head) -> Subspace:
        """Return the directions of the training images' features around the point of equal logits.

        Raises
        ------
        DataError : there are no images, or nothing lies outside the subspace.
        """
        width = data["features"].shape[1]
        origin = np.linalg.lstsq(head.weight.astype(np.float64), -head.bias.astype(np.float64), rcond=None)[0]
        scatter = np.zeros((width, width))
        for chunk in data["features"].chunks():
            rows = chunk - origin
            scatter += rows.T @ rows
        directions = np.linalg.eigh(scatter)[1]
        rest = np.zeros(width + 1)
        for chunk in data["features"].chunks():
            squares = np.square((chunk - origin) @ directions)
            rest[1:] += np.sqrt(np.cumsum(squares, axis=1, out=squares), out=squares).sum(axis=0)
        tops = sum(chunk.max(axis=1).sum(dtype=np.float64) for chunk in data["logits"].chunks())
        state = Subspace(origin, directions, rest, float(tops))
        self._outside(state)
        return state

    def _outside(self, state: Subspace) -> int:
        """Return the number of directions outside the subspace."""
        width = len(state.origin)
        kept = self.dim if self.dim < width else width // 2
        if not state.rest[width - kept] > 1e-12 * state.rest[-1]:  # what eigenvectors leave of nothing
            raise DataError(f"training features have nothing outside {kept} of {width} dimensions")
        return width - kept

    def score(self, state: Subspace, data: Arrays) -> Array:
        """Return the energy less the virtual logit."""
        return self.score_each([self], state, data)[0]

    @staticmethod
    def score_each(several: Sequence[ViM], state: Subspace, data: Arrays) -> list[Array]:
        """Return the scores by each dimension, of one projection."""
        first = [one._outside(state) for one in several]
        lengths_outside = state.residuals(np.asarray(data["features"]), first)
        own = energy(data["logits"])
        return [
            own - state.tops / state.rest[number] * length
            for number, length in zip(first, lengths_outside, strict=True)
        ]
