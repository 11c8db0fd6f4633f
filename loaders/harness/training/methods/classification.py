"""Losses of the logits alone: cross-entropy, background class, entropic open set, OE, energy, LogitNorm.

References
----------
Palechor, Bhoumik and Guenther, Large-Scale Open-Set Classification Protocols for ImageNet, WACV 2023,
eq. 1-5.
Hendrycks, Mazeika and Dietterich, Deep Anomaly Detection with Outlier Exposure, ICLR 2019.
Liu, Wang, Owens and Li, Energy-based Out-of-distribution Detection, NeurIPS 2020, eq. 8-9.
Wei, Xie, Cheng, Feng, An and Li, Mitigating Neural Network Overconfidence with Logit Normalization,
ICML 2022.
"""

from __future__ import annotations

import torch
from pydantic import FiniteFloat, NonNegativeFloat, PositiveFloat
from torch import Tensor
from torch.nn import functional

from wordnet_splits.base.errors import DataError

from ...data.parameters import parameters
from .interface import OUTLIER, Batch, Data, Method, Part, State, Term, Terms, cross_entropy, declare
from .network import Network
from .registry import register_method


@register_method("softmax")
@parameters
class Softmax(Method):
    """Plain cross-entropy, S (Palechor eq. 1-3 with every weight 1)."""

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        """Return the cross-entropy."""
        return {"cross_entropy": cross_entropy(model.logits(batch.images), batch.labels)}


@register_method("background")
@parameters
class Background(Method):
    """Weighted cross-entropy with a background class for the outliers, BG (Palechor eq. 1, 3, 4).

    The sum is divided by the number of samples, as eq. 1 has it; ``torch``'s weighted mean divides by the sum
    of the weights instead, which is the same over a whole epoch but not within a batch.
    """

    outliers = "mixed"
    background = True

    def setup(self, model: Network, data: Data, state: State) -> None:
        """Compute the weight of each class, the background class last."""
        counts = torch.bincount(data.labels, minlength=len(data.classes))
        state["weights"] = background_weights(torch.cat([counts, counts.new_tensor([data.n_outliers])]))

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        """Return the weighted cross-entropy."""
        return {"cross_entropy": background_loss(model.logits(batch.images), batch.labels, state["weights"])}


@register_method("entropic-open-set")
@parameters
class EntropicOpenSet(Method):
    """Cross-entropy to one-hot targets for ID images, to 1/C for outliers, EOS (Palechor eq. 1, 3, 5).

    Every weight is 1, the outliers' included.
    """

    outliers = "mixed"

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        """Return the cross-entropy."""
        return {"cross_entropy": entropic_open_set_loss(model.logits(batch.images), batch.labels)}


@register_method("outlier-exposure")
@parameters
class OutlierExposure(Method):
    """Cross-entropy + weight x cross-entropy of the outliers to the uniform distribution (OE)."""

    weight: NonNegativeFloat = 0.5

    outliers = "beside"
    parts = declare(cross_entropy=Part(), uniform=Part())

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        """Return the cross-entropy of the ID images and the uniform term of the outliers."""
        known, outliers = split_outliers(model.logits(batch.images), batch.labels)
        return {
            "cross_entropy": cross_entropy(known, batch.labels[batch.known]),
            "uniform": Term(uniform_cross_entropy(outliers), self.weight),
        }


@register_method("energy")
@parameters
class Energy(Method):
    """Cross-entropy + weight x squared hinges of the energies beyond their margins (Liu eq. 8-9).

    ID images should have an energy below ``m_in``, outliers above ``m_out``. Defaults are Liu's for CIFAR;
    Kim et al. select -27 and -3.
    """

    m_in: FiniteFloat = -23.0
    m_out: FiniteFloat = -5.0
    weight: NonNegativeFloat = 0.1

    outliers = "beside"
    parts = declare(cross_entropy=Part(), energy_in=Part(), energy_out=Part())

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        """Return the cross-entropy and hinge of the ID images, and the hinge of the outliers."""
        known, outliers = split_outliers(model.logits(batch.images), batch.labels)
        above = functional.relu(energy(known) - self.m_in).square()
        below = functional.relu(self.m_out - energy(outliers)).square()
        return {
            "cross_entropy": cross_entropy(known, batch.labels[batch.known]),
            "energy_in": Term(above, self.weight),
            "energy_out": Term(below, self.weight),
        }


@register_method("logitnorm")
@parameters
class LogitNorm(Method):
    """Cross-entropy of logits scaled to norm 1 / tau (Wei et al., eq. 7); evaluation does not scale them."""

    tau: PositiveFloat = 0.04

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        """Return the cross-entropy of the normalised logits."""
        logits = functional.normalize(model.logits(batch.images), dim=1, eps=1e-7) / self.tau
        return {"cross_entropy": cross_entropy(logits, batch.labels)}


def background_weights(counts: Tensor) -> Tensor:
    """Weight w_c = N / (C N_c) of each class (Palechor eq. 4).

    Parameters
    ----------
    counts : (C,) training samples N_c of each class, the background class last.

    Raises
    ------
    DataError : a class without samples.
    """
    counts = counts.to(torch.float64)
    if bool((counts <= 0).any()):
        raise DataError(
            f"class {int(counts.argmin())} of {len(counts)} has no training sample",
            hint="class weights need every class, the background class (last) included",
        )
    return (counts.sum() / (len(counts) * counts)).to(torch.float32)


def background_loss(logits: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
    """Weighted cross-entropy (n,) with the outliers in the background class.

    Parameters
    ----------
    logits : (n, K + 1) float, the background column last.
    labels : (n,) int64, -1 for outliers.
    weights : (K + 1,) from `background_weights`.
    """
    targets = torch.where(labels == OUTLIER, logits.shape[1] - 1, labels)
    return functional.cross_entropy(logits, targets, weight=weights.to(logits), reduction="none")


def entropic_open_set_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy (n,) to one-hot targets for ID images, to 1/C for outliers (label -1)."""
    log_y = functional.log_softmax(logits, dim=1)
    label_log_y = log_y.gather(1, labels.clamp(min=0)[:, None])[:, 0]
    return -torch.where(labels != OUTLIER, label_log_y, log_y.mean(1))


def uniform_cross_entropy(logits: Tensor) -> Tensor:
    """Return the cross-entropy (n,) to the uniform distribution over the outputs."""
    return -functional.log_softmax(logits, dim=1).mean(1)


def energy(logits: Tensor) -> Tensor:
    """Free energy (n,) = -log sum exp of the logits (n, K); lower for ID images (Liu eq. 4)."""
    return -torch.logsumexp(logits, dim=1)


def split_outliers(values: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Return the rows of the ID images and of the outliers; a mean over an empty set would be NaN.

    Raises
    ------
    DataError : the batch lacks either.
    """
    known = labels != OUTLIER
    count = int(known.sum())
    if count in (0, len(labels)):
        missing = "known" if count == 0 else "negative"
        raise DataError(
            f"a batch without a {missing} sample",
            hint="this loss needs both; negatives are the samples labelled -1",
        )
    return values[known], values[~known]
