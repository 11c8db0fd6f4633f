"""Features that are changed in training but not in evaluation: T2FNorm, ISH.

References
----------
Regmi, Panthi, Dotel, Gyawali, Stoyanov and Bhattarai, T2FNorm: Train-time Feature Normalization for OOD
Detection in Image Classification, CVPR Workshops 2024.
Xu, Chen, Franchi and Yao, Scaling for Training Time and Post-hoc Out-of-distribution Detection Enhancement,
ICLR 2024.
"""

from __future__ import annotations

from typing import Annotated, Any

import torch
from pydantic import Field, NonNegativeFloat, PositiveFloat
from torch import Tensor
from torch.nn import functional

from ...data.parameters import parameters
from .interface import HEAD, Batch, Method, State, Terms, cross_entropy
from .network import Network
from .registry import register_method


@register_method("t2fnorm")
@parameters
class T2FNorm(Method):
    """Cross-entropy of features scaled to norm 1 / tau (T2FNorm); evaluation does not scale them."""

    tau: PositiveFloat = 0.1

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        """Return the cross-entropy."""
        features = functional.normalize(model(batch.images)[0], dim=1) / self.tau
        return {"cross_entropy": cross_entropy(model.head(features), batch.labels)}


@register_method("ish")
@parameters
class Ish(Method):
    """Cross-entropy whose gradient at the classifier's weights uses pruned, scaled features (ISH).

    The values and the gradients of all other layers equal cross-entropy's. The gradient of the weights is
    g f'^T in place of g f^T, with f' as in the authors' code (`shape_features`).

    Attributes
    ----------
    pruned : share of an image's features that are 0 in f', the smallest ones.
    head_weight_decay : weight decay of the classifier, in place of the recipe's.
    """

    pruned: Annotated[float, Field(ge=0, lt=1)] = 0.85
    head_weight_decay: NonNegativeFloat = 5e-5

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        """Return the cross-entropy."""
        features, logits = model(batch.images)
        plain = features.detach()
        change = model.head(shape_features(plain, self.pruned)) - model.head(plain)
        return {"cross_entropy": cross_entropy(logits + change - change.detach(), batch.labels)}

    def parameter_groups(self, model: Network) -> list[dict[str, Any]]:
        """Return two groups: all other parameters, and the classifier's."""
        groups = model.parameters()
        head = {"params": groups.pop(HEAD), "weight_decay": self.head_weight_decay}
        return [{"params": [parameter for group in groups.values() for parameter in group]}, head]


def shape_features(features: Tensor, pruned: float) -> Tensor:
    """Scale each image's greatest features (n, D) by exp(sum of all / their sum); set its others to 0.

    Features are taken after a ReLU; negative features are ranked by their absolute value.
    """
    values, columns = features.abs().topk(max(int(features.shape[1] * (1 - pruned)), 1), 1)
    scale = features.sum(1, keepdim=True) / values.sum(1, keepdim=True).clamp_min(1e-12)
    return torch.zeros_like(features).scatter(1, columns, values * scale.exp())
