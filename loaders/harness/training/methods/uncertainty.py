"""Methods that learn how certain a prediction is: ConfBranch, evidential deep learning, correctness ranking.

References
----------
DeVries and Taylor, Learning Confidence for Out-of-Distribution Detection in Neural Networks, 2018.
Sensoy, Kaplan and Kandemir, Evidential Deep Learning to Quantify Classification Uncertainty, NeurIPS 2018.
Moon, Kim, Shin and Hwang, Confidence-Aware Learning for Deep Neural Networks, ICML 2020.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Literal

import torch
from pydantic import Field, NonNegativeFloat, NonNegativeInt
from torch import Tensor, nn
from torch.nn import functional

from ...data.parameters import parameters
from .interface import BACKBONE, HEAD, Batch, Data, Method, Part, State, Term, Terms, cross_entropy, declare
from .network import Network
from .registry import register_method

Activation = Literal["exp", "softplus", "relu"]
LARGEST_LOGIT = 10.0
"""Largest absolute logit z in the evidence exp(z) of Kim et al."""


@register_method("confbranch")
@parameters
class ConfBranch(Method):
    """A confidence c per image: NLL of c p + (1 - c) y for half of the images, and -log c (eq. 2-6).

    The weight of -log c is divided by 1.01 after a step with a mean below ``budget``, by 0.99 otherwise.
    """

    weight: NonNegativeFloat = 0.1
    budget: Annotated[float, Field(gt=0, le=1)] = 0.3
    eps: Annotated[float, Field(gt=0, lt=1)] = 1e-12

    parts = declare(task=Part((BACKBONE, HEAD, "confidence")), confidence=Part((BACKBONE, "confidence")))
    outputs = ("confidence",)

    def heads(self, model: Network, classes: int) -> Mapping[str, nn.Module]:
        """Return the confidence branch."""
        return {"confidence": nn.Linear(model.width, 1)}

    def setup(self, model: Network, data: Data, state: State) -> None:
        """Set the initial weight."""
        state["weight"] = self.weight

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        """Return the negative log-likelihood of the hinted predictions, and -log c."""
        features, logits = model(batch.images)
        confidence = torch.sigmoid(model.heads["confidence"](features))
        hinted = torch.rand(len(batch), 1, generator=state.generator).to(logits.device) < 0.5
        c = torch.where(hinted, confidence, 1.0)
        target = functional.one_hot(batch.labels, logits.shape[1])
        probabilities = c * torch.softmax(logits, 1) + (1 - c) * target
        task = functional.nll_loss(probabilities.clamp_min(self.eps).log(), batch.labels, reduction="none")
        loss = -confidence[:, 0].clamp_min(self.eps).log()
        weight = state["weight"]
        state["weight"] = weight / (1.01 if float(loss.detach().mean()) < self.budget else 0.99)
        return {"task": task, "confidence": Term(loss, weight)}

    def confidences(self, model: Network, images: Tensor) -> Mapping[str, Tensor]:
        """Return the confidence, before the sigmoid: the same order without saturation."""
        return {"confidence": model.heads["confidence"](model(images)[0])[:, 0]}


@register_method("edl")
@parameters
class Edl(Method):
    """Type II maximum likelihood of a Dirichlet distribution, and its divergence from the uniform one (EDL).

    The evidence of a class is the ``activation`` of its logit, exp(z) with z in [-10, 10] as in Kim et al.;
    alpha is the evidence + 1, and S its sum. The likelihood is, by ``objective``, Sensoy et al.'s eq. 3
    (``log``: log S - log alpha_y), the expected cross-entropy of eq. 4 (``digamma``), or the expected squared
    error of eq. 5 (``mse``). The divergence is computed from alpha without the evidence of the label; its
    weight rises to ``weight`` over ``annealing`` epochs. The confidence ``evidence`` is log S.
    """

    weight: NonNegativeFloat = 1.0
    annealing: NonNegativeInt = 0
    objective: Literal["log", "digamma", "mse"] = "log"
    activation: Activation = "exp"

    parts = declare(likelihood=Part(), divergence=Part())
    outputs = ("evidence",)

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        """Return the objective and the divergence."""
        alpha = dirichlet(model.logits(batch.images), self.activation)
        label = functional.one_hot(batch.labels, alpha.shape[1])
        share = min(1.0, state.epoch / self.annealing) if self.annealing else 1.0
        divergence = divergence_from_uniform(label + (1 - label) * alpha)
        return {"likelihood": self.risk(alpha, label), "divergence": Term(divergence, self.weight * share)}

    def confidences(self, model: Network, images: Tensor) -> Mapping[str, Tensor]:
        """Return log S."""
        return {"evidence": dirichlet(model.logits(images), self.activation).sum(1).log()}

    def risk(self, alpha: Tensor, label: Tensor) -> Tensor:
        """Return the objective (n,) of alpha (n, K) and one-hot labels (n, K)."""
        total = alpha.sum(1)
        if self.objective == "mse":
            mean = alpha / total[:, None]
            return ((label - mean).square() + mean * (1 - mean) / (total[:, None] + 1)).sum(1)
        function = torch.log if self.objective == "log" else torch.digamma
        return function(total) - function((label * alpha).sum(1))


def dirichlet(logits: Tensor, activation: Activation) -> Tensor:
    """Return alpha (n, K), the evidence of the logits + 1."""
    if activation == "exp":
        return logits.clamp(-LARGEST_LOGIT, LARGEST_LOGIT).exp() + 1
    return (functional.softplus(logits) if activation == "softplus" else functional.relu(logits)) + 1


def divergence_from_uniform(alpha: Tensor) -> Tensor:
    """Return KL(Dir(alpha) || Dir(1)) (n,) of alpha (n, K)."""
    total = alpha.sum(1)
    normaliser = torch.lgamma(total) - math.lgamma(alpha.shape[1]) - torch.lgamma(alpha).sum(1)
    return normaliser + ((alpha - 1) * (torch.digamma(alpha) - torch.digamma(total)[:, None])).sum(1)


@register_method("crl")
@parameters
class Crl(Method):
    """Cross-entropy, and a hinge on pairs whose confidences are not ordered as their histories (CRL, eq. 3).

    The history of an image is the share of past epochs that classified it correctly; pairs are neighbours in
    the batch, and confidence is the maximum softmax.

    Attributes
    ----------
    formula : ``code`` rescales histories from the least of all images, as 0, to 1. ``kim``, the code of Kim
        et al., has shares of all epochs, past and future, and pairs of equal histories cost the difference of
        their confidences.
    """

    weight: NonNegativeFloat = 1.0
    formula: Literal["paper", "code", "kim"] = "paper"

    parts = declare(cross_entropy=Part(), ranking=Part(depends="order"))

    def setup(self, model: Network, data: Data, state: State) -> None:
        """Set the history of every image to zero."""
        state["correct"] = torch.zeros(len(data.labels), device=data.labels.device)
        state["passes"] = torch.zeros(len(data.labels), device=data.labels.device)

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        """Return both losses, and record which predictions are correct."""
        logits = model.logits(batch.images)
        history = self.history(state, batch.index)
        difference = history - history.roll(-1)
        confidence = torch.softmax(logits, 1).amax(1)
        gap = confidence - confidence.roll(-1)
        ranking = functional.relu(difference.abs() - difference.sign() * gap)
        if self.formula == "kim":
            ranking = torch.where(difference == 0, gap.abs(), ranking)
        state["correct"][batch.index] += (logits.argmax(1) == batch.labels).to(state["correct"])
        state["passes"][batch.index] += 1
        return {
            "cross_entropy": cross_entropy(logits, batch.labels),
            "ranking": Term(ranking, self.weight),
        }

    def history(self, state: State, index: Tensor) -> Tensor:
        """Return the history (n,) of the images of an index, 0 to 1."""
        least = state["correct"].min() if self.formula == "code" else 0
        # 0 if every image was classified correctly in every epoch, where the authors' code divides 0 by 0
        history = (state["correct"][index] - least) / (state["passes"][index] - least).clamp_min(1)
        return history * (state.epoch / state.epochs) if self.formula == "kim" else history
