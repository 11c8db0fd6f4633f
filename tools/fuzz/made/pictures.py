"""Pictures larger than their files, and folders that are no place for pictures."""

from __future__ import annotations

import io
import os
import struct
import zlib
from pathlib import Path
from typing import Any

from PIL import Image

from tools.fuzz.made.making import Made, beside, in_bytes


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def _png(width: int, height: int, *more: bytes, depth: int = 8, data: bytes = b"\x00") -> bytes:
    head = struct.pack(">IIBBBBB", width, height, depth, 2, 0, 0, 0)
    body = (*more, _chunk(b"IDAT", zlib.compress(data)), _chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", head) + b"".join(body)


def _saved(mode: str, image_format: str, pixels: list[Any], **options: Any) -> bytes:
    image = Image.new(mode, (2, 1))
    for x, pixel in enumerate(pixels):
        image.putpixel((x, 0), pixel)
    file = io.BytesIO()
    image.save(file, image_format, **options)
    return file.getvalue()


def _tiff(width: int, height: int, following: int = 0) -> bytes:
    tags = (
        (256, 4, 1, width),
        (257, 4, 1, height),
        (258, 3, 1, 8),
        (259, 3, 1, 1),
        (262, 3, 1, 1),
        (273, 4, 1, 8),
    )
    entries = b"".join(struct.pack("<HHII", *tag) for tag in tags)
    return b"II*\x00" + struct.pack("<IH", 8, len(tags)) + entries + struct.pack("<I", following)


def _deep(folder: Path) -> None:
    """Make folders a thousand deep: one step at a time, as no path may be that long."""
    here = os.open(folder, os.O_RDONLY)
    for _ in range(1000):
        os.mkdir("deeper", dir_fd=here)
        inner = os.open("deeper", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)


FOLDERS: Made = {
    "folders 1,000 deep": ("**/*.*", beside(_deep)),
    "a name with control characters": (
        "**/*.*",
        beside(lambda folder: (folder / "\x1b[2J\x07\n.jpg").touch()),
    ),
    "a name that is no UTF-8": ("**/*.*", beside(lambda folder: (folder / "\udcff\udcfe.jpg").touch())),
    "a folder with control characters": ("**/*.*", beside(lambda folder: (folder / "\x1b[2J\n").mkdir())),
    "a link to the folder above": ("**/*.*", beside(lambda folder: (folder / "up").symlink_to(".."))),
    "a link to /": ("**/*.*", beside(lambda folder: (folder / "all").symlink_to("/"))),
}
PICTURES: Made = {
    "a PNG of 89,478,485 x 1": ("in/b.png", in_bytes(lambda: _png(89_478_485, 1))),
    "a PNG of 2**31 x 2**31": ("in/b.png", in_bytes(lambda: _png((1 << 31) - 1, (1 << 31) - 1))),
    "a PNG of 13,000 x 13,000 zeros": (
        "in/b.png",
        in_bytes(lambda: _png(13_000, 13_000, data=bytes(13_000 * 39_001))),
    ),
    "a PNG of no pixels": ("in/b.png", in_bytes(lambda: _png(0, 0))),
    "a PNG with a packed text of 1 GiB": (
        "in/b.png",
        in_bytes(lambda: _png(1, 1, _chunk(b"zTXt", b"x\x00\x00" + zlib.compress(bytes(1 << 28), 9)))),
    ),
    "a PNG with a packed profile": (
        "in/b.png",
        in_bytes(lambda: _png(1, 1, _chunk(b"iCCP", b"x\x00\x00" + zlib.compress(bytes(1 << 28), 9)))),
    ),
    "a GIF of 65,535 x 65,535": ("in/c.gif", in_bytes(lambda: b"GIF89a\xff\xff\xff\xff\x00\x00\x00,")),
    "a BMP of 2**31": (
        "in/d.bmp",
        in_bytes(
            lambda: b"BM" + bytes(8) + struct.pack("<IIiiHHI", 54, 40, 1 << 30, 1 << 30, 1, 24, 0) + bytes(60)
        ),
    ),
    "a TIFF of 2**31": ("in/f.tif", in_bytes(lambda: _tiff((1 << 31) - 1, (1 << 31) - 1))),
    "a TIFF of 40,000 x 40,000": ("in/f.tif", in_bytes(lambda: _tiff(40_000, 40_000))),
    "a TIFF whose pages go round": ("in/f.tif", in_bytes(lambda: _tiff(8, 8, 8))),
    "a TIFF of floats": ("in/f.tif", in_bytes(lambda: _saved("F", "TIFF", [1e30, -1.0]))),
    "a TIFF of 32-bit integers": ("in/f.tif", in_bytes(lambda: _saved("I", "TIFF", [70_000, -1]))),
    "a PNG of 16 bits": ("in/b.png", in_bytes(lambda: _saved("I;16", "PNG", [65_535, 256]))),
    "a CMYK JPEG": ("in/a.jpg", in_bytes(lambda: _saved("CMYK", "JPEG", [(0, 99, 200, 3), (1, 2, 3, 4)]))),
    "a palette with transparency": ("in/c.gif", in_bytes(lambda: _saved("P", "GIF", [0, 7], transparency=7))),
    "a picture named as a folder": ("in/b.png", beside(lambda folder: (folder / "a.png").mkdir())),
    **FOLDERS,
}
