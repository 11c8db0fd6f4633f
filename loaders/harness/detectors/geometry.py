"""Detectors on features relative to the head's weights, class patterns or the training subspace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from pydantic import NonNegativeFloat, PositiveInt
from scipy.spatial.distance import cdist

from wordnet_splits.base.errors import DataError

from ..data.arrays import Array, Arrays, Head
from ..data.parameters import parameters
from .class_means import class_means, mean_of
from .registry import PAPERS, SharedScores, register
from .softmax import at_least_single, energy, gaps, lengths, logits_of, products, sums


@register(paper=PAPERS["zhang2023"], needs=("features", "logits", "labels"), fit_on="train", threads=True)
@parameters
class SHE:
    """Inner product with the mean features of the predicted class over its correct training images.

    A class that is never predicted correctly has the mean of all its training images.
    """

    def fit(self, data: Arrays, head: Head | None) -> Array:
        """Return the patterns (K, D) float32 of the classes."""
        labels = np.asarray(data["labels"])
        if not (labels >= 0).any():
            raise DataError("no training image has a label, so there are no class patterns")
        classes = data["logits"].shape[1]
        predicted = np.concatenate([np.asarray(chunk).argmax(axis=1) for chunk in data["logits"].chunks()])
        patterns, correct = class_means(data["features"], np.where(predicted == labels, labels, -1), classes)
        if not correct.all():
            without_pattern = np.where(correct[labels] == 0, labels, -1)
            means, _ = class_means(data["features"], without_pattern, classes)
            patterns = np.where(correct[:, None] > 0, patterns, means)
        return patterns.astype(np.float32)

    def score(self, state: Array, data: Arrays) -> Array:
        """Return the inner product with the pattern of the predicted class."""
        predicted = np.asarray(data["logits"]).argmax(axis=1)
        return products(at_least_single(data["features"]), state[predicted])


class Boundaries(NamedTuple):
    """The mean (D,) of training features, and 1 / distance of the weights of two classes (K, K).

    Both are float32; pairs of classes with equal weights have 0.
    """

    centre: Array
    near: Array


@register("fdbd", paper=PAPERS["liu2024"], needs=("features", "logits", "head"), fit_on="train", threads=True)
@parameters
class FDBD:
    """Mean distance to the decision boundaries, relative to that from the training images' mean."""

    def fit(self, data: Arrays, head: Head) -> Boundaries:
        """Return the training mean and the inverse distances of the classes' weights."""
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


class NCIState(NamedTuple):
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
@parameters
class NCI(SharedScores):
    """Projection of the predicted class's weights on the centred features, plus alpha |features|_1."""

    alpha: NonNegativeFloat = 0.001

    def fit(self, data: Arrays, head: Head) -> NCIState:
        """Return the training mean."""
        return NCIState(mean_of(data["features"]).astype(np.float32), head)

    @staticmethod
    def score_each(detectors: Sequence[NCI], state: NCIState, data: Arrays) -> list[Array]:
        """Return the scores for each alpha; projection and norm are computed once."""
        features = at_least_single(data["features"])
        weights = state.head.weight[np.asarray(data["logits"]).argmax(axis=1)]
        centred = features - state.centre
        along = products(centred, weights)
        length = lengths(centred)
        projection = np.divide(along, length, out=np.zeros_like(along), where=length > 0)
        norm = sums(np.abs(features))
        return [projection + detector.alpha * norm for detector in detectors]


AMPLE = 0.05
"""Smallest length, as a share of the features' length, that single precision computes to six digits."""


class Subspace(NamedTuple):
    """The principal directions of the training features around the origin, in order of increasing variance.

    Attributes
    ----------
    origin : (D,) the features that give equal logits.
    directions : (D, D) orthonormal columns.
    rest : (D + 1,) sum over the training images of the length of their features in the first d directions.
    tops : sum over the training images of the maximum logit.
    """

    origin: Array
    directions: Array
    rest: Array
    tops: float

    def residuals(self, features: Array, numbers: Sequence[int]) -> list[Array]:
        """Return, for each of ``numbers``, the lengths (n,) float64 of features in so many first directions.

        Single precision is used for a number that is at most half of all directions, if these directions hold
        a sufficient share of the training features' length. Each such number has a separate product, so that
        results do not depend on the other numbers. The rest is computed in float64, from the smaller of the
        two sets of directions.
        """
        single_numbers = {
            number
            for number in numbers
            if 2 * number <= len(self.origin) and self.rest[number] > AMPLE * self.rest[-1]
        }
        single = at_least_single(features) - self.origin.astype(np.float32) if single_numbers else features
        residuals = {
            number: lengths(single @ self.directions[:, :number].astype(np.float32))
            for number in single_numbers
        }
        if others := sorted(set(numbers) - single_numbers):
            residuals |= self._small(features - self.origin, others)
        return [residuals[number] for number in numbers]

    def _small(self, rows: Array, numbers: Sequence[int]) -> dict[int, Array]:
        least, most = numbers[0], numbers[-1]
        if most <= len(self.origin) - least:
            points = rows @ self.directions[:, :most]
            return {number: lengths(points[:, :number]) for number in numbers}
        points = rows @ self.directions[:, least:]
        whole = np.square(lengths(rows))
        inside = {number: np.square(lengths(points[:, number - least :])) for number in numbers}
        return {number: np.sqrt(np.maximum(whole - length, 0.0)) for number, length in inside.items()}


@register(
    "vim",
    paper=PAPERS["wang2022"],
    needs=("features", "logits", "head"),
    fit_on="train",
    sweep={"dim": (256, 1000)},
    fit_parameters=(),
    threads=True,
)
@parameters
class ViM(SharedScores):
    """Energy less the scaled length of the features outside the training data's main subspace.

    That length is the virtual logit. ``dim`` is the dimension of the main subspace; if there are at most
    ``dim`` features, half their number is used.
    """

    dim: PositiveInt = 256

    def fit(self, data: Arrays, head: Head) -> Subspace:
        """Return the directions of the training images' features around the point of equal logits."""
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
        """Return the number of directions outside the main subspace."""
        width = len(state.origin)
        dimension = self.dim if self.dim < width else width // 2
        if not state.rest[width - dimension] > 1e-12 * state.rest[-1]:  # rounding error
            raise DataError(f"training features have nothing outside {dimension} of {width} dimensions")
        return width - dimension

    @staticmethod
    def score_each(detectors: Sequence[ViM], state: Subspace, data: Arrays) -> list[Array]:
        """Return the scores for each dimension; the projection is computed once."""
        numbers = [detector._outside(state) for detector in detectors]
        lengths_outside = state.residuals(np.asarray(data["features"]), numbers)
        energies = energy(data["logits"])
        return [
            energies - state.tops / state.rest[number] * length
            for number, length in zip(numbers, lengths_outside, strict=True)
        ]
