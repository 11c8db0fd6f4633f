"""Operations on batches of images: the augmentations of recipes, and AutoAugment's with magnitudes.

Images are uint8 (n, 3, h, w). Magnitudes (n,) are in -1..1, shares of AutoAugment's greatest: rotation by 30
degrees, shear by .3, translation by 150 / 331 of the side, factors 1 +- .9 of the enhancements, 4 of 8 bits,
solarisation of every pixel. Pixels from outside the image are black.

References
----------
Cubuk, Zoph, Mane, Vasudevan and Le, AutoAugment: Learning Augmentation Strategies from Data, CVPR 2019.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

Operation = Callable[[Tensor, Tensor], Tensor]

ROTATION, SHEAR, TRANSLATION, ENHANCEMENT, LOST_BITS = math.pi / 6, 0.3, 150 / 331, 0.9, 4
GREY = (0.299, 0.587, 0.114)


def identity(images: Tensor, unused: Any) -> Tensor:
    """Return the images unchanged."""
    return images


def crop_and_flip(images: Tensor, generator: Any, padding: int = 4) -> Tensor:
    """Crop each zero-padded image at random, and mirror it with probability 1/2.

    The standard CIFAR augmentation: torchvision's ``RandomCrop(h, padding=4)`` and
    ``RandomHorizontalFlip()``, black padding included.

    Parameters
    ----------
    images : (n, c, h, w) uint8.
    generator : a CPU generator.
    padding : pixels on each side.
    """
    return crop_within_and_flip(functional.pad(images, (padding,) * 4), generator, padding)


def crop_within_and_flip(images: Tensor, generator: Any, margin: int) -> Tensor:
    """Cut a random window, ``margin`` pixels narrower on each side, and mirror it with probability 1/2."""
    n, _, h, w = images.shape
    offsets = torch.randint(0, 2 * margin + 1, (2, n), generator=generator).to(images.device)
    mirrored = torch.randint(0, 2, (n,), generator=generator).to(images.device).bool()
    windows = images.unfold(2, h - 2 * margin, 1).unfold(3, w - 2 * margin, 1)  # (n, c, y, x, h, w), a view
    crops = windows[torch.arange(n, device=images.device), :, offsets[0], offsets[1]]
    return torch.where(mirrored[:, None, None, None], crops.flip(3), crops)


def crop_resize_and_flip(images: Tensor, generator: Any) -> Tensor:
    """Resize a random window of each image to the image's size, and mirror it with probability 1/2.

    The ImageNet augmentation: windows of 8 to 100 % of the area and ratios from 3/4 to 4/3, as in
    torchvision's ``RandomResizedCrop``; a side that would not fit is cut. Interpolation is bilinear.
    """
    n, _, h, w = images.shape
    draws = torch.rand(5, n, generator=generator)
    area, ratio = 0.08 + 0.92 * draws[0], torch.exp((2 * draws[1] - 1) * math.log(4 / 3))
    heights = (h * (area / ratio).sqrt()).round().clamp(1, h).int()
    widths = (w * (area * ratio).sqrt()).round().clamp(1, w).int()
    tops, lefts = (draws[2] * (h - heights + 1)).int(), (draws[3] * (w - widths + 1)).int()
    crops = torch.empty_like(images)
    windows = torch.stack([tops, lefts, heights, widths], 1).tolist()
    for row, (top, left, height, width) in enumerate(windows):
        window = images[row : row + 1, :, top : top + height, left : left + width].float()
        resized = functional.interpolate(window, (h, w), mode="bilinear", antialias=True)
        crops[row] = resized[0].round().clamp(0, 255).to(torch.uint8)
    mirrored = (draws[4] < 0.5).to(images.device)
    return torch.where(mirrored[:, None, None, None], crops.flip(3), crops)


def rotate(images: Tensor, magnitudes: Tensor) -> Tensor:
    """Rotate about the centre."""
    angles = ROTATION * magnitudes
    return _warp(images, xx=angles.cos(), xy=-angles.sin(), yx=angles.sin(), yy=angles.cos())


def shear_x(images: Tensor, magnitudes: Tensor) -> Tensor:
    """Shift each row by a share of its distance from the centre."""
    return _warp(images, xy=SHEAR * magnitudes)


def shear_y(images: Tensor, magnitudes: Tensor) -> Tensor:
    """Shift each column by a share of its distance from the centre."""
    return _warp(images, yx=SHEAR * magnitudes)


def translate_x(images: Tensor, magnitudes: Tensor) -> Tensor:
    """Shift to the left or right."""
    return _warp(images, x=2 * TRANSLATION * magnitudes)


def translate_y(images: Tensor, magnitudes: Tensor) -> Tensor:
    """Shift up or down."""
    return _warp(images, y=2 * TRANSLATION * magnitudes)


def _warp(images: Tensor, **entries: Tensor) -> Tensor:
    """Sample the nearest pixels; ``x`` and ``y`` are halves of a side, the matrix is of pixels."""
    n, _, h, w = images.shape
    matrices = torch.eye(2, 3, device=images.device).repeat(n, 1, 1)
    for name, value in entries.items():
        row, column = "xy".index(name[0]), "xy".index(name[1]) if len(name) == 2 else 2
        matrices[:, row, column] = value * {"xy": h / w, "yx": w / h}.get(name, 1)
    grid = functional.affine_grid(matrices, [n, 3, h, w], align_corners=False)
    return functional.grid_sample(images.float(), grid, mode="nearest", align_corners=False).to(torch.uint8)


def posterize(images: Tensor, magnitudes: Tensor) -> Tensor:
    """Keep the highest bits of each value."""
    lost = (LOST_BITS * magnitudes.abs()).round().to(torch.uint8).view(-1, 1, 1, 1)
    return images >> lost << lost


def solarize(images: Tensor, magnitudes: Tensor) -> Tensor:
    """Invert the values that are not below a threshold."""
    thresholds = (256 * (1 - magnitudes.abs())).view(-1, 1, 1, 1)
    return torch.where(images >= thresholds, 255 - images, images)


def autocontrast(images: Tensor, magnitudes: Tensor) -> Tensor:
    """Stretch each channel to 0..255."""
    values = images.float()
    low, high = values.amin((2, 3), keepdim=True), values.amax((2, 3), keepdim=True)
    return torch.where(high > low, (values - low) * 255 / (high - low).clamp_min(1), values).to(torch.uint8)


def equalize(images: Tensor, magnitudes: Tensor) -> Tensor:
    """Make the histogram of each channel as flat as possible, as Pillow does."""
    values = images.flatten(2).flatten(0, 1).long()  # (3n, h w)
    channels = torch.arange(len(values), device=images.device)[:, None]
    counts = (256 * channels + values).flatten().bincount(minlength=256 * len(values)).view(-1, 256)
    steps = (values.shape[1] - counts.gather(1, values.amax(1, keepdim=True))) // 255
    before = counts.cumsum(1) - counts
    equalized = (steps // 2 + before) // steps.clamp_min(1)
    table = torch.where(steps > 0, equalized.clamp(0, 255), torch.arange(256, device=images.device))
    return table.gather(1, values).view(images.shape).to(torch.uint8)


def color(images: Tensor, magnitudes: Tensor) -> Tensor:
    """Increase or reduce the saturation."""
    return _enhance(images, _grey(images), magnitudes)


def contrast(images: Tensor, magnitudes: Tensor) -> Tensor:
    """Increase or reduce the distance to the mean grey."""
    return _enhance(images, _grey(images).mean((1, 2, 3), keepdim=True).round(), magnitudes)


def brightness(images: Tensor, magnitudes: Tensor) -> Tensor:
    """Increase or reduce the brightness."""
    return _enhance(images, torch.zeros_like(images), magnitudes)


def sharpness(images: Tensor, magnitudes: Tensor) -> Tensor:
    """Sharpen or blur."""
    kernel = torch.ones(3, 3, device=images.device)
    kernel[1, 1] = 5
    values = images.float()
    blurred = values.clone()
    inner = functional.conv2d(values.flatten(0, 1)[:, None], (kernel / kernel.sum())[None, None])
    blurred[:, :, 1:-1, 1:-1] = inner.view(*images.shape[:2], *inner.shape[2:])
    return _enhance(images, blurred, magnitudes)


def _grey(images: Tensor) -> Tensor:
    weights = torch.tensor(GREY, device=images.device).view(1, 3, 1, 1)
    return (images * weights).sum(1, keepdim=True).floor()


def _enhance(images: Tensor, base: Tensor, magnitudes: Tensor) -> Tensor:
    factors = (1 + ENHANCEMENT * magnitudes).view(-1, 1, 1, 1)
    return to_uint8(base + factors * (images.float() - base))


def to_uint8(values: Tensor) -> Tensor:
    """Return values rounded and cut to 0..255."""
    return values.round().clamp(0, 255).to(torch.uint8)


SHAPES: tuple[Operation, ...] = (rotate, shear_x, shear_y, translate_x, translate_y)
TONES: tuple[Operation, ...] = (autocontrast, equalize, posterize, solarize)
AUGMIX = (*TONES, *SHAPES)
"""Operations of AugMix and PixMix; the remaining ones are among the corruptions of ImageNet-C."""
RANDAUGMENT = (identity, *AUGMIX, color, contrast, brightness, sharpness)


def apply_operations(
    images: Tensor, operations: Sequence[Operation], numbers: npt.NDArray[Any], magnitudes: npt.NDArray[Any]
) -> Tensor:
    """Apply an operation to each image.

    Parameters
    ----------
    numbers : (n,) index of an operation; -1 leaves the image.
    magnitudes : (n,) in -1..1.
    """
    if not len(images):
        return images
    order = np.argsort(numbers, kind="stable")  # so that every operation has consecutive images
    present, counts = np.unique(numbers, return_counts=True)
    to_order, back = (torch.from_numpy(rows).to(images.device) for rows in (order, np.argsort(order)))
    sizes = torch.from_numpy(magnitudes[order]).float().to(images.device).split(counts.tolist())
    changed = [
        part if number < 0 else operations[number](part, size)
        for number, part, size in zip(present, images[to_order].split(counts.tolist()), sizes, strict=True)
    ]
    return torch.cat(changed)[back]
