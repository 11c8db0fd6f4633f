"""PNG files of small pictures, written and read by Pillow.

The level of compression is stated, so that one version of Pillow writes the same bytes everywhere; versions
may differ in the bytes and never in the pixels, which are what fingerprints are of.
"""

from __future__ import annotations

import io
from typing import Final

import numpy as np
import numpy.typing as npt
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from wordnet_splits.errors import DataError

Pixels = npt.NDArray[np.uint8]

SPEC_KEY: Final = "resize-spec"
"""Under which the id of the spec stands in every PNG file and in every table's metadata."""

COMPRESSION: Final = 1
"""zlib's fastest level; the others make photographs of 32 pixels hardly smaller."""


def encode_png(pixels: Pixels, spec_id: str) -> bytes:
    """Return a PNG file of (h, w, 3) uint8 that names its spec."""
    text = PngInfo()
    text.add_text(SPEC_KEY, spec_id)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG", pnginfo=text, compress_level=COMPRESSION)
    return buffer.getvalue()


def decode_png(data: bytes, where: str) -> Pixels:
    """Return the pixels of a PNG file, (h, w, 3) uint8.

    Raises
    ------
    DataError : it is no PNG file, or damaged.
    """
    try:
        with Image.open(io.BytesIO(data), formats=["PNG"]) as image:
            if image.mode != "RGB":
                raise DataError(f"its mode is {image.mode}, not RGB", where=where)
            return np.asarray(image)
    except DataError:
        raise
    except Exception as error:  # damaged files make Pillow raise nearly anything
        raise DataError("cannot be decoded", where=where, hint="build it again") from error
