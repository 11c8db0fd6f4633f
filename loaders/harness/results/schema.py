"""The tables of results, in memory and on disk."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from wordnet_splits.base.errors import DataError, unknown
from wordnet_splits.base.parquet import schema_of
from wordnet_splits.base.tabular import Tabular

from ..data.arrays import Array
from .metadata import ResultsMetadata
from .metric_rows import key_of_label
from .scores import MODEL, confidences_of, predictions_of, score_schema

RESULTS = schema_of(
    "model run:int32 detector group role metric value:float64 lo:float64 hi:float64 n_id:int64 n_ood:int64"
)
BY_CLASS = schema_of(
    "detector run:int32 group role source class_id similarity:float64 n_ood:int64 auroc:float64"
)
BY_NEARNESS = schema_of("detector run:int32 low:float64 high:float64 n_ood:int64 auroc:float64")
SWEEPS = schema_of("detector run:int32 params on auroc:float64 reason")
SCHEMAS = {"results": RESULTS, "by_class": BY_CLASS, "by_nearness": BY_NEARNESS, "sweeps": SWEEPS}
"""Table -> its columns; `scores` defines the columns of scores and predictions."""
MAY_BE_EMPTY = frozenset({"value", "lo", "hi", "similarity", "low", "high", "auroc", "reason"})
"""Columns that may hold nulls."""


@dataclass(frozen=True, eq=False, repr=False)
class ResultTables(Tabular):
    """The tables of an evaluation and their description.

    Attributes
    ----------
    results : one row per detector, run, set and metric (`RESULTS`); values are fractions.
    scores : one row per test image, a column of confidences for each detector and run (see `scores`).
    predictions : predicted label and softmax of the same images, for each network.
    by_class, by_nearness : AUROC by OOD class and by bin of its similarity to the nearest ID class.
    about : benchmark, models, detectors, composition, missing sets, options and notes.
    sweeps : every value that a sweep tried, with its AUROC on the named validation sets, or the reason why
        it has none (`SWEEPS`); empty without a sweep.
    """

    results: pa.Table
    scores: pa.Table
    predictions: pa.Table
    by_class: pa.Table
    by_nearness: pa.Table
    about: ResultsMetadata
    sweeps: pa.Table = field(default_factory=SWEEPS.empty_table)

    @property
    def detectors(self) -> tuple[str, ...]:
        """Labels of the detectors, in order."""
        return tuple(dict.fromkeys(facts.detector for facts in self.about.detectors))

    @property
    def has_scores(self) -> bool:
        """Whether the scores of any run are there: an entry of the leaderboard may leave them out."""
        return bool(self.scores.num_rows)

    def require_scores(self, purpose: str) -> None:
        """Raise DataError if the scores of a run were left out; ``purpose`` names their use."""
        if self.about.unscored_runs:
            runs = ", ".join(map(str, self.about.unscored_runs))
            raise DataError(
                f"{purpose} needs the scores of images, which were left out for runs {runs}",
                where=self.about.benchmark,
                hint="compute them again with the commands in entry.json",
            )

    def confidences(self, detector: str, run: int = 0) -> Array:
        """Return the confidences (n,) of a detector on a run, in the order of the rows of ``scores``.

        Raises
        ------
        UnknownNameError : no such detector in that run.
        """
        labels = [facts.detector for facts in self.about.detectors if facts.run == run]
        if detector not in labels:
            raise unknown(f"detector of run {run}", detector, labels, where=self.about.benchmark)
        return confidences_of(self.scores, (detector, run))

    def predicted(self, run: int = 0, detector: str = MODEL) -> pa.Table:
        """Return the images with the predictions of a network, or of a detector that has its own."""
        return predictions_of(self.scores, self.predictions, (detector, run))

    def values(
        self, metric: str, *, group: str, role: str | None = None, detector: str | None = None
    ) -> list[float]:
        """Return the values of a metric on a group, one per run (and detector, unless one is given).

        Parameters
        ----------
        metric : its key, such as ``aurc_unknown``, or its heading in tables, such as ``AURC+OOD``.

        Raises
        ------
        UnknownNameError : no row has that metric, group, role or detector.
        """
        filters = {"metric": key_of_label(metric), "group": group, "role": role, "detector": detector}
        for name, value in filters.items():
            if value is not None and value not in (names := pc.unique(self.results[name]).to_pylist()):
                raise unknown(f"{name} of these results", value, names, where=self.about.benchmark)
        return [row["value"] for row in self.rows(**filters)]

    def rows(self, **filters: Any) -> list[dict[str, Any]]:
        """Return the rows of ``results`` whose columns have the given values (None: any), in order."""
        table = self.results
        for name, value in filters.items():
            if value is not None:
                table = table.filter(pc.equal(table[name], value))
        return list(table.to_pylist())

    def to_table(self) -> pa.Table:
        """Return ``results``: one row per detector, run, set and metric."""
        return self.results


def without_runs(results: ResultTables, runs: Sequence[int]) -> tuple[pa.Table, pa.Table]:
    """Return the scores and predictions without the given runs; if no run is left, tables without rows."""

    def kept(table: pa.Table, start: int) -> pa.Table:
        names = table.column_names
        rest = [name for name in names[start:] if int(name.rpartition("/")[2]) not in runs]
        return table.select([*names[:start], *rest])

    scores, predictions = kept(results.scores, len(score_schema(()))), kept(results.predictions, 0)
    if not predictions.num_columns:
        return score_schema(()).empty_table(), predictions
    return scores, predictions


def table_of(rows: Iterable[Sequence[Any]], schema: pa.Schema) -> pa.Table:
    """Return rows (values in the schema's order) as a table."""
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(values, f.type) for values, f in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)
