"""Decode image files, and find the truncated and corrupt ones, with one clear line for each."""

from __future__ import annotations

import io
import struct
import zlib

from PIL import Image, UnidentifiedImageError, WebPImagePlugin

from wordnet_splits.errors import SourceError

MAX_PIXELS = 89_478_485  # where Pillow begins to warn; ImageNet's largest picture has 61 million

# What datasets of pictures hold; never those Pillow hands to another program (EPS, to Ghostscript).
Image.preinit()  # registers the common formats; WebP, which LSUN uses, registers when imported
FORMATS = ("JPEG", "PNG", "GIF", "BMP", "PPM", WebPImagePlugin.WebPImageFile.format)

# What Pillow's readers raise on damaged input, besides its own errors.
_DAMAGED = (
    OSError,
    SyntaxError,
    ValueError,
    EOFError,
    LookupError,
    ArithmeticError,
    struct.error,
    zlib.error,
)
_TOO_LARGE = (Image.DecompressionBombError, Image.DecompressionBombWarning)


def decode_bytes(data: bytes, *, where: str) -> Image.Image:
    """Return the RGB image in a file's bytes, decoded as torchvision's loader does.

    Raises
    ------
    SourceError : the file is empty, no image, truncated, corrupt, or a decompression bomb.
    """
    try:
        with _opened(data) as image:
            if image.mode != "RGB":
                return image.convert("RGB")
            image.load()  # converting RGB to RGB would copy it: a twentieth of the time to decode
            return image
    except (*_DAMAGED, *_TOO_LARGE) as error:
        raise SourceError(_reason(data, error), where=where, hint="fetch this image again") from error


def check_bytes(data: bytes) -> str | None:
    """Return why a file's bytes do not decode, or None.

    A JPEG is decoded at 1/8 scale: every coded byte is read, most of the arithmetic is not done.
    """
    try:
        with _opened(data) as image:
            image.draft("RGB", (max(1, image.width // 8), max(1, image.height // 8)))
            image.load()
    except (*_DAMAGED, *_TOO_LARGE) as error:
        return _reason(data, error)
    return None


def size_of(data: bytes) -> tuple[int, int] | None:
    """Return width and height as a file's header says them, None where it says nothing."""
    try:
        with _opened(data) as image:
            return image.size
    except (*_DAMAGED, *_TOO_LARGE):
        return None


def _opened(data: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(data), formats=FORMATS)
    if image.width * image.height > MAX_PIXELS:
        raise Image.DecompressionBombError
    return image


def _reason(data: bytes, error: BaseException) -> str:
    if not data:
        return "the image file is empty"
    if isinstance(error, UnidentifiedImageError):
        return "not an image file, or its header is corrupt"
    if isinstance(error, _TOO_LARGE):
        return "the image would decode to far more pixels than this dataset has (decompression bomb)"
    text = str(error)
    return f"the image is {'truncated' if 'truncated' in text.lower() else 'corrupt'} ({text})"
