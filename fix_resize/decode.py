"""Decode image files to 8-bit RGB by one table of rules, `RULES`, or refuse them with a reason.

All packages decode here. Colour is what torchvision's folder loader gives, Pillow's ``convert("RGB")``,
except that 16-bit grey keeps its high byte where Pillow would clip it to white, and that pixels without a
stated conversion are refused. A JPEG is decoded at full scale by Pillow's default transform. Errors that
Pillow does not detect are not detected here: bit errors inside a JPEG that still decodes, missing rows of an
otherwise complete PNG. The digest of the file finds them, if it is known.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final, NamedTuple

import numpy as np
from PIL import (
    ExifTags,
    Image,
    ImageFile,
    PpmImagePlugin,
    TiffImagePlugin,
    UnidentifiedImageError,
    WebPImagePlugin,
)

from fix_resize.jpeg import jpeg_image, jpeg_pixels
from wordnet_splits.base.digests import Pixels
from wordnet_splits.base.errors import SourceError, SplitsError

MAX_PIXELS = 89_478_485  # where Pillow begins to warn; ImageNet's largest image has 61 million

# Formats of image datasets, without those that Pillow hands to another program (EPS, to Ghostscript).
Image.preinit()  # registers the common formats; WebP and TIFF register when imported
FORMATS: Final = (
    *("JPEG", "PNG", "GIF", "BMP", "PPM"),
    WebPImagePlugin.WebPImageFile.format,
    TiffImagePlugin.TiffImageFile.format,
)
"""Pillow's readers that may open a file. They never start another program."""

EXTENSIONS: Final = frozenset(
    ("bmp", "gif", "jfif", "jpe", "jpeg", "jpg", "pbm", "pgm", "png", "pnm", "ppm", "tif", "tiff", "webp")
)
"""File extensions treated as images, compared without case; the decoder has the last word."""

_GREY_TIFF: Final = 1  # BlackIsZero
_SHORT: Final = "I;12"  # how Pillow unpacks a TIFF of 12 bits a value


class Reason(NamedTuple):
    """A problem of an image, and its remedy."""

    problem: str
    hint: str


REASONS: Final[Mapping[str, Reason]] = {
    "empty": Reason("the image file is empty", "fetch this image again"),
    "unidentified": Reason(
        "not an image file, or its header is corrupt, or its format is not read",
        f"fetch this image again; formats read: {', '.join(FORMATS)}",
    ),
    "lfs": Reason("a Git LFS pointer is in its place (git lfs pull)", "fetch the images"),
    "annex": Reason("a git-annex pointer is in its place (git annex get)", "fetch the images"),
    "truncated": Reason("the image is truncated", "fetch this image again"),
    "corrupt": Reason("the image is corrupt", "fetch this image again"),
    "bomb": Reason(
        f"the image would decode to more than {MAX_PIXELS:,} pixels (decompression bomb)",
        "such a file is an attack or an error",
    ),
    "mode": Reason("its pixels have no stated conversion to 8-bit RGB", "convert it to RGB yourself"),
    "aspect": Reason(
        f"so long and thin that resizing would take more than {MAX_PIXELS:,} pixels",
        "leave it out, or crop it first",
    ),
}
"""Why an image cannot be used, and the remedy."""

POINTERS: Final = {"lfs": b"version https://git-lfs.github.com/spec/", "annex": b"/annex/objects/"}
"""First bytes of a placeholder file of an image that is stored remotely, by reason."""


class UndecodableImageError(SourceError):
    """An image file that does not become RGB by the rules.

    Parameters
    ----------
    reason : a key of `REASONS`.
    detail : the decoder's message, or the limit that was exceeded.
    where : the image's id or path.
    """

    def __init__(self, reason: str, detail: str = "", where: str | None = None) -> None:
        self.reason = reason
        self.detail = detail
        problem, hint = REASONS[reason]
        super().__init__(f"{problem}: {detail}" if detail else problem, where=where, hint=hint)

    def within(self, container: str) -> UndecodableImageError:
        """Return the same error, located in ``container``."""
        where = f"{container}: {self.where}" if self.where else container
        return UndecodableImageError(self.reason, self.detail, where)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.reason, self.detail, self.where)


def _by_pillow(image: Image.Image) -> Image.Image:
    return image.convert("RGB")


def _high_byte(image: Image.Image) -> Image.Image:
    values = np.asarray(image)
    if values.min() < 0 or values.max() > 0xFFFF:  # a 32-bit file: no stated range to scale from
        raise UndecodableImageError("mode", detail=f"mode {image.mode} beyond 16 bits")
    return Image.fromarray((values >> 8).astype(np.uint8)).convert("RGB")


def _low_byte(image: Image.Image) -> Image.Image:
    return Image.fromarray(np.asarray(image).astype(np.uint8)).convert("RGB")


