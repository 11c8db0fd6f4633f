"""Every kind of image follows the stated rule: converted as it says, or quarantined with the reason."""

from __future__ import annotations

import io
import pickle
import struct
import zlib
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from PIL import ExifTags, Image, ImageFile

from fix_resize.decode import MAX_PIXELS, REASONS, QuarantinedImageError, decode
from fix_resize.spec import get_spec, plan
from wordnet_splits.base.errors import SplitsError

RNG = np.random.default_rng(30)
RGB = RNG.integers(0, 256, (24, 32, 3), dtype=np.uint8)
GREY16 = RNG.integers(0, 65536, (24, 32), dtype=np.uint16)


def saved(image: Image.Image, file_format: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, file_format, **options)
    return buffer.getvalue()


def png(width: int, height: int, depth: int, colour_type: int, rows: bytes) -> bytes:
    """Return a PNG whose header says what it is told to say."""

    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    header = struct.pack(">IIBBBBB", width, height, depth, colour_type, 0, 0, 0)
    return b"".join(
        [
            b"\x89PNG\r\n\x1a\n",
            chunk(b"IHDR", header),
            chunk(b"IDAT", zlib.compress(rows)),
            chunk(b"IEND", b""),
        ]
    )


def deep_png(values: np.ndarray, colour_type: int) -> bytes:
    height, width = values.shape[:2]
    return png(
        width, height, 16, colour_type, b"".join(b"\0" + row.astype(">u2").tobytes() for row in values)
    )


def pixels(data: bytes) -> np.ndarray:
    decoded = decode(data)
    assert decoded.image.mode == "RGB"
    return np.asarray(decoded.image)


def test_rgb_is_kept_as_it_is() -> None:
    decoded = decode(saved(Image.fromarray(RGB), "PNG"))
    np.testing.assert_array_equal(np.asarray(decoded.image), RGB)
    assert (decoded.mode, decoded.notes) == ("RGB", ())


def test_grey_is_repeated() -> None:
    grey = RGB[:, :, 0]
    np.testing.assert_array_equal(pixels(saved(Image.fromarray(grey), "PNG")), np.stack([grey] * 3, axis=2))
    bits = pixels(saved(Image.fromarray(grey > 127), "PNG"))
    np.testing.assert_array_equal(bits[:, :, 1], np.where(grey > 127, 255, 0))


def test_a_palette_is_looked_up_and_its_transparency_dropped() -> None:
    image = Image.fromarray(RGB).quantize(16)
    expected = np.asarray(image.convert("RGB"))
    for data in (saved(image, "PNG"), saved(image, "GIF"), saved(image, "PNG", transparency=3)):
        decoded = decode(data)
        np.testing.assert_array_equal(np.asarray(decoded.image), expected)
        assert decoded.notes == ("palette",)


def test_alpha_is_dropped_and_nothing_is_blended() -> None:
    alpha = RNG.integers(0, 256, (24, 32, 1), dtype=np.uint8)
    decoded = decode(saved(Image.fromarray(np.concatenate([RGB, alpha], axis=2)), "PNG"))
    np.testing.assert_array_equal(np.asarray(decoded.image), RGB)
    assert (decoded.mode, decoded.notes) == ("RGBA", ("alpha",))
    grey = decode(saved(Image.fromarray(np.concatenate([RGB[:, :, :1], alpha], axis=2)), "PNG"))
    np.testing.assert_array_equal(np.asarray(grey.image)[:, :, 2], RGB[:, :, 0])


def test_cmyk_is_converted_as_torchvision_does() -> None:
    data = saved(Image.fromarray(RGB).convert("CMYK"), "JPEG", quality=95)
    decoded = decode(data)
    np.testing.assert_array_equal(
        np.asarray(decoded.image), np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
    )
    assert (decoded.mode, decoded.notes) == ("CMYK", ("cmyk",))
    assert (
        np.abs(np.asarray(decoded.image).mean(axis=(0, 1)) - RGB.mean(axis=(0, 1))).max() < 10
    )  # not inverted


@pytest.mark.parametrize("file_format", ["PNG", "TIFF"])
def test_16_bit_grey_keeps_its_high_byte(file_format: str) -> None:
    decoded = decode(saved(Image.fromarray(GREY16), file_format))
    np.testing.assert_array_equal(np.asarray(decoded.image), np.stack([GREY16 >> 8] * 3, axis=2))
    assert decoded.notes == ("16-bit",)


def test_16_bit_pgm_keeps_its_high_byte() -> None:
    data = b"P5 32 24 65535\n" + GREY16.astype(">u2").tobytes()
    np.testing.assert_array_equal(pixels(data)[:, :, 0], GREY16 >> 8)


@pytest.mark.parametrize(
    ("colour_type", "channels", "notes"), [(2, 3, ("16-bit",)), (6, 4, ("16-bit", "alpha"))]
)
def test_16_bit_colour_keeps_its_high_bytes(colour_type: int, channels: int, notes: tuple[str, ...]) -> None:
    values = RNG.integers(0, 65536, (24, 32, channels), dtype=np.uint16)
    decoded = decode(deep_png(values, colour_type))
    np.testing.assert_array_equal(np.asarray(decoded.image), (values >> 8)[:, :, :3])
    assert decoded.notes == notes


@pytest.mark.parametrize(("top", "shift", "note"), [(256, 0, "8 of 32 bits"), (65536, 8, "16-bit")])
def test_32_bit_tiff_is_scaled_by_what_it_holds(top: int, shift: int, note: str) -> None:
    values = RNG.integers(0, top, (24, 32), dtype=np.int32)
    decoded = decode(saved(Image.fromarray(values), "TIFF"))
    np.testing.assert_array_equal(np.asarray(decoded.image)[:, :, 2], values >> shift)
    assert decoded.notes == (note,)


