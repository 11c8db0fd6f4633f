"""Decode ordinary JPEG files by simplejpeg (extra ``fast``), to the pixels that Pillow gives.

Pillow is the reference, and decodes every file whose pixels, metadata or refusal could depend on the decoder:

- files that are not baseline, 8 bits, one scan, grey or YCbCr with subsampling 4:4:4, 4:2:2 or 4:2:0;
- files with a segment that is not named here, or several images;
- files for which simplejpeg, which is strict, raises an error or libjpeg a warning: truncated or corrupt.

Both packages are linked to a libjpeg of their own. So before a process decodes its first file, both decode
small files; if any pixel differs, the process uses Pillow alone (`jpeg_decoder`).
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np
import PIL
from PIL import Image, ImageFile, features

from wordnet_splits.base.digests import Pixels
from wordnet_splits.base.names import printable

Decode = Callable[[bytes, str], Any]
"""Function from a file and ``RGB`` or ``RGBA`` to pixels, uint8 (h, w, 3 or 4); ValueError for damage."""

_FRAME, _SCAN, _QUANTISERS, _JFIF, _ADOBE = 0xC0, 0xDA, 0xDB, 0xE0, 0xEE
_HARMLESS: Final = frozenset((0xC4, 0xDD, 0xFE))  # Huffman tables, restart interval, comment
_METADATA: Final = frozenset((0xE1, 0xE2, 0xED))  # Exif, XMP, ICC profile, Photoshop: Pillow reads them
_GREY: Final = b"\1\1\x11"
_CHANNELS: Final = {_GREY, *(b"\3\1" + bytes([s]) + b"\2\x11\3\x11" for s in (0x11, 0x21, 0x22))}
"""Number of channels, and the number and sampling factors of each, without its table."""


class JpegDecoder(NamedTuple):
    """The decoder of ordinary JPEG files in this process.

    Attributes
    ----------
    decode : simplejpeg's function, None for Pillow.
    description : its name and version; of Pillow, why an installed simplejpeg is not used.
    """

    decode: Decode | None
    description: str


@cache
def jpeg_decoder() -> JpegDecoder:
    """Return the decoder of ordinary JPEG files: simplejpeg if it is installed and gives Pillow's pixels."""
    pillow = f"Pillow {PIL.__version__}, libjpeg-turbo {features.version('libjpeg_turbo')}"
    name = "simplejpeg"
    try:
        import simplejpeg

        name += f" {simplejpeg.__version__}"
        agrees = all(_agrees(simplejpeg.decode_jpeg, data) for data in _samples())
    except ModuleNotFoundError:
        return JpegDecoder(None, pillow)
    except Exception as error:  # such as a build for another NumPy
        return JpegDecoder(None, f"{pillow} ({name} fails: {printable(str(error))})")
    if not agrees:
        return JpegDecoder(None, f"{pillow} ({name} gives other pixels)")
    return JpegDecoder(simplejpeg.decode_jpeg, f"{name}, compared with {pillow}")


def _samples() -> Iterator[bytes]:
    """Yield small files of every accepted kind, smooth and noisy, with saturated colours."""
    rows, columns = np.mgrid[:37, :51]  # not whole blocks in any subsampling
    waves = [np.sin(rows / a + columns / b) for a, b in ((3.0, 11.0), (9.0, 4.0), (5.0, 5.0))]
    noise = np.random.default_rng(41).normal(128, 90, (*rows.shape, 3))
    for pixels in (128 + 160 * np.dstack(waves), noise):
        image = Image.fromarray(pixels.clip(0, 255).astype(np.uint8))
        for quality in (20, 75, 98):
            for mode, subsampling in (("RGB", 0), ("RGB", 1), ("RGB", 2), ("L", -1)):
                file = io.BytesIO()
                image.convert(mode).save(file, "JPEG", quality=quality, subsampling=subsampling)
                yield file.getvalue()


def _agrees(decode: Decode, data: bytes) -> bool:
    with Image.open(io.BytesIO(data)) as image:
        expected = np.asarray(image.convert("RGB"))
    with_alpha = np.dstack([expected, np.full(expected.shape[:2], 255, np.uint8)])
    return np.array_equal(decode(data, "RGB"), expected) and np.array_equal(decode(data, "RGBA"), with_alpha)


