"""Augmentations of a batch of uint8 images on its device.

Random numbers are drawn on the CPU, so that crops do not depend on the device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from ..checkpoints.choices import AUGMENTATIONS

Augmentation = Callable[[Tensor, Any], Tensor]
"""(images uint8 (n, c, h, w), CPU generator) -> images of the same shape."""


def unchanged(images: Tensor, generator: Any) -> Tensor:
    """Return the images as they are."""
    return images


def crop_and_flip(images: Tensor, generator: Any, padding: int = 4) -> Tensor:
    """Crop each zero-padded image at random, and mirror it with probability 1/2.

    The standard CIFAR augmentation: torchvision's ``RandomCrop(h, padding=4)`` and
    ``RandomHorizontalFlip()``, black padding included.

    Parameters
    ----------
    images : (n, c, h, w) uint8. generator : a CPU generator. padding : pixels on each side.
    """
    n, _, h, w = images.shape
    offsets = torch.randint(0, 2 * padding + 1, (2, n), generator=generator).to(images.device)
    mirrored = torch.randint(0, 2, (n,), generator=generator).to(images.device).bool()
    padded = functional.pad(images, (padding,) * 4)
    windows = padded.unfold(2, h, 1).unfold(3, w, 1)  # (n, c, offset y, offset x, h, w), a view
    crops = windows[torch.arange(n, device=images.device), :, offsets[0], offsets[1]]
    return torch.where(mirrored[:, None, None, None], crops.flip(3), crops)


def augmentation(name: str) -> Augmentation:
    """Return the augmentation of a name in `choices.AUGMENTATIONS`."""
    function: Augmentation = globals()[AUGMENTATIONS[name]]
    return function
