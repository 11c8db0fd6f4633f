"""Total variation and whiteness of every picture of a set, read once."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from fix_resize.auditing.sets import Pictures, readable
from fix_resize.auditing.smoothness import BLOCK, total_variation, whiteness
from fix_resize.spec import Size
from fix_resize.windows import Floats
from wordnet_splits.base.digests import Pixels
from wordnet_splits.base.errors import DataError, SourceError
from wordnet_splits.base.progress import Progress, Silent

OTHER_SIZE: Final = "size"
"""The reason for leaving out a picture of another size; other reasons are kinds of errors."""


class LeftOut(NamedTuple):
    """A picture that was not scored, and why; it is reported and counted."""

    image_id: str
    reason: str
    detail: str


@dataclass(frozen=True)
class Measured:
    """What was measured of the pictures of a set.

    Attributes
    ----------
    ids : (n,) of the pictures that were measured, sorted.
    variation, whiteness : (n,) as in `smoothness`.
    size : height and width of all of them.
    left_out : the pictures that were not.
    """

    ids: tuple[str, ...]
    variation: Floats
    whiteness: Floats
    size: Size
    left_out: tuple[LeftOut, ...]


def measure(
    pictures: Pictures,
    *,
    ids: Collection[str] | None = None,
    size: Size | None = None,
    progress: Progress | None = None,
) -> Measured:
    """Read pictures once, and measure them as they are stored.

    Parameters
    ----------
    ids : which of them; all by default.
    size : height and width to compare at, pictures of another are left out; by default all must be equal.

    Raises
    ------
    SourceError : no picture is left to measure; the message has the reasons.
    DataError : no ``size`` is given and two pictures differ.
    """
    chosen = pictures.ids if ids is None else sorted(ids)
    expected, names, left = size, [], []
    waiting: list[Pixels] = []
    scores: list[tuple[Floats, Floats]] = []
    with (progress or Silent()).task(f"reading {pictures.label}", len(chosen)) as task:
        for image_id, found in pictures.read(chosen):
            task.advance()
            try:
                pixels = np.asarray(readable(found))
            except (SourceError, DataError) as error:
                left.append(left_out(image_id, error))
                continue
            own = (pixels.shape[0], pixels.shape[1])
            if min(own) < 2:
                left.append(LeftOut(image_id, DataError.kind, f"{size_text(own)} pixels are too few"))
            elif expected in (None, own):
                expected = own
                names.append(image_id)
                waiting.append(pixels)
            elif size is not None:
                left.append(LeftOut(image_id, OTHER_SIZE, f"{size_text(own)} pixels"))
            else:
                raise DataError(
                    f"pictures of different sizes, {size_text(expected)} and {size_text(own)} ({image_id})",
                    where=pictures.label,
                    hint="render them to one size first, with fix-resize build",
                )
            if len(waiting) == BLOCK:
                scores.append(_scores(waiting))
                waiting = []
    if not names or expected is None:
        raise _nothing_measured(left, expected, pictures.label)
    if waiting:
        scores.append(_scores(waiting))
    order = np.argsort(np.array(names, dtype=object), kind="stable")
    variation, white = (np.concatenate(parts)[order] for parts in zip(*scores, strict=True))
    return Measured(tuple(names[i] for i in order), variation, white, expected, tuple(sorted(left)))


def _scores(pictures: Sequence[Pixels]) -> tuple[Floats, Floats]:
    block = np.stack(pictures)
    return total_variation(block), whiteness(block)


def _nothing_measured(entries: Sequence[LeftOut], size: Size | None, label: str) -> SourceError:
    sizes = Counter(detail for _, reason, detail in entries if reason == OTHER_SIZE)
    if not sizes:
        return nothing_read(entries, label)
    seen = ", ".join(f"{count:,} of {other}" for other, count in sizes.most_common(3))
    return SourceError(
        f"none of the pictures has the reference's {size_text(size)} pixels: {seen}",
        where=label,
        hint="render them first with fix-resize build folder, or see fix-resize study",
    )


def nothing_read(entries: Sequence[LeftOut], label: str) -> SourceError:
    """Return the error of a set of which no picture could be read."""
    reasons = Counter(reason for _, reason, _ in entries)
    first = entries[0]
    return SourceError(
        f"no picture can be read: {', '.join(f'{n:,} {reason}' for reason, n in reasons.most_common())}",
        where=label,
        hint=f"the first is {first.image_id}: {first.detail}",
    )


def left_out(image_id: str, error: SourceError | DataError) -> LeftOut:
    """Return why a picture could not be read; its reason where it was quarantined, else the kind of error."""
    return LeftOut(image_id, getattr(error, "reason", error.kind), error.what)


def size_text(size: Sequence[int] | None) -> str:
    """Return a size as height x width."""
    return f"{size[0]} x {size[1]}" if size else "no"


def draw(ids: Sequence[str], limit: int | None) -> list[str]:
    """Return ``limit`` of the ids, the first by BLAKE2b of the id; all without a limit. Sorted."""
    if limit is None or limit >= len(ids):
        return sorted(ids)
    return sorted(
        sorted(ids, key=lambda i: (hashlib.blake2b(i.encode(), digest_size=16).digest(), i))[:limit]
    )
