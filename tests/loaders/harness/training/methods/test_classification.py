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


def test_softmax_is_equation_1_with_one_hot_targets() -> None:
    expected = weighted_cross_entropy(Z[:3], [one_hot(y, 3) for y in (0, 2, 1)], [1.0] * 3)
    assert float(loss_of(get_method("softmax"), Z[:3], Y[:3])) == pytest.approx(expected, abs=1e-12)


def test_background_weights_are_equation_4() -> None:
    # N = 100 samples, C = 3 classes with 10, 30 and 60
    expected = [100 / (3 * 10), 100 / (3 * 30), 100 / (3 * 60)]
    assert background_weights(torch.tensor([10, 30, 60])).tolist() == pytest.approx(expected, rel=1e-6)


def test_background_weights_refuse_an_empty_class() -> None:
    with raises(DataError, naming="3"):
        background_weights(torch.tensor([10, 0, 60]))


def test_background_is_equations_1_3_and_4() -> None:
    weights = [0.5, 2.0, 1.25]  # two known classes and the background class
    labels = torch.tensor([0, 1, 1, -1, -1])
    targets = [one_hot(y, 3) for y in (0, 1, 1, 2, 2)]
    expected = weighted_cross_entropy(Z, targets, weights)
    found = loss_of(get_method("background"), Z, labels, weights=torch.tensor(weights, dtype=torch.float64))
    assert float(found) == pytest.approx(expected, abs=1e-12)


def test_background_equals_the_weighted_mean_of_torch_over_a_whole_set() -> None:
    labels = torch.tensor([0, 0, 1, -1, -1])
    weights = background_weights(torch.tensor([2, 1, 2])).double()
    targets = torch.tensor([0, 0, 1, 2, 2])
    whole = torch.nn.functional.cross_entropy(Z, targets, weight=weights)
    assert float(loss_of(get_method("background"), Z, labels, weights=weights)) == pytest.approx(
        float(whole), abs=1e-7
    )


def test_entropic_open_set_is_equations_1_3_and_5() -> None:
    targets = [one_hot(0, 3), one_hot(2, 3), one_hot(1, 3), [1 / 3] * 3, [1 / 3] * 3]
    expected = weighted_cross_entropy(Z, targets, [1.0] * 3)
    assert float(loss_of(get_method("entropic-open-set"), Z, Y)) == pytest.approx(expected, abs=1e-12)


def test_entropic_open_set_of_knowns_alone_is_softmax_and_of_negatives_alone_least_when_uniform() -> None:
    assert float(loss_of(get_method("entropic-open-set"), Z[:3], Y[:3])) == pytest.approx(
        float(loss_of(get_method("softmax"), Z[:3], Y[:3]))
    )
    uniform = torch.zeros(2, 3, dtype=torch.float64)
    assert float(loss_of(get_method("entropic-open-set"), uniform, Y[3:])) == pytest.approx(math.log(3))
    assert float(loss_of(get_method("entropic-open-set"), Z[3:], Y[3:])) > math.log(3)


@pytest.mark.parametrize("weight", [0.5, 1.0])
def test_outlier_exposure_adds_cross_entropy_to_uniform(weight: float) -> None:
    known = weighted_cross_entropy(Z[:3], [one_hot(y, 3) for y in (0, 2, 1)], [1.0] * 3)
    uniform = weighted_cross_entropy(Z[3:], [[1 / 3] * 3] * 2, [1.0] * 3)
    found = loss_of(get_method("outlier-exposure", {"weight": weight}), Z, Y)
    assert float(found) == pytest.approx(known + weight * uniform, abs=1e-12)


def test_energy_is_minus_log_sum_exp() -> None:
    expected = [-math.log(sum(math.exp(v) for v in row)) for row in Z.tolist()]
    assert energy(Z).tolist() == pytest.approx(expected, abs=1e-12)


def test_energy_loss_is_squared_hinges_beyond_the_margins() -> None:
    m_in, m_out, weight = -3.0, -2.0, 0.1
    energies = [-math.log(sum(math.exp(v) for v in row)) for row in Z.tolist()]
    above = [max(0.0, e - m_in) ** 2 for e in energies[:3]]
    below = [max(0.0, m_out - e) ** 2 for e in energies[3:]]
    assert min(sum(above), sum(below)) > 0  # both hinges are at work
    known = weighted_cross_entropy(Z[:3], [one_hot(y, 3) for y in (0, 2, 1)], [1.0] * 3)
    expected = known + weight * (sum(above) / 3 + sum(below) / 2)
    found = loss_of(get_method("energy", {"m_in": m_in, "m_out": m_out, "weight": weight}), Z, Y)
    assert float(found) == pytest.approx(expected, abs=1e-12)


def test_energies_within_the_margins_cost_nothing() -> None:
    z = torch.tensor([[30.0, 0.0], [0.1, 0.1]], dtype=torch.float64)  # energies -30 and about -.8
    labels = torch.tensor([0, -1])
    assert float(loss_of(get_method("energy[m_in=-27,m_out=-3]"), z, labels)) == pytest.approx(0.0, abs=1e-9)


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


def test_logitnorm_is_the_cross_entropy_of_logits_of_norm_1_over_tau() -> None:
    scaled = [[v / math.sqrt(sum(w * w for w in row)) / 0.5 for v in row] for row in Z[:3].tolist()]
    expected = weighted_cross_entropy(torch.tensor(scaled), [one_hot(y, 3) for y in (0, 2, 1)], [1.0] * 3)
    assert float(loss_of(get_method("logitnorm[tau=0.5]"), Z[:3], Y[:3])) == pytest.approx(expected, abs=1e-5)
