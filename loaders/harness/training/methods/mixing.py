"""Mixed images and softened labels: MixUp, CutMix, RegMixup, label smoothing, MixOE.

References
----------
Zhang, Cisse, Dauphin and Lopez-Paz, mixup: Beyond Empirical Risk Minimization, ICLR 2018.
Yun, Han, Oh, Chun, Choe and Yoo, CutMix: Regularization Strategy to Train Strong Classifiers with
Localizable Features, ICCV 2019.
Pinto, Yang, Lim, Torr and Dokania, Using Mixup as a Regularizer Can Surprisingly Improve Accuracy and
Out-of-Distribution Robustness (RegMixup), NeurIPS 2022.
Szegedy, Vanhoucke, Ioffe, Shlens and Wojna, Rethinking the Inception Architecture for Computer Vision,
CVPR 2016, section 7.
Zhang, Inkawhich, Linderman, Chen and Li, Mixture Outlier Exposure: Towards Out-of-Distribution Detection in
Fine-grained Environments, WACV 2023.
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import torch
from pydantic import Field, NonNegativeFloat, PositiveFloat
from torch import Tensor

from ...data.parameters import parameters
from .classification import uniform_cross_entropy
from .interface import Batch, Formula, Method, Part, State, Term, Terms, cross_entropy, declare
from .network import Network
from .registry import register_method

SEEDS = 2**31


def numpy_generator(generator: Any) -> np.random.Generator:
    """Return NumPy's generator, seeded by a number of torch's; torch's has no Beta distribution."""
    return np.random.default_rng(int(torch.randint(SEEDS, (1,), generator=generator)))


def draw_beta(state: State, a: float, b: float) -> float:
    """Return a number of Beta(a, b)."""
    return float(numpy_generator(state.generator).beta(a, b))


def blend(images: Tensor, others: Tensor, share: float) -> Tensor:
    """Return share x image + (1 - share) x other image."""
    return share * images + (1 - share) * others


def draw_partners(batch: Batch, state: State) -> Tensor:
    """Return a random permutation (n,) of a batch's positions."""
    return torch.randperm(len(batch), generator=state.generator).to(batch.labels.device)


def blend_pairs(batch: Batch, alpha: float, state: State) -> tuple[Tensor, Tensor, float]:
    """Return images blended with others, the labels of these, and the share of the first, of Beta(alpha)."""
    partners = draw_partners(batch, state)
    share = draw_beta(state, alpha, alpha)
    return blend(batch.images, batch.images[partners], share), batch.labels[partners], share


def paste(images: Tensor, others: Tensor, share: float, state: State) -> tuple[Tensor, float]:
    """Paste a rectangle from ``others`` over each image (CutMix, eq. 1-2).

    Its sides are sqrt(1 - share) of the images'. Its centre is random, and the border cuts it off.

    Returns
    -------
    The images (n, c, h, w), and the share of their own pixels that remains.
    """
    h, w = images.shape[2:]
    side = (1 - share) ** 0.5
    centres = torch.rand(2, generator=state.generator).tolist()
    (top, bottom), (left, right) = (
        [min(max(int(size * (centre + end * side / 2)), 0), size) for end in (-1, 1)]
        for size, centre in zip((h, w), centres, strict=True)
    )
    pasted = images.clone()
    pasted[:, :, top:bottom, left:right] = others[:, :, top:bottom, left:right]
    return pasted, 1 - (bottom - top) * (right - left) / (h * w)


@register_method("mixup")
@parameters
class MixUp(Method):
    """Cross-entropy of blended pairs of images to both labels, by their shares (mixup, section 2)."""

    alpha: PositiveFloat = 1.0

    parts = declare(cross_entropy=Part(depends="batch"))

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        """Return the cross-entropy."""
        mixtures, labels, share = blend_pairs(batch, self.alpha, state)
        return {"cross_entropy": mixed_cross_entropy(model.logits(mixtures), batch.labels, labels, share)}


