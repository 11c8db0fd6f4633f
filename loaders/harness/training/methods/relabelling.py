"""Unlabelled images that get labels by the clusters of their features: UDG.

References
----------
Yang, Wang, Feng, Yan, Zheng, Zhang and Liu, Semantically Coherent Out-of-Distribution Detection, ICCV 2021.
Caron, Bojanowski, Joulin and Douze, Deep Clustering for Unsupervised Learning of Visual Features, ECCV 2018.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import torch
from pydantic import Field, NonNegativeFloat, PositiveInt
from torch import Tensor, nn
from torch.nn import functional

from ...data.parameters import parameters
from .classification import uniform_cross_entropy
from .interface import (
    BACKBONE,
    OUTLIER,
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

ROWS_AT_ONCE = 8192
LEAST_IMAGES = 10
"""Images per cluster, on average, at least."""
LEAST_VARIANCE = 1e-9
"""Least variance of a principal component, as a share of the first's."""


@register_method("udg")
@parameters
class Udg(Method):
    """Cross-entropy to labels, of other images to the uniform distribution, and of clusters (UDG, section 3).

    Outliers are unlabelled images, of ID classes and others. After each epoch all images are clustered by
    their features; in clusters where at least the share ``purity`` has one class, the unlabelled images get
    its label. A second head learns the clusters. It is reinitialised after each epoch, when their numbers
    change.

    Attributes
    ----------
    clusters : at most a tenth as many as there are images.
    dimensions : principal components of the features.
    formula : ``code`` weights the clusters' cross-entropy by size^-1/2, with mean 1 over the clusters, and
        counts the labels that images got after the last epoch.
    """

    clusters: PositiveInt = 1000
    purity: Annotated[float, Field(gt=0, le=1)] = 0.8
    dimensions: PositiveInt = 256
    uniform_weight: NonNegativeFloat = 0.5
    cluster_weight: NonNegativeFloat = 0.1
    iterations: PositiveInt = 20
    formula: Formula = "paper"

    outliers = "beside"
    revision = 2  # whitened features
    parts = declare(  # the number of labelled images depends on the batch
        cross_entropy=Part(depends="batch"),
        uniform=Part(depends="batch"),
        cluster=Part((BACKBONE, "cluster")),
    )

    def heads(self, model: Network, classes: int) -> Mapping[str, nn.Module]:
        """Return the classifier of clusters."""
        return {"cluster": nn.Linear(model.width, self.clusters)}

    def setup(self, model: Network, data: Data, state: State) -> None:
        """Cluster the images by the network's first features."""
        features = torch.cat([data.extract()[0], data.extract(True)[0]])
        labels = functional.pad(data.labels, (0, data.n_outliers), value=OUTLIER)
        count = max(min(self.clusters, len(features) // LEAST_IMAGES), 1)
        reduced = functional.normalize(whitened_components(features, self.dimensions), dim=1)
        state["clusters"] = k_means(reduced, count, state.generator, self.iterations)
        counted = labels
        if self.formula == "code":
            state["weights"] = cluster_weights(state["clusters"])
            counted = state.get("labels", labels)
        state["labels"] = spread_labels(
            labels, state["clusters"], len(data.classes), self.purity, counted=counted
        )

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        """Return the parts; an image counts for one of the first two."""
        features, logits = model(batch.images)
        labels = state["labels"][batch.index]
        labelled = labels != OUTLIER
        clusters = cross_entropy(model.heads["cluster"](features), state["clusters"][batch.index])
        if self.formula == "code":
            clusters = clusters * state["weights"][batch.index]
        terms: dict[str, Term | Tensor] = {
            "cross_entropy": cross_entropy(logits[labelled], labels[labelled]),
            "cluster": Term(clusters, self.cluster_weight),
        }
        if not bool(labelled.all()):
            terms["uniform"] = Term(uniform_cross_entropy(logits[~labelled]), self.uniform_weight)
        return terms

    def after_epoch(self, model: Network, data: Data, state: State) -> None:
        """Cluster the images again."""
        self.setup(model, data, state)
        model.heads["cluster"].reset_parameters()


def cluster_weights(clusters: Tensor) -> Tensor:
    """Return the weight (n,) of each image, size^-1/2 of its cluster, with mean 1 over the clusters."""
    sizes = torch.bincount(clusters)
    weights = sizes.clamp_min(1).rsqrt()
    return (weights / weights[sizes > 0].mean())[clusters]


def spread_labels(
    labels: Tensor, clusters: Tensor, classes: int, purity: float, *, counted: Tensor | None = None
) -> Tensor:
    """Return labels (n,) where unlabelled images (-1) of pure clusters get the cluster's class.

    Parameters
    ----------
    counted : labels (n,) that decide which clusters are pure, by default ``labels``.
    """
    members = torch.bincount(clusters)
    columns = clusters * (classes + 1) + (labels if counted is None else counted) + 1
    counts = torch.bincount(columns, minlength=len(members) * (classes + 1)).view(-1, classes + 1)[:, 1:]
    most, label = counts.max(1)
    spread = torch.where(most >= purity * members, label, OUTLIER)[clusters]
    return torch.where(labels == OUTLIER, spread, labels)


def whitened_components(features: Tensor, dimensions: int) -> Tensor:
    """Return the first principal components of features (n, D), each of variance 1, (n, at most dimensions).

    A component without variance is 0. Caron et al. and the authors of UDG whiten as well.
    """
    centred = features - features.mean(0)
    variances, vectors = torch.linalg.eigh((centred.T @ centred).double() / len(features))
    scales = torch.where(variances > LEAST_VARIANCE * variances[-1], variances.clamp_min(0).rsqrt(), 0.0)
    return centred @ (vectors * scales).flip(1)[:, :dimensions].to(centred.dtype)


def k_means(points: Tensor, count: int, generator: torch.Generator, iterations: int) -> Tensor:
    """Return the cluster (n,) of each point (n, d) by Lloyd's algorithm, begun at random points."""
    rows = torch.randperm(len(points), generator=generator)[:count].to(points.device)
    centres = points[rows]
    for _ in range(iterations):
        nearest = _nearest(points, centres)
        counts = torch.bincount(nearest, minlength=count)[:, None]
        sums = torch.zeros_like(centres).index_add_(0, nearest, points)
        centres = torch.where(counts > 0, sums / counts.clamp_min(1), centres)
    return _nearest(points, centres)


def _nearest(points: Tensor, centres: Tensor) -> Tensor:
    return torch.cat([torch.cdist(part, centres).argmin(1) for part in points.split(ROWS_AT_ONCE)])
