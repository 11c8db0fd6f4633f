"""Total variation of every picture of a set, read once, in one or several renderings."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image

from fix_resize.auditing.sets import Pictures
from fix_resize.auditing.smoothness import BLOCK, Scores, total_variation
from fix_resize.resize import apply
from fix_resize.spec import ResizeSpec, Size
from wordnet_splits.errors import DataError, SourceError
from wordnet_splits.progress import Progress, Silent

Pixels = npt.NDArray[np.uint8]

OTHER_SIZE: Final = "size"
"""Why a picture is left out whose size is not the reference's; other reasons are the errors' own."""


class LeftOut(NamedTuple):
    """A picture that was not scored, and why; said, counted, never silent."""

    image_id: str
    reason: str
    detail: str


@dataclass(frozen=True)
class Measured:
    """Total variation of the pictures of a set.

    Attributes
    ----------
    ids : (n,) of the pictures that were measured, sorted.
    variation : (n,) of each rendering, by its name.
    size : height and width of all of them, as measured.
    left_out : the pictures that were not.
    """

    ids: tuple[str, ...]
    variation: Mapping[str, Scores]
    size: Size
    left_out: tuple[LeftOut, ...]


def measure(
    pictures: Pictures,
    renderings: Mapping[str, ResizeSpec | None],
    *,
    ids: Collection[str] | None = None,
    size: Size | None = None,
    progress: Progress | None = None,
) -> Measured:
    """Read pictures once, and measure them in each rendering (None: as they are stored).

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
    tally = _Tally(renderings, size, pictures.label)
    with (progress or Silent()).task(f"reading {pictures.label}", len(chosen)) as task:
        for image_id, found in pictures.read(chosen):
            tally.add(image_id, found)
            task.advance()
    return tally.measured()


class _Tally:
    """Pictures on their way to being measured, some hundred at a time."""

    def __init__(self, renderings: Mapping[str, ResizeSpec | None], size: Size | None, label: str) -> None:
        self._renderings, self._size, self._label = renderings, size, label
        self._fixed = size is not None
        self._ids: list[str] = []
        self._waiting: dict[str, list[Pixels]] = {name: [] for name in renderings}
        self._done: dict[str, list[Scores]] = {name: [] for name in renderings}
        self._left_out: list[LeftOut] = []

    def add(self, image_id: str, found: Image.Image | SourceError | DataError) -> None:
        try:
            if isinstance(found, Exception):
                raise found
            rendered = {n: render(spec, found) for n, spec in self._renderings.items()}
            sizes = {pixels.shape[:2] for pixels in rendered.values()}
        except (SourceError, DataError) as error:
            self._left_out.append(LeftOut(image_id, getattr(error, "reason", error.kind), error.what))
            return
        if sizes != {self._size} and self._differs(image_id, sizes):
            return
        self._ids.append(image_id)
        for name, pixels in rendered.items():
            self._waiting[name].append(pixels)
        if len(next(iter(self._waiting.values()))) == BLOCK:
            self._finish_block()

    def _differs(self, image_id: str, sizes: set[Any]) -> bool:
        """Leave out a picture of another size, or take the first one's as the size of all."""
        if self._size is None and len(sizes) == 1:
            (self._size,) = sizes
            return False
        other = next(iter(sizes - {self._size}))
        if not self._fixed:
            raise DataError(
                f"pictures of different sizes, {size_text(self._size)} and {size_text(other)} ({image_id})",
                where=self._label,
                hint="render them to one size first, with fix-resize build",
            )
        self._left_out.append(LeftOut(image_id, OTHER_SIZE, f"{size_text(other)} pixels"))
        return True

    def _finish_block(self) -> None:
        for name, waiting in self._waiting.items():
            if waiting:
                self._done[name].append(total_variation(np.stack(waiting)))
                waiting.clear()

    def measured(self) -> Measured:
        self._finish_block()
        if not self._ids or self._size is None:
            raise self._nothing()
        order = np.argsort(np.array(self._ids, dtype=object), kind="stable")
        variation = {name: np.concatenate(done)[order] for name, done in self._done.items()}
        left_out = tuple(sorted(self._left_out))
        return Measured(tuple(self._ids[i] for i in order), variation, self._size, left_out)

    def _nothing(self) -> SourceError:
        sizes = Counter(detail for _, reason, detail in self._left_out if reason == OTHER_SIZE)
        if sizes:
            seen = ", ".join(f"{count:,} of {size}" for size, count in sizes.most_common(3))
            return SourceError(
                f"none of the pictures has the reference's {size_text(self._size)} pixels: {seen}",
                where=self._label,
                hint="render them first with fix-resize build folder, or see fix-resize study",
            )
        reasons = Counter(reason for _, reason, _ in self._left_out)
        first = self._left_out[0]
        return SourceError(
            f"no picture can be read: {', '.join(f'{n:,} {reason}' for reason, n in reasons.most_common())}",
            where=self._label,
            hint=f"the first is {first.image_id}: {first.detail}",
        )


def render(spec: ResizeSpec | None, image: Image.Image) -> Pixels:
    """Return a picture in a rendering, (h, w, 3) uint8; None is as it is stored."""
    pixels = np.asarray(image) if spec is None else apply(spec, image)
    if min(pixels.shape[:2]) < 2:
        raise DataError(f"{size_text(pixels.shape[:2])} pixels are too few")
    return pixels


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
