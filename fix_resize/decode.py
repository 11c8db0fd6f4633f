"""From a file's bytes to 8-bit RGB by one stated rule, or into quarantine with a reason.

Rule ``rgb-1``. Colour is what torchvision's folder loader gives, Pillow's ``convert("RGB")``, except that
16-bit grey is not clipped:

============================  ==========================================================================
RGB                           as it is
grey, 1-bit                   repeated over the three channels
palette                       looked up
CMYK, YCbCr                   converted by Pillow's formula (an Adobe JPEG's inverted CMYK put right first)
alpha, transparency           dropped: the stored colour stays, nothing is blended
16-bit                        the high byte of each value (Pillow's own conversion would clip at 255)
32-bit TIFF                   as it is where it holds 0 to 255, the high byte where it holds 16 bits
several frames                the first
EXIF orientation, ICC         not applied, as in torchvision
other modes (float, Lab, ..)  quarantined: ``mode``
more than `MAX_PIXELS`        quarantined before decoding: ``bomb``
truncated, corrupt, empty     quarantined; nothing is filled in
============================  ==========================================================================

A JPEG is decoded at full scale by Pillow's default transform, never in draft mode. What Pillow itself does
not see is not seen here: bit errors inside a JPEG that still decode, rows that an otherwise complete PNG
lacks. The digest of the file finds those, where one is known.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NamedTuple

import numpy as np
from PIL import ExifTags, Image, ImageFile, UnidentifiedImageError

from wordnet_splits.errors import SourceError, SplitsError
from wordnet_splits.sources.pixels import FORMATS as COMMON_FORMATS
from wordnet_splits.sources.pixels import MAX_PIXELS as MAX_PIXELS

COLOUR_RULE: Final = "rgb-1"
"""Name of the rule above; part of every spec's id, so a change of the rule is a new name."""

INVERTED_RULE: Final = "rgb-1-inverted"
"""The rule above, and then 255 less every value: dark on light becomes light on dark."""

FORMATS: Final = (*COMMON_FORMATS, "TIFF")
"""Pillow's readers that may open a file; none of them starts another program."""


class Reason(NamedTuple):
    """What is wrong with an image, and what to do about it."""

    what: str
    hint: str


REASONS: Final[dict[str, Reason]] = {
    "empty": Reason("the file holds no bytes", "copy it again from its source"),
    "unidentified": Reason(
        "not an image, or of a format that is not read here", "see fix_resize.decode.FORMATS"
    ),
    "truncated": Reason("the file ends before the image does", "copy it again from its source"),
    "corrupt": Reason("the file cannot be decoded", "copy it again from its source"),
    "bomb": Reason(
        f"it would decode to more than {MAX_PIXELS} pixels", "such a file is an attack or an error"
    ),
    "mode": Reason(
        "its pixels have no stated conversion to 8-bit RGB", "convert it to RGB by a rule of your own"
    ),
    "aspect": Reason(
        f"so long and thin that a stage would hold more than {MAX_PIXELS} pixels",
        "leave it out, or crop it first",
    ),
}


class QuarantinedImageError(SourceError):
    """An image that is set aside with a reason, never silently skipped.

    Parameters
    ----------
    reason : a key of `REASONS`.
    detail : what the decoder said, or the figure that was exceeded.
    where : the image's id or path.
    """

    kind = "quarantined-image"

    def __init__(self, reason: str, *, detail: str = "", where: str | None = None) -> None:
        self.reason = reason
        self.detail = detail
        what, hint = REASONS[reason]
        super().__init__(f"{what}: {detail}" if detail else what, where=where, hint=hint)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (self.reason, self.detail, self.where)


def _rebuild(reason: str, detail: str, where: str | None) -> QuarantinedImageError:
    return QuarantinedImageError(reason, detail=detail, where=where)


class Decoded(NamedTuple):
    """An image as 8-bit RGB.

    Attributes
    ----------
    image : mode RGB, no longer tied to the file.
    mode : Pillow's mode of the file (``RGB``, ``L``, ``CMYK``, ``P``, ``I;16``, ...).
    notes : what the rule did beyond reading RGB or grey, in the words of `NOTES`.
    """

    image: Image.Image
    mode: str
    notes: tuple[str, ...]


def _by_pillow(image: Image.Image) -> Image.Image:
    return image.convert("RGB")


def _high_byte(image: Image.Image) -> Image.Image:
    values = np.asarray(image)
    if values.min() < 0 or values.max() > 0xFFFF:  # a 32-bit file: no stated range to scale from
        raise QuarantinedImageError("mode", detail=f"mode {image.mode} beyond 16 bits")
    return Image.fromarray((values >> 8).astype(np.uint8)).convert("RGB")


