"""What the tests of CIFAR's copies share."""

from __future__ import annotations

import io
import pickle
from collections.abc import Sequence
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from wordnet_splits.datasets.sources import Source
from wordnet_splits.datasets.sources.layouts.unpickle import load_pickle

Rows = list[tuple[str, str, str]]


def scan(source: Source, splits: Sequence[str] | None = None) -> Rows:
    found = [row for batch in source.scan(splits) for row in batch.to_pylist()]
    return sorted((r["image_id"], r["class_id"], r["split"]) for r in found)


def digests(source: Source, ids: Sequence[str]) -> list[bytes]:
    return [source.digest(raw) for raw in source.read(ids)]


def identity(source: Source) -> dict[str, tuple[str, bytes]]:
    rows = scan(source)
    found = digests(source, [row[0] for row in rows])
    assert all(row[2] == row[0].split("/")[0] for row in rows)
    return {row[0]: (row[1], digest) for row, digest in zip(rows, found, strict=True)}


def pictures(batch: dict[str, Any]) -> npt.NDArray[np.uint8]:
    return np.ascontiguousarray(batch["data"].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))


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


def load_batches(real_data: Path) -> dict[str, dict[str, Any]]:
    """The first 1,500 train and 1,000 test pictures of CIFAR-100."""
    batches = {}
    for split, count in (("train", 1500), ("test", 1000)):
        batch: Any = load_pickle(real_data / "cifar-100-python" / split)
        # copies: a view would keep all the pictures of the split
        batches[split] = {key: copy(value[:count]) for key, value in batch.items() if key != "batch_label"}
    return batches


def class_names(real_data: Path) -> list[str]:
    meta: Any = load_pickle(real_data / "cifar-100-python" / "meta")
    names: list[str] = meta["fine_label_names"]
    return names
