"""Values of committed results, read from their table without the harness."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from statistics import mean

import pyarrow.parquet as pq

Key = tuple[str, str, str]
"""(model, detector, metric)."""


def means(folder: Path, group: str) -> Mapping[Key, float]:
    """Return each value of a group, or of ``(mean) near`` and the like, averaged over runs, in percent."""
    table = pq.read_table(folder / "results.parquet").to_pylist()
    runs: dict[Key, list[float]] = {}
    for row in table:
        if group in (row["group"], f"{row['group']} {row['role']}"):
            runs.setdefault((row["model"], row["detector"], row["metric"]), []).append(100 * row["value"])
    return {key: mean(values) for key, values in runs.items()}
