"""Small datasets in the publishers' layouts, made of tiny pictures, each of another content."""

from __future__ import annotations

import io
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from wordnet_splits.datasets.catalog.inventory import load_inventory

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
