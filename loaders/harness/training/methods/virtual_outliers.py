"""Outliers synthesised in the space of the features: VOS and NPOS.

References
----------
Du, Wang, Cai and Li, VOS: Learning What You Don't Know by Virtual Outlier Synthesis, ICLR 2022.
Tao, Du, Zhu and Li, Non-Parametric Outlier Synthesis, ICLR 2023.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import torch
from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt
from scipy.special import chdtri
from torch import Tensor, nn
from torch.nn import functional

from wordnet_splits.base.errors import DataError

from ...data.parameters import parameters
from .interface import (
    BACKBONE,
    HEAD,
    Batch,
    Data,
    Formula,
    Method,
    Part,
    State,
    Term,
    Terms,
    cross_entropy,
    declare,
)
from .network import Network
from .registry import register_method
from .spherical import Cider

RIDGE = 1e-4
"""Added to the variances, so that the covariance can be inverted; as the authors of VOS do."""
Start = Annotated[float, Field(ge=0, lt=1)]
"""Share of the epochs before the parts on outliers begin."""


def perceptron(inputs: int, hidden: int) -> nn.Sequential:
    """Return phi, an MLP with a single output."""
    return nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, 1))


class EnergyUncertainty(nn.Module):
    """phi(E) of the logits, E = -log sum_k w_k exp(f_k) with learned weights w_k > 0; high for outliers."""

    def __init__(self, classes: int, phi: nn.Module) -> None:
        super().__init__()
        self.log_weights = nn.Parameter(torch.zeros(classes))
        self.phi = phi

    def forward(self, logits: Tensor) -> Tensor:
        """(n, K) -> (n,)."""
        values: Tensor = self.phi(-torch.logsumexp(logits + self.log_weights, 1, keepdim=True))[:, 0]
        return values


@register_method("vos")
@parameters
class Vos(Method):
    """Cross-entropy, and binary cross-entropy of phi(E) on ID images and on virtual outliers (VOS).

    Each step has a virtual outlier per class: the least likely of ``draws`` features from the class's
    Gaussian distribution (the covariance is shared), estimated from the last ``queue`` features of the class.
    The parts begin after the share ``start`` of the epochs, when the queues are full. Virtual outliers pass
    through the classifier alone, so that their part trains no layer below it. The confidence ``certainty`` is
    -phi(E).

    Attributes
    ----------
    queue : features per class, at most as many as the smallest class has images.
    formula : ``code`` has a linear phi, and one mean over ID images and virtual outliers together.
    """

    weight: NonNegativeFloat = 0.1
    draws: PositiveInt = 10_000
    queue: PositiveInt = 1000
    start: Start = 0.4
    hidden: PositiveInt = 512
    formula: Formula = "paper"

    parts = declare(
        cross_entropy=Part(),
        uncertainty_in=Part((BACKBONE, HEAD, "uncertainty")),
        uncertainty_out=Part((HEAD, "uncertainty"), depends="order"),
    )
    outputs = ("certainty",)

    def heads(self, model: Network, classes: int) -> Mapping[str, nn.Module]:
        """Return phi and the weights of the energy."""
        phi = nn.Linear(1, 1) if self.formula == "code" else perceptron(1, self.hidden)
        return {"uncertainty": EnergyUncertainty(classes, phi)}

    def setup(self, model: Network, data: Data, state: State) -> None:
        """Begin with empty queues."""
        start_queues(state, data, self.queue, model.width)

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        """Return the parts; virtual outliers are of the features of earlier steps."""
        features, logits = model(batch.images)
        terms: dict[str, Term | Tensor] = {"cross_entropy": cross_entropy(logits, batch.labels)}
        if queues_are_full(state, self.start):
            virtual = least_likely_draws(state["queue"], self.draws, state.generator)
            uncertainty = model.heads["uncertainty"]
            inside = functional.softplus(uncertainty(logits))
            outside = functional.softplus(-uncertainty(model.head(virtual)))
            terms["uncertainty_in"], terms["uncertainty_out"] = weigh(
                inside, outside, self.weight, self.formula
            )
        push(state, features, batch.labels)
        return terms

    def confidences(self, model: Network, images: Tensor) -> Mapping[str, Tensor]:
        """Return -phi(E)."""
        return {"certainty": -model.heads["uncertainty"](model.logits(images))}


@register_method("npos")
@parameters
class Npos(Cider):
    """CIDER's losses, and binary cross-entropy of phi on embeddings and on synthetic outliers (NPOS).

    Of each class, the ``boundary`` embeddings in the queue with the greatest distance to their k-th nearest
    neighbour (k = ``neighbours``) are centres of Gaussian distributions of variance ``variance``; of
    ``draws`` numbers from these, the ``keep`` with the greatest such distance are the outliers. They have no
    gradient to the embeddings. Queues are never emptied. The confidence ``level`` is phi.

    Attributes
    ----------
    formula : ``code`` is that of `Cider`, normalises the draws before it measures their distances, and has
        one mean over embeddings and outliers together. The code's standard deviation .1 is ``variance`` .01.
    """

    weight: NonNegativeFloat = 1.0
    dispersion_weight: NonNegativeFloat = 0.5
    open_weight: NonNegativeFloat = 0.1
    neighbours: PositiveInt = 300
    boundary: PositiveInt = 200
    draws: PositiveInt = 600
    keep: PositiveInt = 200
    variance: PositiveFloat = 0.1
    queue: PositiveInt = 1000
    start: Start = 0.4
    hidden: PositiveInt = 512

    parts = declare(
        **Cider.parts,
        open_in=Part((BACKBONE, HEAD, "phi"), depends="image"),
        open_out=Part(("phi",), depends="order"),
    )
    outputs = ("level",)

    def heads(self, model: Network, classes: int) -> Mapping[str, nn.Module]:
        """Return the classifier by prototypes, and phi."""
        return {**super().heads(model, classes), "phi": perceptron(self.size, self.hidden)}

    def setup(self, model: Network, data: Data, state: State) -> None:
        """Begin with the mean embedding of each class, and empty queues."""
        super().setup(model, data, state)
        start_queues(state, data, self.queue, self.size)

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        """Return the parts; outliers are by the embeddings of earlier steps."""
        embeddings, losses = self.contrast(model, batch)
        terms = {**losses, "dispersion": Term(losses["dispersion"].values, self.dispersion_weight)}
        if queues_are_full(state, self.start):
            phi = model.heads["phi"]
            outliers = self.synthesise(state["queue"], state.generator)
            inside, outside = functional.softplus(-phi(embeddings)), functional.softplus(phi(outliers))
            terms["open_in"], terms["open_out"] = weigh(
                inside[:, 0], outside[:, 0], self.open_weight, self.formula
            )
        push(state, embeddings[: len(batch)], batch.labels)
        return terms

    def synthesise(self, queue: Tensor, generator: torch.Generator) -> Tensor:
        """Return outliers (K x keep, d) for queues (K, capacity, d)."""
        classes, capacity, size = queue.shape
        k = min(self.neighbours, capacity - 1)
        # the nearest of an embedding's neighbours is itself
        farthest = kth_distances(queue, queue, k + 1).topk(min(self.boundary, capacity), dim=1).indices
        sparse = farthest.sort(1).values  # by position: distances may be equal
        picked = torch.randint(sparse.shape[1], (classes, self.draws), generator=generator)
        noise = torch.randn(classes, self.draws, size, generator=generator).to(queue.device)
        rows = torch.arange(classes, device=queue.device)[:, None]
        candidates = queue[rows, sparse.gather(1, picked.to(queue.device))] + self.variance**0.5 * noise
        searched = functional.normalize(candidates, dim=2) if self.formula == "code" else candidates
        distances = kth_distances(searched, queue, max(k, 1))
        kept = distances.topk(min(self.keep, self.draws), dim=1).indices.sort(1).values
        return candidates[rows, kept].flatten(0, 1)

    def confidences(self, model: Network, images: Tensor) -> Mapping[str, Tensor]:
        """Return phi."""
        return {"level": model.heads["phi"](model.head.embed(model(images)[0]))[:, 0]}


def weigh(inside: Tensor, outside: Tensor, weight: float, formula: Formula) -> tuple[Term, Term]:
    """Return terms of ID images and of outliers: a mean of each, or (``code``) one mean of both."""
    if formula == "paper":
        return Term(inside, weight), Term(outside, weight)
    share = len(inside) / (len(inside) + len(outside))
    return Term(inside, weight * share), Term(outside, weight * (1 - share))


def start_queues(state: State, data: Data, largest: int, size: int) -> None:
    """Add an empty queue of features per class, as long as the smallest class at most.

    Raises
    ------
    DataError : a class without training images.
    """
    counts = torch.bincount(data.labels, minlength=len(data.classes))
    capacity = min(largest, int(counts.min()))
    if capacity == 0:
        name = data.classes[int(counts.argmin())]
        raise DataError(f"class {name!r} has no training image", hint="synthesis of outliers needs one")
    state["queue"] = torch.zeros(len(counts), capacity, size, device=data.labels.device)
    state["pushed"] = torch.zeros_like(counts)


def queues_are_full(state: State, start: float) -> bool:
    """Return whether every queue is full and the share ``start`` of the epochs is over."""
    return state.epoch >= start * state.epochs and int(state["pushed"].min()) >= state["queue"].shape[1]


def push(state: State, features: Tensor, labels: Tensor) -> None:
    """Put features (n, d) into the queues of their classes in place of the oldest."""
    queue, pushed = state["queue"], state["pushed"]
    capacity = queue.shape[1]
    members = functional.one_hot(labels, len(queue))
    rank = (members.cumsum(0) * members).sum(1) - 1
    fits = rank >= members.sum(0)[labels] - capacity
    rows = (pushed[labels] + rank) % capacity
    queue[labels[fits], rows[fits]] = features.detach()[fits]
    pushed += members.sum(0)


def least_likely_draws(queue: Tensor, draws: int, generator: torch.Generator) -> Tensor:
    """Return for each class the least likely of a number of draws from its Gaussian distribution, (K, d).

    The density of mu + L r u, with u a uniform direction, falls with r alone, and r^2 of a draw is chi-square
    of d degrees. So the least likely of M draws has the greatest of M values of r^2, whose distribution
    function is the M-th power: r^2 = the chi-square quantile of U^(1 / M), independent of u. The result has
    the same distribution as a selection from M draws, without M x d numbers for each class.

    Parameters
    ----------
    queue : (K, capacity, d) features of each class.
    """
    classes, _, size = queue.shape
    means = queue.mean(1, keepdim=True)
    centred = (queue - means).flatten(0, 1).double()
    covariance = centred.T @ centred / len(centred)
    factor = torch.linalg.cholesky(covariance + RIDGE * torch.eye(size, device=queue.device))
    normals = torch.randn(classes, size, generator=generator, dtype=torch.float64)
    uniforms = torch.rand(classes, generator=generator, dtype=torch.float64)
    squares = chdtri(size, -torch.expm1(uniforms.log() / draws).numpy())
    offsets = torch.from_numpy(squares).sqrt()[:, None] * functional.normalize(normals, dim=1)
    return means[:, 0] + (offsets.to(queue.device) @ factor.T).to(queue.dtype)


def kth_distances(points: Tensor, queue: Tensor, k: int) -> Tensor:
    """Return the distance (K, m) of points (K, m, d) to the k-th nearest in the queue of their class."""
    return torch.cdist(points, queue).topk(k, dim=2, largest=False).values[:, :, -1]
