"""Cross-entropy of augmented images: RandAugment, AugMix with and without consistency, PixMix.

References
----------
Cubuk, Zoph, Shlens and Le, RandAugment: Practical Automated Data Augmentation with a Reduced Search Space,
NeurIPS 2020.
Hendrycks, Mu, Cubuk, Zoph, Gilmer and Lakshminarayanan, AugMix: A Simple Data Processing Method to Improve
Robustness and Uncertainty, ICLR 2020.
Hendrycks, Zou, Mazeika, Tang, Li, Song and Steinhardt, PixMix: Dreamlike Pictures Comprehensively Improve
Safety Measures, CVPR 2022.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, Any

import numpy as np
import torch
from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt
from torch import Tensor
from torch.nn import functional

from ...data.parameters import parameters
from .classification import Softmax
from .image_operations import AUGMIX, RANDAUGMENT, Operation, apply_operations, to_uint8
from .interface import Batch, Part, State, Term, Terms, View, cross_entropy, declare
from .mixing import numpy_generator
from .network import Network
from .registry import register_method

GREATEST_MAGNITUDE, GREATEST_SEVERITY = 30, 10
"""Scales of RandAugment's magnitudes and of AugMix's severities."""

FRACTALS_AT_ONCE = 50
LEAST_MAGNITUDE = 0.1
"""Least magnitude of an operation of AugMix, on the scale of the severities."""
LEAST_FACTOR = 1e-37
"""Least 2 x partner in a product of PixMix, as in the authors' code: a negative power of 0 is infinite."""
Severity = Annotated[float, Field(ge=LEAST_MAGNITUDE, le=GREATEST_SEVERITY)]


def random_signs(rng: np.random.Generator, n: int) -> Any:
    """Return n numbers -1 or 1."""
    return rng.choice([-1.0, 1.0], n)


@register_method("randaugment")
@parameters
class RandAugment(Softmax):
    """Cross-entropy of images after ``operations`` random operations, all with ``magnitude`` (0 to 30)."""

    operations: NonNegativeInt = 1
    magnitude: Annotated[float, Field(ge=0, le=GREATEST_MAGNITUDE)] = 14.0

    def views(self, augment: View) -> Sequence[View]:
        """Return the recipe's augmentation followed by the operations."""

        def view(images: Tensor, generator: Any) -> Tensor:
            images, n = augment(images, generator), len(images)
            rng = numpy_generator(generator)
            for _ in range(self.operations):
                numbers = rng.integers(0, len(RANDAUGMENT), n)
                magnitudes = self.magnitude / GREATEST_MAGNITUDE * random_signs(rng, n)
                images = apply_operations(images, RANDAUGMENT, numbers, magnitudes)
            return images

        return (view,)


@register_method("augmix")
@parameters
class AugMix(Softmax):
    """Cross-entropy of images mixed with chains of operations (AugMix, algorithm 1, without consistency).

    The mixture is m x image + (1 - m) x sum of w_i chain_i, w of Dirichlet(alpha), m of Beta(alpha, alpha).

    Attributes
    ----------
    width : number of chains, each of 1 to 3 operations.
    severity : 0.1 to 10, the greatest of the operations.
    """

    width: PositiveInt = 3
    severity: Severity = 3.0
    alpha: PositiveFloat = 1.0

    def views(self, augment: View) -> Sequence[View]:
        """Return the recipe's augmentation followed by the mixture."""
        return (lambda images, generator: self.mix(augment(images, generator), generator),)

    def mix(self, images: Tensor, generator: Any) -> Tensor:
        """Return the mixture of each image."""
        rng, n = numpy_generator(generator), len(images)
        weights = rng.dirichlet([self.alpha] * self.width, n)
        share = rng.beta(self.alpha, self.alpha, n)
        chains, depth = images.repeat(self.width, 1, 1, 1), rng.integers(1, 4, self.width * n)
        for position in range(3):
            chains = random_operation(chains, self.severity, rng, position < depth)
        mixture = as_factor(share, images) * images
        for chain, changed in enumerate(chains.split(n)):
            mixture = mixture + as_factor((1 - share) * weights[:, chain], images) * changed
        return to_uint8(mixture)


