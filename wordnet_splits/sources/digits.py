"""scikit-learn's 1,797 handwritten digits, embedded so that one benchmark needs no download.

They are the test part of UCI's *Optical Recognition of Handwritten Digits* (Alpaydin and Kaynak 1998); the
licence stands beside the data.
"""

from __future__ import annotations

import hashlib
import lzma
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wordnet_splits.base.errors import DataError, SourceError
from wordnet_splits.sources.base import Raw, Row, Source, as_rgb, parse_position, register

PATH = Path(__file__).parent.parent / "data" / "digits" / "digits.xz"
COUNT, SIDE = 1797, 8
RAW_SHA256 = "e1d88a0854e29e01d16358d2cd026aa8fc20dfc4cdb3fce004300857ea82aa70"  # of the unpacked bytes


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


@cache
def load_digits_pixels() -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return the images and their labels in ``sklearn.datasets.load_digits`` order, read-only.

    Returns
    -------
    images : (1797, 8, 8) uint8, grey in [0, 255]: ``(v * 255 + 8) // 16`` of the published v in 0..16.
    labels : (1797,) uint8 in 0..9.

    Raises
    ------
    DataError : the embedded file is absent or not the one this package was made with.
    """
    try:
        raw = lzma.decompress(PATH.read_bytes())
    except (OSError, lzma.LZMAError) as error:
        raise DataError("cannot be read", where=str(PATH), hint="install the package again") from error
    if hashlib.sha256(raw).hexdigest() != RAW_SHA256:
        raise DataError("is not the file this package ships", where=str(PATH), hint="install it again")
    values = np.frombuffer(raw, dtype=np.uint8)
    labels, grey = values[:COUNT], values[COUNT:].reshape(COUNT, SIDE, SIDE)
    images = ((grey.astype(np.uint16) * 255 + 8) // 16).astype(np.uint8)
    images.flags.writeable = False
    return images, labels