def jpeg_image(data: bytes, max_pixels: int) -> Image.Image | None:
    """Return the RGB image in an ordinary JPEG file, None for a file that Pillow has to decode or refuse.

    Like Pillow's image it has Exif, XMP and ICC profile in ``info``. ``max_pixels`` limits height x width.
    """
    if (decoded := _decoded(data, max_pixels, "RGBA")) is None:
        return None
    pixels, is_grey, info = decoded
    image = _from_rgba(pixels)
    image.info = info
    if not is_grey:  # Pillow's image in grey is converted, which loses the name
        image.format = "JPEG"
    return image


def jpeg_pixels(data: bytes, max_pixels: int) -> Pixels | None:
    """Return the pixels in an ordinary JPEG file, uint8 (h, w, 3). Parameters and None as of `jpeg_image`."""
    decoded = _decoded(data, max_pixels, "RGB")
    return None if decoded is None else decoded[0]


def _decoded(data: bytes, max_pixels: int, colour: str) -> tuple[Pixels, bool, dict[Any, Any]] | None:
    """Return the pixels of an ordinary file, whether it is grey, and its metadata."""
    decode = jpeg_decoder().decode
    if decode is None or ImageFile.LOAD_TRUNCATED_IMAGES or (header := _read_header(data)) is None:
        return None
    size, is_grey, has_metadata = header
    if not 0 < size <= max_pixels:
        return None
    try:
        info: dict[Any, Any] = {}
        if has_metadata:
            with Image.open(io.BytesIO(data), formats=("JPEG",)) as image:
                info = image.info
        return decode(data, colour), is_grey, info
    except MemoryError:
        raise
    except Exception:  # Pillow decides, and states what is wrong
        return None


def _from_rgba(pixels: Any) -> Image.Image:
    """Return an RGB image over (h, w, 4) pixels; Pillow has them in this form, too, and copies nothing."""
    height, width = pixels.shape[:2]
    if not hasattr(Image, "fromarrow"):  # before 11.2.1
        return Image.frombuffer("RGBX", (width, height), pixels, "raw", "RGBX", 0, 1).convert("RGB")
    import pyarrow as pa

    values = pa.Array.from_buffers(pa.uint8(), pixels.size, [None, pa.py_buffer(pixels)])
    return Image.fromarrow(pa.FixedSizeListArray.from_arrays(values, 4), "RGB", (width, height))


def _read_header(data: bytes) -> tuple[int, bool, bool] | None:
    """Return an ordinary JPEG file's height x width, and whether it is grey and has metadata, else None."""
    if not data.startswith(b"\xff\xd8"):
        return None
    frame, has_metadata, at = b"", False, 2
    try:
        while data[at] == 0xFF and (marker := data[at + 1]) != _SCAN:
            size = data[at + 2] << 8 | data[at + 3]
            segment = data[at + 4 : at + 2 + size]
            at += 2 + size
            if marker == _FRAME and not frame:
                frame = segment
            elif marker in _METADATA and not segment.startswith(b"MPF"):  # several images
                has_metadata = True
            elif marker not in _HARMLESS and not _is_ordinary(marker, segment):
                return None
        channels = frame[5:8] + frame[9:11] + frame[12:14]
        if data[at] != 0xFF or data[at + 4] != frame[5]:  # all channels in one scan
            return None
    except IndexError:
        return None
    if frame[0] != 8 or channels not in _CHANNELS or len(frame) != 6 + 3 * frame[5]:
        return None
    size = (frame[1] << 8 | frame[2]) * (frame[3] << 8 | frame[4])
    return size, channels == _GREY, has_metadata


def _is_ordinary(marker: int, segment: bytes) -> bool:
    """Return whether a segment is a header of JFIF or Adobe's of YCbCr, or quantisers of 8 bits."""
    if marker == _QUANTISERS:
        return len(segment) % 65 == 0 and max(segment[::65], default=16) < 16
    if marker == _JFIF:
        return len(segment) >= 14 and segment.startswith(b"JFIF\0")
    return marker == _ADOBE and len(segment) == 12 and segment.startswith(b"Adobe") and segment[11] == 1
