"""JPEG files decoded by simplejpeg: Pillow's pixels, metadata and refusals, or Pillow itself."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import ExifTags, Image, ImageOps

from fix_resize import jpeg
from fix_resize.decode import MAX_PIXELS, UndecodableImageError, decode_array, decode_bytes
from fix_resize.jpeg import jpeg_decoder, jpeg_image, jpeg_pixels
from tests.fix_resize.made_images import photo

simplejpeg = pytest.importorskip("simplejpeg", reason="extra `fast`")

PHOTO = Image.fromarray(photo(41, 77, 93))
START, DQT, APP14, SOF0, SOS = b"\xff\xd8", b"\xff\xdb", b"\xff\xee", b"\xff\xc0", b"\xff\xda"


def saved(image: Image.Image = PHOTO, **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", **options)
    return buffer.getvalue()


def turned() -> bytes:
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = 6
    return saved(exif=exif, icc_profile=b"a profile", xmp=b"<x:xmpmeta/>", comment=b"a comment")


def sampled(kind: str) -> bytes:
    written: bytes = simplejpeg.encode_jpeg(np.asarray(PHOTO), 85, "RGB", kind)
    return written


def patched(data: bytes, segment: bytes, offset: int, value: int) -> bytes:
    """Return a file with one byte replaced, ``offset`` bytes after the start of a segment."""
    at = data.index(segment) + offset
    return data[:at] + bytes([value]) + data[at + 1 :]


def wide_tables(data: bytes) -> bytes:
    """Return a file whose quantisers have 16 bits a value, of the same values."""
    parts = data.split(DQT)
    for number, part in enumerate(parts[1:], 1):
        values = b"".join(b"\0" + part[at : at + 1] for at in range(3, 67))
        parts[number] = (131).to_bytes(2) + bytes([0x10 | part[2]]) + values + part[67:]
    return DQT.join(parts)


def inserted(segment: bytes, data: bytes | None = None) -> bytes:
    data = data or saved()
    return data[:20] + segment[:2] + (len(segment)).to_bytes(2) + segment[2:] + data[20:]


def several_pictures() -> bytes:
    buffer = io.BytesIO()
    PHOTO.save(buffer, "MPO", save_all=True, append_images=[PHOTO.rotate(90)])
    return buffer.getvalue()


class Kind(NamedTuple):
    """A file, and whether simplejpeg decodes it."""

    make: Callable[[], bytes]
    fast: bool


CMYK = PHOTO.convert("CMYK")
KINDS: dict[str, Kind] = {
    **{f"4:{s}": Kind(lambda s=s: saved(subsampling=f"4:{s}"), True) for s in ("4:4", "2:2", "2:0")},
    **{f"quality {q}": Kind(lambda q=q: saved(quality=q), True) for q in (1, 60, 100)},
    "grey": Kind(lambda: saved(PHOTO.convert("L")), True),
    "restart intervals": Kind(lambda: saved(restart_marker_blocks=3), True),
    "optimised": Kind(lambda: saved(optimize=True), True),
    "turned, with a profile": Kind(turned, True),
    "one pixel": Kind(lambda: saved(PHOTO.resize((1, 1))), True),
    "bytes after the end": Kind(lambda: saved() + b"more", True),
    "Adobe's YCbCr": Kind(lambda: inserted(APP14 + b"Adobe\0\x64\0\0\0\0\1"), True),
    "Adobe's RGB": Kind(lambda: saved(keep_rgb=True), False),
    "progressive": Kind(lambda: saved(progressive=True), False),
    "progressive, the last scans lost": Kind(
        lambda: (data := saved(progressive=True))[: data.rindex(SOS)] + b"\xff\xd9", False
    ),
    "CMYK": Kind(lambda: saved(CMYK), False),
    "YCCK": Kind(lambda: patched(saved(CMYK), APP14, 15, 2), False),
    "4:1:1": Kind(lambda: sampled("411"), False),
    "4:4:0": Kind(lambda: sampled("440"), False),
    "grey with a sampling factor": Kind(lambda: patched(saved(PHOTO.convert("L")), SOF0, 11, 0x22), False),
    "16-bit quantisers": Kind(lambda: wide_tables(saved()), False),
    "several pictures": Kind(several_pictures, False),
    "channels by letters": Kind(lambda: patched(saved(), SOF0, 10, ord("R")), False),
    "an unknown segment": Kind(lambda: inserted(b"\xff\xe5" + b"abc"), False),
    "fill bytes before a segment": Kind(lambda: saved()[:20] + b"\xff\xff" + saved()[20:], False),
    "12 bits": Kind(lambda: patched(saved(), SOF0, 4, 12), False),
    "no lines": Kind(lambda: patched(saved(), SOF0, 6, 0), False),
    "half": Kind(lambda: saved()[: len(saved()) // 2], False),
    "no end": Kind(lambda: saved()[:-2], False),
    "garbage in the scan": Kind(lambda: saved()[:-300] + b"\xff" * 200 + saved()[-100:], False),
    "a png": Kind(lambda: (b := io.BytesIO(), PHOTO.save(b, "PNG"))[0].getvalue(), False),
    "no bytes": Kind(lambda: b"", False),
}


def by_pillow(data: bytes, monkeypatch: pytest.MonkeyPatch) -> Image.Image | str:
    """Return the image without simplejpeg, or the reason of the refusal."""
    with monkeypatch.context() as patch:
        patch.setattr(jpeg, "jpeg_decoder", lambda: jpeg.JpegDecoder(None, "Pillow"))
        return image_or_reason(data)


def image_or_reason(data: bytes) -> Image.Image | str:
    try:
        return decode_bytes(data, where="x")
    except UndecodableImageError as error:
        return error.reason


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_every_kind_of_file_is_as_by_pillow(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = KINDS[kind].make()
    assert (jpeg_pixels(data, MAX_PIXELS) is not None) == KINDS[kind].fast
    expected, image = by_pillow(data, monkeypatch), image_or_reason(data)
    if isinstance(expected, str) or isinstance(image, str):
        assert image == expected
        return
    with Image.open(io.BytesIO(data)) as opened:
        pixels = np.asarray(opened.convert("RGB"))
    np.testing.assert_array_equal(np.asarray(image), pixels)
    np.testing.assert_array_equal(np.asarray(expected), pixels)
    np.testing.assert_array_equal(decode_array(data, where="x"), pixels)
    assert (image.mode, image.size, image.format) == ("RGB", expected.size, expected.format)
    metadata = ("exif", "xmp", "icc_profile")
    assert [image.info.get(key) for key in metadata] == [expected.info.get(key) for key in metadata]
    upright = (ImageOps.exif_transpose(each).tobytes() for each in (image, expected))
    assert len(set(upright)) == 1
    image.putpixel((0, 0), (1, 2, 3))  # the pixels may be written to, and are the image's own
    assert image.copy().getpixel((0, 0)) == (1, 2, 3)


def test_every_file_at_hand_has_pillows_pixels(real_data: Path) -> None:
    taken = files = 0
    for path in real_data.rglob("*"):
        if path.suffix.lower() in (".jpg", ".jpeg"):
            data = path.read_bytes()
            pixels, files = jpeg_pixels(data, MAX_PIXELS), files + 1
            if pixels is not None:
                with Image.open(io.BytesIO(data)) as image:
                    assert np.array_equal(pixels, np.asarray(image.convert("RGB"))), path
                taken += 1
    assert taken >= 0.99 * files > 10_000


@settings(max_examples=1000, deadline=None)
@given(
    kind=st.sampled_from([kind for kind in KINDS if KINDS[kind].fast]),
    cut=st.integers(0, 40),
    flips=st.lists(st.tuples(st.integers(2, 6000), st.integers(0, 255)), max_size=3),
    gap=st.tuples(st.integers(2, 6000), st.binary(max_size=8)),
)
def test_damage_is_decoded_or_refused_as_by_pillow(
    kind: str, cut: int, flips: list[tuple[int, int]], gap: tuple[int, bytes]
) -> None:
    data = bytearray(KINDS[kind].make())
    for at, value in flips:
        data[at % len(data)] = value
    data[gap[0] % len(data) : gap[0] % len(data)] = gap[1]
    pixels = jpeg_pixels(bytes(data[: len(data) - cut]), MAX_PIXELS)
    if pixels is not None:
        with Image.open(io.BytesIO(bytes(data[: len(data) - cut]))) as image:
            np.testing.assert_array_equal(pixels, np.asarray(image.convert("RGB")))


def test_the_size_is_judged_by_the_header() -> None:
    assert jpeg_image(saved(), 77 * 93 - 1) is None
    assert jpeg_image(saved(), 77 * 93) is not None


@pytest.fixture
def another_decoder() -> Iterator[None]:
    jpeg_decoder.cache_clear()
    yield
    jpeg_decoder.cache_clear()


def off_by_one(data: bytes, colorspace: str) -> Any:
    pixels = simplejpeg_decode(data, colorspace)
    pixels[-1, -1, 0] ^= 1
    return pixels


def refusing(data: bytes, colorspace: str) -> Any:
    raise ValueError("unsupported\nfile")


simplejpeg_decode = simplejpeg.decode_jpeg


@pytest.mark.usefixtures("another_decoder")
@pytest.mark.parametrize("wrong", [off_by_one, refusing])
def test_a_decoder_of_other_pixels_is_not_used(wrong: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simplejpeg, "decode_jpeg", wrong)
    decode, description = jpeg_decoder()
    assert decode is None
    assert description.startswith("Pillow")
    assert f"simplejpeg {simplejpeg.__version__}" in description
    assert "\n" not in description
    assert jpeg_image(saved(), MAX_PIXELS) is None
    np.testing.assert_array_equal(decode_array(saved(), where="x"), Image.open(io.BytesIO(saved())))


def test_this_machine_decodes_by_simplejpeg() -> None:
    decode, description = jpeg_decoder()
    assert decode is simplejpeg_decode
    assert description.startswith(f"simplejpeg {simplejpeg.__version__}")