def test_a_dark_16_bit_pgm_is_no_32_bit_file() -> None:
    data = b"P5 32 24 65535\n" + (GREY16 >> 9).astype(">u2").tobytes()
    decoded = decode(data)
    assert (pixels(data).max(), decoded.notes) == (0, ("16-bit",))


def test_the_orientation_tag_is_not_applied() -> None:
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = 6
    decoded = decode(saved(Image.fromarray(RGB), "JPEG", exif=exif))
    assert decoded.image.size == (32, 24)
    assert decoded.notes == ("orientation",)
    assert decode(saved(Image.fromarray(RGB), "JPEG")).notes == ()


def test_damaged_metadata_does_not_spoil_the_pixels() -> None:
    data = saved(Image.fromarray(RGB), "JPEG", exif=b"Exif\x00\x00II*\x00\xff\xff\xff\x7f")
    assert decode(data).image.size == (32, 24)


def test_of_several_frames_the_first_counts() -> None:
    frames = [Image.fromarray(RGB), Image.fromarray(255 - RGB)]
    for file_format in ("PNG", "TIFF"):
        decoded = decode(saved(frames[0], file_format, save_all=True, append_images=frames[1:]))
        np.testing.assert_array_equal(np.asarray(decoded.image), RGB)
        assert decoded.notes == ("frames",)


def test_webp_and_bmp_are_read() -> None:
    for data in (saved(Image.fromarray(RGB), "WEBP", lossless=True), saved(Image.fromarray(RGB), "BMP")):
        np.testing.assert_array_equal(pixels(data), RGB)


def of_32_bits(low: int) -> bytes:
    return saved(Image.fromarray(np.array([[low, 100_000]], dtype=np.int32)), "TIFF")


def damaged(data: bytes) -> bytes:
    """Return a PNG with 100 bytes in the middle of its compressed data overwritten."""
    middle = data.index(b"IDAT") + 500
    return data[:middle] + b"\xff" * 100 + data[middle + 100 :]


JPEG = saved(Image.fromarray(RGB), "JPEG")
SPOILT: dict[str, tuple[str, Callable[[], bytes]]] = {
    "no bytes": ("empty", lambda: b""),
    "text": ("unidentified", lambda: b"this is not an image"),
    "html instead of an image": ("unidentified", lambda: b"<html><body>404</body></html>"),
    "postscript": ("unidentified", lambda: saved(Image.fromarray(RGB), "EPS")),
    "half a jpeg": ("truncated", lambda: JPEG[: len(JPEG) // 2]),
    "half a png": ("truncated", lambda: saved(Image.fromarray(RGB), "PNG")[:900]),
    "half a webp": ("corrupt", lambda: saved(Image.fromarray(RGB), "WEBP")[:200]),
    "a png whose data are no zlib stream": ("corrupt", lambda: damaged(saved(Image.fromarray(RGB), "PNG"))),
    "a png of an unknown kind": ("unidentified", lambda: png(4, 4, 8, 5, b"\0" * 52)),
    "a header of 10,000 megapixels": ("bomb", lambda: png(100_000, 100_000, 8, 2, b"\0")),
    "a header of 100 megapixels": ("bomb", lambda: png(10_000, 10_000, 1, 0, b"\0")),
    "float pixels": ("mode", lambda: saved(Image.fromarray(np.ones((4, 4), np.float32)), "TIFF")),
    "Lab pixels": ("mode", lambda: saved(Image.new("LAB", (4, 4)), "TIFF")),
    "32-bit pixels": ("mode", lambda: of_32_bits(0)),
    "negative pixels": ("mode", lambda: of_32_bits(-5)),
}


@pytest.mark.parametrize("what", SPOILT)
def test_what_cannot_be_used_is_quarantined_with_its_reason(what: str) -> None:
    reason, make = SPOILT[what]
    with pytest.raises(QuarantinedImageError) as caught:
        decode(make(), where="n00000001/n00000001_7")
    error = caught.value
    assert (error.reason, error.where) == (reason, "n00000001/n00000001_7")
    assert str(error).startswith(f"n00000001/n00000001_7: {REASONS[reason].problem}")
    again = pickle.loads(pickle.dumps(error))  # it comes home from worker processes
    assert (str(again), again.reason, again.detail) == (str(error), reason, error.detail)


def test_every_byte_of_a_jpeg_may_be_lost_without_a_traceback() -> None:
    for end in range(len(JPEG) - 2):  # without its end marker at least
        with pytest.raises(QuarantinedImageError):
            decode(JPEG[:end])


def test_a_bomb_is_refused_before_it_is_decoded() -> None:
    side = int(MAX_PIXELS**0.5) + 1
    with pytest.raises(QuarantinedImageError, match=f"{side} x {side}"):
        decode(png(side, side, 8, 2, b""))  # there are no pixels to decode: the header was enough


def test_the_size_is_judged_before_any_pixel_is_decoded() -> None:
    long = png(MAX_PIXELS, 1, 8, 0, b"")  # its pixels, were there any, would be 268 MB as RGB
    with pytest.raises(QuarantinedImageError) as caught:
        decode(long, admit=partial(plan, get_spec("fix")))
    assert caught.value.reason == "aspect"


def test_filling_in_truncated_files_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    with pytest.raises(SplitsError, match="fill in truncated"):
        decode(JPEG)
