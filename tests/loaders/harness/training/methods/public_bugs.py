"""Tiny methods with the mistakes of public implementations, and with faults that their claims hide."""

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
    Term,
    Terms,
    cross_entropy,
    declare,
)
from loaders.harness.training.methods.interface import View


@dataclass(frozen=True)
class DetachedVos(Method):
    """VOS whose energies are detached before the logistic regression, which alone is then trained."""

    parts = declare(cross_entropy=Part(), virtual=Part(("backbone", "head", "phi")))
    detach: bool = True

    def heads(self, model: Network, classes: int) -> Mapping[str, nn.Module]:
        return {"phi": nn.Linear(1, 2)}

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        features, logits = model(batch.images)
        noise = torch.randn(features.shape, generator=state.generator)
        virtual = model.head(features + 3 * noise)
        energies = torch.cat([logits, virtual]).logsumexp(1)
        energies = energies.detach() if self.detach else energies
        target = torch.arange(2).repeat_interleave(len(batch))
        uncertainty = cross_entropy(model.heads["phi"](energies[:, None]), target)
        return {"cross_entropy": cross_entropy(logits, batch.labels), "virtual": Term(uncertainty, 0.1)}


@dataclass(frozen=True)
class BatchEntropyMcd(Method):
    """MCD whose entropies are of a softmax over the images of the batch, not over the classes."""

    parts = declare(
        first=Part(), second=Part(("backbone", "second")), gap=Part(("backbone", "head", "second"))
    )
    outliers = "beside"
    dim: int = 0

    def heads(self, model: Network, classes: int) -> Mapping[str, nn.Module]:
        return {"second": nn.Linear(model.width, classes)}

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        features, logits = model(batch.images)
        second, known = model.heads["second"](features), batch.known
        entropies = [-(z.softmax(self.dim) * z.log_softmax(self.dim)).sum(1) for z in (logits, second)]
        gap = functional.relu(1.2 - (entropies[0] - entropies[1])[~known])
        return {
            "first": cross_entropy(logits[known], batch.labels[known]),
            "second": cross_entropy(second[known], batch.labels[known]),
            "gap": gap,
        }


@dataclass(frozen=True)
class ForgettingNpos(Method):
    """NPOS whose queue is zeroed at the end of each epoch while its counter stays full."""

    parts = declare(cross_entropy=Part(), boundary=Part(("backbone", "phi"), depends="order"))
    forget: bool = True

    def heads(self, model: Network, classes: int) -> Mapping[str, nn.Module]:
        return {"phi": nn.Linear(model.width, 1)}

    def setup(self, model: Network, data: Any, state: State) -> None:
        state["queue"], state["count"] = torch.zeros(64, model.width), 0

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        features, logits = model(batch.images)
        terms: dict[str, Tensor | Term] = {"cross_entropy": cross_entropy(logits, batch.labels)}
        if state["count"] >= 64:
            synthetic = state["queue"] + 0.1 * torch.randn(state["queue"].shape, generator=state.generator)
            values = model.heads["phi"](torch.cat([features, synthetic]))[:, 0]
            target = (torch.arange(len(values)) < len(features)).float()
            terms["boundary"] = Term(
                functional.binary_cross_entropy_with_logits(values, target, reduction="none"), 0.1
            )
        state["queue"] = torch.cat([state["queue"], features.detach()])[-64:]
        state["count"] += len(features)
        return terms

    def after_epoch(self, model: Network, data: Any, state: State) -> None:
        if self.forget:
            state["queue"].zero_()


class DividedHead(nn.Module):
    """h(f) / g(f) of G-ODIN, with h linear."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.h, self.g = nn.Linear(width, classes), nn.Linear(width, 1)

    def forward(self, features: Tensor) -> Tensor:
        return self.h(features) / torch.sigmoid(self.g(features))


@dataclass(frozen=True)
class UnscheduledGodin(Method):
    """G-ODIN whose h has an optimizer that the schedule does not reach."""

    aside: bool = True

    def heads(self, model: Network, classes: int) -> Mapping[str, nn.Module]:
        return {"head": DividedHead(model.width, classes)}

    def parameter_groups(self, model: Network) -> list[dict[str, Any]]:
        h = {id(p) for p in model.head.h.parameters()}  # type: ignore[union-attr]
        rest = [p for p in model.module.parameters() if id(p) not in h]
        groups: list[dict[str, Any]] = [{"params": rest}]
        if not self.aside:
            groups.append({"params": list(model.head.h.parameters()), "weight_decay": 0.0})  # type: ignore[union-attr]
        return groups

    def setup(self, model: Network, data: Any, state: State) -> None:
        if self.aside:
            state["optimizer"] = torch.optim.SGD(model.head.h.parameters(), lr=0.1)  # type: ignore[union-attr]

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        if self.aside:
            state["optimizer"].step()
            state["optimizer"].zero_grad()
        return {"cross_entropy": cross_entropy(model.logits(batch.images), batch.labels)}


@dataclass(frozen=True)
class BatchMean(Method):
    """A part that is one number for the whole batch."""

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        return {"cross_entropy": functional.cross_entropy(model.logits(batch.images), batch.labels)}


@dataclass(frozen=True)
class Weightless(Method):
    """A part with a weight of 0."""

    parts = declare(cross_entropy=Part(), norm=Part())

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        logits = model.logits(batch.images)
        norm = Term(logits.square().sum(1), 0.0)
        return {"cross_entropy": cross_entropy(logits, batch.labels), "norm": norm}


@dataclass(frozen=True)
class NotANumber(Method):
    """A loss that is NaN from the second epoch on."""

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        values = cross_entropy(model.logits(batch.images), batch.labels)
        return {"cross_entropy": values * float("nan") if state.epoch else values}


@dataclass(frozen=True)
class PartNotANumber(Method):
    """A part that is NaN, after which the weights and so all parts are."""

    parts = declare(cross_entropy=Part(), extra=Part())

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        values = cross_entropy(model.logits(batch.images), batch.labels)
        return {"cross_entropy": values, "extra": values * float("nan")}


@dataclass(frozen=True)
class TwoHeadsTooWide(Method):
    """A classifier for twice as many features as there are."""

    def heads(self, model: Network, classes: int) -> Mapping[str, nn.Module]:
        return {"head": nn.Linear(2 * model.width, classes)}

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        return {"cross_entropy": cross_entropy(model.logits(batch.images), batch.labels)}


@dataclass(frozen=True)
class HeadWithoutForward(TwoHeadsTooWide):
    """A classifier that computes nothing."""

    def heads(self, model: Network, classes: int) -> Mapping[str, nn.Module]:
        return {"head": nn.Module()}


@dataclass(frozen=True)
class HeadOfAnotherType(TwoHeadsTooWide):
    """A number in place of a classifier."""

    def heads(self, model: Network, classes: int) -> Mapping[str, nn.Module]:
        return {"head": classes}  # type: ignore[dict-item]


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
