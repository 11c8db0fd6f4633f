"""Prototypes of PALM: the assignment of images, moving averages and logits."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from loaders.harness.training.methods import get_method

from .stand_ins import FixedOutputs

GENERATOR = torch.Generator().manual_seed(0)


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
