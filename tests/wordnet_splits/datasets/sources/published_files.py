"""Small files of LSUN, MNIST and Omniglot in their publishers' formats."""

from __future__ import annotations

import gzip
import io
import struct
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

import lmdb
import numpy as np
import numpy.typing as npt
from PIL import Image

Grey = npt.NDArray[np.uint8]
LABELS = [7, 0, 9, 3, 0]
FASHION = ["Sneaker", "T-shirt/top", "Ankle boot", "Dress", "T-shirt/top"]
NAMES = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}


def grey(count: int = len(LABELS), seed: int = 0) -> Grey:
    return np.random.default_rng(seed).integers(0, 256, (count, 28, 28), dtype=np.uint8)


def header(*shape: int) -> bytes:
    return bytes((0, 0, 8, len(shape))) + struct.pack(f">{len(shape)}I", *shape)


def idx_bytes(pictures: Grey, labels: list[int]) -> tuple[bytes, bytes]:
    return header(*pictures.shape) + pictures.tobytes(), header(len(labels)) + bytes(labels)


def write_idx(
    folder: Path,
    split: str = "test",
    pictures: Grey | None = None,
    labels: list[int] = LABELS,
    ending: str = "",
    name: Callable[[str], str] = str,
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for title, data in zip(
        NAMES[split], idx_bytes(grey() if pictures is None else pictures, labels), strict=True
    ):
        (folder / f"{name(title)}{ending}").write_bytes(gzip.compress(data) if ending else data)


def webp(seed: int) -> bytes:
    pixels = np.random.default_rng(seed).integers(0, 256, (20 + seed, 30, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "webp", lossless=True)
    return buffer.getvalue()


def write_lmdb(folder: Path, images: dict[str, bytes]) -> None:
    folder.mkdir(parents=True)
    with lmdb.open(str(folder), map_size=1 << 24) as env, env.begin(write=True) as transaction:
        for key, value in images.items():
            transaction.put(key.encode("utf-8"), value)


OTHER = ["Futurama/character01/0266_05"]
ANGELIC = ["Angelic/character01/0965_01", "Angelic/character02/0966_20"]


def drawing(image_id: str) -> bytes:
    """A drawing that no other id gives, as the publisher stores it: one bit a pixel."""
    seed = sum(ord(c) * (n + 1) for n, c in enumerate(image_id))
    pixels = np.random.default_rng(seed).integers(0, 2, (105, 105), dtype=np.uint8) * 255
    file = io.BytesIO()
    Image.fromarray(pixels).convert("1").save(file, "PNG")
    return file.getvalue()


def as_folder(root: Path, name: str, ids: Iterable[str]) -> None:
    for image_id in ids:
        path = root / name / f"{image_id}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(drawing(image_id))


def as_zip(root: Path, name: str, ids: Iterable[str]) -> None:
    root.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(root / f"{name}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.mkdir(f"{name}/")
        for image_id in ids:
            archive.writestr(f"{name}/{image_id}.png", drawing(image_id))
