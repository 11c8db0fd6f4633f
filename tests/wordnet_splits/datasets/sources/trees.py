"""Small datasets in their publishers' formats, and the rows and digests that a source has of them."""

from __future__ import annotations

import gzip
import io
import pickle
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from wordnet_splits.datasets.catalog.inventory import load_inventory
from wordnet_splits.datasets.sources import Source

Rows = set[tuple[str, str, str]]
Write = Callable[[Path], None]


def jpeg(seed: int, size: tuple[int, int] = (12, 10), **options: object) -> bytes:
    """A JPEG that no other seed gives."""
    noise = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(noise).save(file, "JPEG", **options)
    return file.getvalue()


def write_images(root: Path, paths: Iterable[str], seed: int = 0) -> None:
    for number, path in enumerate(paths):
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(jpeg(seed + number))


def some(source: str, split: str, classes: int = 3, each: int = 2) -> Rows:
    """The first images of the first classes of an inventory, as scan rows."""
    table = load_inventory(source, split)
    assert table is not None
    taken: dict[str, list[str]] = {}
    for image_id, class_id in zip(table["image_id"].to_pylist(), table["class_id"].to_pylist(), strict=True):
        if len(taken.get(class_id, ())) < each and (class_id in taken or len(taken) < classes):
            taken.setdefault(class_id, []).append(image_id)
    return {(image_id, class_id, split) for class_id, ids in taken.items() for image_id in ids}


IMAGENET_TRAIN: Rows = {
    (f"{wnid}_{number}", wnid, "train")
    for wnid in ("n01440764", "n02119789", "n15075141")
    for number in (18, 10026, 9999)
}
IMAGENET_VAL = some("imagenet1k", "val")


def in_class_folders(rows: Rows, top: str, inner: str = "", extension: str = "JPEG") -> Iterator[str]:
    for image_id, class_id, _ in sorted(rows):
        stem = image_id.rsplit("/", 1)[-1]
        yield "/".join(part for part in (top, class_id, inner, f"{stem}.{extension}") if part)


def flat(rows: Rows, top: str, extension: str = "JPEG") -> Iterator[str]:
    for image_id, _, _ in sorted(rows):
        yield "/".join(part for part in (top, f"{image_id}.{extension}") if part)


def tar_bytes(files: Iterable[tuple[str, bytes]]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in files:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def train_tar(rows: Rows) -> bytes:
    """The publisher's archive of archives, a class each."""
    wnids = sorted({class_id for _, class_id, _ in rows})
    ids = {wnid: sorted(i for i, class_id, _ in rows if class_id == wnid) for wnid in wnids}
    inner = {
        wnid: tar_bytes((f"{image_id}.JPEG", jpeg(hash_of(image_id))) for image_id in ids[wnid])
        for wnid in wnids
    }
    return tar_bytes((f"{wnid}.tar", inner[wnid]) for wnid in wnids)


def val_tar(rows: Rows) -> bytes:
    return tar_bytes((f"{image_id}.JPEG", jpeg(hash_of(image_id))) for image_id, _, _ in sorted(rows))


def hash_of(image_id: str) -> int:
    """A seed from an id, the same in every process."""
    return zlib.crc32(image_id.encode())


def hub_shards(root: Path, split: str, rows: list[tuple[str | None, bytes]], shards: int = 2) -> None:
    """Parquet as the Hub writes it: image {bytes, path} and a label, several row groups a shard."""
    root.mkdir(parents=True, exist_ok=True)
    for shard in range(shards):
        part = rows[shard::shards]
        image = pa.array([{"bytes": data, "path": path} for path, data in part])
        table = pa.table({"image": image, "label": pa.array([0] * len(part), pa.int64())})
        pq.write_table(table, root / f"{split}-{shard:05d}-of-{shards:05d}.parquet", row_group_size=2)


def link(at: Path, target: str | Path) -> None:
    at.parent.mkdir(parents=True, exist_ok=True)
    at.symlink_to(target)


def shuffled(items: Iterable[str], seed: int = 0) -> list[str]:
    ordered = sorted(items)
    return [ordered[i] for i in np.random.default_rng(seed).permutation(len(ordered))]


Grey = npt.NDArray[np.uint8]
IDX_LABELS = [7, 0, 9, 3, 0]
FASHION = ["Sneaker", "T-shirt/top", "Ankle boot", "Dress", "T-shirt/top"]
IDX = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}


def grey(count: int = len(IDX_LABELS), seed: int = 0) -> Grey:
    return np.random.default_rng(seed).integers(0, 256, (count, 28, 28), dtype=np.uint8)


def header(*shape: int) -> bytes:
    return bytes((0, 0, 8, len(shape))) + struct.pack(f">{len(shape)}I", *shape)


def idx_bytes(pictures: Grey, labels: list[int]) -> tuple[bytes, bytes]:
    return header(*pictures.shape) + pictures.tobytes(), header(len(labels)) + bytes(labels)


def write_idx(
    folder: Path,
    split: str = "test",
    pictures: Grey | None = None,
    labels: list[int] = IDX_LABELS,
    ending: str = "",
    name: Callable[[str], str] = str,
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for title, data in zip(
        IDX[split], idx_bytes(grey() if pictures is None else pictures, labels), strict=True
    ):
        (folder / f"{name(title)}{ending}").write_bytes(gzip.compress(data) if ending else data)


def webp(seed: int) -> bytes:
    pixels = np.random.default_rng(seed).integers(0, 256, (20 + seed, 30, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "webp", lossless=True)
    return buffer.getvalue()


def write_lmdb(folder: Path, images: dict[str, bytes]) -> None:
    import lmdb

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


ScanRows = list[tuple[str, str, str]]


def scan(source: Source, splits: Sequence[str] | None = None) -> ScanRows:
    found = [row for batch in source.scan(splits) for row in batch.to_pylist()]
    return sorted((r["image_id"], r["class_id"], r["split"]) for r in found)


def digests(source: Source, ids: Sequence[str]) -> list[bytes]:
    return [source.digest(raw) for raw in source.read(ids)]


def identity(source: Source) -> dict[str, tuple[str, bytes]]:
    rows = scan(source)
    found = digests(source, [row[0] for row in rows])
    assert all(row[2] == row[0].split("/")[0] for row in rows)
    return {row[0]: (row[1], digest) for row, digest in zip(rows, found, strict=True)}


def png(pixels: npt.NDArray[np.uint8]) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "png", compress_level=1)
    return buffer.getvalue()


def write_pickle(path: Path, value: Any, protocol: int = 2) -> None:
    path.write_bytes(pickle.dumps(value, protocol))


def write_shards(folder: Path, split: str, table: pa.Table, shards: int = 1) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    size = -(-len(table) // shards)
    for number in range(shards):
        path = folder / f"{split}-{number:05d}-of-{shards:05d}.parquet"
        pq.write_table(table.slice(number * size, size), path, row_group_size=250)
