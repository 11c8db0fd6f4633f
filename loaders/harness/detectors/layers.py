"""Detectors on several layers of a network.

``layers``: names of layers joined by ``+``; by default the network's stages, the last layer of each
resolution.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.lazy import need
from wordnet_splits.metrics import auroc

from ..data.arrays import Array, Arrays, ArrayView, FittedArrays, Head
from ..data.parameters import parameters
from .class_means import Gaussians, canonical, moments
from .registry import PAPERS, FitOn, register
from .softmax import log_sum_exp, logits_of

STAGES = "stages"
MEANS, SUMS = "stages[of={layers},statistic=mean]", "stages[of={layers},statistic=sum]"
GRAM, RANKFEAT = "gram[of={layers},powers={powers}]", "rankfeat[of={layers}]/logits"
STEP = "mahalanobis_step[state={key},eps={eps:g}]"


class Bounds(NamedTuple):
    """Least and greatest values by predicted class (K, powers, C); mean deviation of ID val images."""

    least: Array
    greatest: Array
    usual: float = 1.0

    def deviation(self, rows: Array, predicted: Array) -> Array:
        """Return by how much (n,) rows (n, powers, C) exceed the bounds of the predicted class."""
        least, greatest = self.least[predicted], self.greatest[predicted]
        below = np.maximum(least - rows, 0) / np.abs(least + TINY)
        above = np.maximum(rows - greatest, 0) / np.abs(greatest + TINY)
        return np.asarray((below + above).sum(axis=(1, 2), dtype=np.float64))


TINY = 1e-6  # keeps a relative deviation from a bound of 0 finite, as in the authors' code


@register(paper=PAPERS["sastry2020"], needs=("logits", GRAM), fit_on=("train", "val"))
@parameters
class Gram:
    """Minus the deviation of Gram matrices from their range on training images of the predicted class.

    Orders 1 to ``powers``; each layer's deviation is divided by its mean on ID validation images.
    """

    powers: PositiveInt = 5
    layers: str = STAGES

    def fit(self, data: Mapping[str, Arrays], head: Head | None) -> dict[str, Bounds]:
        """Return the bounds of every layer; a class that is never predicted has the bounds of all classes."""
        train, val = data["train"], data["val"]
        classes = train["logits"].shape[1]
        fitted = {}
        for layer, view in train.under(self._unit).items():
            least = np.full((classes, *view.shape[1:]), np.inf, np.float32)
            greatest = -least
            for chunk, predicted in _with_classes(train, view):
                for k in np.unique(predicted):
                    rows = chunk[predicted == k]
                    least[k] = np.minimum(least[k], rows.min(axis=0))
                    greatest[k] = np.maximum(greatest[k], rows.max(axis=0))
            unseen = np.isinf(least).any(axis=(1, 2))
            least[unseen], greatest[unseen] = least.min(axis=0), greatest.max(axis=0)
            bounds = Bounds(least, greatest)
            own_val = val.under(self._unit)[layer]
            deviations = [
                bounds.deviation(chunk, predicted) for chunk, predicted in _with_classes(val, own_val)
            ]
            usual = float(np.concatenate(deviations).mean()) if deviations else 0.0
            fitted[layer] = bounds._replace(usual=usual or 1.0)
        return fitted

    def score(self, state: dict[str, Bounds], data: Arrays) -> Array:
        """Return minus the sum of the layers' deviations."""
        predicted = np.asarray(data["logits"]).argmax(axis=1)
        total = np.zeros(data.n)
        for layer, view in data.under(self._unit).items():
            total -= state[layer].deviation(np.asarray(view), predicted) / state[layer].usual
        return total

    @property
    def _unit(self) -> str:
        return GRAM.format(layers=self.layers, powers=self.powers)


def _with_classes(data: Arrays, view: ArrayView) -> Sequence[tuple[Array, Array]]:
    chunks = zip(view.chunks(), data["logits"].chunks(), strict=True)
    return [(chunk, np.asarray(logits).argmax(axis=1)) for chunk, logits in chunks]


