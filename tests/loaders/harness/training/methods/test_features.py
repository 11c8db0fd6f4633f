"""Features that training changes, clusters (T2FNorm, ISH, UDG), and the prototypes of PALM."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from loaders.harness.training.methods import Batch, Network, get_method
from loaders.harness.training.methods.interface import Data
from loaders.harness.training.methods.relabelling import k_means, spread_labels, whitened_components

from .oracles.formulas import cross_entropy, softmax
from .stand_ins import FixedOutputs, loss_of, new_state

GENERATOR = torch.Generator().manual_seed(0)
CENTRES = torch.tensor([[10.0, 0, 0], [0, 10, 0], [0, 0, 10]])
OWNERS = torch.arange(60) % 3
POINTS = CENTRES[OWNERS] + 0.3 * torch.randn(60, 3, generator=GENERATOR)


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


def test_clusters_of_separate_points_are_found() -> None:
    starts = [k_means(POINTS, 3, torch.Generator().manual_seed(seed), 20) for seed in range(10)]
    right = [
        len({(int(o), int(c)) for o, c in zip(OWNERS, clusters, strict=True)}) == 3 for clusters in starts
    ]
    assert any(right)
    assert torch.equal(k_means(POINTS, 3, torch.Generator().manual_seed(1), 20), starts[1])
    assert set(k_means(POINTS, 1, GENERATOR, 3).tolist()) == {0}


def test_whitened_components_have_the_distances_of_mahalanobis() -> None:
    flat, points = torch.cat([POINTS, torch.zeros(60, 4)], 1), POINTS.double().numpy()
    reduced = whitened_components(flat, 5)
    assert reduced.shape == (60, 5)
    assert torch.equal(reduced[:, 3:], torch.zeros(60, 2))
    inverse = np.linalg.inv(np.cov(points.T, bias=True))
    expected = [math.sqrt((p - q) @ inverse @ (p - q)) for i, p in enumerate(points) for q in points[i + 1 :]]
    np.testing.assert_allclose(torch.pdist(reduced).numpy(), expected, rtol=1e-3)
    torch.testing.assert_close(whitened_components(flat, 2), reduced[:, :2])


def test_labels_spread_in_pure_clusters_alone() -> None:
    clusters = torch.tensor([0, 0, 0, 0, 0, 1, 1, 1, 2, 2])
    labels = torch.tensor([2, 2, 2, 2, -1, 0, 0, -1, -1, -1])
    assert spread_labels(labels, clusters, 3, 0.8).tolist() == [2, 2, 2, 2, 2, 0, 0, -1, -1, -1]
    assert spread_labels(labels, clusters, 3, 0.6).tolist() == [2, 2, 2, 2, 2, 0, 0, 0, -1, -1]


def test_unlabelled_images_of_an_id_class_are_trained_with_its_label() -> None:
    method: Any = get_method("udg[purity=0.5,dimensions=2]")
    features, labels = {False: POINTS[:45], True: POINTS[45:]}, OWNERS[:45]
    state = new_state()
    for seed in range(10):
        state.generator = torch.Generator().manual_seed(seed)
        data = Data(labels, 15, ("a", "b", "c"), lambda outliers=False: (features[outliers], None))  # type: ignore[arg-type, return-value]
        method.setup(None, data, state)
        if torch.equal(state["labels"], OWNERS):
            break
    assert torch.equal(state["labels"], OWNERS)
    assert torch.equal(state["labels"][:45], labels)


def directions(*shape: int) -> torch.Tensor:
    return functional.normalize(torch.randn(*shape, generator=GENERATOR), dim=-1)


def test_images_are_distributed_evenly_over_the_prototypes_of_a_class() -> None:
    method: Any = get_method("palm[prototypes=3,iterations=200]")
    similarities, labels = torch.randn(30, 1, 3, generator=GENERATOR), torch.zeros(30, dtype=torch.int64)
    weights = method.assign(similarities, labels).exp()
    torch.testing.assert_close(weights.sum(1), torch.ones(30))
    torch.testing.assert_close(weights.sum(0), torch.full((3,), 10.0), rtol=1e-3, atol=1e-3)
    assert weights.std() > 0.1


def test_a_prototype_moves_towards_its_images_and_stays_without_any() -> None:
    method: Any = get_method("palm[momentum=0.5]")
    prototypes, embeddings = directions(2, 2, 8), directions(3, 8)
    weights = torch.tensor([[0.25, 0.75], [0.5, 0.5], [1.0, 0.0]])
    moved = method.move(prototypes, embeddings, torch.tensor([0, 0, 0]), weights)
    torch.testing.assert_close(moved[1], prototypes[1])
    mean = (0.75 * embeddings[0] + 0.5 * embeddings[1]) / 1.25
    torch.testing.assert_close(moved[0, 1], functional.normalize(prototypes[0, 1] + mean, dim=0))


def test_a_logit_is_the_log_of_the_summed_exp_similarity_to_the_prototypes_of_a_class() -> None:
    method = get_method("palm[prototypes=4,size=8]")
    model = FixedOutputs(method, torch.zeros(5, 3), torch.randn(5, 6, generator=GENERATOR))
    with torch.no_grad():
        embeddings, logits = model.head.embed(model.features), model.head(model.features)
        for k in range(3):
            powers = [(embeddings @ p / 0.1).exp() for p in model.head.prototypes[k]]
            torch.testing.assert_close(logits[:, k], torch.stack(powers).sum(0).log(), rtol=1e-4, atol=1e-4)
