"""Packed 32 x 32 images as lossless WebP mosaics, half the size, for machines that little can be sent to.

``python -m tools.gpu.mosaics pack PACKED FOLDER`` writes them, ``unpack FOLDER PACKED`` each part as it was.
Parts of other sizes are left out.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import shutil
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from wordnet_splits.base import files
from wordnet_splits.base.errors import DataError, SplitsError
from wordnet_splits.base.text_formats import read_json
from wordnet_splits.base.untrusted import read_bytes

SIDE, ACROSS = 32, 20
"""Pixels along an image, and images along a mosaic."""
LARGEST = 2**34
STORE, SUFFIX, INDEX = "packed.json", ".webps", "mosaics.json"
Pixels = npt.NDArray[np.uint8]


def encode(images: Pixels) -> bytes:
    """Encode at most 400 images (n, 3, 32, 32) in a single WebP file; black images fill it up."""
    full = np.zeros((ACROSS * ACROSS, 3, SIDE, SIDE), np.uint8)
    full[: len(images)] = images
    grid = full.reshape(ACROSS, ACROSS, 3, SIDE, SIDE).transpose(0, 3, 1, 4, 2)
    buffer = io.BytesIO()
    picture = Image.fromarray(np.ascontiguousarray(grid.reshape(ACROSS * SIDE, ACROSS * SIDE, 3)))
    picture.save(buffer, "WEBP", lossless=True, quality=100, method=6)
    return buffer.getvalue()


def decode(data: bytes) -> Pixels:
    """Return the 400 images of a mosaic."""
    grid = np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
    return grid.reshape(ACROSS, SIDE, ACROSS, SIDE, 3).transpose(0, 2, 4, 1, 3).reshape(-1, 3, SIDE, SIDE)


def pack(packed: Path, folder: Path) -> None:
    """Write the mosaics of every part of 32 x 32 pixels, and the other files of the store as they are."""
    lengths: dict[str, list[int]] = {}
    with ProcessPoolExecutor() as pool:
        for name in _parts(packed):
            raw = read_bytes(packed / f"{name}.bin", largest=LARGEST)
            images = np.frombuffer(raw, np.uint8).reshape(-1, 3, SIDE, SIDE)
            blocks = np.split(images, range(ACROSS * ACROSS, len(images), ACROSS * ACROSS))
            mosaics = list(pool.map(encode, blocks))
            files.write_bytes(folder / f"{name}{SUFFIX}", b"".join(mosaics))
            shutil.copy(packed / f"{name}.arrow", folder / f"{name}.arrow")
            lengths[name] = list(map(len, mosaics))
            print(f"{name}: {len(raw):,} bytes as {sum(lengths[name]):,}", flush=True)
    shutil.copy(packed / STORE, folder)
    files.write_json(folder / INDEX, lengths)


def unpack(folder: Path, packed: Path) -> None:
    """Write the store again, every part with the checksum it had."""
    lengths, parts = read_json(folder / INDEX), _parts(folder)
    with ProcessPoolExecutor() as pool:
        for name in lengths:
            data = read_bytes(folder / f"{name}{SUFFIX}", largest=LARGEST)
            ends = np.cumsum(lengths[name])
            mosaics = [data[end - size : end] for end, size in zip(ends, lengths[name], strict=True)]
            images = np.concatenate(list(pool.map(decode, mosaics)))
            raw = images.tobytes()[: parts[name]["bytes"]]
            if hashlib.sha256(raw).hexdigest() != parts[name]["sha256"]:
                raise DataError("the images are not those that were packed", where=f"{folder / name}{SUFFIX}")
            files.write_bytes(packed / f"{name}.bin", raw)
            shutil.copy(folder / f"{name}.arrow", packed / f"{name}.arrow")
    shutil.copy(folder / STORE, packed)


def _parts(folder: Path) -> dict[str, dict[str, Any]]:
    """Return split/group -> the entry of each part of 32 x 32 pixels in the list of a store."""
    parts = {f"{part['split']}/{part['group']}": part for part in read_json(folder / STORE)["parts"]}
    fitting = {name: part for name, part in parts.items() if part["shape"] == [3, SIDE, SIDE]}
    for name in sorted(parts.keys() - fitting.keys()):
        print(f"{name}: left out, it is not of {SIDE} x {SIDE} pixels", flush=True)
    if not fitting:
        raise DataError(f"no part is of {SIDE} x {SIDE} pixels", where=str(folder))
    return fitting


def main() -> None:
    """Pack or unpack."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("verb", choices=["pack", "unpack"])
    parser.add_argument("source", type=Path)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    try:
        {"pack": pack, "unpack": unpack}[options.verb](options.source, options.out)
    except SplitsError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
