"""Clusters, and the labels that spread in them."""

from __future__ import annotations

from typing import Any

import torch

from loaders.harness.training.methods import get_method
from loaders.harness.training.methods.interface import Data
from loaders.harness.training.methods.relabelling import k_means, principal_components, spread_labels

from .stand_ins import new_state

GENERATOR = torch.Generator().manual_seed(0)
CENTRES = torch.tensor([[10.0, 0, 0], [0, 10, 0], [0, 0, 10]])
OWNERS = torch.arange(60) % 3
POINTS = CENTRES[OWNERS] + 0.3 * torch.randn(60, 3, generator=GENERATOR)


def test_clusters_of_separate_points_are_found() -> None:
    starts = [k_means(POINTS, 3, torch.Generator().manual_seed(seed), 20) for seed in range(10)]
    right = [
        len({(int(o), int(c)) for o, c in zip(OWNERS, clusters, strict=True)}) == 3 for clusters in starts
    ]
    assert any(right)
    assert torch.equal(k_means(POINTS, 3, torch.Generator().manual_seed(1), 20), starts[1])
    assert set(k_means(POINTS, 1, GENERATOR, 3).tolist()) == {0}


def test_principal_components_keep_the_distances_that_are_there() -> None:
    flat = torch.cat([POINTS, torch.zeros(60, 4)], 1)
    reduced = principal_components(flat, 3)
    assert reduced.shape == (60, 3)
    torch.testing.assert_close(torch.pdist(reduced), torch.pdist(POINTS), rtol=1e-4, atol=1e-4)
    assert bool((reduced.var(0).diff() <= 0).all())


def test_labels_spread_in_pure_clusters_alone() -> None:
    clusters = torch.tensor([0, 0, 0, 0, 0, 1, 1, 1, 2, 2])
    labels = torch.tensor([2, 2, 2, 2, -1, 0, 0, -1, -1, -1])
    assert spread_labels(labels, clusters, 3, 0.8).tolist() == [2, 2, 2, 2, 2, 0, 0, -1, -1, -1]
    assert spread_labels(labels, clusters, 3, 0.6).tolist() == [2, 2, 2, 2, 2, 0, 0, 0, -1, -1]


def test_unlabelled_images_of_an_id_class_are_trained_with_its_label() -> None:
    method: Any = get_method("udg[purity=0.5]")
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
