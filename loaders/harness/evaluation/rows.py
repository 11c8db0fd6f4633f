"""The tables of an evaluation, as they are held in memory: what printing, writing and checking work on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from wordnet_splits.base.parquet import schema_of
from wordnet_splits.base.tabular import Tabular

from .about import About

RESULTS = schema_of(
    "benchmark version:int32 images_fingerprint model model_key transform_key run:int32 detector params "
    "chosen_on group role metric value:float64 lo:float64 hi:float64 n_id:int64 n_ood:int64"
)
SCORES = schema_of("detector run:int32 source image_id group confidence:float32")
PREDICTIONS = schema_of(
    "detector run:int32 source image_id class_id group role label:int32 prediction:int32 "
    "target_probability:float32 max_probability:float32"
)
"""``detector`` is empty where the model itself predicts, else an ensemble that predicts together."""
BY_CLASS = schema_of(
    "detector run:int32 group role source class_id similarity:float64 n_ood:int64 auroc:float64"
)
BY_NEARNESS = schema_of("detector run:int32 low:float64 high:float64 n_ood:int64 auroc:float64")
SCHEMAS = {
    "results": RESULTS,
    "scores": SCORES,
    "predictions": PREDICTIONS,
    "by_class": BY_CLASS,
    "by_nearness": BY_NEARNESS,
}
SWEEPS = schema_of("detector run:int32 params on auroc:float64 reason")
"""What a sweep tried; only of results of a sweep, in a file of its own."""
MAY_BE_EMPTY = frozenset(
    {"images_fingerprint", "chosen_on", "value", "lo", "hi", "similarity", "low", "high", "auroc"}
    | {"prediction", "target_probability", "max_probability", "reason"}
)
"""Columns with cells that may hold nothing."""


@dataclass(frozen=True, eq=False, repr=False)
class ResultTables(Tabular):
    """Everything one evaluation found.

    Attributes
    ----------
    results : one row per detector, run, set and metric (`RESULTS`); values are fractions.
    scores : the confidence of every test image (`SCORES`); every metric is computed from this column.
    predictions : label, predicted label and softmax of every test image (`PREDICTIONS`).
    by_class, by_nearness : AUROC by OOD class and by bin of its similarity to the nearest ID class.
    about : benchmark, models, composition, what is missing, options and notes.
    sweeps : every value that a sweep tried, with its AUROC on the validation sets that it names, or the
        reason why it has none (`SWEEPS`); empty without a sweep.
    """

    results: pa.Table
    scores: pa.Table
    predictions: pa.Table
    by_class: pa.Table
    by_nearness: pa.Table
    about: About
    sweeps: pa.Table = field(default_factory=SWEEPS.empty_table)

    @property
    def detectors(self) -> tuple[str, ...]:
        """Labels of the detectors, in the order of the rows."""
        return tuple(dict.fromkeys(self.scores["detector"].to_pylist()))

    def values(
        self, metric: str, *, group: str, role: str | None = None, detector: str | None = None
    ) -> list[float]:
        """Return the values of a metric on a group, one per run (and detector where none is named)."""
        return [row["value"] for row in self.rows(metric=metric, group=group, role=role, detector=detector)]

    def rows(self, **wanted: Any) -> list[dict[str, Any]]:
        """Return the rows of ``results`` whose columns have the given values (None: any), in order."""
        table = self.results
        for name, value in wanted.items():
            if value is not None:
                table = table.filter(pc.equal(table[name], value))
        return list(table.to_pylist())

    def to_table(self) -> pa.Table:
        """Return ``results``: one row per detector, run, set and metric."""
        return self.results


def table_of(rows: Iterable[Sequence[Any]], schema: pa.Schema) -> pa.Table:
    """Return rows (values in the schema's order) as a table."""
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(values, f.type) for values, f in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)
