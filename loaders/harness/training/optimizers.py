"""Optimizers by the name of their update rule, including Abdelzad's seven as in Keras.

Table 12 of the paper gives Keras' defaults (epsilon None is 1e-7 there). For SGD, RMSprop, Nadam, Adagrad
and Adadelta torch's rules equal Keras' with the same settings. Adam and Adamax differ in the position of
epsilon, which matters while the second moments are small, and have classes here.

References
----------
Abdelzad, Czarnecki and Salay, The Effect of Optimization Methods on the Robustness of OOD Detection
Approaches, 2020, table 12. Keras 2.2, optimizers.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from wordnet_splits.base.errors import DataError, unknown

from .choices import UPDATE_RULES


class _KerasRule(Optimizer, ABC):
    """A rule of two running statistics of the gradient, the first its mean."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-7,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": tuple(betas), "eps": eps})

    def step(self, closure: None = None) -> None:
        """Take one step along the gradients held by the parameters."""
        with torch.no_grad():
            for group in self.param_groups:
                group["steps"] = int(group.get("steps", 0)) + 1
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    state = self.state[p]
                    if not state:
                        state["m"], state["v"] = torch.zeros_like(p), torch.zeros_like(p)
                    state["m"].lerp_(p.grad, 1 - group["betas"][0])
                    self.update(p, state["m"], state["v"], group)

    @abstractmethod
    def update(self, p: Tensor, m: Tensor, v: Tensor, group: Mapping[str, Any]) -> None:
        """Move a parameter, given the mean of its gradient, the other statistic (to update) and the group."""


class KerasAdam(_KerasRule):
    """Adam with epsilon added to the uncorrected root.

    p -= lr sqrt(1 - b2^t) / (1 - b1^t) m / (sqrt(v) + eps)
    """

    def update(self, p: Tensor, m: Tensor, v: Tensor, group: Mapping[str, Any]) -> None:
        """Move a parameter; ``v`` is the mean of the squared gradient."""
        (beta_1, beta_2), t = group["betas"], group["steps"]
        v.mul_(beta_2).addcmul_(p.grad, p.grad, value=1 - beta_2)
        rate = group["lr"] * (1 - beta_2**t) ** 0.5 / (1 - beta_1**t)
        p.addcdiv_(m, v.sqrt().add_(group["eps"]), value=-rate)


class KerasAdamax(_KerasRule):
    """Adamax with epsilon added to the norm, not to the gradient.

    p -= lr / (1 - b1^t) m / (u + eps)
    """

    def update(self, p: Tensor, m: Tensor, v: Tensor, group: Mapping[str, Any]) -> None:
        """Move a parameter; ``v`` is the decaying maximum of the gradient's size."""
        (beta_1, beta_2), t = group["betas"], group["steps"]
        torch.maximum(v.mul_(beta_2), p.grad.abs(), out=v)
        p.addcdiv_(m, v + group["eps"], value=-group["lr"] / (1 - beta_1**t))


def make_optimizer(rule: str, parameters: Iterable[Any], settings: Mapping[str, Any]) -> Optimizer:
    """Return the optimizer of an update rule with a recipe's settings."""
    if rule not in UPDATE_RULES:
        raise unknown("update rule", rule, UPDATE_RULES)
    name = UPDATE_RULES[rule]
    kind = globals().get(name) or getattr(torch.optim, name)
    try:
        kind([torch.zeros(1)], **settings)
    except (TypeError, ValueError) as error:
        message = f"settings {dict(settings)} do not fit update rule {rule!r}: {error}"
        raise DataError(message, hint="correct the training recipe") from None
    try:
        optimizer: Optimizer = kind(parameters, **settings)
    except (TypeError, ValueError, KeyError) as error:  # the last: a group without "params"
        message = f"the method's groups of parameters do not fit update rule {rule!r}: {error}"
        hint = "correct the parameter_groups of the training method"
        raise DataError(message, where="parameter_groups", hint=hint) from None
    return optimizer