class Layers(NamedTuple):
    """Gaussians of every layer, and mean and spread of its confidence on ID validation images."""

    gaussians: Mapping[str, Gaussians]
    arrays: FittedArrays
    usual: Mapping[str, tuple[float, float]]


@register("mdsens", paper=PAPERS["lee2018"], needs=(MEANS, "labels"), fit_on=("train", "val"))
@parameters
class MahalanobisEnsemble:
    """Sum over layers of the Mahalanobis confidence after a step that raises it, in the layer's units.

    A layer's confidence is measured in standard deviations from its mean on ID validation images, so weights
    are computed without OOD images. (The authors fit them to OOD or adversarial images.) eps = 0 omits the
    step.
    """

    eps: NonNegativeFloat = 0.0014
    layers: str = STAGES

    def fit(self, data: Mapping[str, Arrays], head: Head | None) -> Layers:
        """Return the Gaussians of the mean maps of training images, layer by layer."""
        labels = np.asarray(data["train"]["labels"])
        means = data["train"].under(MEANS.format(layers=self.layers))
        gaussians = {layer: moments(view, labels).within() for layer, view in means.items()}
        parts = {
            f"{k}/{name}": array
            for k, gaussian in gaussians.items()
            for name, array in gaussian._asdict().items()
        }
        return Layers(gaussians, FittedArrays(parts), {})

    def probes(self, state: Layers) -> Sequence[Any]:
        """Return the probe of the step, which uses the Gaussians; none without a step."""
        if not self.eps:
            return ()
        from ..probes import MahalanobisStep  # imports torch

        return (MahalanobisStep(state.arrays, self.eps),)

    def calibrate(self, state: Layers, data: Arrays) -> Layers:
        """Return the state with every layer's mean confidence and its spread on ID validation images."""
        usual = {
            layer: (float(c.mean()), float(c.std()) or 1.0) for layer, c in self._each(state, data).items()
        }
        return state._replace(usual=usual)

    def score(self, state: Layers, data: Arrays) -> Array:
        """Return the sum of the layers' confidences."""
        each = self._each(state, data)
        return np.asarray(sum((each[k] - mean) / spread for k, (mean, spread) in state.usual.items()))

    def _each(self, state: Layers, data: Arrays) -> dict[str, Array]:
        if self.eps:
            stepped = data.under(STEP.format(key=state.arrays.key, eps=self.eps))
            return {layer: np.asarray(view, dtype=np.float64) for layer, view in stepped.items()}
        means = data.under(MEANS.format(layers=self.layers))
        return {
            layer: np.concatenate([-gaussian.distances(rows).min(axis=1) for rows in means[layer].chunks()])
            for layer, gaussian in state.gaussians.items()
        }


@register("rankfeat", paper=PAPERS["song2022"], needs=(RANKFEAT,))
@parameters
class RankFeat:
    """Energy after the greatest singular component of the maps is taken off, at the last two stages."""

    T: PositiveFloat = 1.0
    layers: str = STAGES

    def score(self, state: None, data: Arrays) -> Array:
        """Return T log(sum of exp(z/T)) of the logits averaged over the layers."""
        return np.asarray(self.T * log_sum_exp(self._logits(data) / self.T))

    def predict(self, state: None, data: Arrays) -> Arrays:
        """Return the logits averaged over the layers."""
        return Arrays.of(logits=self._logits(data))

    def _logits(self, data: Arrays) -> Array:
        return logits_of(data, RANKFEAT.format(layers=self.layers))[0]


class OneClass(NamedTuple):
    """The layer, mean and spread (C,) of its sums over positions, and the support vector machine.

    ``kernel_map`` is Nystroem's map to the space of a linear machine; None for the exact kernel.
    """

    layer: str
    mean: Array
    spread: Array
    machine: Any
    kernel_map: Any = None

    def confidence(self, sums: Array) -> Array:
        """Return the signed distance (n,) from the boundary, positive inside."""
        standardised = (sums - self.mean) / self.spread
        mapped = standardised if self.kernel_map is None else self.kernel_map.transform(standardised)
        return np.asarray(self.machine.decision_function(mapped))


