"""Tiny methods with one fault each in how they train, draw or remember; ``fault=False`` is the right one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
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
class BranchFault(Method):
    """A confidence branch on the features, with one of many faults."""

    parts = declare(cross_entropy=Part(), confidence=Part(("backbone", "branch")))
    fault: Literal[
        "",
        "reset every epoch",
        "reset every step",
        "replaced every epoch",
        "evaluation mode",
        "frozen backbone",
        "held twice",
        "negative rate",
        "gradient zeroed",
        "numpy",
        "batch in place",
        "module in state",
        "centred",
        "batch size",
    ] = ""

    def heads(self, model: Network, classes: int) -> Mapping[str, nn.Module]:
        return {"branch": nn.Linear(model.width, 1)}

    def setup(self, model: Network, data: Any, state: State) -> None:
        if self.fault == "frozen backbone":
            for p in model.parameters()["backbone"]:
                p.requires_grad_(False)
        if self.fault == "gradient zeroed":
            for p in model.heads["branch"].parameters():
                p.register_post_accumulate_grad_hook(_zero_gradient)
        if self.fault == "module in state":
            state["teacher"] = deepcopy(model.module).requires_grad_(False)

    def parameter_groups(self, model: Network) -> list[dict[str, Any]]:
        branch = list(model.heads["branch"].parameters())
        rest = [p for p in model.module.parameters() if not any(p is other for other in branch)]
        sign = -1.0 if self.fault == "negative rate" else 1.0
        branch = branch * 2 if self.fault == "held twice" else branch
        return [{"params": rest}, {"params": branch, "scale": sign, "weight_decay": 0.1}]

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        branch = model.heads["branch"]
        if self.fault == "evaluation mode":
            model.module.eval()
        if self.fault == "batch in place":
            batch.images.mul_(0.9)
        if self.fault == "reset every step":
            for p in branch.parameters():
                p.data.copy_(torch.randn(p.shape, generator=state.generator))
        features, logits = model(batch.images)
        seen = features - features.mean(0) if self.fault == "centred" else features
        if self.fault == "numpy":
            seen = seen + torch.from_numpy(np.random.standard_normal(features.shape)).float()
        values = functional.softplus(-branch(seen)[:, 0] * (features.mean(1) + 0.1))
        values = values * len(batch) if self.fault == "batch size" else values
        return {"cross_entropy": cross_entropy(logits, batch.labels), "confidence": values}

    def after_epoch(self, model: Network, data: Any, state: State) -> None:
        if self.fault == "reset every epoch":
            model.heads["branch"].reset_parameters()
        if self.fault == "replaced every epoch":
            model.heads["branch"] = nn.Linear(model.width, 1)


def _zero_gradient(parameter: Tensor) -> None:
    assert parameter.grad is not None
    parameter.grad.zero_()


@dataclass(frozen=True)
class TargetFault(Method):
    """Cross-entropy to labels that are wrong in one of several ways, with outliers to the uniform one."""

    outliers = "mixed"
    fault: Literal["", "shifted", "reversed", "outliers last", "confident", "negative"] = ""

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        scores = model.logits(batch.images).log_softmax(1)
        classes = scores.shape[1]
        labels = batch.labels.clamp_min(0)
        if self.fault == "shifted":
            labels = (labels + 1) % classes
        if self.fault == "reversed":
            labels = classes - 1 - labels
        right = scores.gather(1, labels[:, None])[:, 0]
        other = scores[:, -1] if self.fault == "outliers last" else scores.mean(1)
        values = -torch.where(batch.known, right, other)
        if self.fault == "confident":  # of a focal loss
            values = values * right.exp() ** 2
        return {"cross_entropy": Term(values, -1.0 if self.fault == "negative" else 1.0)}


@dataclass(frozen=True)
class TeacherFault(Method):
    """Predictions like those of a moving average of the network, which the state keeps."""

    parts = declare(cross_entropy=Part(), consistency=Part())
    fault: Literal["", "never", "backwards", "copied back", "gradient"] = ""

    def setup(self, model: Network, data: Any, state: State) -> None:
        state["teacher"] = {name: p.detach().clone() for name, p in model.module.named_parameters()}
        for value in state["teacher"].values():
            value.requires_grad_(self.fault == "gradient")

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        logits, teacher = model.logits(batch.images), state["teacher"]
        with torch.set_grad_enabled(self.fault == "gradient"):
            target = torch.func.functional_call(model.module, teacher, (batch.images,))
        for name, p in model.module.named_parameters():
            if self.fault in ("", "gradient"):
                teacher[name].data.lerp_(p.data, 0.05)
            elif self.fault == "backwards":
                p.data.lerp_(teacher[name], 0.05)
            elif self.fault == "copied back":
                p.data.copy_(teacher[name])
        consistency = (logits.softmax(1) - target.softmax(1)).square().sum(1)
        return {"cross_entropy": cross_entropy(logits, batch.labels), "consistency": Term(consistency, 3.0)}


@dataclass(frozen=True)
class FrozenTeacher(Method):
    """A head that follows another, which is its moving average or (``fault``) stays as it was drawn."""

    parts = declare(cross_entropy=Part(), follow=Part(("backbone", "student")))
    fault: bool = True

    def heads(self, model: Network, classes: int) -> Mapping[str, nn.Module]:
        teacher = nn.Linear(model.width, 8).requires_grad_(False)
        return {"student": nn.Linear(model.width, 8), "teacher": teacher}

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        features, logits = model(batch.images)
        student, teacher = model.heads["student"], model.heads["teacher"]
        for p, new in zip(teacher.parameters(), student.parameters(), strict=True):
            p.data.lerp_(new.data, 0.0 if self.fault else 0.1)
        follow = (student(features) - teacher(features.detach())).square().sum(1)
        return {"cross_entropy": cross_entropy(logits, batch.labels), "follow": follow}


@dataclass(frozen=True)
class QueueFault(Method):
    """Distances to a queue of features that is not filled, or not read; to a bank filled at wrong rows."""

    parts = declare(cross_entropy=Part(), distance=Part(("backbone",), depends="order"))
    fault: Literal["", "unfilled", "unread", "position"] = ""

    def setup(self, model: Network, data: Any, state: State) -> None:
        state["bank"] = torch.zeros(len(data.labels), model.width)

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        features, logits = model(batch.images)
        old = state["bank"][batch.index].clone()
        old = torch.ones_like(old) if self.fault == "unread" else old
        if self.fault != "unfilled":
            rows = torch.arange(len(batch)) if self.fault == "position" else batch.index
            state["bank"][rows] = features.detach()
        distance = (features - old).square().sum(1)
        return {"cross_entropy": cross_entropy(logits, batch.labels), "distance": Term(distance, 0.1)}


@dataclass(frozen=True)
class ViewFault(Method):
    """Similar embeddings of two views, the second of which ignores its generator or changes the images."""

    parts = declare(cross_entropy=Part(), contrast=Part(("backbone",), depends="batch"))
    fault: Literal["", "numpy", "torch", "in place", "over batch"] = ""

    def views(self, augment: View) -> Sequence[View]:
        def second(images: Tensor, generator: Any) -> Tensor:
            if self.fault == "numpy":
                return images.roll(int(np.random.randint(1, 5)), 3)
            if self.fault == "torch":
                return images.roll(int(torch.randint(1, 5, ())), 3)
            return images.mul_(2) if self.fault == "in place" else augment(images, generator)

        return (augment, second)

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        (features, logits), (others, _) = model(batch.views[0]), model(batch.views[1])
        axis = 0 if self.fault == "over batch" else 1
        similar = functional.normalize(features, dim=axis) @ functional.normalize(others, dim=axis).T
        contrast = functional.cross_entropy(similar / 0.1, torch.arange(len(batch)), reduction="none")
        return {"cross_entropy": cross_entropy(logits, batch.labels), "contrast": contrast}


@dataclass(frozen=True)
class PointsFault(Method):
    """Distances to points that are drawn in each step, and (``fault``) meant to be learned."""

    parts = declare(cross_entropy=Part(), distance=Part(("backbone",)))
    fault: bool = True

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        features, logits = model(batch.images)
        points = torch.randn(4, features.shape[1], generator=state.generator).requires_grad_(self.fault)
        distance = (features[:, None] - points).square().sum(2).amin(1)
        return {"cross_entropy": cross_entropy(logits, batch.labels), "distance": distance}


@dataclass(frozen=True)
class LearnedWeight(Method):
    """A weight that is learned: of a head, or (``fault``) of the state, which no optimizer holds."""

    parts = declare(cross_entropy=Part(), size=Part(("backbone", "head", "weight")))
    fault: bool = True

    def heads(self, model: Network, classes: int) -> Mapping[str, nn.Module]:
        return {"weight": nn.ParameterList([torch.zeros(())])}

    def setup(self, model: Network, data: Any, state: State) -> None:
        if self.fault:
            state["weight"] = torch.ones((), requires_grad=True)

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        logits = model.logits(batch.images)
        weight = torch.exp(-model.heads["weight"][0]) * state.get("weight", 1.0)
        values = logits.square().sum(1)
        return {"cross_entropy": cross_entropy(logits, batch.labels), "size": Term(values, weight)}
