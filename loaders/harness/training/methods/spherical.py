"""Prototypes on the sphere: CIDER has a single prototype per class, PALM several.

References
----------
Ming, Sun, Dia and Li, How to Exploit Hyperspherical Embeddings for Out-of-Distribution Detection?, ICLR 2023.
Lu, Gong, Wang, Xue, Yao and Moore, Learning with Mixture of Prototypes for Out-of-Distribution Detection,
ICLR 2024.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

import torch
from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt
from torch import Tensor, nn
from torch.nn import functional

from ...data.parameters import parameters
from .interface import Batch, Data, Formula, Method, Part, State, Term, Terms, View, cross_entropy, declare
from .network import Network
from .registry import register_method

BASE_TAU = 0.07
"""Temperature of which tau is a multiple in the compactness of the authors' code of CIDER."""


class PrototypeHead(nn.Module):
    """A projection of the features to the sphere; the logits are cosines to class prototypes / tau.

    Parameters
    ----------
    width : number of features.
    classes : K.
    size : dimensions of the sphere's space.
    """

    prototypes: Tensor

    def __init__(self, width: int, classes: int, size: int, tau: float) -> None:
        super().__init__()
        self.projection = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, size))
        self.tau = tau
        self.register_buffer("prototypes", torch.zeros(classes, size))

    def embed(self, features: Tensor) -> Tensor:
        """Return embeddings (n, size) of norm 1."""
        return functional.normalize(self.projection(features), dim=1)

    def forward(self, features: Tensor) -> Tensor:
        """(n, width) -> logits (n, K)."""
        return self.embed(features) @ self.prototypes.T / self.tau


@register_method("cider")
@parameters
class Cider(Method):
    """Compact classes and dispersed prototypes on the sphere, two views of each image (eq. 5-7).

    Prototypes are moving averages over the images in their order; the gradient of the dispersion passes
    through the update of this step. The logits are cosines to the prototypes.

    Attributes
    ----------
    formula : ``code`` multiplies the compactness by tau / .07.
    """

    weight: NonNegativeFloat = 2.0
    tau: PositiveFloat = 0.1
    momentum: Annotated[float, Field(ge=0, lt=1)] = 0.95
    size: PositiveInt = 128
    formula: Formula = "paper"

    parts = declare(compactness=Part(depends="order"), dispersion=Part(depends="order"))

    def heads(self, model: Network, classes: int) -> Mapping[str, nn.Module]:
        """Return the classifier by prototypes."""
        return {"head": PrototypeHead(model.width, classes, self.size, self.tau)}

    def views(self, augment: View) -> Sequence[View]:
        """Return two random views."""
        return (augment, augment)

    def setup(self, model: Network, data: Data, state: State) -> None:
        """Set the prototypes to the mean embedding of each class."""
        head = model.head
        with torch.no_grad():
            embeddings = head.embed(data.extract()[0])
            sums = torch.zeros_like(head.prototypes).index_add_(0, data.labels, embeddings)
            head.prototypes.copy_(functional.normalize(sums, dim=1))

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        """Return both losses, and move the prototypes."""
        return self.contrast(model, batch)[1]

    def contrast(self, model: Network, batch: Batch) -> tuple[Tensor, dict[str, Term]]:
        """Return the embeddings of all views (v n, size) and both losses, and move the prototypes."""
        head, labels = model.head, batch.labels.repeat(len(batch.views))
        embeddings = head.embed(model(torch.cat(batch.views))[0])
        prototypes = moved_prototypes(head.prototypes, embeddings, labels, self.momentum)
        with torch.no_grad():
            head.prototypes.copy_(prototypes)
        compactness = cross_entropy(embeddings @ prototypes.detach().T / self.tau, labels)
        scale = self.tau / BASE_TAU if self.formula == "code" else 1.0
        return embeddings, {
            "compactness": Term(compactness, self.weight * scale),
            "dispersion": Term(dispersion(prototypes, self.tau)),
        }


class MixtureHead(PrototypeHead):
    """Several prototypes per class; a logit is the log of the summed exp(cosine / tau) of its class."""

    def __init__(self, width: int, classes: int, size: int, tau: float, prototypes: int) -> None:
        super().__init__(width, classes, size, tau)
        self.prototypes = functional.normalize(torch.rand(classes, prototypes, size), dim=2)

    def similarities(self, embeddings: Tensor) -> Tensor:
        """Return the cosine / tau (n, K, M) of embeddings (n, size) to each prototype."""
        return torch.einsum("nd,kmd->nkm", embeddings, self.prototypes) / self.tau

    def forward(self, features: Tensor) -> Tensor:
        """(n, width) -> logits (n, K)."""
        return self.similarities(self.embed(features)).logsumexp(2)


