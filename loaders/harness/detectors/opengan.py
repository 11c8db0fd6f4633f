"""OpenGAN: a discriminator of training features against outliers, selected on validation images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from pydantic import PositiveInt

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.lazy import need
from wordnet_splits.metrics import auroc

from ..data.arrays import Array, Arrays, Head
from ..data.parameters import parameters
from .class_means import canonical
from .registry import PAPERS, register

NOISE, HIDDEN = 100, (512, 256, 128, 64)
BATCH, RATE, BETAS, SLOPE = 256, 1e-4, (0.5, 0.999), 0.2

Weights = Sequence[tuple[Array, Array]]
"""(weight (out, in), bias (out,)) of each layer, leaky ReLUs between them."""


class Discriminator(NamedTuple):
    """Mean and spread (D,) of training features, and the layers of the discriminator."""

    mean: Array
    spread: Array
    layers: Weights

    def confidence(self, features: Array) -> Array:
        """Return the discriminator's logit (n,), without a sigmoid, which would create ties."""
        values = (features - self.mean) / self.spread
        for number, (weight, bias) in enumerate(self.layers):
            if number:
                values = np.maximum(values, SLOPE * values)
            values = values @ weight.T + bias
        return np.asarray(values[:, 0])


@register("opengan", paper=PAPERS["kong2021"], needs=("features",), fit_on=("train", "val", "ood-val"))
@parameters
class OpenGAN:
    """Logit of a discriminator of training features against generated features and those of outliers.

    Half of the OOD validation images are the outliers of the training; the epoch is kept that separates the
    other half from ID validation images best. Seeded; rows are sorted first, so that their order does not
    matter.
    """

    epochs: PositiveInt = 10
    seed: int = 0

    def fit(self, data: Mapping[str, Arrays], head: Head | None) -> Discriminator:
        """Train, and return the discriminator of the best epoch."""
        need("torch", "torch", where="detector opengan")
        train, id_val, ood_val = (canonical(data[split]["features"]) for split in ("train", "val", "ood-val"))
        if min(len(train), len(id_val), len(ood_val)) < 2:
            raise DataError("fewer than two training, ID or OOD validation images")
        mean, spread = train.mean(axis=0, dtype=np.float64), train.std(axis=0, dtype=np.float64)
        scale = (mean.astype(np.float32), np.where(spread > 0, spread, 1).astype(np.float32))
        shuffled = ood_val[np.random.default_rng(self.seed).permutation(len(ood_val))]
        outliers, held_out = shuffled[::2], shuffled[1::2]
        best, highest = None, -1.0
        real, unreal = ((rows - scale[0]) / scale[1] for rows in (train, outliers))
        for layers in _epochs(real, unreal, self.epochs, self.seed):
            candidate = Discriminator(*scale, layers)
            separation = float(auroc(candidate.confidence(id_val), candidate.confidence(held_out)))
            if best is None or separation > highest:
                best, highest = candidate, separation
        assert best is not None  # there is at least one epoch
        return best

    def score(self, state: Discriminator, data: Arrays) -> Array:
        """Return the logit that the features are of a training image."""
        return state.confidence(np.asarray(data["features"], dtype=np.float32))


def _epochs(train: Array, outliers: Array, epochs: int, seed: int) -> Any:
    """Train a generator and a discriminator on each other; yield the latter's layers after each epoch."""
    import torch
    from torch.nn.functional import binary_cross_entropy_with_logits, leaky_relu

    draw = torch.Generator().manual_seed(seed)

    def network(*widths: int) -> list[Any]:
        return [
            (
                (torch.randn(b, a, generator=draw) * (2 / a) ** 0.5).requires_grad_(True),
                torch.zeros(b, requires_grad=True),
            )
            for a, b in pairwise(widths)
        ]

    def through(layers: list[Any], x: Any) -> Any:
        for number, (weight, bias) in enumerate(layers):
            x = (leaky_relu(x, SLOPE) if number else x) @ weight.T + bias
        return x

    def adam(layers: list[Any]) -> Any:
        return torch.optim.Adam([p for pair in layers for p in pair], lr=RATE, betas=BETAS)

    def loss(logits: Any, target: float) -> Any:
        return binary_cross_entropy_with_logits(logits, torch.full_like(logits, target))

    width = train.shape[1]
    generator, discriminator = network(NOISE, *HIDDEN[::-1], width), network(width, *HIDDEN, 1)
    of_generator, of_discriminator = adam(generator), adam(discriminator)
    real, unreal = torch.from_numpy(train), torch.from_numpy(outliers)
    with torch.enable_grad():
        for _ in range(epochs):
            for rows in torch.randperm(len(real), generator=draw).split(BATCH):
                generated = through(generator, torch.randn(len(rows), NOISE, generator=draw))
                outlier_batch = unreal[torch.randint(len(unreal), (len(rows),), generator=draw)]
                of_discriminator.zero_grad()
                unreal_losses = (
                    loss(through(discriminator, x), 0.0) for x in (generated.detach(), outlier_batch)
                )
                (loss(through(discriminator, real[rows]), 1.0) + sum(unreal_losses) / 2).backward()
                of_discriminator.step()
                of_generator.zero_grad()
                loss(through(discriminator, generated), 1.0).backward()
                of_generator.step()
            yield [(w.detach().numpy().copy(), b.detach().numpy().copy()) for w, b in discriminator]