class Rule(NamedTuple):
    """The conversion of one kind of image.

    Attributes
    ----------
    stored : the kind, in words.
    becomes : the result, in words.
    modes : Pillow's modes of these files; empty if the rule is not about colour.
    convert : function from a decoded image to RGB; None if the rule is not about colour.
    note : the word for it in `Decoded.notes`; "" if the conversion is not noted.
    """

    stored: str
    becomes: str
    modes: tuple[str, ...] = ()
    convert: Callable[[Image.Image], Image.Image] | None = None
    note: str = ""


RULES: Final = (
    # converting RGB to RGB would copy it: a twentieth of the time to decode
    Rule("RGB, 8 bits", "as stored", ("RGB",), lambda image: image),
    Rule("RGB with an unused channel", "the channel is dropped", ("RGBX",), _by_pillow),
    Rule("grey, 8 bits", "repeated over the three channels", ("L",), _by_pillow),
    Rule("1 bit", "0 or 255, repeated over the three channels", ("1",), _by_pillow, "1-bit"),
    Rule("palette", "looked up", ("P", "PA"), _by_pillow, "palette"),
    Rule(
        "CMYK",
        "by Pillow's formula; an Adobe JPEG's inverted CMYK is put right",
        ("CMYK",),
        _by_pillow,
        "cmyk",
    ),
    Rule("YCbCr not decoded by its format", "by Pillow's formula", ("YCbCr",), _by_pillow, "ycbcr"),
    Rule(
        "alpha, transparency",
        "dropped: the stored colour stays, nothing is blended",
        ("LA", "RGBA"),
        _by_pillow,
        "alpha",
    ),
    Rule(
        "16 bits, grey or colour, but not colour in PPM",
        "the high byte of each value",
        ("I", "I;16", "I;16B", "I;16L"),
        _high_byte,
        "16-bit",
    ),
    Rule(
        "PPM, PGM whose highest value is not 255",
        "scaled to 255 and rounded; grey of a highest value above 255: scaled to 65,535, then the high byte",
        note="scaled",
    ),
    Rule(
        "32-bit integers (TIFF)",
        "as stored where all are below 256, the high byte where all are below 65,536, else refused",
        (),
        _low_byte,
        "8 of 32 bits",
    ),
    Rule("several frames (GIF, PNG, WebP, TIFF)", "the first", note="frames"),
    Rule("EXIF orientation, ICC profile", "not applied, as in torchvision", note="orientation"),
    Rule("12-bit or white-is-zero 16-bit TIFF, floats, Lab, other modes", "refused"),
    Rule(f"more than {MAX_PIXELS:,} pixels", "refused before decoding"),
    Rule("truncated, corrupt, empty; a format not read", "refused; nothing is filled in"),
)
"""The conversion of every kind of image to 8-bit RGB. The table of docs/data.md is made from it."""

BY_MODE: Final[Mapping[str, Rule]] = {mode: rule for rule in RULES for mode in rule.modes}
"""How each of Pillow's modes becomes RGB; any other mode is refused."""

_SIXTEEN: Final = BY_MODE["I;16"]
_WIDE: Final = next(rule for rule in RULES if rule.convert is _low_byte)

NOTES: Final = tuple(sorted({rule.note for rule in RULES} - {""}))
"""The words that `Decoded.notes` is made of."""


class Decoded(NamedTuple):
    """An image as 8-bit RGB.

    Attributes
    ----------
    image : mode RGB, no longer tied to the file.
    mode : Pillow's mode of the file (``RGB``, ``L``, ``CMYK``, ``P``, ``I;16``, ...).
    notes : conversions beyond reading RGB or grey, in the words of `NOTES`.
    """

    image: Image.Image
    mode: str
    notes: tuple[str, ...]


def decode(
    data: bytes, where: str | None = None, *, admit: Callable[[int, int], object] | None = None
) -> Decoded:
    """Decode a file's bytes to RGB by `RULES`.

    Parameters
    ----------
    data : the whole file.
    where : the image's id or path, for the error.
    admit : called with the height and width that the header announces, before any pixel is decoded; raises
        UndecodableImageError for a size that cannot be used.

    Raises
    ------
    UndecodableImageError : the image cannot be used; its ``reason`` is a key of `REASONS`.
    SplitsError : Pillow is set, in this process, to fill in truncated files.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow warns of metadata and size, which the rules cover
            return _decode(data, admit, metadata=True)
    except UndecodableImageError as error:
        raise (error if where is None else error.within(where)) from error.__cause__


def decode_bytes(data: bytes, *, where: str) -> Image.Image:
    """Return the RGB image in a file's bytes; an ordinary JPEG by `fix_resize.jpeg`. Raises as `decode`."""
    if (image := jpeg_image(data, MAX_PIXELS)) is not None:
        return image
    try:
        return _decode(data).image
    except UndecodableImageError as error:
        raise error.within(where) from error.__cause__


def decode_array(data: bytes, *, where: str) -> Pixels:
    """Return the pixels of the image that `decode_bytes` returns, uint8 (h, w, 3)."""
    pixels = jpeg_pixels(data, MAX_PIXELS)
    return np.asarray(decode_bytes(data, where=where)) if pixels is None else pixels


