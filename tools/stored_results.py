"""Tables of stored results as they are in memory; what is written back so is read, too."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from loaders.harness.evaluation.schema import SCHEMAS
from loaders.harness.evaluation.wide_tables import lengthen


def read_stored(path: Path) -> pa.Table:
    """Return a table of results, a row per detector, run and image."""
    name = path.stem
    if name not in SCHEMAS:
        return pq.read_table(path)
    return lengthen(name, pq.read_table(path), SCHEMAS[name], max_rows=10**9, where=str(path))
