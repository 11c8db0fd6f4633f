"""Classifiers other than a linear layer (G-ODIN, ARPL, MOS), and a pair of classifiers (MCD).

References
----------
Hsu, Shen, Jin and Kira, Generalized ODIN: Detecting Out-of-Distribution Image without Learning from
Out-of-Distribution Data, CVPR 2020.
Chen, Peng, Wang and Tian, Adversarial Reciprocal Points Learning for Open Set Recognition, TPAMI 2021.
Huang and Li, MOS: Towards Scaling Out-of-Distribution Detection for Large Semantic Space, CVPR 2021.
Yu and Aizawa, Unsupervised Out-of-Distribution Detection by Maximum Classifier Discrepancy, ICCV 2019.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import torch
from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat
from torch import Tensor, nn
from torch.nn import functional

from ...data.parameters import parameters
from .class_groups import groups_of
from .interface import BACKBONE, HEAD, Batch, Data, Method, Part, State, Term, Terms, cross_entropy, declare
from .network import Network
from .registry import register_method


class DividedCosines(nn.Module):
    """Logits h / g: cosines h to class weights, divided by a g in (0, 1) of the features."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(nn.init.kaiming_normal_(torch.empty(classes, width), nonlinearity="relu"))
        self.divisor = nn.Sequential(nn.Linear(width, 1), nn.BatchNorm1d(1), nn.Sigmoid())

    def cosines(self, features: Tensor) -> Tensor:
        """Return h (n, K)."""
        return functional.normalize(features, dim=1) @ functional.normalize(self.weight, dim=1).T

    def forward(self, features: Tensor) -> Tensor:
        """(n, width) -> logits (n, K)."""
        logits: Tensor = self.cosines(features) / self.divisor(features)
        return logits


@register_method("godin")
@parameters
class Godin(Method):
    """Cross-entropy of h / g, cosines over a learned divisor (G-ODIN, DeConf-C: eq. 5-7).

    Confidences: ``h``, the greatest cosine; ``g``, the divisor. The weights of h do not decay (section 4.1).
    """

    parts = declare(cross_entropy=Part())
    outputs = ("h", "g")

    def heads(self, model: Network, classes: int) -> Mapping[str, nn.Module]:
        """Return the classifier."""
        return {"head": DividedCosines(model.width, classes)}

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        """Return the cross-entropy."""
        return {"cross_entropy": cross_entropy(model(batch.images)[1], batch.labels)}

    def parameter_groups(self, model: Network) -> list[dict[str, Any]]:
        """Return all parameters, with a separate group for h."""
        undecayed = model.head.weight
        others = [parameter for parameter in model.module.parameters() if parameter is not undecayed]
        return [{"params": others}, {"params": [undecayed], "weight_decay": 0.0}]

    def confidences(self, model: Network, images: Tensor) -> Mapping[str, Tensor]:
        """Return h and g."""
        features, head = model(images)[0], model.head
        return {"h": head.cosines(features).amax(1), "g": head.divisor(features)[:, 0]}


class ReciprocalPoints(nn.Module):
    """A reciprocal point per class, representing all other classes, and the radius of the known space."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.points = nn.Parameter(0.1 * torch.randn(classes, width))
        self.radius = nn.Parameter(torch.zeros(1))

    def distances(self, features: Tensor) -> Tensor:
        """Return the mean squared distance (n, K) to each point."""
        return torch.cdist(features, self.points).square() / features.shape[1]

    def forward(self, features: Tensor) -> Tensor:
        """(n, width) -> logits (n, K): the distance minus the inner product (eq. 2-4)."""
        return self.distances(features) - features @ self.points.T


@register_method("arpl")
@parameters
class Arpl(Method):
    """Cross-entropy of distances to reciprocal points, and a bound on the open space (ARPL, eq. 4-9).

    The open-space risk is max(0, d(f, p_y) - R + margin): the margin is 0 in the paper, 1 in the authors'
    code. The confidence ``distance`` is the greatest logit.
    """

    weight: NonNegativeFloat = 0.1
    temperature: PositiveFloat = 1.0
    margin: NonNegativeFloat = 1.0

    parts = declare(cross_entropy=Part(), open_space=Part())
    outputs = ("distance",)

    def heads(self, model: Network, classes: int) -> Mapping[str, nn.Module]:
        """Return the classifier."""
        return {"head": ReciprocalPoints(model.width, classes)}

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        """Return the cross-entropy and the open-space risk."""
        features, logits = model(batch.images)
        head = model.head
        distance = (features - head.points[batch.labels]).square().mean(1)
        risk = functional.relu(distance - head.radius + self.margin)
        return {
            "cross_entropy": cross_entropy(logits / self.temperature, batch.labels),
            "open_space": Term(risk, self.weight),
        }

    def confidences(self, model: Network, images: Tensor) -> Mapping[str, Tensor]:
        """Return the greatest logit."""
        return {"distance": model.logits(images).amax(1)}


class GroupedClasses(nn.Module):
    """A softmax for each group of classes, with an output "others"; logits are logs of its probabilities."""

    group: Tensor

    def __init__(self, width: int, groups: Sequence[int]) -> None:
        super().__init__()
        self.groups = max(groups) + 1
        self.outputs = nn.Linear(width, len(groups) + self.groups)
        self.register_buffer("group", torch.tensor([*groups, *range(self.groups)]))

    def log_probabilities(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Return log p of each class in its group (n, K), and of "others" of each group (n, G)."""
        outputs = self.outputs(features)
        members = functional.one_hot(self.group, self.groups).T.bool()  # (G, K + G)
        totals = outputs[:, None].masked_fill(~members, -torch.inf).logsumexp(2)  # (n, G)
        logs = outputs - totals[:, self.group]
        return logs[:, : -self.groups], logs[:, -self.groups :]

    def forward(self, features: Tensor) -> Tensor:
        """(n, width) -> log p of each class in its group (n, K)."""
        return self.log_probabilities(features)[0]


