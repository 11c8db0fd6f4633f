"""scikit-learn's 1,797 handwritten digits, embedded so that a benchmark works without a download.

They are the test part of UCI's *Optical Recognition of Handwritten Digits* (Alpaydin and Kaynak 1998); the
licence is next to the data.
"""

from __future__ import annotations

import hashlib
import lzma
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from wordnet_splits.base.errors import DataError
from wordnet_splits.datasets.sources.layouts.layout import (
    ALL,
    Image,
    Layout,
    Location,
    Note,
    Raw,
    parse_position,
)
from wordnet_splits.datasets.sources.source import Source, register_source

PATH = Path(__file__).parent.parent.parent / "data" / "digits" / "digits.xz"
COUNT, SIDE = 1797, 8
RAW_SHA256 = "e1d88a0854e29e01d16358d2cd026aa8fc20dfc4cdb3fce004300857ea82aa70"  # of the unpacked bytes


class EmbeddedDigits(Layout):
    """The embedded file."""

    name = "embedded"

    def images(self, note: Note, splits: Collection[str]) -> Iterator[Image]:
        """Yield the images in ``load_digits`` order."""
        for index, label in enumerate(load_digits_pixels()[1].tolist()):
            yield Image(str(index), str(label), ALL, (index,))

    def locate(self, image_id: str) -> Location:
        """Return the index of an image."""
        index = parse_position(image_id)
        if index >= COUNT:
            raise KeyError(image_id)
        return (index,)

    def read(self, location: Location) -> Raw:
        """Return the pixels, uint8 (8, 8, 3)."""
        grey = load_digits_pixels()[0][int(location[0])]
        return np.repeat(grey[:, :, None], 3, axis=2)


@register_source
class Digits(Source):
    """8 x 8 grey images, repeated to RGB; an id is the index in ``load_digits`` order."""

    name: ClassVar[str] = "digits"
    splits: ClassVar[tuple[str, ...]] = (ALL,)
    lossless: ClassVar[bool] = True
    rooted: ClassVar[bool] = False
    expected_files: ClassVar[str] = "nothing: it is part of this package"

    @classmethod
    def layouts(cls, root: Path) -> Iterator[Layout]:
        """Yield the embedded file, the only layout."""
        yield EmbeddedDigits()


@cache
def load_digits_pixels() -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return the images and their labels in ``sklearn.datasets.load_digits`` order, read-only.

    Returns
    -------
    images : (1797, 8, 8) uint8, grey in [0, 255]: ``(v * 255 + 8) // 16`` of the published v in 0..16.
    labels : (1797,) uint8 in 0..9.

    Raises DataError if the embedded file is absent, or differs from this package's file.
    """
    try:
        raw = lzma.decompress(PATH.read_bytes())
    except (OSError, lzma.LZMAError) as error:
        raise DataError("cannot be read", where=str(PATH), hint="install the package again") from error
    if hashlib.sha256(raw).hexdigest() != RAW_SHA256:
        raise DataError("is not the shipped file", where=str(PATH), hint="install it again")
    values = np.frombuffer(raw, dtype=np.uint8)
    labels, grey = values[:COUNT], values[COUNT:].reshape(COUNT, SIDE, SIDE)
    images = ((grey.astype(np.uint16) * 255 + 8) // 16).astype(np.uint8)
    images.flags.writeable = False
    return images, labels
