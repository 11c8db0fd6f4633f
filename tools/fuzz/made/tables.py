"""Parquet tables of names and pictures that unpack to too much."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tools.fuzz.made.making import LONG, Made, Make


def _hub(paths: Callable[[], pa.Array], pictures: Callable[[], pa.Array], **options: Any) -> tuple[str, Make]:
    def make(path: Path, rng: Random) -> None:
        image = pa.StructArray.from_arrays([pictures(), paths()], ["bytes", "path"])
        table = pa.table({"image": image, "label": pa.array([0] * len(image), pa.int64())})
        pq.write_table(table, path, **options)

    return "**/*.parquet", make


def _no_utf8() -> pa.Array:
    texts = pa.array([b"\xff\xfe.JPEG"] * 3, pa.binary())
    return pa.Array.from_buffers(pa.string(), 3, texts.buffers())


def _small() -> pa.Array:
    """Return three pictures of a byte."""
    return pa.array([b"x"] * 3)


def _names() -> pa.Array:
    return pa.array(["a.JPEG", "b.JPEG", "c.JPEG"])


_ZEROS = {"use_dictionary": False, "compression": "zstd"}
HUB: Made = {
    "names that are no UTF-8": _hub(_no_utf8, _small),
    "a name of 20 MB": _hub(lambda: pa.array(["A" * LONG, "b", "c"]), _small),
    "100 names of 20 MB": _hub(lambda: pa.array(["A" * LONG] * 100), lambda: pa.array([b"x"] * 100)),
    "control characters in names": _hub(lambda: pa.array(["\x1b[2J\x07\n.JPEG"] * 3), _small),
    "a picture of 200 MB of zeros": _hub(_names, lambda: pa.array([bytes(200_000_000), b"", None]), **_ZEROS),
    "100 pictures of 20 MB of zeros": _hub(
        lambda: pa.array([f"n01440764_{n}.JPEG" for n in range(100)]),
        lambda: pa.array([bytes(LONG)] * 100),
    ),
    "three million pictures": _hub(
        lambda: pa.nulls(3_000_000, pa.string()), lambda: pa.nulls(3_000_000, pa.binary())
    ),
}

SEALED_TABLE: Made = {
    "files of /dev/zero": ("**/images.parquet", lambda path, rng: _devices(path)),
}


def _devices(path: Path) -> None:
    table = pq.read_table(path)
    files = pa.array(["/dev/zero"] * len(table), table.schema.field("file").type)
    pq.write_table(
        table.set_column(table.column_names.index("file"), table.schema.field("file"), files), path
    )
