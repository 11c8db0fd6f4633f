"""Every kind of file becomes RGB by the stated rule, or is refused with the reason."""

from __future__ import annotations

import io
import pickle
import struct
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import ExifTags, Image, ImageFile, TiffImagePlugin

from fix_resize.decode import (
    EXTENSIONS,
    MAX_PIXELS,
    RULES,
    UndecodableImageError,
    check_bytes,
    decode,
    decode_bytes,
)
from fix_resize.spec import get_spec, plan
from wordnet_splits.base.digests import as_rgb
from wordnet_splits.base.errors import SourceError, SplitsError

RNG = np.random.default_rng(30)
RGB = RNG.integers(0, 256, (24, 32, 3), dtype=np.uint8)
GREY = RGB[:, :, 0]
GREY16 = RNG.integers(0, 65536, (24, 32), dtype=np.uint16)
ALPHA = RNG.integers(0, 256, (24, 32, 1), dtype=np.uint8)


def saved(image: Image.Image | np.ndarray, file_format: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image = image if isinstance(image, Image.Image) else Image.fromarray(image)
    image.save(buffer, file_format, **options)
    return buffer.getvalue()


def png(width: int, height: int, depth: int, colour_type: int, rows: bytes) -> bytes:
    """Return a PNG whose header is made of the arguments, whatever the rows."""
    header = struct.pack(">IIBBBBB", width, height, depth, colour_type, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    written = (struct.pack(">I", len(b)) + n + b + struct.pack(">I", zlib.crc32(n + b)) for n, b in chunks)
    return b"\x89PNG\r\n\x1a\n" + b"".join(written)


def deep_png(values: np.ndarray, colour_type: int) -> bytes:
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in values)
    return png(values.shape[1], values.shape[0], 16, colour_type, rows)


def exif(orientation: int) -> Image.Exif:
    data = Image.Exif()
    data[ExifTags.Base.Orientation] = orientation
    return data


PALETTE = Image.fromarray(RGB).quantize(16)
CMYK = saved(Image.fromarray(RGB).convert("CMYK"), "JPEG", quality=95)
DEEP = RNG.integers(0, 65536, (24, 32, 4), dtype=np.uint16)
INT32 = RNG.integers(0, 65536, (24, 32), dtype=np.int32)
FRAMES = {"save_all": True, "append_images": [Image.fromarray(255 - RGB)]}
JPEG = saved(RGB, "JPEG", exif=exif(6))
KINDS: dict[str, tuple[bytes, np.ndarray | Image.Image, str, tuple[str, ...]]] = {
    "rgb": (saved(RGB, "PNG"), RGB, "RGB", ()),
    "webp": (saved(RGB, "WEBP", lossless=True), RGB, "RGB", ()),
    "bmp": (saved(RGB, "BMP"), RGB, "RGB", ()),
    "grey": (saved(GREY, "PNG"), GREY, "L", ()),
    "grey tiff": (saved(GREY, "TIFF", compression="tiff_lzw"), GREY, "L", ()),
    "1 bit": (saved(GREY > 127, "PNG"), np.where(GREY > 127, 255, 0), "1", ("1-bit",)),
    "palette": (saved(PALETTE, "PNG"), PALETTE, "P", ("palette",)),
    "gif": (saved(PALETTE, "GIF"), PALETTE, "P", ("palette",)),
    "transparent palette": (saved(PALETTE, "PNG", transparency=3), PALETTE, "P", ("palette",)),
    "alpha": (saved(np.concatenate([RGB, ALPHA], axis=2), "PNG"), RGB, "RGBA", ("alpha",)),
    "grey alpha": (saved(np.dstack([GREY, ALPHA]), "PNG"), GREY, "LA", ("alpha",)),
    "cmyk": (CMYK, Image.open(io.BytesIO(CMYK)), "CMYK", ("cmyk",)),
    "16-bit png": (saved(GREY16, "PNG"), GREY16 >> 8, "I;16", ("16-bit",)),
    "16-bit tiff": (saved(GREY16, "TIFF"), GREY16 >> 8, "I;16", ("16-bit",)),
    "16-bit pgm": (b"P5 32 24 65535\n" + GREY16.astype(">u2").tobytes(), GREY16 >> 8, "I", ("16-bit",)),
    "dark pgm": (b"P5 32 24 65535\n" + (GREY16 >> 9).astype(">u2").tobytes(), GREY * 0, "I", ("16-bit",)),
    "16-bit rgb": (deep_png(DEEP[..., :3], 2), DEEP[..., :3] >> 8, "RGB", ("16-bit",)),
    "16-bit rgba": (deep_png(DEEP, 6), DEEP[..., :3] >> 8, "RGBA", ("16-bit", "alpha")),
    "32-bit tiff of 8 bits": (saved(INT32 >> 8, "TIFF"), INT32 >> 8, "I", ("8 of 32 bits",)),
    "32-bit tiff of 16 bits": (saved(INT32, "TIFF"), INT32 >> 8, "I", ("16-bit",)),
    "frames of png": (saved(RGB, "PNG", **FRAMES), RGB, "RGB", ("frames",)),
    "frames of tiff": (saved(RGB, "TIFF", **FRAMES), RGB, "RGB", ("frames",)),
    "turned": (JPEG, Image.open(io.BytesIO(JPEG)), "RGB", ("orientation",)),
    "damaged metadata": (
        saved(RGB, "JPEG", exif=b"Exif\x00\x00II*\x00\xff\xff\xff\x7f"),
        Image.open(io.BytesIO(JPEG)),
        "RGB",
        (),
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_file_becomes_rgb(kind: str) -> None:
    data, expected, mode, notes = KINDS[kind]
    if isinstance(expected, Image.Image):
        expected = np.asarray(expected.convert("RGB"))
    decoded = decode(data)
    assert (decoded.image.mode, decoded.mode, decoded.notes) == ("RGB", mode, notes)
    rgb = np.asarray(decoded.image)
    np.testing.assert_array_equal(rgb, expected if expected.ndim == 3 else np.stack([expected] * 3, axis=2))
    assert decode_bytes(data, where="x").tobytes() == rgb.tobytes()
    assert check_bytes(data) is None
    assert kind != "cmyk" or np.abs(rgb.mean(axis=(0, 1)) - RGB.mean(axis=(0, 1))).max() < 10  # not inverted


@pytest.mark.parametrize(
    ("head", "values", "becomes", "notes"),
    [
        ("P6 1 1 65535\n", ">3H 4863 4863 4863", 19, ("scaled",)),  # 0x12ff, whose high byte is 18
        ("P3 1 1 65535\n4863 4863 4863\n", "", 19, ("scaled",)),
        ("P6 1 1 1000\n", ">3H 500 500 500", 128, ("scaled",)),
        ("P5 1 1 100\n", ">B 50", 128, ("scaled",)),
        ("P5 1 1 1000\n", ">H 500", 128, ("16-bit", "scaled")),
        ("P5 1 1 65535\n", ">H 4863", 18, ("16-bit",)),
        ("P2 1 1 65535\n4863\n", "", 18, ("16-bit",)),
        ("P6 1 1 255\n", ">3B 7 7 7", 7, ()),
        ("P3 1 1 255\n7 7 7\n", "", 7, ()),
        ("P1 1 1\n1\n", "", 0, ("1-bit",)),
        ("P4 1 1\n", ">B 128", 0, ("1-bit",)),
    ],
)
def test_values_of_ppm_are_scaled_to_their_highest(
    head: str, values: str, becomes: int, notes: tuple[str, ...]
) -> None:
    form, *numbers = values.split() or [""]
    decoded = decode(head.encode() + struct.pack(form, *map(int, numbers)))
    assert (decoded.image.getpixel((0, 0)), decoded.notes) == ((becomes,) * 3, notes)


@pytest.mark.parametrize("extension", sorted(EXTENSIONS))
def test_every_extension_of_an_image_is_decoded(extension: str) -> None:
    image = Image.fromarray(RGB).convert({"pbm": "1", "pgm": "L"}.get(extension, "RGB"))
    assert decode(saved(image, Image.registered_extensions()[f".{extension}"])).image.size == (32, 24)


def damaged(data: bytes) -> bytes:
    """Return a PNG with 100 bytes in the middle of its compressed data overwritten."""
    middle = data.index(b"IDAT") + 500
    return data[:middle] + b"\xff" * 100 + data[middle + 100 :]


def twelve_bits() -> bytes:
    """Return a TIFF of 16 bits whose header says 12."""
    data = bytearray(saved(GREY16, "TIFF"))
    at = data.index(struct.pack("<HHIH", TiffImagePlugin.BITSPERSAMPLE, 3, 1, 16))
    data[at + 8] = 12
    return bytes(data)


def of_32_bits(low: int) -> bytes:
    return saved(np.array([[low, 100_000]], dtype=np.int32), "TIFF")


SPOILT: dict[str, tuple[str, Callable[[], bytes]]] = {
    "no bytes": ("empty", lambda: b""),
    "text": ("unidentified", lambda: b"this is not an image"),
    "html instead of an image": ("unidentified", lambda: b"<html><body>404</body></html>"),
    "postscript, which another program reads": ("unidentified", lambda: saved(RGB, "EPS")),
    "half a jpeg": ("truncated", lambda: JPEG[: len(JPEG) // 2]),
    "a jpeg without its end": ("truncated", lambda: JPEG[:-60]),
    "half a png": ("truncated", lambda: saved(RGB, "PNG")[:900]),
    "half a webp": ("corrupt", lambda: saved(RGB, "WEBP")[:200]),
    "a png whose data are no zlib stream": ("corrupt", lambda: damaged(saved(RGB, "PNG"))),
    "a png of an unknown kind": ("unidentified", lambda: png(4, 4, 8, 5, b"\0" * 52)),
    "a header of 10,000 megapixels": ("bomb", lambda: png(100_000, 100_000, 8, 2, b"\0")),
    "a header of 100 megapixels": ("bomb", lambda: png(10_000, 10_000, 1, 0, b"\0")),
    "a header of one pixel too many": ("bomb", lambda: png(int(MAX_PIXELS**0.5) + 1, 9460, 8, 2, b"")),
    "float pixels": ("mode", lambda: saved(np.ones((4, 4), np.float32), "TIFF")),
    "Lab pixels": ("mode", lambda: saved(Image.new("LAB", (4, 4)), "TIFF")),
    "32-bit pixels": ("mode", lambda: of_32_bits(0)),
    "negative pixels": ("mode", lambda: of_32_bits(-5)),
    "12 bits": ("mode", twelve_bits),
    "white is zero": (
        "mode",
        lambda: saved(GREY16, "TIFF", tiffinfo={TiffImagePlugin.PHOTOMETRIC_INTERPRETATION: 0}),
    ),
}


@pytest.mark.parametrize("kind", SPOILT)
def test_an_unusable_file_is_refused_with_the_reason(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reason, make = SPOILT[kind]
    data = make()
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", None)  # other programs may lift Pillow's limit
    for decoder in (decode, decode_bytes):
        with pytest.raises(UndecodableImageError) as caught:
            decoder(data, where="n00000001/n00000001_7")
        error = caught.value
        assert (error.reason, error.where) == (reason, "n00000001/n00000001_7")
        assert "\n" not in str(error)
    assert check_bytes(data) is not None
    again = pickle.loads(pickle.dumps(error))  # worker processes return it
    assert (str(again), again.reason, again.detail) == (str(error), reason, error.detail)
    assert again.within("a.tar").where == "a.tar: n00000001/n00000001_7"


def test_every_byte_of_a_jpeg_may_be_lost_without_a_traceback() -> None:
    for end in range(len(JPEG) - 2):  # without its end marker at least
        with pytest.raises(UndecodableImageError):
            decode(JPEG[:end])


def test_the_size_is_judged_before_any_pixel_is_decoded() -> None:
    long = png(MAX_PIXELS, 1, 8, 0, b"")  # its pixels, were there any, would be 268 MB as RGB
    with pytest.raises(UndecodableImageError) as caught:
        decode(long, admit=partial(plan, get_spec("fix")))
    assert caught.value.reason == "aspect"
    assert MAX_PIXELS > 9331 * 6530  # ImageNet's largest


def test_truncated_files_are_not_filled_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)  # training scripts set it for themselves
    for decoder in (decode, partial(decode_bytes, where="x")):
        with pytest.raises(SplitsError):
            decoder(JPEG[:-60])


def test_the_page_shows_the_rules() -> None:
    docs = Path(__file__).resolve().parents[2] / "docs"
    rows = "\n".join(f"| {rule.stored} | {rule.becomes} |" for rule in RULES)
    table = f"| stored | becomes |\n|---|---|\n{rows}\n"
    assert table in (docs / "data.md").read_text(encoding="utf-8")
    assert "data.md#from-a-file-to-rgb" in (docs / "fix-resize.md").read_text(encoding="utf-8")


@settings(max_examples=300, deadline=None)
@given(
    kind=st.sampled_from(sorted(KINDS)),
    cut=st.integers(0, 4000),
    flips=st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 255)), max_size=6),
)
def test_the_quick_check_finds_the_same_damage_as_the_decoder(
    kind: str, cut: int, flips: list[tuple[int, int]]
) -> None:
    data = bytearray(KINDS[kind][0])
    for at, value in flips:
        data[at % len(data)] = value
    changed = bytes(data[: len(data) - cut % len(data)])
    try:
        decode_bytes(changed, where="x")
        decodes = True
    except SourceError:
        decodes = False
    assert (check_bytes(changed) is None) == decodes


def test_real_photographs_cut_short_are_found(real_data: Path) -> None:
    for path in sorted((real_data / "dtd" / "images").rglob("*.jpg"))[::12]:
        whole = path.read_bytes()
        assert check_bytes(whole) is None
        for share in (0.2, 0.6, 0.95):
            cut = whole[: int(share * len(whole))]
            assert check_bytes(cut) is not None
            with pytest.raises(SourceError):
                decode_bytes(cut, where="x")


def test_grey_pixels_are_repeated() -> None:
    grey = np.arange(12, dtype=np.uint8).reshape(3, 4)
    for pixels in (grey, grey[:, :, None], np.stack([grey] * 3, axis=2)):
        rgb = as_rgb(pixels)
        assert rgb.flags.c_contiguous
        np.testing.assert_array_equal(rgb, np.stack([grey] * 3, axis=2))


@pytest.mark.parametrize("wrong", [np.zeros((3, 4, 4), np.uint8), np.zeros((3, 4, 3)), np.zeros(3, np.uint8)])
def test_other_arrays_are_refused(wrong: np.ndarray) -> None:
    with pytest.raises(SourceError):
        as_rgb(wrong)