def image_as_rgb(image: Image.Image) -> Image.Image:
    """Return an image in memory as RGB, by the rules for files.

    Raises
    ------
    UndecodableImageError : its mode has no rule, or it was opened and its file is damaged.
    """
    if image.mode == "RGB":
        return image
    with _reading(b"\0"):
        layout = " ".join(str(tile.args) for tile in getattr(image, "tile", ()))
        image.load()
        rule = _rule(image, layout)
        assert rule.convert is not None
        return rule.convert(image)


def check_bytes(data: bytes) -> str | None:
    """Return why a file's bytes do not decode, or None.

    A JPEG is decoded at 1/8 scale: every coded byte is read, most of the arithmetic is not done.
    """
    try:
        _decode(data, draft=True)
    except UndecodableImageError as error:
        return error.what
    return None


def size_of(data: bytes) -> tuple[int, int] | None:
    """Return width and height in a file's header, None for a file without a header."""
    with suppress(UndecodableImageError), _reading(data), _opened(data) as image:
        return image.size
    return None


@contextmanager
def _reading(data: bytes) -> Iterator[None]:
    """Turn whatever Pillow raises on damaged files into an `UndecodableImageError`."""
    if ImageFile.LOAD_TRUNCATED_IMAGES:
        hint = "set PIL.ImageFile.LOAD_TRUNCATED_IMAGES = False"
        raise SplitsError("Pillow is set to fill in truncated images", hint=hint)
    if not data:
        raise UndecodableImageError("empty")
    try:
        yield
    except (SplitsError, MemoryError):
        raise
    except UnidentifiedImageError as error:
        pointers = (reason for reason, start in POINTERS.items() if data.startswith(start))
        raise UndecodableImageError(next(pointers, "unidentified")) from error
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise UndecodableImageError("bomb") from error
    except Exception as error:  # Pillow's readers raise nearly anything on damaged files
        if isinstance(error, OSError) and str(error).startswith("out of memory"):  # the image may be sound
            raise MemoryError(str(error)) from error
        reason = "truncated" if "truncated" in str(error).lower() else "corrupt"
        raise UndecodableImageError(reason, str(error) or type(error).__name__) from error


def _decode(
    data: bytes,
    admit: Callable[[int, int], object] | None = None,
    *,
    draft: bool = False,
    metadata: bool = False,
) -> Decoded:
    with _reading(data), _opened(data) as image:
        if admit is not None:
            admit(image.height, image.width)
        layout = " ".join(str(tile.args) for tile in getattr(image, "tile", ()))
        scaled = _is_scaled(image)
        animated = bool(getattr(image, "is_animated", False))
        mode = image.mode
        if draft:
            image.draft(mode, (max(1, image.width // 8), max(1, image.height // 8)))
        image.load()
        rule = _rule(image, layout)
        notes = {rule.note} - {""}
        notes |= {_SIXTEEN.note} if ";16" in layout else set()
        notes |= {"scaled"} if scaled else set()
        notes |= {"frames"} if animated else set()
        notes |= {"orientation"} if metadata and _orientation(image) != 1 else set()
        assert rule.convert is not None
        return Decoded(rule.convert(image), mode, tuple(sorted(notes)))


def _opened(data: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(data), formats=FORMATS)
    if image.width * image.height > MAX_PIXELS:
        raise UndecodableImageError("bomb", detail=f"{image.width} x {image.height}")
    return image


def _rule(image: Image.Image, layout: str) -> Rule:
    """Return the rule of a loaded image; ``layout`` is how Pillow unpacked its values."""
    if image.mode not in BY_MODE:
        raise UndecodableImageError("mode", detail=f"mode {image.mode}")
    rule = BY_MODE[image.mode]
    in_memory = image.format is None
    if rule is not _SIXTEEN or not (in_memory or isinstance(image, TiffImagePlugin.TiffImageFile)):
        return rule
    if _SHORT in layout:
        raise UndecodableImageError("mode", detail="12 bits a value")
    if isinstance(image, TiffImagePlugin.TiffImageFile) and (
        image.tag_v2.get(TiffImagePlugin.PHOTOMETRIC_INTERPRETATION) != _GREY_TIFF
    ):
        raise UndecodableImageError("mode", detail=f"mode {image.mode} of a TIFF whose zero is white")
    if image.mode == "I":
        values = np.asarray(image)
        if values.min() >= 0 and values.max() <= 0xFF:  # 8-bit values whose high bytes would be black
            return _WIDE
    return rule


def _is_scaled(image: Image.Image) -> bool:
    """Return whether a file, before decoding, is a PPM or PGM whose values Pillow scales to 255 or 65,535."""
    if not isinstance(image, PpmImagePlugin.PpmImageFile) or image.mode == "1":
        return False
    settings = image.tile[0].args  # of a decoder that scales: the mode and the highest value
    return isinstance(settings, tuple) and settings[-1] != (0xFFFF if image.mode == "I" else 0xFF)


def _orientation(image: Image.Image) -> int:
    with suppress(Exception):  # damaged metadata does not make the pixels wrong
        return int(image.getexif().get(ExifTags.Base.Orientation, 1))
    return 1
