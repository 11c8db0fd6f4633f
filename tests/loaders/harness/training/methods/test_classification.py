"""Each loss against its equation, written out in plain Python over samples and classes."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from loaders.harness.training.methods import get_method
from loaders.harness.training.methods.classification import background_weights, energy
from loaders.harness.training.steps import known_probabilities
from tests.raising import raises
from wordnet_splits.base.errors import DataError

from .stand_ins import loss_of

Z = torch.tensor(
    [[2.0, -1.0, 0.5], [0.1, 0.2, 0.3], [-3.0, 4.0, 1.0], [0.0, 0.0, 5.0], [1.0, 1.5, -2.0]],
    dtype=torch.float64,
)
Y = torch.tensor([0, 2, 1, -1, -1])


def softmax(z: list[float]) -> list[float]:
    total = sum(math.exp(v) for v in z)
    return [math.exp(v) / total for v in z]


def weighted_cross_entropy(z: Any, targets: list[list[float]], weights: list[float]) -> float:
    """Palechor eq. 1: -1/N sum over n and c of w_c t_nc log y_nc."""
    rows = z.tolist()
    total = 0.0
    for row, t in zip(rows, targets, strict=True):
        y = softmax(row)
        total += sum(weights[c] * t[c] * math.log(y[c]) for c in range(len(row)))
    return -total / len(rows)


def one_hot(label: int, classes: int) -> list[float]:
    return [float(c == label) for c in range(classes)]


KNOWN = weighted_cross_entropy(Z[:3], [one_hot(y, 3) for y in (0, 2, 1)], [1.0] * 3)
UNIFORM = weighted_cross_entropy(Z[3:], [[1 / 3] * 3] * 2, [1.0] * 3)
ENERGIES = [-math.log(sum(math.exp(v) for v in row)) for row in Z.tolist()]
ABOVE = [max(0.0, e + 3) ** 2 for e in ENERGIES[:3]]
BELOW = [max(0.0, -2 - e) ** 2 for e in ENERGIES[3:]]
SCALED = [[v / math.sqrt(sum(w * w for w in row)) / 0.5 for v in row] for row in Z[:3].tolist()]
FLAT = torch.zeros(2, 3, dtype=torch.float64)
EQUATIONS = {
    "softmax: Palechor eq. 1 with one-hot targets": ("softmax", Z[:3], Y[:3], KNOWN),
    "entropic open set: eq. 1, 3 and 5": ("entropic-open-set", Z, Y, (3 * KNOWN + 2 * UNIFORM) / 5),
    "entropic open set of ID images": ("entropic-open-set", Z[:3], Y[:3], KNOWN),
    "entropic open set of uniform outliers": ("entropic-open-set", FLAT, Y[3:], math.log(3)),
    "outlier exposure": ("outlier-exposure", Z, Y, KNOWN + 0.5 * UNIFORM),
    "outlier exposure, weighted": ("outlier-exposure[weight=1.0]", Z, Y, KNOWN + UNIFORM),
    "energy: squared hinges beyond the margins": (
        "energy[m_in=-3,m_out=-2,weight=0.1]",
        Z,
        Y,
        KNOWN + 0.1 * (sum(ABOVE) / 3 + sum(BELOW) / 2),
    ),
    "energies within the margins": (  # of -30 and about -.8
        "energy[m_in=-27,m_out=-3]",
        torch.tensor([[30.0, 0.0], [0.1, 0.1]], dtype=torch.float64),
        torch.tensor([0, -1]),
        0.0,
    ),
    "logitnorm: cross-entropy of logits of norm 1 / tau": (
        "logitnorm[tau=0.5]",
        Z[:3],
        Y[:3],
        weighted_cross_entropy(torch.tensor(SCALED), [one_hot(y, 3) for y in (0, 2, 1)], [1.0] * 3),
    ),
}


@pytest.mark.parametrize(("spec", "logits", "labels", "expected"), EQUATIONS.values(), ids=EQUATIONS)
def test_a_loss_is_its_equation(
    spec: str, logits: torch.Tensor, labels: torch.Tensor, expected: float
) -> None:
    tolerance = 1e-5 if "logitnorm" in spec else 1e-9
    assert float(loss_of(get_method(spec), logits, labels)) == pytest.approx(expected, abs=tolerance)
    assert min(sum(ABOVE), sum(BELOW)) > 0  # both hinges of the energies are at work


def test_entropic_open_set_is_least_where_outliers_are_uniform() -> None:
    assert float(loss_of(get_method("entropic-open-set"), Z[3:], Y[3:])) > math.log(3)


def test_background_weights_are_equation_4_and_need_every_class() -> None:
    # N = 100 samples, C = 3 classes with 10, 30 and 60
    expected = [100 / (3 * 10), 100 / (3 * 30), 100 / (3 * 60)]
    assert background_weights(torch.tensor([10, 30, 60])).tolist() == pytest.approx(expected, rel=1e-6)
    with raises(DataError, naming="3"):
        background_weights(torch.tensor([10, 0, 60]))


def test_background_is_equations_1_3_and_4_and_over_a_whole_set_the_weighted_mean_of_torch() -> None:
    weights = [0.5, 2.0, 1.25]  # two known classes and the background class
    labels = torch.tensor([0, 1, 1, -1, -1])
    expected = weighted_cross_entropy(Z, [one_hot(y, 3) for y in (0, 1, 1, 2, 2)], weights)
    found = loss_of(get_method("background"), Z, labels, weights=torch.tensor(weights, dtype=torch.float64))
    assert float(found) == pytest.approx(expected, abs=1e-12)
    labels, of_set = torch.tensor([0, 0, 1, -1, -1]), background_weights(torch.tensor([2, 1, 2])).double()
    whole = torch.nn.functional.cross_entropy(Z, torch.tensor([0, 0, 1, 2, 2]), weight=of_set)
    assert float(loss_of(get_method("background"), Z, labels, weights=of_set)) == pytest.approx(
        float(whole), abs=1e-7
    )


def test_energy_is_minus_log_sum_exp() -> None:
    assert energy(Z).tolist() == pytest.approx(ENERGIES, abs=1e-12)


@pytest.mark.parametrize("name", ["outlier-exposure", "energy"])
def test_losses_beside_need_both_kinds(name: str) -> None:
    with pytest.raises(DataError):
        loss_of(get_method(name), Z[:3], Y[:3])
    with pytest.raises(DataError):
        loss_of(get_method(name), Z[3:], Y[3:])


def test_the_background_column_counts_in_the_sum_and_is_dropped() -> None:
    found = known_probabilities(Z, background=True)
    assert found.shape == (5, 2)
    assert found[0].tolist() == pytest.approx(softmax(Z[0].tolist())[:2])
