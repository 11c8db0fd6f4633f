"""The seven optimizers against Keras' update rules, written out in float64."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from loaders.harness.training.optimizers import make_optimizer
from loaders.harness.training.recipe import load_recipe
from tests.raising import raises
from wordnet_splits.base.errors import DataError, UnknownNameError

Vector = np.ndarray[Any, Any]
EPS = 1e-7
STEPS = 12
SCALES = np.array([1.0, 1e-3, 1e-6, 3.0, 1e-7])  # small gradients are where the place of epsilon shows
START = np.array([0.3, -1.2, 0.7, 2.0, -0.1])


def gradient(p: Vector, t: int) -> Vector:
    return SCALES * (np.cos(3 * p + t) + 0.5 * p)


def adam(g: Vector, t: int, m: Vector, v: Vector) -> Vector:
    m[:], v[:] = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
    return 0.001 * math.sqrt(1 - 0.999**t) / (1 - 0.9**t) * m / (np.sqrt(v) + EPS)


def rmsprop(g: Vector, t: int, a: Vector, _: Vector) -> Vector:
    a[:] = 0.9 * a + 0.1 * g**2
    return 0.001 * g / (np.sqrt(a) + EPS)


def adamax(g: Vector, t: int, m: Vector, u: Vector) -> Vector:
    m[:], u[:] = 0.9 * m + 0.1 * g, np.maximum(0.999 * u, np.abs(g))
    return 0.001 / (1 - 0.9**t) * m / (u + EPS)


def nadam(g: Vector, t: int, m: Vector, v: Vector) -> Vector:
    momenta = [0.9 * (1 - 0.5 * 0.96 ** (s * 0.004)) for s in range(1, t + 2)]
    product, (now, later) = math.prod(momenta[:-1]), momenta[-2:]
    m[:], v[:] = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
    mean = (1 - now) * g / (1 - product) + later * m / (1 - product * later)
    return 0.001 * mean / (np.sqrt(v / (1 - 0.999**t)) + EPS)


def sgd(g: Vector, t: int, *_: Vector) -> Vector:
    return 0.01 * g


def adagrad(g: Vector, t: int, a: Vector, _: Vector) -> Vector:
    a[:] = a + g**2
    return 0.01 * g / (np.sqrt(a) + EPS)


def adadelta(g: Vector, t: int, a: Vector, d: Vector) -> Vector:
    a[:] = 0.95 * a + 0.05 * g**2
    update = g * np.sqrt(d + EPS) / np.sqrt(a + EPS)
    d[:] = 0.95 * d + 0.05 * update**2
    return 0.1 * update


RULES = (adam, rmsprop, adamax, nadam, sgd, adagrad, adadelta)
KERAS: dict[str, Callable[..., Vector]] = {rule.__name__: rule for rule in RULES}


def descended(rule: Callable[..., Vector]) -> Vector:
    """Return the parameters after the steps of a rule of gradient, step and two statistics to update."""
    p, statistics = START, (np.zeros_like(START), np.zeros_like(START))
    for t in range(1, STEPS + 1):
        p = p - rule(gradient(p, t), t, *statistics)
    return p


def test_the_recipe_has_the_seven_of_table_12() -> None:
    assert set(load_recipe("abdelzad").optimizer) == set(KERAS)


@pytest.mark.parametrize("name", KERAS)
def test_update_rule_is_that_of_keras(name: str) -> None:
    choice = load_recipe("abdelzad").optimizer[name]
    p = torch.tensor(START, requires_grad=True)
    optimizer = make_optimizer(choice.rule, [p], choice.settings)
    for t in range(1, STEPS + 1):
        p.grad = torch.from_numpy(gradient(p.detach().numpy(), t))
        optimizer.step()
    assert np.abs(p.detach().numpy() - START).min() > 1e-10  # it moved in every coordinate
    # torch keeps the product of Nadam's momenta in float32: 2e-11 here
    assert p.detach().numpy() == pytest.approx(descended(KERAS[name]), rel=1e-9, abs=1e-9)


def test_adam_of_torch_is_another_rule() -> None:
    p = torch.tensor(START, requires_grad=True)
    optimizer = make_optimizer("adam", [p], {"lr": 0.001, "eps": EPS})
    for t in range(1, STEPS + 1):
        p.grad = torch.from_numpy(gradient(p.detach().numpy(), t))
        optimizer.step()
    assert p.detach().numpy() != pytest.approx(descended(adam), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("name", KERAS)
def test_state_goes_on_where_it_was(name: str) -> None:
    choice = load_recipe("abdelzad").optimizer[name]
    ends = []
    for interrupted in (False, True):
        p = torch.tensor(START, dtype=torch.float32, requires_grad=True)
        optimizer = make_optimizer(choice.rule, [p], choice.settings)
        for t in range(1, 7):
            if interrupted and t == 4:
                state = optimizer.state_dict()
                optimizer = make_optimizer(choice.rule, [p], choice.settings)
                optimizer.load_state_dict(state)
            p.grad = torch.from_numpy(gradient(p.detach().numpy(), t)).float()
            optimizer.step()
        ends.append(p.detach().numpy().tolist())
    assert ends[0] == ends[1]


def test_parameters_without_a_gradient_stay() -> None:
    p, still = torch.tensor([1.0], requires_grad=True), torch.tensor([1.0], requires_grad=True)
    for rule in ("keras-adam", "keras-adamax"):
        p.grad = torch.tensor([1.0])
        make_optimizer(rule, [p, still], {"lr": 0.1}).step()
    assert still.item() == 1.0
    assert p.item() < 1.0


def test_wrong_settings_and_rules_are_named() -> None:
    p = torch.zeros(1, requires_grad=True)
    with raises(DataError, naming="rho"):
        make_optimizer("sgd", [p], {"lr": 0.1, "rho": 0.9})
    with raises(UnknownNameError, near="nadam"):
        make_optimizer("nadamm", [p], {})
    for groups in ([{"params": [p]}, {"params": [p]}], [{"params": 5}], [{"lr": 1.0}], None):
        with pytest.raises(DataError) as refused:
            make_optimizer("sgd", groups, {"lr": 0.1})  # type: ignore[arg-type]
        assert refused.value.where == "parameter_groups"
