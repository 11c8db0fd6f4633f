"""scikit-learn's 1,797 handwritten digits, embedded in the package."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, ClassVar

from wordnet_splits.errors import SourceError
from wordnet_splits.sources.base import Raw, Row, Source, as_rgb, register
from wordnet_splits.sources.digits_data import load_digits_pixels
from wordnet_splits.sources.positions import parse_position


@register
class Digits(Source):
    """8 x 8 grey pictures, repeated to RGB; an id is the index in ``load_digits`` order."""

    name: ClassVar[str] = "digits"
    splits: ClassVar[tuple[str, ...]] = ("all",)
    lossless: ClassVar[bool] = True
    rooted: ClassVar[bool] = False
    looks_for: ClassVar[str] = "nothing: it is part of this package"

    @classmethod
    def detect(cls, root: Path | None) -> str | None:
        """Return ``embedded``, the only layout."""
        return "embedded" if root is None else None

    @classmethod
    def open(cls, root: Path | None, layout: str, **params: Any) -> Digits:
        """Open the embedded images."""
        if params:
            raise SourceError(f"source {cls.name} takes no parameter {min(params)!r}")
        return cls(None, layout)

    def rows(self, splits: Collection[str]) -> Iterator[Row]:
        """Yield (image_id, class_id, split) in ``load_digits`` order."""
        for split in splits:
            for index, label in enumerate(load_digits_pixels()[1].tolist()):
                yield str(index), str(label), split

    def read_one(self, image_id: str) -> Raw:
        """Return the pixels, uint8 (8, 8, 3)."""
        images = load_digits_pixels()[0]
        index = parse_position(image_id)
        if index >= len(images):
            raise KeyError(image_id)
        return as_rgb(images[index])
