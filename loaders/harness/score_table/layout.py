"""The files of a score table: their schemas, names and description."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal
from urllib.parse import quote

import pyarrow as pa
from pydantic import Field

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.parquet import read_table, schema_of
from wordnet_splits.base.schemas import BenchmarkName, Count, StrictModel, read_sealed
from wordnet_splits.base.untrusted import GiB, path_below, sha256_of

from ..evaluation.sets import ORDER

DESCRIPTION: Final = "scores.json"
IMAGES_FILE: Final = "images.parquet"
MODELS_FILE: Final = "models.parquet"
CONFIDENCES_FOLDER: Final = "confidences"
PREDICTIONS_FOLDER: Final = "predictions"
AGAIN: Final = "export the scores again"
LARGEST_PART: Final = 64 * GiB
QUICK: Final = 3
"""Level of zstd for confidences: level 19 takes 15 times as long and saves 6%."""

IMAGES = schema_of("benchmark image:int32 source image_id class_id group role label:int32")
MODELS = schema_of("benchmark model name network run:int32 entry model_key transform_key detectors:int32")
CONFIDENCES = schema_of("image:int32 detector confidence:float32 correct:bool")
PREDICTIONS = schema_of("image:int32 prediction:int32 target_probability:float32 max_probability:float32")
"""``correct`` is null where the set has no labels, and for OOD images."""
FILLED: Final = frozenset(
    (
        *("benchmark", "image", "image_id", "group", "role", "model", "run", "entry", "detectors"),
        *("detector", "confidence"),
    )
)
"""Columns without nulls."""


class TableBenchmark(StrictModel):
    """A benchmark of the table.

    Attributes
    ----------
    numbered_by : ``manifest`` if image n is the n-th test image of the benchmark; ``entries``, if that was
        not at hand or incomplete, for the n-th of the exported images.
    """

    name: BenchmarkName
    version: Count
    images_fingerprint: str | None
    numbered_by: Literal["manifest", "entries"]
    images: Count


class TableDescription(StrictModel):
    """``scores.json``; ``files`` has the SHA-256 of every Parquet file."""

    schema_: Literal[1] = Field(alias="schema")
    benchmarks: list[TableBenchmark]
    entries: list[str]
    notes: list[str]
    files: dict[str, str]


def part_path(kind: str, benchmark: str, model: str, entry: str) -> str:
    """Return the path of a network's file below the table, as DuckDB and polars read partitions."""
    return f"{kind}/benchmark={quote(benchmark, safe='@.+-_')}/model={model}/{entry}.parquet"


def read_description(folder: Path) -> TableDescription:
    """Return the description of a table; DataError where there is none, or where it was altered."""
    if not (folder / DESCRIPTION).is_file():
        hint = "give the folder that `scores export` wrote"
        raise DataError(f"no {DESCRIPTION} here", where=str(folder), hint=hint)
    return read_sealed(folder / DESCRIPTION, TableDescription, hint=AGAIN)


def read_part(folder: Path, path: str, schema: pa.Schema, checksums: Mapping[str, str]) -> pa.Table:
    """Return a file of a table.

    Raises
    ------
    DataError : it is absent, damaged, altered, outside of the folder or of other columns, or lacks rows or
        values.
    """
    where = path_below(folder, path)
    if path not in checksums:
        raise DataError("is not a file of this table", where=str(where), hint=AGAIN)
    if sha256_of(where, largest=LARGEST_PART) != checksums.get(path):
        raise DataError("was altered: its checksum differs", where=str(where), hint=AGAIN)
    table = read_table(where).replace_schema_metadata(None)
    if not table.schema.equals(schema):
        raise DataError("its columns are not those of a score table", where=str(where), hint=AGAIN)
    if not table.num_rows:
        raise DataError("has no rows", where=str(where), hint=AGAIN)
    for name in schema.names:
        values = {*table[name].unique().to_pylist()} if name == "role" else set(ORDER)
        if (name in FILLED and table[name].null_count) or not values <= set(ORDER):
            raise DataError(f"its column {name} lacks values, or has others", where=str(where), hint=AGAIN)
    return table
