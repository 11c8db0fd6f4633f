"""The tables of results, in memory and on disk.

The score table has a row for each test image, a column of confidences for each detector and run.

`IMAGES` are the columns of the images, which come first; the column ``knn[k=50]/0`` holds the confidences of
``knn[k=50]`` on run 0. Predictions have the same rows in the same order: ``prediction/(model)/0`` are the
classes that network 0 predicts, ``prediction/openmax/0`` the classes that the detector itself predicts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wordnet_splits.base.errors import DataError, unknown
from wordnet_splits.base.names import listed
from wordnet_splits.base.parquet import schema_of
from wordnet_splits.base.tabular import Tabular
from wordnet_splits.metrics import ScoreSet
from wordnet_splits.metrics.calibration import Outputs

from ..data.arrays import Array
from .metadata import ResultsMetadata
from .metric_rows import Members

DetectorRun = tuple[str, int]
"""(detector, run)."""
ClassKey = tuple[str, str]
"""(source, class_id)."""
MODEL = "(model)"
"""Detector of the rows and predictions of the network itself."""
IMAGES = schema_of("source image_id class_id group role label:int32")
SET = ("group", "role", "source")
"""Columns that are the same for all images of a set."""
CALIBRATION_COLUMNS = ("predicted_probability", "target_log_probability", "squared_probabilities")
"""Predictions for calibration: the softmax of the predicted class, the log softmax of the label, and the sum
of squares of the softmax. Null for images without a label."""
PREDICTED = schema_of(
    "prediction:int32 target_probability:float32 max_probability:float32 "
    + " ".join(f"{name}:float32" for name in CALIBRATION_COLUMNS)
)
MAX_COLUMNS = 10_000
RESULTS = schema_of(
    "model run:int32 detector group role metric value:float64 lo:float64 hi:float64 n_id:int64 n_ood:int64"
)
BY_CLASS = schema_of(
    "detector run:int32 group role source class_id similarity:float64 n_ood:int64 auroc:float64"
)
BY_NEARNESS = schema_of("detector run:int32 low:float64 high:float64 n_ood:int64 auroc:float64")
SWEEPS = schema_of("detector run:int32 params on auroc:float64 reason")
SCHEMAS = {"results": RESULTS, "by_class": BY_CLASS, "by_nearness": BY_NEARNESS, "sweeps": SWEEPS}
"""Table -> its columns, of the tables other than scores and predictions."""
MAY_BE_EMPTY = frozenset({"value", "lo", "hi", "similarity", "low", "high", "auroc", "reason"})
"""Columns that may hold nulls."""


def column_of(key: DetectorRun) -> str:
    """Return the column of the confidences of a detector on a run."""
    return f"{key[0]}/{key[1]}"


def key_of(column: str) -> DetectorRun:
    """Return the detector and run of a column; DataError for a name of another form."""
    detector, _, run = column.rpartition("/")
    if not detector or not (run.isascii() and run.isdecimal() and str(int(run[:10])) == run):
        raise DataError(f"column {column!r} must be DETECTOR/RUN")
    return detector, int(run)


def scored_keys(scores: pa.Table) -> list[DetectorRun]:
    """Return the detectors and runs of a score table, in order."""
    return [key_of(column) for column in scores.column_names[len(IMAGES) :]]


def predicted_keys(predictions: pa.Table) -> list[DetectorRun]:
    """Return the detectors and runs of a table of predictions, in order."""
    return [key_of(column.partition("/")[2]) for column in predictions.column_names[:: len(PREDICTED)]]


def score_schema(keys: Iterable[DetectorRun]) -> pa.Schema:
    """Return the schema of the scores of some detectors and runs."""
    return pa.schema([*IMAGES, *((column_of(key), pa.float64()) for key in keys)])


def prediction_schema(keys: Iterable[DetectorRun]) -> pa.Schema:
    """Return the schema of the predictions of some detectors and runs."""
    return pa.schema((f"{field.name}/{column_of(key)}", field.type) for key in keys for field in PREDICTED)


def score_table(images: pa.Table, confidences: Mapping[DetectorRun, Array]) -> pa.Table:
    """Return a score table of images and confidences (n,)."""
    columns = {column_of(key): pa.array(values, pa.float64()) for key, values in confidences.items()}
    return pa.table({**{name: images[name] for name in IMAGES.names}, **columns}).combine_chunks()


def prediction_table(predictions: Mapping[DetectorRun, pa.Table]) -> pa.Table:
    """Return a table of predictions, given the columns `PREDICTED` of each detector and run."""
    return pa.table(
        {
            f"{name}/{column_of(key)}": table[name]
            for key, table in predictions.items()
            for name in PREDICTED.names
        }
    ).combine_chunks()


def predictions_of(scores: pa.Table, predictions: pa.Table, key: DetectorRun) -> pa.Table:
    """Return the columns `IMAGES` and `PREDICTED` of a detector and run, a row for each image."""
    columns = {name: scores[name] for name in IMAGES.names}
    return pa.table(columns | _predicted(predictions, key))


def _predicted(predictions: pa.Table, key: DetectorRun) -> dict[str, pa.ChunkedArray]:
    """Return the columns `PREDICTED` of a detector and run by name."""
    names = {name: f"{name}/{column_of(key)}" for name in PREDICTED.names}
    if names["prediction"] not in predictions.column_names:
        raise DataError(f"no predictions of run {key[1]}", where="predictions")
    return {name: predictions[column] for name, column in names.items()}


def check_scores(
    scores: pa.Table,
    predictions: pa.Table,
    keys: Sequence[DetectorRun],
    runs: Collection[int],
    *,
    complete: bool = True,
    where: tuple[str, str] = ("scores", "predictions"),
) -> None:
    """Raise DataError unless both tables have the columns that the metadata describes, and valid values.

    Parameters
    ----------
    keys : the detectors and runs that were scored, in order.
    runs : the networks that were scored.
    complete : whether every image must have every score; False for exports of several results.
    where : names of the two tables in errors.
    """
    of_scores, of_predictions = where
    if scores.num_columns + predictions.num_columns > MAX_COLUMNS:
        raise DataError(f"has more than {MAX_COLUMNS:,} columns", where=of_scores)
    if not scores.schema.equals(score_schema(keys)):
        raise DataError("must have a column for each detector and run of about.json", where=of_scores)
    predicted, of_runs = predicted_keys(predictions), {(MODEL, run) for run in runs}
    if not of_runs <= {*predicted} <= of_runs | {*keys} or not predictions.schema.equals(
        prediction_schema(predicted)
    ):
        raise DataError("must have the columns of each run of about.json", where=of_predictions)
    if predictions.num_rows != scores.num_rows:
        raise DataError("must have a row for each of the scores", where=of_predictions)
    for name in scores.column_names:
        column, of_image = scores[name], name in IMAGES.names
        if (column.null_count and (of_image or complete)) or not (
            of_image or pc.all(pc.is_finite(column), min_count=0).as_py()
        ):
            raise DataError(f"column {name!r} has empty cells, NaN or infinity", where=of_scores)
    keys_of_images = image_keys(scores)
    if len({*keys_of_images}) < len(keys_of_images):  # scores of two images could be confused
        raise DataError("an image occurs twice", where=of_scores)
    sets = scores.select(SET).group_by(SET).aggregate([])["group"].to_pylist()
    if repeated := [group for group in sets if sets.count(group) > 1]:
        raise DataError(f"set {repeated[0]!r} has two roles or sources", where=of_scores)


def image_keys(images: pa.Table) -> Array:
    """Return a string (n,) per row that names its image and group."""
    columns = (images[name].to_pylist() for name in ("group", "source", "image_id"))
    return np.array(["\x1f".join(row) for row in zip(*columns, strict=True)], dtype=object)


class ImagesBySet:
    """The images of a score table by set.

    Attributes
    ----------
    roles, sources : set -> role, and source, of its images.
    rows : set -> (k,) numbers of its rows.
    clusters : (n,) class or subtree of each row (`clusters.image_clusters`), for their `ScoreSet`; or None.
    """

    def __init__(self, scores: pa.Table, clusters: Array | None = None) -> None:
        self.table = scores.select(IMAGES.names)
        self.clusters = clusters
        groups = np.array(scores["group"].to_pylist(), dtype=object)
        self.labels = np.asarray(scores["label"].to_numpy())
        self.classes = np.array(scores["class_id"].to_pylist(), dtype=object)
        self.roles: dict[str, str] = {}
        self.sources: dict[str, str] = {}
        for group, role, source in zip(
            groups.tolist(), scores["role"].to_pylist(), scores["source"].to_pylist(), strict=True
        ):
            self.roles.setdefault(group, role)
            self.sources.setdefault(group, source)
        self.rows = {group: np.flatnonzero(groups == group) for group in self.roles}

    @cached_property
    def keys(self) -> Array:
        """A string (n,) per row that names its image and group."""
        return image_keys(self.table)

    @cached_property
    def rows_by_name(self) -> dict[str, Array]:
        """Set -> numbers of its rows, sorted by the names of the images."""
        return {group: rows[np.argsort(self.keys[rows], kind="stable")] for group, rows in self.rows.items()}

    def names(self, group: str) -> Array:
        """Return the names of a set's images, with their labels, sorted."""
        rows = self.rows[group]
        return np.sort(
            [f"{key}\x1f{label}" for key, label in zip(self.keys[rows], self.labels[rows], strict=True)]
        )

    def members(self, group: str, similarity: Mapping[ClassKey, float | None]) -> Members:
        """Return the classes of a set's images."""
        ids, source = self.classes[self.rows[group]], self.sources[group]
        return Members(source, ids, {str(i): similarity.get((source, str(i))) for i in set(ids)})