@register_method("augmix-jsd")
@parameters
class AugMixJsd(AugMix):
    """Cross-entropy, and the divergence between the predictions of an image and of two mixtures (AugMix).

    The three views share the crop. ``consistency`` is the Jensen-Shannon divergence (algorithm 1).
    """

    weight: NonNegativeFloat = 12.0

    parts = declare(cross_entropy=Part(), consistency=Part())

    def views(self, augment: View) -> Sequence[View]:
        """Return the augmented image and two random mixtures made from it."""
        crops: list[Tensor] = []

        def plain(images: Tensor, generator: Any) -> Tensor:
            crops[:] = [augment(images, generator)]
            return crops[0]

        def mixed(images: Tensor, generator: Any) -> Tensor:
            return self.mix(crops[0], generator)

        return (plain, mixed, mixed)

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        """Return the cross-entropy of the first view, and the divergence."""
        logits = model.logits(torch.cat(batch.views))
        plain = logits[: len(batch)]
        return {
            "cross_entropy": cross_entropy(plain, batch.labels),
            "consistency": Term(jensen_shannon(logits.unflatten(0, (-1, len(batch)))), self.weight),
        }


@register_method("pixmix")
@parameters
class PixMix(Softmax):
    """Cross-entropy of images mixed with fractals and with copies of themselves (PixMix, figure 4).

    Up to ``rounds`` times, an image is joined with a fractal or an operation's result, by addition or by
    multiplication with weights of Beta(beta, 1) and Beta(1, beta). The fractals are attractors of random
    iterated function systems, the same in every training.

    Attributes
    ----------
    fractals : number of fractals.
    severity : 0.1 to 10, the greatest severity of the operations.
    """

    rounds: NonNegativeInt = 4
    beta: PositiveFloat = 3.0
    severity: Severity = 3.0
    fractals: PositiveInt = 500

    revision = 2  # partners of products are clipped at 1e-37, not 1/255

    def views(self, augment: View) -> Sequence[View]:
        """Return the recipe's augmentation followed by the mixture."""
        return (lambda images, generator: self.mix(augment(images, generator), generator),)

    def mix(self, images: Tensor, generator: Any) -> Tensor:
        """Return the mixture of each image."""
        rng, (n, _, h, w) = numpy_generator(generator), images.shape
        fractals = fractal_images(self.fractals, h, w)
        mixture = random_operation(images, self.severity, rng, rng.random(n) < 0.5) / 255
        rounds = rng.integers(0, self.rounds + 1, n)
        for number in range(self.rounds):
            copies = random_operation(images, self.severity, rng, np.ones(n, bool))
            selected = fractals[torch.from_numpy(rng.integers(0, len(fractals), n))].to(images.device)
            partner = torch.where(as_factor(rng.random(n) < 0.5, images) > 0, copies, selected) / 255
            joined = join(mixture, partner, self.beta, rng)
            mixture = torch.where(as_factor(number < rounds, images) > 0, joined, mixture)
        return to_uint8(255 * mixture)


def random_operation(images: Tensor, severity: float, rng: np.random.Generator, mask: Any) -> Tensor:
    """Apply a random operation of AugMix to the images of a mask, of magnitude .1 to severity of 10."""
    n = len(images)
    numbers = np.where(mask, rng.integers(0, len(AUGMIX), n), -1)
    magnitudes = rng.uniform(LEAST_MAGNITUDE, severity, n) / GREATEST_SEVERITY * random_signs(rng, n)
    operations: Sequence[Operation] = AUGMIX
    return apply_operations(images, operations, numbers, magnitudes)


