"""Features that training changes at the classifier: the scale of T2FNorm, the gradient of ISH."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from loaders.harness.training.methods import Batch, Network, get_method

from .oracles.formulas import cross_entropy, softmax
from .stand_ins import loss_of, new_state

GENERATOR = torch.Generator().manual_seed(0)


def test_t2fnorm_has_the_scale_of_tau_whatever_the_features_length() -> None:
    features, labels = torch.randn(4, 3, generator=GENERATOR), torch.tensor([0, 1, 2, 0])
    loss = loss_of(get_method("t2fnorm"), features, labels, features)
    assert float(loss_of(get_method("t2fnorm"), features, labels, 7 * features)) == pytest.approx(float(loss))
    expected = torch.nn.functional.cross_entropy(10 * torch.nn.functional.normalize(features), labels)
    torch.testing.assert_close(loss, expected)


def test_the_gradient_of_ish_is_that_of_cross_entropy_but_at_the_weights_of_the_classifier() -> None:
    images, labels = torch.rand(5, 3, 2, 2, generator=GENERATOR), torch.tensor([0, 1, 2, 0, 1])
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Flatten(), nn.Linear(12, 20), nn.ReLU(), nn.Linear(20, 3))
    with torch.no_grad():
        features, logits = layers[:3](images).double().numpy(), layers(images).tolist()
    batch, gradients = Batch((images,), labels, torch.arange(5)), []
    for name in ("softmax", "ish[pruned=0.7]"):
        values = get_method(name).step(Network(layers, (2, 2)), batch, new_state())["cross_entropy"]
        expected = [cross_entropy(z, y) for z, y in zip(logits, labels.tolist(), strict=True)]
        assert values.tolist() == pytest.approx(expected)
        layers.zero_grad()
        values.mean().backward()
        gradients.append({key: p.grad.double().numpy().copy() for key, p in layers.named_parameters()})
    plain, shaped = gradients
    for key in ("1.weight", "1.bias", "3.bias"):
        np.testing.assert_allclose(shaped[key], plain[key], rtol=1e-6)
    weight = np.zeros((3, 20))
    for f, z, y in zip(features, logits, labels.tolist(), strict=True):
        greatest = np.argsort(-f)[: int(20 * (1 - 0.7))]
        scale = math.exp(sum(f) / sum(f[greatest]))
        for k, p in enumerate(softmax(z)):
            for column in greatest:
                weight[k, column] += (p - (k == y)) * f[column] * scale / 5
    np.testing.assert_allclose(shaped["3.weight"], weight, rtol=1e-4, atol=1e-9)


def test_ish_decays_the_classifier_apart() -> None:
    layers = nn.Sequential(nn.Flatten(), nn.Linear(12, 4), nn.ReLU(), nn.Linear(4, 3))
    others, head = get_method("ish").parameter_groups(Network(layers, (2, 2)))
    assert head == {"params": [*layers[3].parameters()], "weight_decay": 5e-5}
    assert others["params"] == [*layers[1].parameters()]
