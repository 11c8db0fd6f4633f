"""The tables of an evaluation, on disk and back.

``results.parquet`` (and .csv) and ``scores.parquet``; beside them ``predictions.parquet``,
``by_class.parquet`` and ``by_nearness.parquet``, with which every row of results is recomputed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv

from wordnet_splits.errors import DataError, OutputError
from wordnet_splits.manifest.parquet import read_table, write_table

RESULTS = pa.schema(
    [
        ("benchmark", pa.string()),
        ("version", pa.int32()),
        ("images_fingerprint", pa.string()),
        ("model", pa.string()),
        ("model_key", pa.string()),
        ("transform_key", pa.string()),
        ("run", pa.int32()),
        ("detector", pa.string()),
        ("params", pa.string()),
        ("chosen_on", pa.string()),
        ("group", pa.string()),
        ("role", pa.string()),
        ("metric", pa.string()),
        ("value", pa.float64()),
        ("lo", pa.float64()),
        ("hi", pa.float64()),
        ("n_id", pa.int64()),
        ("n_ood", pa.int64()),
    ]
)
SCORES = pa.schema(
    [
        ("detector", pa.string()),
        ("run", pa.int32()),
        ("source", pa.string()),
        ("image_id", pa.string()),
        ("group", pa.string()),
        ("confidence", pa.float32()),
    ]
)
PREDICTIONS = pa.schema(
    [
        ("detector", pa.string()),  # empty: the model itself; else an ensemble that predicts together
        ("run", pa.int32()),
        ("source", pa.string()),
        ("image_id", pa.string()),
        ("class_id", pa.string()),
        ("group", pa.string()),
        ("role", pa.string()),
        ("label", pa.int32()),
        ("prediction", pa.int32()),
        ("target_probability", pa.float32()),
        ("max_probability", pa.float32()),
    ]
)
BY_CLASS = pa.schema(
    [
        ("detector", pa.string()),
        ("run", pa.int32()),
        ("group", pa.string()),
        ("role", pa.string()),
        ("source", pa.string()),
        ("class_id", pa.string()),
        ("similarity", pa.float64()),
        ("n_ood", pa.int64()),
        ("auroc", pa.float64()),
    ]
)
BY_NEARNESS = pa.schema(
    [
        ("detector", pa.string()),
        ("run", pa.int32()),
        ("low", pa.float64()),
        ("high", pa.float64()),
        ("n_ood", pa.int64()),
        ("auroc", pa.float64()),
    ]
)
SCHEMAS = {
    "results": RESULTS,
    "scores": SCORES,
    "predictions": PREDICTIONS,
    "by_class": BY_CLASS,
    "by_nearness": BY_NEARNESS,
}
ABOUT = "about"  # key of the schema metadata of results.parquet


@dataclass(frozen=True, eq=False, repr=False)
class Results:
    """Everything one evaluation found.

    Attributes
    ----------
    results : one row per detector, run, set and metric (`RESULTS`); values are fractions.
    scores : the confidence of every test image (`SCORES`); every metric is computed from this column.
    predictions : label, predicted label and softmax of every test image (`PREDICTIONS`).
    by_class, by_nearness : AUROC by OOD class and by bin of its similarity to the nearest ID class.
    about : benchmark, composition, what is missing, options, class map, notes; stored with ``results``.
    """

    results: pa.Table
    scores: pa.Table
    predictions: pa.Table
    by_class: pa.Table
    by_nearness: pa.Table
    about: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}={getattr(self, name).num_rows:,}" for name in SCHEMAS)
        return f"Results({self.about.get('benchmark')}: {', '.join(self.detectors)}; {sizes})"

    @property
    def detectors(self) -> tuple[str, ...]:
        """Labels of the detectors, in the order of the rows."""
        return tuple(dict.fromkeys(self.scores["detector"].to_pylist()))

    def values(
        self, metric: str, *, group: str, role: str | None = None, detector: str | None = None
    ) -> list[float]:
        """Return the values of a metric on a group, one per run (and detector where none is named)."""
        wanted = {"metric": metric, "group": group, "role": role, "detector": detector}
        return [row["value"] for row in self.rows(**wanted)]

    def rows(self, **wanted: Any) -> list[dict[str, Any]]:
        """Return the rows of ``results`` whose columns have the given values (None: any), in order."""
        given = {name: value for name, value in wanted.items() if value is not None}
        table = self.results
        for name, value in given.items():
            table = table.filter(pa.compute.equal(table[name], value))
        return list(table.to_pylist())

    def write(self, folder: Path) -> tuple[Path, ...]:
        """Write every table into ``folder`` and return the files.

        Raises
        ------
        OutputError : the folder cannot be written.
        """
        folder = Path(folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(
                f"cannot be made: {error.strerror or error}", where=str(folder), hint="give another --out"
            ) from None
        about = {ABOUT: json.dumps(self.about, sort_keys=True, ensure_ascii=False)}
        written = []
        for name in SCHEMAS:
            path = folder / f"{name}.parquet"
            write_table(getattr(self, name), path, metadata=about if name == "results" else None)
            written.append(path)
        written.insert(1, _write_csv(self.results, folder / "results.csv"))
        return tuple(written)

    @classmethod
    def read(cls, folder: Path) -> Results:
        """Read a folder written by `write`.

        Raises
        ------
        DataError : a file is absent, damaged, or of other columns.
        """
        folder = Path(folder)
        if not (folder / "results.parquet").is_file():
            raise DataError(
                "no results.parquet here", where=str(folder), hint="give the folder that `run` wrote"
            )
        tables = {}
        for name, schema in SCHEMAS.items():
            path = folder / f"{name}.parquet"
            table = read_table(path)
            if table.schema.names != schema.names or table.schema.types != schema.types:
                raise DataError(f"its columns are not those of {name}", where=str(path))
            tables[name] = table
        metadata = tables["results"].schema.metadata or {}
        try:
            about = json.loads(metadata[ABOUT.encode()])
        except (KeyError, ValueError):
            raise DataError("does not say what it is about", where=str(folder / "results.parquet")) from None
        return cls(**tables, about=about)


def table_of(rows: Iterable[Sequence[Any]], schema: pa.Schema) -> pa.Table:
    """Return rows (values in the schema's order) as a table."""
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(values, f.type) for values, f in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def _write_csv(table: pa.Table, path: Path) -> Path:
    part = path.with_name(f".{path.name}.part")
    try:
        pa_csv.write_csv(table, part)
        part.replace(path)
    except OSError as error:
        raise OutputError(f"cannot be written: {error.strerror or error}", where=str(path)) from None
    finally:
        part.unlink(missing_ok=True)
    return path
