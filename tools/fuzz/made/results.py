"""Records of a sweep that lie, under the checksum of what they say now."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tools.fuzz.made.making import LONG, Made, Make
from tools.fuzz.made.resealed import resealed
from tools.stored_results import read_stored

MILLION = 900_000
"""Rows, just fewer than a small file may announce."""


def _table(change: Callable[[pa.Table], pa.Table]) -> Make:
    """Alter a table, and what ``about.json`` beside it says of it."""

    def make(path: Path, rng: Random) -> None:
        pq.write_table(change(read_stored(path)), path, store_schema=False)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        resealed(lambda about: about["files"].update({path.name: digest}))(path.with_name("about.json"), rng)

    return make


def _all(**cells: Any) -> Make:
    """Put one value into every row of some columns."""

    def change(table: pa.Table) -> pa.Table:
        for name, value in cells.items():
            field = table.schema.field(name)
            column = pa.repeat(pa.scalar(value, field.type), len(table))
            table = table.set_column(table.column_names.index(name), field, column)
        return table

    return _table(change)


def _many(table: pa.Table) -> pa.Table:
    """Return as many rows as may be, each with values of its own."""
    rows = table.take(pa.array([0] * MILLION))
    params = pa.array([f'{{"T": {n}}}' for n in range(MILLION)])
    return rows.set_column(table.column_names.index("params"), table.schema.field("params"), params)


def _bomb(table: pa.Table) -> pa.Table:
    """Return three thousand reasons of two megabytes, in some kilobytes."""
    reasons = pa.DictionaryArray.from_arrays(pa.array(bytes(3_000), pa.int8()), pa.array(["A" * 2_000_000]))
    rows = table.take(pa.array([0] * 3_000))
    return rows.set_column(table.column_names.index("reason"), "reason", reasons)


LIES = {
    "900,000 values": _table(_many),
    "thousands of long reasons": _table(_bomb),
    "every value twice": _table(lambda table: pa.concat_tables([table, table])),
    "no value": _table(lambda table: table.slice(0, 0)),
    "parameters nested 100,000 deep": _all(params="[" * 100_000),
    "parameters of 20 MB": _all(params='{"T": "' + "A" * LONG + '"}'),
    "parameters of a list": _all(params="[1]"),
    "a detector that is none": _all(detector="\x1b[2Jnone"),
    "a run that is none": _all(run=2**31 - 1),
    "AUROC that is none": _all(auroc=float("nan")),
    "AUROC beyond": _all(auroc=float("inf")),
    "no AUROC": _all(auroc=None),
    "a reason beside AUROC": _all(reason="\x1b[31mred\x07"),
    "test images": _all(on="auroc of known/test against near-a/test"),
    "images of 20 MB": _all(on="auroc of " + " against " * (LONG // 9)),
}
SWEPT: Made = {f"resealed: {what}": ("results/sweeps.parquet", make) for what, make in LIES.items()}