def _low_byte(image: Image.Image) -> Image.Image:
    return Image.fromarray(np.asarray(image).astype(np.uint8)).convert("RGB")


class _Rule(NamedTuple):
    convert: Callable[[Image.Image], Image.Image]
    note: str


_SIXTEEN: Final = _Rule(_high_byte, "16-bit")
_WIDE: Final = _Rule(_low_byte, "8 of 32 bits")
RULES: Final[dict[str, _Rule]] = {
    "RGB": _Rule(_by_pillow, ""),
    "L": _Rule(_by_pillow, ""),
    "1": _Rule(_by_pillow, "1-bit"),
    "P": _Rule(_by_pillow, "palette"),
    "PA": _Rule(_by_pillow, "palette"),
    "LA": _Rule(_by_pillow, "alpha"),
    "RGBA": _Rule(_by_pillow, "alpha"),
    "RGBX": _Rule(_by_pillow, ""),
    "CMYK": _Rule(_by_pillow, "cmyk"),
    "YCbCr": _Rule(_by_pillow, "ycbcr"),
    "I": _SIXTEEN,
    "I;16": _SIXTEEN,
    "I;16B": _SIXTEEN,
    "I;16L": _SIXTEEN,
}
"""How each of Pillow's modes becomes RGB; any other mode is quarantined."""

NOTES: Final = (*sorted({rule.note for rule in (*RULES.values(), _WIDE)} - {""}), "frames", "orientation")
"""The words that `Decoded.notes` is made of."""


def decode(
    data: bytes, where: str | None = None, *, admit: Callable[[int, int], object] | None = None
) -> Decoded:
    """Decode a file's bytes to RGB by the rule above.

    Parameters
    ----------
    data : the whole file.
    where : the image's id or path, for the error.
    admit : called with the height and width that the header announces, before any pixel is decoded; raises
        QuarantinedImageError for a size that cannot be used (`fix_resize.spec.plan` with its spec does).

    Raises
    ------
    QuarantinedImageError : the image cannot be used; its ``reason`` is a key of `REASONS`.
    SplitsError : Pillow is set, in this process, to fill in truncated files.
    """
    if ImageFile.LOAD_TRUNCATED_IMAGES:
        raise SplitsError(
            "Pillow is set to fill in truncated images",
            hint="set PIL.ImageFile.LOAD_TRUNCATED_IMAGES = False",
        )
    if not data:
        raise QuarantinedImageError("empty", where=where)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow's remarks on metadata and size; the rule covers both
            return _decode(data, admit)
    except QuarantinedImageError as error:
        raise QuarantinedImageError(error.reason, detail=error.detail, where=where) from None
    except UnidentifiedImageError as error:
        raise QuarantinedImageError("unidentified", where=where) from error
    except Image.DecompressionBombError as error:
        raise QuarantinedImageError("bomb", where=where) from error
    except MemoryError:
        raise
    except Exception as error:  # on damaged files Pillow's readers raise nearly anything
        reason = "truncated" if "truncated" in str(error).lower() else "corrupt"
        raise QuarantinedImageError(reason, detail=str(error) or type(error).__name__, where=where) from error


def _decode(data: bytes, admit: Callable[[int, int], object] | None) -> Decoded:
    with Image.open(io.BytesIO(data), formats=FORMATS) as image:
        if image.width * image.height > MAX_PIXELS:
            raise QuarantinedImageError("bomb", detail=f"{image.width} x {image.height}")
        if admit is not None:
            admit(image.height, image.width)
        deep = any(";16" in str(tile.args) for tile in getattr(image, "tile", ()))
        several = bool(getattr(image, "is_animated", False))
        mode = image.mode
        image.load()
        if mode not in RULES:
            raise QuarantinedImageError("mode", detail=f"mode {mode}")
        rule = RULES[mode]
        if mode == "I" and image.format == "TIFF":
            values = np.asarray(image)
            if values.min() >= 0 and values.max() <= 0xFF:  # 8-bit values whose high bytes would be black
                rule = _WIDE
        notes = {rule.note} - {""}
        notes |= {"16-bit"} if deep else set()
        notes |= {"frames"} if several else set()
        notes |= {"orientation"} if _orientation(image) != 1 else set()
        return Decoded(rule.convert(image), mode, tuple(sorted(notes)))


def _orientation(image: Image.Image) -> int:
    with suppress(Exception):  # damaged metadata does not make the pixels wrong
        return int(image.getexif().get(ExifTags.Base.Orientation, 1))
    return 1
