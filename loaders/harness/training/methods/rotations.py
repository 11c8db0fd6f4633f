"""Methods that rotate images: rotation prediction, and CSI in its two phases.

References
----------
Hendrycks, Mazeika, Kadavath and Song, Using Self-Supervised Learning Can Improve Model Robustness and
Uncertainty, NeurIPS 2019.
Tack, Mo, Jeong and Shin, CSI: Novelty Detection via Contrastive Learning on Distributionally Shifted
Instances, NeurIPS 2020.
Khosla et al., Supervised Contrastive Learning, NeurIPS 2020, eq. 2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from pydantic import NonNegativeFloat, PositiveFloat, PositiveInt
from torch import Tensor, nn
from torch.nn import functional

from wordnet_splits.base.errors import DataError

from ...data.parameters import parameters
from .interface import (
    BACKBONE,
    HEAD,
    Batch,
    Formula,
    Method,
    Part,
    State,
    Term,
    Terms,
    View,
    cross_entropy,
    declare,
)
from .network import Network, evaluation_mode
from .registry import register_method

ROTATIONS = 4
LEAST_SHARE = 1e-8
"""Added to the softmax of a pair before its logarithm in the authors' code of CSI."""


def rotated(images: Tensor) -> Tensor:
    """Return images (n, 3, h, h) by 0, 90, 180 and 270 degrees, one rotation after the other: (4n, 3, h, h).

    Raises
    ------
    DataError : images that are not square.
    """
    if images.shape[2] != images.shape[3]:
        raise DataError(
            f"images of {tuple(images.shape[2:])} cannot be rotated by 90 degrees", hint="take square ones"
        )
    return torch.cat([torch.rot90(images, turns, (2, 3)) for turns in range(ROTATIONS)])


def rotation_labels(n: int, device: torch.device) -> Tensor:
    """Return the rotation (4n,) of each image of `rotated`."""
    return torch.arange(ROTATIONS, device=device).repeat_interleave(n)


@register_method("rotpred")
@parameters
class RotPred(Method):
    """Cross-entropy of the class, and of the rotation by a second head (Hendrycks et al., section 3 and 4).

    Confidences: ``joint``, the KL divergence of the prediction from the uniform distribution minus the mean
    cross-entropy of the four rotations (section 4.2); ``rotation``, the second term alone.
    """

    weight: NonNegativeFloat = 1.0

    parts = declare(task=Part(), rotation=Part((BACKBONE, "rotation")))
    outputs = ("joint", "rotation")

    def heads(self, model: Network, classes: int) -> Mapping[str, nn.Module]:
        """Return the classifier of rotations."""
        return {"rotation": nn.Linear(model.width, ROTATIONS)}

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        """Return both cross-entropies; the second has a value for each rotation of each image."""
        logits, rotation = self._forward(model, batch.images)
        return {
            "task": cross_entropy(logits, batch.labels),
            "rotation": Term(rotation.flatten(), self.weight),
        }

    def confidences(self, model: Network, images: Tensor) -> Mapping[str, Tensor]:
        """Return both confidences."""
        logits, rotation = self._forward(model, images)
        divergence = -functional.log_softmax(logits, 1).mean(1)  # KL(U || p) + log K
        return {"joint": divergence - rotation.mean(0), "rotation": -rotation.mean(0)}

    def _forward(self, model: Network, images: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits (n, K) of the unrotated images, and the cross-entropy (4, n) of each rotation."""
        features, logits = model(rotated(images))
        labels = rotation_labels(len(images), logits.device)
        losses = cross_entropy(model.heads["rotation"](features), labels)
        return logits[: len(images)], losses.view(ROTATIONS, -1)


@register_method("csi")
@parameters
class Csi(Method):
    """Supervised contrastive loss over two views and four rotations, rotated classes as classes of their own.

    The first phase of CSI with labels (section 2.3 and eq. 2 of Khosla et al.); ``csi-linear`` is the second.

    Attributes
    ----------
    formula : ``code`` counts the anchor among its positives: for P others, the loss is
        (P x the paper's + 18.4) / (P + 1).
    """

    tau: PositiveFloat = 0.5
    size: PositiveInt = 128
    formula: Formula = "paper"

    parts = declare(contrastive=Part((BACKBONE, "projection"), depends="batch"))

    def heads(self, model: Network, classes: int) -> Mapping[str, nn.Module]:
        """Return the projection to the sphere."""
        layers = (nn.Linear(model.width, model.width), nn.ReLU(), nn.Linear(model.width, self.size))
        return {"projection": nn.Sequential(*layers)}

    def views(self, augment: View) -> Sequence[View]:
        """Return two random views."""
        return (augment, augment)

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        """Return the loss of each rotated view as an anchor."""
        images = torch.cat([rotated(view) for view in batch.views])
        embeddings = functional.normalize(model.heads["projection"](model(images)[0]), dim=1)
        labels = ROTATIONS * batch.labels.repeat(ROTATIONS) + rotation_labels(len(batch), batch.labels.device)
        labels = labels.repeat(len(batch.views))
        loss = supervised_contrastive(embeddings, labels, self.tau, self.formula)
        return {"contrastive": loss}


@register_method("csi-linear")
@parameters
class CsiLinear(Method):
    """Linear classifiers of classes, and of classes with rotations, on frozen features.

    The second phase of CSI (appendix A); start it from ``csi``. The confidence ``joint`` is the greatest of
    the class logits, each the mean over rotations of the logit of the class with that rotation.
    """

    parts = declare(linear=Part((HEAD,)), joint=Part(("joint",)))
    outputs = ("joint",)

    def heads(self, model: Network, classes: int) -> Mapping[str, nn.Module]:
        """Return the classifier of classes with rotations."""
        return {"joint": nn.Linear(model.width, ROTATIONS * classes)}

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        """Return the cross-entropies of the unrotated images and of every rotation."""
        n = len(batch)
        with evaluation_mode(model.module):  # in training mode, batch norm would move its statistics
            features = model(rotated(batch.images))[0]
        labels = ROTATIONS * batch.labels.repeat(ROTATIONS) + rotation_labels(n, batch.labels.device)
        return {
            "linear": cross_entropy(model.head(features[:n]), batch.labels),
            "joint": cross_entropy(model.heads["joint"](features), labels),
        }

    def confidences(self, model: Network, images: Tensor) -> Mapping[str, Tensor]:
        """Return the greatest mean logit."""
        joint = model.heads["joint"](model(rotated(images))[0]).view(ROTATIONS, len(images), -1, ROTATIONS)
        logits = torch.stack([joint[turns, :, :, turns] for turns in range(ROTATIONS)]).mean(0)
        return {"joint": logits.amax(1)}


def supervised_contrastive(
    embeddings: Tensor, labels: Tensor, tau: float, formula: Formula = "paper"
) -> Tensor:
    """Return the supervised contrastive loss (n,) of each anchor (Khosla et al., eq. 2, "out").

    Parameters
    ----------
    embeddings : (n, d) of norm 1.
    labels : (n,), each at least twice.
    formula : see `Csi`.
    """
    cosines = embeddings @ embeddings.T / tau
    itself = torch.eye(len(labels), dtype=torch.bool, device=cosines.device)
    log_shares = cosines - torch.logsumexp(cosines.masked_fill(itself, -torch.inf), 1, keepdim=True)
    positive = labels[:, None] == labels
    if formula == "code":  # the anchor's own share is 0
        log_shares = (log_shares.exp().masked_fill(itself, 0) + LEAST_SHARE).log()
    else:
        positive = positive & ~itself
    return -(log_shares * positive).sum(1) / positive.sum(1)