@register("oodl", paper=PAPERS["abdelzad2019"], needs=(SUMS,), fit_on=("train", "val", "ood-val"))
@parameters
class OODL:
    """A one-class support vector machine on the maps of one layer, summed over positions.

    The layer with the greatest AUROC of ID against OOD validation images is used; the authors choose it on an
    OOD test set. StandardScaler and OneClassSVM(nu, rbf, gamma="scale") follow the authors' code and need
    scikit-learn. With ``components`` > 0 and more than ``above`` images to learn from, that many components
    approximate the same kernel (Nystroem), and the machine is linear (SGDOneClassSVM): time grows with the
    images and not with their square. ``images = "val"`` learns from the ID validation images, for benchmarks
    without training images (`places-*`, as Recalcati et al.); the layer is then chosen on the images that it
    learned from.
    """

    nu: Annotated[float, Field(gt=0, le=1)] = 0.001
    layers: str = STAGES
    components: NonNegativeInt = 0
    above: NonNegativeInt = 10_000
    images: Literal["train", "val"] = "train"

    @property
    def splits(self) -> tuple[FitOn, ...]:
        """The split to learn from, and the splits that the layer is chosen on."""
        return ("val", "ood-val") if self.images == "val" else ("train", "val", "ood-val")

    def fit(self, data: Mapping[str, Arrays], head: Head | None) -> OneClass:
        """Return the machine of the selected layer."""
        need("sklearn", "detectors", where="detector oodl")
        unit = SUMS.format(layers=self.layers)
        machines = [self._machine(layer, view) for layer, view in data[self.images].under(unit).items()]
        if len(machines) == 1:
            return machines[0]
        inside, outside = (data[split].under(unit) for split in ("val", "ood-val"))

        def separation(machine: OneClass) -> float:
            id_scores, ood_scores = (
                np.concatenate([machine.confidence(rows) for rows in side[machine.layer].chunks()])
                for side in (inside, outside)
            )
            return float(auroc(id_scores, ood_scores))

        return max(machines, key=separation)

    def score(self, state: OneClass, data: Arrays) -> Array:
        """Return the signed distance from the boundary of the selected layer."""
        return state.confidence(np.asarray(data.under(SUMS.format(layers=self.layers))[state.layer]))

    def _machine(self, layer: str, view: ArrayView) -> OneClass:
        if not len(view):
            raise DataError("there is no training image to learn from")
        sums = canonical(view).astype(np.float64)  # the solver depends on the order of rows
        mean, spread = sums.mean(axis=0), sums.std(axis=0)
        spread[spread == 0] = 1.0
        rows = (sums - mean) / spread
        if self.components and len(rows) > self.above:
            return OneClass(layer, mean, spread, *self._approximate(rows))
        from sklearn.svm import OneClassSVM

        machine = OneClassSVM(nu=self.nu, kernel="rbf", gamma="scale")
        return OneClass(layer, mean, spread, machine.fit(rows))

    def _approximate(self, rows: Array) -> tuple[Any, Any]:
        """Return the linear machine and the map of the kernel, both with seed 0."""
        from sklearn.kernel_approximation import Nystroem
        from sklearn.linear_model import SGDOneClassSVM

        if self.components > len(rows):
            problem = (
                f"components must be at most the {len(rows):,} images to learn from, got {self.components:,}"
            )
            raise DataError(problem)
        gamma = 1 / (rows.shape[1] * (rows.var() or 1.0))  # "scale"
        kernel_map = Nystroem(gamma=gamma, n_components=self.components, random_state=0)
        machine = SGDOneClassSVM(nu=self.nu, tol=1e-4, random_state=0)
        return machine.fit(kernel_map.fit_transform(rows)), kernel_map
