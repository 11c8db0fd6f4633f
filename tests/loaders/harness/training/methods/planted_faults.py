"""Tiny methods with one fault each, declared so that the claims of their parts hide it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from loaders.harness.training.methods import (
    Batch,
    Method,
    Network,
    Part,
    State,
    Terms,
    cross_entropy,
    declare,
)
from loaders.harness.training.methods.interface import View

from .public_bugs import BatchEntropyMcd


@dataclass(frozen=True)
class DeclaredBatchEntropy(BatchEntropyMcd):
    """The softmax over the batch of MCD, in a part that claims to depend on the batch."""

    parts = declare(
        first=Part(),
        second=Part(("backbone", "second")),
        gap=Part(("backbone", "head", "second"), depends="batch"),
    )


@dataclass(frozen=True)
class HeadOfSetup(Method):
    """A confidence head made in `setup` and kept in the state, which no optimizer holds."""

    parts = declare(cross_entropy=Part(), confidence=Part(("backbone",)))

    def setup(self, model: Network, data: Any, state: State) -> None:
        state["branch"] = nn.Linear(model.width, 1)

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        features, logits = model(batch.images)
        right = (logits.argmax(1) == batch.labels).float()
        values = functional.binary_cross_entropy_with_logits(
            state["branch"](features)[:, 0], right, reduction="none"
        )
        return {"cross_entropy": cross_entropy(logits, batch.labels), "confidence": values}


@dataclass(frozen=True)
class TensorOfSetup(HeadOfSetup):
    """The same with a plain tensor in place of a head."""

    def setup(self, model: Network, data: Any, state: State) -> None:
        weight = torch.ones(model.width, 1, requires_grad=True)
        state["branch"] = lambda features: features @ weight


@dataclass(frozen=True)
class RateZero(Method):
    """A head whose parameter group has a rate of 0."""

    parts = declare(cross_entropy=Part(), confidence=Part(("backbone", "branch")))

    def heads(self, model: Network, classes: int) -> Mapping[str, nn.Module]:
        return {"branch": nn.Linear(model.width, 1)}

    def parameter_groups(self, model: Network) -> list[dict[str, Any]]:
        groups = model.parameters()
        rest = [p for name, group in groups.items() if name != "branch" for p in group]
        return [{"params": rest}, {"params": groups["branch"], "scale": 0.0}]

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        features, logits = model(batch.images)
        values = functional.softplus(-model.heads["branch"](features)[:, 0])
        return {"cross_entropy": cross_entropy(logits, batch.labels), "confidence": values}


@dataclass(frozen=True)
class UnusedHead(Method):
    """A head that no part of the loss uses."""

    def heads(self, model: Network, classes: int) -> Mapping[str, nn.Module]:
        return {"branch": nn.Linear(model.width, 1)}

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        return {"cross_entropy": cross_entropy(model.logits(batch.images), batch.labels)}


@dataclass(frozen=True)
class TwoViews(Method):
    """Similar embeddings of two views; ``same`` gives one view twice, ``first`` reads the first twice."""

    parts = declare(cross_entropy=Part(), contrast=Part(("backbone",), depends="batch"))
    same: bool = False
    first: bool = False

    def views(self, augment: View) -> Sequence[View]:
        def plain(images: Tensor, generator: Any) -> Tensor:
            return images

        return (plain, plain if self.same else augment)

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        features, logits = model(batch.images)
        others = features.flip(1) if self.first else model(batch.views[1])[0]
        similar = functional.normalize(features) @ functional.normalize(others).T
        contrast = functional.cross_entropy(similar / 0.1, torch.arange(len(batch)), reduction="none")
        return {"cross_entropy": cross_entropy(logits, batch.labels), "contrast": contrast}


@dataclass(frozen=True)
class UnreadOutliers(Method):
    """A hinge on outliers that reads the ID images instead."""

    parts = declare(cross_entropy=Part(), uniform=Part())
    outliers = "beside"

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        logits = model.logits(batch.images[batch.known])
        uniform = -logits.log_softmax(1).mean(1)
        return {"cross_entropy": cross_entropy(logits, batch.labels[batch.known]), "uniform": uniform}