@register_method("palm")
@parameters
class Palm(Method):
    """Likelihood of a mixture of prototypes, and a contrast between prototypes, two views (PALM).

    Both parts follow the authors' code. Sinkhorn's algorithm distributes the images of a batch evenly over
    all prototypes; the ``assigned`` greatest weights of an image for prototypes of its class are kept.
    The likelihood is the weighted mean of log softmax(cosine / tau) over these, in place of the log of the
    weighted sum (eq. 3). Each prototype is a moving average, and the gradient of the contrast passes through
    the update of this step.

    Attributes
    ----------
    weight, contrast_tau : weight and temperature of the contrast.
    prototypes : number per class.
    assigned : number of prototypes that an image is assigned to.
    epsilon, iterations : entropic regularisation and number of iterations of Sinkhorn's algorithm.
    """

    weight: NonNegativeFloat = 1.0
    tau: PositiveFloat = 0.1
    contrast_tau: PositiveFloat = 0.5
    momentum: Annotated[float, Field(ge=0, lt=1)] = 0.999
    prototypes: PositiveInt = 6
    assigned: PositiveInt = 5
    epsilon: PositiveFloat = 0.05
    iterations: PositiveInt = 3
    size: PositiveInt = 128

    parts = declare(likelihood=Part(depends="batch"), contrast=Part(depends="batch"))

    def heads(self, model: Network, classes: int) -> Mapping[str, nn.Module]:
        """Return the classifier by prototypes, which begin at random."""
        return {"head": MixtureHead(model.width, classes, self.size, self.tau, self.prototypes)}

    def views(self, augment: View) -> Sequence[View]:
        """Return two random views."""
        return (augment, augment)

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        """Return both parts, and move the prototypes."""
        head, labels = model.head, batch.labels.repeat(len(batch.views))
        embeddings = head.embed(model(torch.cat(batch.views))[0])
        logs = self.assign(head.similarities(embeddings), labels)
        nearest = logs.topk(min(self.assigned, self.prototypes), 1).indices
        prototypes = self.move(head.prototypes, embeddings, labels, weights_of(logs, nearest))
        with torch.no_grad():
            head.prototypes.copy_(prototypes)
        similarities = head.similarities(embeddings)
        weights = weights_of(self.assign(similarities, labels), nearest)
        likelihood = (weights * of_class(similarities, labels)).sum(1) - similarities.logsumexp((1, 2))
        return {
            "likelihood": -likelihood,
            "contrast": Term(prototype_contrast(prototypes, self.contrast_tau), self.weight),
        }

    def assign(self, similarities: Tensor, labels: Tensor) -> Tensor:
        """Return the log weights (n, M) of images for the prototypes of their class (Sinkhorn-Knopp)."""
        logs = similarities.detach().flatten(1) * (self.tau / self.epsilon)
        for _ in range(self.iterations):
            logs = logs.log_softmax(0).log_softmax(1)
        return of_class(logs.view_as(similarities), labels)

    def move(self, prototypes: Tensor, embeddings: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
        """Return prototypes (K, M, d) after the moving average with the weighted means of the batch."""
        members = functional.one_hot(labels, len(prototypes)).to(weights)
        totals = torch.einsum("nk,nm->km", members, weights)[:, :, None]
        sums = torch.einsum("nk,nm,nd->kmd", members, weights, embeddings)
        means = sums / totals.clamp_min(1e-12)
        return functional.normalize(self.momentum * prototypes + (1 - self.momentum) * means, dim=2)


def of_class(values: Tensor, labels: Tensor) -> Tensor:
    """Return the values (n, M) of each image's class, from values (n, K, M)."""
    return values[torch.arange(len(labels), device=labels.device), labels]


def weights_of(logs: Tensor, nearest: Tensor) -> Tensor:
    """Return weights (n, M) that sum to 1 over the selected prototypes (n, k) and are 0 for the rest."""
    return torch.zeros_like(logs).scatter(1, nearest, logs.gather(1, nearest).softmax(1))


def prototype_contrast(prototypes: Tensor, tau: float) -> Tensor:
    """Return each prototype's log sum exp of cosines / tau to all others, minus the mean within its class.

    Parameters
    ----------
    prototypes : (K, M, d) of norm 1.

    Returns
    -------
    (K M,), class by class.
    """
    classes, number, _ = prototypes.shape
    itself = torch.eye(classes * number, dtype=torch.bool, device=prototypes.device)
    label = torch.arange(classes, device=prototypes.device).repeat_interleave(number)
    cosines = prototypes.flatten(0, 1) @ prototypes.flatten(0, 1).T / tau
    siblings = (label[:, None] == label) & ~itself
    mean = (cosines * siblings).sum(1) / max(number - 1, 1)
    return cosines.masked_fill(itself, -torch.inf).logsumexp(1) - mean


def moved_prototypes(prototypes: Tensor, embeddings: Tensor, labels: Tensor, momentum: float) -> Tensor:
    """Return prototypes (K, d) after one moving average per image, in order: m mu + (1 - m) z, of norm 1."""
    members = functional.one_hot(labels, len(prototypes))
    rank = (members.cumsum(0) * members).sum(1)  # the r-th image of its class, counted from 1
    for r in range(1, int(rank.max()) + 1):
        rows = rank == r
        updated = momentum * prototypes[labels[rows]] + (1 - momentum) * embeddings[rows]
        prototypes = prototypes.index_put((labels[rows],), functional.normalize(updated, dim=1))
    return prototypes


def dispersion(prototypes: Tensor, tau: float) -> Tensor:
    """Return the log mean exp cosine / tau of each prototype to all other prototypes, (K,)."""
    classes = len(prototypes)
    cosines = prototypes @ prototypes.T / tau
    different = ~torch.eye(classes, dtype=torch.bool, device=cosines.device)
    return (
        torch.logsumexp(cosines[different].view(classes, classes - 1), 1) - torch.tensor(classes - 1.0).log()
    )
