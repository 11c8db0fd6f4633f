"""Losses of the papers as functions on logits and labels; label -1 marks a negative (outlier) sample.

`choices.LOSSES` declares how each treats negatives.

References
----------
Palechor, Bhoumik and Guenther, Large-Scale Open-Set Classification Protocols for ImageNet, WACV 2023,
eq. 1-5.
Hendrycks, Mazeika and Dietterich, Deep Anomaly Detection with Outlier Exposure, ICLR 2019.
Liu, Wang, Owens and Li, Energy-based Out-of-distribution Detection, NeurIPS 2020, eq. 8-9.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional

from wordnet_splits.base.errors import DataError

from ..checkpoints.choices import LOSSES

Criterion = Callable[[Tensor, Tensor], Tensor]
"""(logits (n, C), labels (n,)) -> scalar."""

NEGATIVE = -1


def softmax_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Plain cross-entropy over known samples, S (Palechor eq. 1-3 with every weight 1).

    Parameters
    ----------
    logits : (n, K) float. labels : (n,) int64 in 0..K-1.
    """
    return functional.cross_entropy(logits, labels)


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
    """Weighted cross-entropy with a background class for the negatives, BG (Palechor eq. 1, 3, 4).

    The sum is divided by the number of samples, as eq. 1 has it; ``torch``'s weighted mean divides by the sum
    of the weights instead, which is the same over a whole epoch but not within a batch.

    Parameters
    ----------
    logits : (n, K + 1) float, the background column last. labels : (n,) int64, -1 for negatives.
    weights : (K + 1,) from `background_weights`.
    """
    background = logits.shape[1] - 1
    targets = torch.where(labels == NEGATIVE, background, labels)
    return functional.cross_entropy(logits, targets, weight=weights.to(logits), reduction="sum") / len(labels)


def entropic_open_set_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy to one-hot targets for knowns, to 1/C for negatives, EOS (Palechor eq. 1, 3, 5).

    Every weight is 1, the negatives' included.

    Parameters
    ----------
    logits : (n, K) float. labels : (n,) int64, -1 for negatives.
    """
    log_y = functional.log_softmax(logits, dim=1)
    is_known = labels != NEGATIVE
    label_log_y = log_y.gather(1, labels.clamp(min=0)[:, None])[:, 0]
    return -torch.where(is_known, label_log_y, log_y.mean(1)).mean()


def outlier_exposure_loss(logits: Tensor, labels: Tensor, *, weight: float = 0.5) -> Tensor:
    """Cross-entropy of the knowns + weight x cross-entropy of the outliers to the uniform distribution (OE).

    Each term is the mean over its own samples.

    Parameters
    ----------
    logits : (n, K) float. labels : (n,) int64, -1 for outliers. weight : lambda.
    """
    known_logits, outlier_logits = _split_negatives(logits, labels)
    uniform = -functional.log_softmax(outlier_logits, dim=1).mean(1)
    return functional.cross_entropy(known_logits, labels[labels != NEGATIVE]) + weight * uniform.mean()


def energy(logits: Tensor) -> Tensor:
    """Free energy (n,) = -log sum exp of the logits (n, K) at temperature 1; lower for knowns (Liu eq. 4)."""
    return -torch.logsumexp(logits, dim=1)


def energy_loss(
    logits: Tensor, labels: Tensor, *, m_in: float = -23.0, m_out: float = -5.0, weight: float = 0.1
) -> Tensor:
    """Cross-entropy + weight x squared hinges of the energies beyond their margins (Liu eq. 8-9).

    Knowns should have an energy below ``m_in``, outliers above ``m_out``; each hinge is the mean over its own
    samples. Defaults are Liu's for CIFAR; Kim et al. select -27 and -3.

    Parameters
    ----------
    logits : (n, K) float. labels : (n,) int64, -1 for outliers.
    """
    known_logits, outlier_logits = _split_negatives(logits, labels)
    above = functional.relu(energy(known_logits) - m_in).square().mean()
    below = functional.relu(m_out - energy(outlier_logits)).square().mean()
    return functional.cross_entropy(known_logits, labels[labels != NEGATIVE]) + weight * (above + below)


def _split_negatives(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Return the logits of the knowns and of the negatives; a mean over an empty set would be NaN."""
    is_known = labels != NEGATIVE
    count = int(is_known.sum())
    if count in (0, len(labels)):
        missing = "known" if count == 0 else "negative"
        raise DataError(
            f"a batch without a {missing} sample",
            hint="this loss needs both; negatives are the samples labelled -1",
        )
    return logits[is_known], logits[~is_known]


def known_probabilities(logits: Tensor, *, background: bool) -> Tensor:
    """Softmax over all columns, the background column (last) dropped afterwards: (n, K)."""
    probabilities = torch.softmax(logits, dim=1)
    return probabilities[:, :-1] if background else probabilities


def bind_loss(name: str, counts: Tensor, parameters: Mapping[str, float]) -> Criterion:
    """Return the loss of a name in `choices.LOSSES` as a function of logits and labels.

    Parameters
    ----------
    counts : (C,) training samples of each output; class weights are computed from them.
    parameters : as set by the recipe, see `choices.LossKind`.
    """
    kind = LOSSES[name]
    function = globals()[kind.function] if isinstance(kind.function, str) else kind.function
    weights = {"weights": background_weights(counts)} if kind.background else {}
    return partial(function, **weights, **parameters)
