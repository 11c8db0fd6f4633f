"""Methods that learn how sure a prediction is: evidential deep learning, correctness ranking.

References
----------
Sensoy, Kaplan and Kandemir, Evidential Deep Learning to Quantify Classification Uncertainty, NeurIPS 2018.
Moon, Kim, Shin and Hwang, Confidence-Aware Learning for Deep Neural Networks, ICML 2020.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from pydantic import NonNegativeFloat, NonNegativeInt
from torch import Tensor
from torch.nn import functional

from .interface import Batch, Data, Method, Part, State, Term, Terms, cross_entropy, declare
from .network import Network
from .registry import register_method

GREATEST_EVIDENCE = 10.0
"""Bound of logits in Kim et al.'s evidence exp(z)."""


@register_method("edl")
@dataclass(frozen=True)
class Edl(Method):
    """Type II maximum likelihood of a Dirichlet distribution, and its divergence from the uniform one (EDL).

    alpha = exp(z) + 1 with z in [-10, 10], as Kim et al. have it; the loss is log S - log alpha_y (Sensoy et
    al., eq. 3), and the divergence is that of alpha without the evidence of the label (eq. 6). Its weight
    rises to ``weight`` over ``annealing`` epochs. The confidence ``evidence`` is log S.
    """

    weight: NonNegativeFloat = 1.0
    annealing: NonNegativeInt = 0

    parts = declare(likelihood=Part(), divergence=Part())
    outputs = ("evidence",)

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        """Return the negative log-likelihood and the divergence."""
        alpha = dirichlet(model.logits(batch.images))
        label = functional.one_hot(batch.labels, alpha.shape[1])
        likelihood = alpha.sum(1).log() - (label * alpha).sum(1).log()
        share = min(1.0, state.epoch / self.annealing) if self.annealing else 1.0
        divergence = divergence_from_uniform(label + (1 - label) * alpha)
        return {"likelihood": likelihood, "divergence": Term(divergence, self.weight * share)}

    def confidences(self, model: Network, images: Tensor) -> Mapping[str, Tensor]:
        """Return log S."""
        return {"evidence": dirichlet(model.logits(images)).sum(1).log()}


def dirichlet(logits: Tensor) -> Tensor:
    """Return alpha (n, K) = exp(z) + 1, z within [-10, 10]."""
    return logits.clamp(-GREATEST_EVIDENCE, GREATEST_EVIDENCE).exp() + 1


def divergence_from_uniform(alpha: Tensor) -> Tensor:
    """Return KL(Dir(alpha) || Dir(1)) (n,) of alpha (n, K)."""
    total, classes = alpha.sum(1), torch.tensor(float(alpha.shape[1]), device=alpha.device)
    normaliser = torch.lgamma(total) - torch.lgamma(classes) - torch.lgamma(alpha).sum(1)
    return normaliser + ((alpha - 1) * (torch.digamma(alpha) - torch.digamma(total)[:, None])).sum(1)


@register_method("crl")
@dataclass(frozen=True)
class Crl(Method):
    """Cross-entropy, and a hinge on pairs whose confidences are not ordered as their histories (CRL, eq. 3).

    The history of an image is the share of past epochs in which it was predicted rightly; pairs are
    neighbours in the batch, and confidence is the maximum softmax.
    """

    weight: NonNegativeFloat = 1.0

    parts = declare(cross_entropy=Part(), ranking=Part(depends="order"))

    def setup(self, model: Network, data: Data, state: State) -> None:
        """Begin with no right prediction."""
        state["right"] = torch.zeros(len(data.labels), device=data.labels.device)
        state["seen"] = torch.zeros(len(data.labels), device=data.labels.device)

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        """Return both losses, and note which predictions are right."""
        logits = model.logits(batch.images)
        history = state["right"][batch.index] / state["seen"][batch.index].clamp_min(1)
        difference = history - history.roll(-1)
        confidence = torch.softmax(logits, 1).amax(1)
        ranking = functional.relu(difference.abs() - difference.sign() * (confidence - confidence.roll(-1)))
        state["right"][batch.index] += (logits.argmax(1) == batch.labels).to(state["right"])
        state["seen"][batch.index] += 1
        return {
            "cross_entropy": cross_entropy(logits, batch.labels),
            "ranking": Term(ranking, self.weight),
        }
