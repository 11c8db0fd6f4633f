"""Networks with a second head that answers how sure they are: ConfBranch.

References
----------
DeVries and Taylor, Learning Confidence for Out-of-Distribution Detection in Neural Networks, 2018.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import torch
from pydantic import Field, NonNegativeFloat
from torch import Tensor, nn
from torch.nn import functional

from .interface import BACKBONE, HEAD, Batch, Data, Method, Part, State, Term, Terms, declare
from .network import Network
from .registry import register_method


@register_method("confbranch")
@dataclass(frozen=True)
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
        """Begin with the given weight."""
        state["weight"] = self.weight

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        """Return the negative log-likelihood of the hinted predictions, and that of the confidence."""
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