@register_method("cutmix")
@parameters
class CutMix(Method):
    """Cross-entropy of images with a rectangle of another, to both labels by their shares (eq. 1-2).

    A batch is mixed with ``probability``, which is 0.5 for CIFAR and 1 for ImageNet.
    """

    alpha: PositiveFloat = 1.0
    probability: Annotated[float, Field(ge=0, le=1)] = 0.5

    parts = declare(cross_entropy=Part(depends="batch"))

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        """Return the cross-entropy."""
        if float(torch.rand(1, generator=state.generator)) >= self.probability:
            return {"cross_entropy": cross_entropy(model.logits(batch.images), batch.labels)}
        partners = draw_partners(batch, state)
        drawn_share = draw_beta(state, self.alpha, self.alpha)
        images, share = paste(batch.images, batch.images[partners], drawn_share, state)
        values = mixed_cross_entropy(model.logits(images), batch.labels, batch.labels[partners], share)
        return {"cross_entropy": values}


@register_method("regmixup")
@parameters
class RegMixup(Method):
    """Cross-entropy plus weight x mixup's cross-entropy (RegMixup, section 3), in one forward pass.

    Attributes
    ----------
    formula : ``code`` has one mean over the images and their mixtures: half of the paper's loss.
    """

    alpha: PositiveFloat = 10.0
    weight: NonNegativeFloat = 1.0
    formula: Formula = "paper"

    parts = declare(cross_entropy=Part(), mixed=Part(depends="batch"))

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        """Return both terms."""
        mixtures, labels, share = blend_pairs(batch, self.alpha, state)
        plain, mixed = model.logits(torch.cat([batch.images, mixtures])).chunk(2)
        values = mixed_cross_entropy(mixed, batch.labels, labels, share)
        scale = 0.5 if self.formula == "code" else 1.0
        return {
            "cross_entropy": Term(cross_entropy(plain, batch.labels), scale),
            "mixed": Term(values, scale * self.weight),
        }


@register_method("label-smoothing")
@parameters
class LabelSmoothing(Method):
    """Cross-entropy to (1 - smoothing) x one-hot + smoothing / K targets (Szegedy et al., section 7)."""

    smoothing: Annotated[float, Field(ge=0, lt=1)] = 0.1

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        """Return the cross-entropy."""
        logits = model.logits(batch.images)
        return {"cross_entropy": softened_cross_entropy(logits, batch.labels, 1 - self.smoothing)}


@register_method("mixoe")
@parameters
class MixOe(Method):
    """Cross-entropy of ID images, and of their mixtures with outliers to softened labels (MixOE, section 3).

    The share of the ID image follows Beta(a, b); the target is share x one-hot + (1 - share) / K.

    Attributes
    ----------
    a, b : equal in the paper; OpenOOD takes 0.1, and the paper's weight for b.
    cut : paste a rectangle (CutMix); otherwise blend (mixup).
    """

    a: PositiveFloat = 2.0
    b: PositiveFloat = 2.0
    weight: NonNegativeFloat = 5.0
    cut: bool = True

    outliers = "beside"
    revision = 2  # Beta(2, 2), weight 5
    parts = declare(cross_entropy=Part(), mixed=Part())

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        """Return both terms, in one forward pass."""
        images, labels = batch.images[batch.known], batch.labels[batch.known]
        outliers = batch.images[~batch.known]
        outliers = outliers[torch.arange(len(images), device=labels.device) % len(outliers)]
        share = draw_beta(state, self.a, self.b)
        if self.cut:
            mixtures, share = paste(images, outliers, share, state)
        else:
            mixtures = blend(images, outliers, share)
        plain, mixed = model.logits(torch.cat([images, mixtures])).chunk(2)
        return {
            "cross_entropy": cross_entropy(plain, labels),
            "mixed": Term(softened_cross_entropy(mixed, labels, share), self.weight),
        }


def mixed_cross_entropy(logits: Tensor, labels: Tensor, others: Tensor, share: float) -> Tensor:
    """Return share x cross-entropy to ``labels`` + (1 - share) x cross-entropy to ``others``, (n,)."""
    return share * cross_entropy(logits, labels) + (1 - share) * cross_entropy(logits, others)


def softened_cross_entropy(logits: Tensor, labels: Tensor, share: float) -> Tensor:
    """Return the cross-entropy (n,) to targets share x one-hot + (1 - share) / K."""
    return share * cross_entropy(logits, labels) + (1 - share) * uniform_cross_entropy(logits)
