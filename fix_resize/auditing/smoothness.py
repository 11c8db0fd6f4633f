"""Traces of a resizer in a small image without its original: total variation, smoothness, whiteness.

A set decimated without a low-pass filter is rougher than photographs, and a detector that distinguishes it
from CIFAR has learned the resizer. The smoothness score is defined by CSI (Tack et al. 2020, appendix);
whiteness is new here. All depend on the content as well, so they can only warn.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from fix_resize.windows import Floats
from wordnet_splits.base.digests import Pixels
from wordnet_splits.base.errors import DataError

BLOCK: Final = 512
"""Images processed at a time, which bounds memory."""

HIGH_FREQUENCY: Final = 0.35
MIDDLE_FREQUENCIES: Final = (0.2, 0.3)
"""Lower bound of the high band and bounds of the middle band in `whiteness`, in cycles per pixel."""

ROUNDING_ENERGY: Final = 1.0
"""Energy that rounding may cause, in squared grey levels per pixel."""


class Scores(NamedTuple):
    """Total variation and whiteness of n images, (n,) each."""

    variation: Floats
    whiteness: Floats


def score_images(images: Pixels) -> Scores:
    """Return the scores of images, (n, h, w, 3) uint8 of at least 2 x 2 pixels each."""
    return Scores(total_variation(images), whiteness(images))


def total_variation(images: Pixels) -> Floats:
    """Return the total variation of each image, (n,) in grey levels per pixel; higher is rougher.

    The mean over the (h-1) x (w-1) pixels with a right and a lower neighbour of the sum of the L2 norms of
    the RGB differences to both.

    Parameters
    ----------
    images : (n, h, w, 3) uint8; at least 2 x 2 pixels each.
    """
    return _in_blocks(_variation, images)


def _in_blocks(score: Callable[[Pixels], Floats], images: Pixels) -> Floats:
    blocks = [images[start : start + BLOCK] for start in range(0, len(images), BLOCK)]
    return np.concatenate([score(block) for block in blocks]) if blocks else np.empty(0)


def _variation(block: Pixels) -> Floats:
    if block.dtype != np.uint8 or block.shape[3] != 3 or min(block.shape[1:3]) < 2:
        raise DataError(
            f"an image must be uint8 RGB of at least 2 x 2 pixels, not {block.dtype} {block.shape[1:]}"
        )
    levels = block.astype(np.int32)
    here = levels[:, :-1, :-1]
    right, lower = levels[:, :-1, 1:] - here, levels[:, 1:, :-1] - here
    norms = np.sqrt((right**2).sum(axis=3)) + np.sqrt((lower**2).sum(axis=3))
    mean: Floats = norms.mean(axis=(1, 2))
    return mean


def smoothness(variation: Floats, reference: Floats) -> Floats:
    """Return the distance of each image from the reference, |TV - mean TV of the reference|, (n,)."""
    score: Floats = np.abs(variation - reference.mean())
    return score


def whiteness(images: Pixels) -> Floats:
    """Return the energy of each image's high frequencies relative to its middle frequencies, (n,).

    White noise has 1; a photograph that was filtered before the reduction has far less, and aliasing raises
    the value. Contrast does not affect it, and content less than it affects total variation.

    Parameters
    ----------
    images : (n, h, w, 3) uint8; at least 2 x 2 pixels each.
    """
    return _in_blocks(_whiteness, images)


def _whiteness(block: Pixels) -> Floats:
    window, high, middle = _bands(*block.shape[1:3])
    levels = block.astype(np.float64)
    levels -= levels.mean(axis=(1, 2), keepdims=True)
    energy = (np.abs(np.fft.fft2(levels * window[..., None], axes=(1, 2))) ** 2).sum(axis=3)
    energy /= (window**2).sum()
    ratio: Floats = energy[:, high].mean(axis=1) / (energy[:, middle].mean(axis=1) + ROUNDING_ENERGY)
    return ratio


@lru_cache(maxsize=8)
def _bands(height: int, width: int) -> tuple[Floats, npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return a Hann window and the masks of the high and the middle band, (h, w) each."""
    window = np.sin(np.pi * (np.arange(height) + 0.5) / height)[:, None] ** 2
    window = window * np.sin(np.pi * (np.arange(width) + 0.5) / width) ** 2
    frequency = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.fftfreq(width))
    middle = (frequency > MIDDLE_FREQUENCIES[0]) & (frequency < MIDDLE_FREQUENCIES[1])
    return window, frequency > HIGH_FREQUENCY, middle if middle.any() else frequency <= HIGH_FREQUENCY