@register_method("mos")
@parameters
class Mos(Method):
    """Sum over groups of the cross-entropy of the class, or of "others" (MOS, eq. 3-4).

    Groups are subtrees of WordNet over the ID classes (`class_groups`); the confidence ``others`` is minus
    the least log probability of "others" (eq. 6).

    Attributes
    ----------
    groups : approximate number of groups; 0 is the square root of the number of classes.
    """

    groups: NonNegativeInt = 0

    parts = declare(cross_entropy=Part())
    outputs = ("others",)

    def facts(self, data: Data) -> dict[str, Any]:
        """Return the group of each class."""
        return groups_of(data.manifest, len(data.classes), self.groups)

    def heads(self, model: Network, classes: int) -> Mapping[str, nn.Module]:
        """Return the classifier."""
        return {"head": GroupedClasses(model.width, model.facts["groups"])}

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        """Return the sum over groups."""
        classes, others = model.head.log_probabilities(model(batch.images)[0])
        group = model.head.group[batch.labels]
        outside = functional.one_hot(group, others.shape[1]) == 0
        inside = -classes.gather(1, batch.labels[:, None])[:, 0]
        return {"cross_entropy": inside - (others * outside).sum(1)}

    def confidences(self, model: Network, images: Tensor) -> Mapping[str, Tensor]:
        """Return minus the least log probability of "others"."""
        return {"others": -model.head.log_probabilities(model(images)[0])[1].amin(1)}


@register_method("mcd")
@parameters
class Mcd(Method):
    """Two classifiers that disagree about outliers by the entropy of their predictions (MCD, eq. 1-3).

    From the share ``start`` of the epochs on, outliers cost max(0, margin - mean(H1 - H2)). Confidences:
    ``distance``, minus the L1 distance of both predictions, as in the authors' ``test.py``, and
    ``discrepancy``, -(H1 - H2).

    Attributes
    ----------
    hinge : of the mean over a batch's outliers, as in the paper and the authors' code, or of each ``image``.
    """

    weight: NonNegativeFloat = 1.0
    margin: NonNegativeFloat = 1.2
    start: Annotated[float, Field(ge=0, lt=1)] = 0.9
    hinge: Literal["mean", "image"] = "mean"

    outliers = "beside"
    revision = 2  # hinge of the mean
    parts = declare(
        first=Part(),
        second=Part((BACKBONE, "second")),
        discrepancy=Part((BACKBONE, HEAD, "second"), depends="batch"),
    )
    outputs = ("distance", "discrepancy")

    def heads(self, model: Network, classes: int) -> Mapping[str, nn.Module]:
        """Return the second classifier."""
        return {"second": nn.Linear(model.width, classes)}

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        """Return both cross-entropies, and the missing discrepancy of the outliers."""
        features, first = model(batch.images)
        second, known = model.heads["second"](features), batch.known
        terms = {
            "first": cross_entropy(first[known], batch.labels[known]),
            "second": cross_entropy(second[known], batch.labels[known]),
        }
        if state.epoch < self.start * state.epochs:
            return terms
        missing = self.margin - (entropy(first) - entropy(second))[~known]
        missing = functional.relu(missing if self.hinge == "image" else missing.mean())
        return {**terms, "discrepancy": Term(missing, self.weight)}

    def confidences(self, model: Network, images: Tensor) -> Mapping[str, Tensor]:
        """Return minus the L1 distance, and the second prediction's entropy minus the first's."""
        features, first = model(images)
        second = model.heads["second"](features)
        distance = (torch.softmax(first, 1) - torch.softmax(second, 1)).abs().sum(1)
        return {"distance": -distance, "discrepancy": entropy(second) - entropy(first)}


def entropy(logits: Tensor) -> Tensor:
    """Return the entropy (n,) of the softmax over the classes."""
    logs = functional.log_softmax(logits, 1)
    return -(logs.exp() * logs).sum(1)
