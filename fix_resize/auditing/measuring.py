"""Total variation and whiteness of every picture of a set, read once."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from fix_resize.auditing.sets import Pictures, Readable
from fix_resize.auditing.smoothness import BLOCK, Scores, total_variation, whiteness
from fix_resize.spec import Size
from wordnet_splits.digests import Pixels
from wordnet_splits.errors import DataError, SourceError
from wordnet_splits.progress import Progress, Silent

OTHER_SIZE: Final = "size"
"""Why a picture is left out whose size is not the reference's; other reasons are the errors' own."""


class LeftOut(NamedTuple):
    """A picture that was not scored, and why; said, counted, never silent."""

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
    variation: Scores
    whiteness: Scores
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
    tally = _Tally(size, pictures.label)
    with (progress or Silent()).task(f"reading {pictures.label}", len(chosen)) as task:
        for image_id, found in pictures.read(chosen):
            tally.add(image_id, found)
            task.advance()
    return tally.measured()


class _Tally:
    """Pictures on their way to being measured, some hundred at a time."""

    def __init__(self, size: Size | None, label: str) -> None:
        self._size, self._label = size, label
        self._fixed = size is not None
        self._ids: list[str] = []
        self._waiting: list[Pixels] = []
        self._variation: list[Scores] = []
        self._whiteness: list[Scores] = []
        self._left_out: list[LeftOut] = []

    def add(self, image_id: str, found: Readable) -> None:
        if isinstance(found, Exception):
            self._left_out.append(left_out(image_id, found))
            return
        pixels = np.asarray(found)
        size = (pixels.shape[0], pixels.shape[1])
        if min(size) < 2:
            self._left_out.append(LeftOut(image_id, DataError.kind, f"{size_text(size)} pixels are too few"))
            return
        self._size = self._size or size
        if size != self._size:
            self._differs(image_id, size)
            return
        self._ids.append(image_id)
        self._waiting.append(pixels)
        if len(self._waiting) == BLOCK:
            self._finish_block()

    def _differs(self, image_id: str, size: Size) -> None:
        if not self._fixed:
            raise DataError(
                f"pictures of different sizes, {size_text(self._size)} and {size_text(size)} ({image_id})",
                where=self._label,
                hint="render them to one size first, with fix-resize build",
            )
        self._left_out.append(LeftOut(image_id, OTHER_SIZE, f"{size_text(size)} pixels"))

    def _finish_block(self) -> None:
        if self._waiting:
            block = np.stack(self._waiting)
            self._variation.append(total_variation(block))
            self._whiteness.append(whiteness(block))
            self._waiting.clear()

    def measured(self) -> Measured:
        self._finish_block()
        if not self._ids or self._size is None:
            raise self._nothing()
        order = np.argsort(np.array(self._ids, dtype=object), kind="stable")
        return Measured(
            ids=tuple(self._ids[i] for i in order),
            variation=np.concatenate(self._variation)[order],
            whiteness=np.concatenate(self._whiteness)[order],
            size=self._size,
            left_out=tuple(sorted(self._left_out)),
        )

    def _nothing(self) -> SourceError:
        sizes = Counter(detail for _, reason, detail in self._left_out if reason == OTHER_SIZE)
        if not sizes:
            return nothing_read(self._left_out, self._label)
        seen = ", ".join(f"{count:,} of {size}" for size, count in sizes.most_common(3))
        return SourceError(
            f"none of the pictures has the reference's {size_text(self._size)} pixels: {seen}",
            where=self._label,
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
