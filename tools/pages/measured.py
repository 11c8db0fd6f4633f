"""Values of committed results, read from their table without the harness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from statistics import mean
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

Key = tuple[str, str, str]
"""(model, detector, metric)."""


@lru_cache(1)
def _results(folder: Path) -> pa.Table:
    return pq.read_table(folder / "results.parquet")


def _rows(folder: Path, group: str) -> Sequence[Mapping[str, Any]]:
    table = _results(folder)
    with_role = pc.binary_join_element_wise(table["group"], table["role"], " ")
    rows: list[Mapping[str, Any]] = table.filter(
        pc.or_(pc.equal(table["group"], group), pc.equal(with_role, group))
    ).to_pylist()
    return rows


def runs(folder: Path, group: str) -> Mapping[Key, list[float]]:
    """Return the values of a group, or of ``(mean) near`` and the like, run by run, in percent."""
    values: dict[Key, list[float]] = {}
    for row in _rows(folder, group):
        values.setdefault((row["model"], row["detector"], row["metric"]), []).append(100 * row["value"])
    return values


def means(folder: Path, group: str) -> Mapping[Key, float]:
    """Return `runs`, averaged."""
    return {key: mean(values) for key, values in runs(folder, group).items()}


def intervals(folder: Path, group: str) -> Mapping[Key, tuple[float, float]]:
    """Return the interval of each value in a group of single-run results, in percent."""
    values: dict[Key, tuple[float, float]] = {}
    for row in _rows(folder, group):
        if row["lo"] is not None:
            key = (row["model"], row["detector"], row["metric"])
            assert key not in values, "several runs: an interval of their mean takes `compare`"
            values[key] = (100 * row["lo"], 100 * row["hi"])
    return values


def text_of(value: float, interval: tuple[float, float]) -> str:
    """Return a value and its interval as printed: ``64.47 (63.68 to 65.22)``."""
    return f"{value:.2f} ({interval[0]:.2f} to {interval[1]:.2f})"