def join(images: Tensor, partners: Tensor, beta: float, rng: np.random.Generator) -> Tensor:
    """Return a x + b y - (a + b - 1) / 2, or (2 x)^a (2 y)^b / 2, in 0..1, at random for each image.

    (a, b) are Beta(beta, 1) and Beta(1, beta), or 1 + Beta(1, beta) and -Beta(1, beta).
    """
    n = len(images)
    first, second, third = rng.beta(beta, 1, n), rng.beta(1, beta, n), rng.beta(1, beta, n)
    crossed = rng.random(n) < 0.5
    a = as_factor(np.where(crossed, 1 + third, first), images)
    b = as_factor(np.where(crossed, -second, second), images)
    added = a * images + b * partners - (a + b - 1) / 2
    multiplied = (2 * images) ** a * (2 * partners).clamp_min(LEAST_FACTOR) ** b / 2
    return torch.where(as_factor(rng.random(n) < 0.5, images) > 0, added, multiplied).clamp(0, 1)


def as_factor(values: Any, images: Tensor) -> Tensor:
    """Return NumPy numbers (n,) as a tensor (n, 1, 1, 1) on the images' device."""
    return torch.from_numpy(np.asarray(values, np.float32)).to(images.device).view(-1, 1, 1, 1)


def jensen_shannon(logits: Tensor) -> Tensor:
    """Return the Jensen-Shannon divergence (n,) of predictions with logits (v, n, K)."""
    logs = functional.log_softmax(logits, 2)
    mean = logs.exp().mean(0).clamp_min(1e-7).log()
    return (logs.exp() * (logs - mean)).sum(2).mean(0)


@lru_cache(maxsize=2)
def fractal_images(count: int, h: int, w: int) -> Tensor:
    """Return attractors of random iterated function systems as images (count, 3, h, w) uint8.

    Each system has 2 to 4 affine contractions, each with a colour. Points move by random contractions and
    leave the colour of the last. The brightness is the logarithm of the number of visits.
    """
    parts = [_render_fractals(seed, h, w) for seed in range(-(-count // FRACTALS_AT_ONCE))]
    return torch.cat(parts)[:count]


def _render_fractals(seed: int, h: int, w: int) -> Tensor:
    rng, n = np.random.default_rng(seed), FRACTALS_AT_ONCE
    burn_in, steps, points, system = 20, 80, 4 * (h + w), np.arange(n)[:, None]
    maps, colours = rng.integers(2, 5, n), rng.uniform(0.2, 1, (n, 4, 3))
    left, right = np.linalg.qr(rng.normal(size=(2, n, 4, 2, 2)))[0]
    matrices = left * rng.uniform(0.5, 0.9, (n, 4, 1, 2)) @ right
    shifts, position = rng.uniform(-1, 1, (n, 4, 2)), rng.normal(size=(n, points, 2))
    visited, contractions = [], []
    for _ in range(burn_in + steps):
        contractions.append((rng.random((n, points)) * maps[:, None]).astype(int))
        index = (system, contractions[-1])
        position = np.einsum("spij,spj->spi", matrices[index], position) + shifts[index]
        visited.append(position)
    path, last = np.concatenate(visited[burn_in:], 1), np.concatenate(contractions[burn_in:], 1)
    low, high = (np.quantile(path, q, axis=1, keepdims=True) for q in (0.01, 0.99))
    cell = np.floor((path - low) / (high - low) * [h, w]).astype(int)
    inside = ((cell >= 0) & (cell < [h, w])).all(2)
    row = np.broadcast_to(system, inside.shape)[inside]
    pixel, colour = (row * h + cell[inside][:, 0]) * w + cell[inside][:, 1], colours[row, last[inside]]
    canvas = [np.bincount(pixel, colour[:, channel], n * h * w) for channel in range(3)]
    light = np.log1p(np.stack(canvas, 1)).reshape(n, h, w, 3)
    light *= 255 / light.max((1, 2, 3), keepdims=True)
    return torch.from_numpy(light.round().astype(np.uint8)).permute(0, 3, 1, 2).contiguous()