class ScoredImages:
    """The images of a score table with the predictions that belong to one detector and run."""

    def __init__(self, images: ImagesBySet, predictions: pa.Table, key: DetectorRun) -> None:
        self.images, self.roles = images, images.roles
        if f"prediction/{column_of(key)}" not in predictions.column_names:
            key = (MODEL, key[1])
        self._columns = {name: column.to_numpy() for name, column in _predicted(predictions, key).items()}

    def score_set(self, group: str, confidence: Array, *, by_name: bool = False) -> ScoreSet:
        """Return the confidences of a set; images without a confidence, as in exports, are left out.

        ``correct`` is given if every image of an ID set has a label and a prediction.

        Parameters
        ----------
        confidence : (n,) of all images of the table, NaN for missing values.
        by_name : whether to sort the images by name, so that rows are the same for all results.
        """
        rows = (self.images.rows_by_name if by_name else self.images.rows)[group]
        rows = rows[~np.isnan(confidence[rows])]
        role, label, predicted = (
            self.roles[group],
            self.images.labels[rows],
            self._columns["prediction"][rows],
        )
        labelled = role in ("id", "csid") and (label >= 0).all() and not np.isnan(predicted).any()
        correct = predicted == label if labelled else None
        clusters = None if self.images.clusters is None else self.images.clusters[rows]
        return ScoreSet(group, role, confidence[rows], correct, clusters)

    def probabilities(self, group: str, column: str) -> Array:
        """Return a column of predictions for the images of a set, NaN for missing values."""
        return np.asarray(self._columns[column][self.images.rows[group]], dtype=np.float64)

    def outputs(self, group: str) -> Outputs | None:
        """Return the classifier's outputs on an ID set; None if labels or probabilities are absent."""
        predicted, log_target, squared = (self.probabilities(group, name) for name in CALIBRATION_COLUMNS)
        rows = self.images.rows[group]
        if not len(rows) or np.isnan([predicted, log_target, squared]).any():
            return None
        correct = self._columns["prediction"][rows] == self.images.labels[rows]
        brier = np.maximum(squared - 2 * self.probabilities(group, "target_probability") + 1, 0)
        return Outputs(predicted, correct, log_target, brier)


