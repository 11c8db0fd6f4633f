"""Scores of the images of a set, read once each: total variation, smoothness and whiteness.

The scores are traces of a resizer in a small image without its original. A set decimated without a low-pass
filter is rougher than photographs, and a detector that distinguishes it from CIFAR has learned the resizer.
The smoothness score is defined by CSI (Tack et al. 2020, appendix); whiteness is new here. All depend on the
content as well, so they can only warn.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from fix_resize.spec import Size
from fix_resize.windows import Floats
from wordnet_splits.base.digests import Pixels
from wordnet_splits.base.errors import DataError, SourceError
from wordnet_splits.base.progress import Progress, Silent
from wordnet_splits.datasets.sources.image_set import ImageSet

BLOCK: Final = 512
"""Images processed at a time, which bounds memory."""

HIGH_FREQUENCY: Final = 0.35
MIDDLE_FREQUENCIES: Final = (0.2, 0.3)
"""Lower bound of the high band and bounds of the middle band in `whiteness`, in cycles per pixel."""

ROUNDING_ENERGY: Final = 1.0
"""Energy that rounding may cause, in squared grey levels per pixel."""

WRONG_SIZE: Final = "size"
"""Reason for skipping an image of another size; other reasons are kinds of errors."""


class SkippedImage(NamedTuple):
    """An image that was not scored, with the reason."""

    image_id: str
    reason: str
    detail: str


@dataclass(frozen=True)
class Measurements:
    """The scores of the images in a set.

    Attributes
    ----------
    ids : ids of the n scored images, sorted.
    scores : their scores.
    size : their height and width.
    skipped : the images that were not scored.
    """

    ids: tuple[str, ...]
    scores: Scores
    size: Size
    skipped: tuple[SkippedImage, ...]


def measure(
    images: ImageSet,
    *,
    ids: Collection[str] | None = None,
    size: Size | None = None,
    progress: Progress | None = None,
) -> Measurements:
    """Score images as they are stored, reading each once.

    Parameters
    ----------
    ids : ids of the images to score; by default all.
    size : height and width; images of another size are skipped. By default all must have the same size.
    """
    ids = images.ids if ids is None else ids
    expected_size = size
    scored_ids: list[str] = []
    skipped: list[SkippedImage] = []
    block: list[Pixels] = []
    scores: list[Scores] = []
    with (progress or Silent()).task(f"reading {images.name}", len(ids)) as task:
        for image_id in images.in_order(ids):
            task.advance()
            try:
                pixels = np.asarray(images.image(image_id))
            except (SourceError, DataError) as error:
                skipped.append(skipped_by(error, image_id))
                continue
            shape = (pixels.shape[0], pixels.shape[1])
            if min(shape) < 2:
                detail = f"{format_size(shape)} pixels are too few"
                skipped.append(SkippedImage(image_id, DataError.kind, detail))
            elif expected_size in (None, shape):
                expected_size = shape
                scored_ids.append(image_id)
                block.append(pixels)
            elif size is not None:
                skipped.append(SkippedImage(image_id, WRONG_SIZE, f"{format_size(shape)} pixels"))
            else:
                sizes = f"{format_size(expected_size)} and {format_size(shape)} ({image_id})"
                raise DataError(
                    f"images of different sizes, {sizes}",
                    where=images.name,
                    hint="resize them to one size first, with fix-resize build",
                )
            if len(block) == BLOCK:
                scores.append(score_images(np.stack(block)))
                block = []
    if not scored_ids or expected_size is None:
        raise _nothing_scored(skipped, expected_size, images.name)
    if block:
        scores.append(score_images(np.stack(block)))
    order = np.argsort(np.array(scored_ids, dtype=object), kind="stable")
    all_scores = Scores(*(np.concatenate(parts)[order] for parts in zip(*scores, strict=True)))
    return Measurements(tuple(sorted(scored_ids)), all_scores, expected_size, tuple(sorted(skipped)))


def _nothing_scored(skipped: Sequence[SkippedImage], size: Size | None, label: str) -> SourceError:
    sizes = Counter(detail for _, reason, detail in skipped if reason == WRONG_SIZE)
    if not sizes:
        return nothing_readable(skipped, label)
    counts = ", ".join(f"{count:,} of {detail}" for detail, count in sizes.most_common(3))
    return SourceError(
        f"no image has the reference's {format_size(size)} pixels: {counts}",
        where=label,
        hint="resize them first, with fix-resize build folder",
    )


def nothing_readable(skipped: Sequence[SkippedImage], label: str) -> SourceError:
    """Return the error for a set without readable images."""
    reasons = Counter(reason for _, reason, _ in skipped)
    example = skipped[0]
    return SourceError(
        f"no image can be read: {', '.join(f'{n:,} {reason}' for reason, n in reasons.most_common())}",
        where=label,
        hint=f"the first is {example.image_id}: {example.detail}",
    )


def skipped_by(error: SourceError | DataError, image_id: str) -> SkippedImage:
    """Return the entry of an unreadable image: the reason of its quarantine, else the kind of error."""
    return SkippedImage(image_id, getattr(error, "reason", error.kind), error.what)


def format_size(size: Sequence[int] | None) -> str:
    """Return a size as height x width."""
    return f"{size[0]} x {size[1]}" if size else "no"


def sample_ids(ids: Sequence[str], limit: int | None) -> list[str]:
    """Return ``limit`` ids, sorted: the first by BLAKE2b of the id; without a limit all."""
    if limit is None or limit >= len(ids):
        return sorted(ids)
    return sorted(
        sorted(ids, key=lambda i: (hashlib.blake2b(i.encode(), digest_size=16).digest(), i))[:limit]
    )


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
