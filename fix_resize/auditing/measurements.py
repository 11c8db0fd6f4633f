"""Score every image of a set, reading each once."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from fix_resize.auditing.smoothness import BLOCK, Scores, score_images
from fix_resize.spec import Size
from wordnet_splits.base.digests import Pixels
from wordnet_splits.base.errors import DataError, SourceError
from wordnet_splits.base.progress import Progress, Silent
from wordnet_splits.datasets.sources.image_set import ImageSet

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

    Raises
    ------
    SourceError : no image can be scored.
    DataError : no ``size`` is given and two images differ.
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