def confidences_of(scores: pa.Table, key: DetectorRun) -> Array:
    """Return the confidences (n,) of a detector on a run; NaN for images that it has none of."""
    return np.asarray(scores[column_of(key)].to_numpy(), dtype=np.float64)


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

    last_columns: ClassVar = ("run", "n_id", "n_ood")

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

    def require_scores(self, purpose: str, *, instead: str = "") -> None:
        """Raise DataError if the scores of a run were left out; ``purpose`` names their use."""
        if self.about.unscored_runs:
            runs = listed(self.about.unscored_runs, 12)
            raise DataError(
                f"{purpose} needs the scores of images, which were left out for runs {runs}",
                where=self.about.benchmark,
                hint=f"compute them again with the commands in entry.json{instead}",
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

    def rows(self, **filters: Any) -> list[dict[str, Any]]:
        """Return the rows of ``results`` whose columns have the given values (None: any), in order."""
        table = self.results
        for name, value in filters.items():
            if value is not None:
                table = table.filter(pc.equal(table[name], value))
        return list(table.to_pylist())

    @property
    def shifted_sets(self) -> tuple[str, ...]:
        """The covariate-shifted ID sets, which full-spectrum values count as ID."""
        return tuple(dict.fromkeys(row["group"] for row in self.rows(role="csid")))

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
