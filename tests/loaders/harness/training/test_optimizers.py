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


def adam(p: Vector) -> Vector:
    m, v = np.zeros_like(p), np.zeros_like(p)
    for t in range(1, STEPS + 1):
        g = gradient(p, t)
        rate = 0.001 * math.sqrt(1 - 0.999**t) / (1 - 0.9**t)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        p = p - rate * m / (np.sqrt(v) + EPS)
    return p


def rmsprop(p: Vector) -> Vector:
    a = np.zeros_like(p)
    for t in range(1, STEPS + 1):
        g = gradient(p, t)
        a = 0.9 * a + 0.1 * g**2
        p = p - 0.001 * g / (np.sqrt(a) + EPS)
    return p


def adamax(p: Vector) -> Vector:
    m, u = np.zeros_like(p), np.zeros_like(p)
    for t in range(1, STEPS + 1):
        g = gradient(p, t)
        m, u = 0.9 * m + 0.1 * g, np.maximum(0.999 * u, np.abs(g))
        p = p - 0.001 / (1 - 0.9**t) * m / (u + EPS)
    return p


def nadam(p: Vector) -> Vector:
    m, v, product = np.zeros_like(p), np.zeros_like(p), 1.0
    for t in range(1, STEPS + 1):
        g = gradient(p, t)
        now, later = (0.9 * (1 - 0.5 * 0.96 ** (s * 0.004)) for s in (t, t + 1))
        product *= now
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        mean = (1 - now) * g / (1 - product) + later * m / (1 - product * later)
        p = p - 0.001 * mean / (np.sqrt(v / (1 - 0.999**t)) + EPS)
    return p


def sgd(p: Vector) -> Vector:
    for t in range(1, STEPS + 1):
        p = p - 0.01 * gradient(p, t)
    return p


def adagrad(p: Vector) -> Vector:
    a = np.zeros_like(p)
    for t in range(1, STEPS + 1):
        g = gradient(p, t)
        a = a + g**2
        p = p - 0.01 * g / (np.sqrt(a) + EPS)
    return p


def adadelta(p: Vector) -> Vector:
    a, d = np.zeros_like(p), np.zeros_like(p)
    for t in range(1, STEPS + 1):
        g = gradient(p, t)
        a = 0.95 * a + 0.05 * g**2
        update = g * np.sqrt(d + EPS) / np.sqrt(a + EPS)
        p = p - 0.1 * update
        d = 0.95 * d + 0.05 * update**2
    return p


KERAS: dict[str, Callable[[Vector], Vector]] = {
    "adam": adam,
    "rmsprop": rmsprop,
    "adamax": adamax,
    "nadam": nadam,
    "sgd": sgd,
    "adagrad": adagrad,
    "adadelta": adadelta,
}


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
    assert p.detach().numpy() == pytest.approx(KERAS[name](START), rel=1e-9, abs=1e-9)


def test_adam_of_torch_is_another_rule() -> None:
    p = torch.tensor(START, requires_grad=True)
    optimizer = make_optimizer("adam", [p], {"lr": 0.001, "eps": EPS})
    for t in range(1, STEPS + 1):
        p.grad = torch.from_numpy(gradient(p.detach().numpy(), t))
        optimizer.step()
    assert p.detach().numpy() != pytest.approx(adam(START), rel=1e-6, abs=1e-6)


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
