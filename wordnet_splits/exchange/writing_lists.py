"""Writing lists of images that recipes name: ``lists/<family>/<name>.parquet``."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from wordnet_splits.base.names import printable
from wordnet_splits.base.parquet import write_table
from wordnet_splits.catalog.lists import FOLDER, LIST_SCHEMA
from wordnet_splits.exchange.entries import ListEntry


def write_list(name: str, entries: Sequence[ListEntry], path: Path, out: Path) -> None:
    """Write images as the list ``name`` below ``out``; ``path`` is what they were imported from."""
    rows = sorted(
        (e.source or "", e.image_id or "", e.class_id or "", -1 if e.label is None else e.label)
        for e in entries
    )
    table = pa.table([list(column) for column in zip(*rows, strict=True)], schema=LIST_SCHEMA)
    digest = hashlib.sha256("".join(f"{row}\n" for row in rows).encode()).hexdigest()
    metadata = {"origin": f"imported from {printable(path.name)}", "sha256": digest}
    write_table(table, out / FOLDER / f"{name}.parquet", metadata=metadata)
