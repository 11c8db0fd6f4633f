"""Compute every metric of stored results again from their scores, without the model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.progress import Progress
from wordnet_splits.base.schemas import validate
from wordnet_splits.metrics.uncertainty import REPLICATES

from .results import Results
from .rows_from_scores import DetectorRun, derive, similarities
from .schema import BY_CLASS, BY_NEARNESS, RESULTS, MetricOptions, table_of

USE = ("benchmark", "version", "images_fingerprint", "model", "model_key", "transform_key", "run")
CHOICE = ("detector", "params", "chosen_on")


def remeasure(
    folder: str | Path, *, bootstrap: int = REPLICATES, seed_boot: int = 0, progress: Progress | None = None
) -> Results:
    """Return stored results with every metric computed again from their scores, with intervals.

    Scores, predictions and sweeps stay as they are. Metrics that are newer than the results are added.

    Parameters
    ----------
    folder : that `Results.write` wrote.
    bootstrap : replicates behind the intervals, 0 for none. seed_boot : of the bootstrap.

    Raises
    ------
    DataError : the results are damaged or were altered, a detector of the scores has no row in them, or more
        replicates or another seed than there may be.
    """
    stored = Results.read(folder)
    stored.require_scores("recomputing")
    values = {**stored.about.options.model_dump(), "replicates": bootstrap, "seed": seed_boot}
    options = validate(MetricOptions, values, where="options of the evaluation")
    found = derive(
        stored.scores,
        stored.predictions,
        similarities(stored.by_class),
        options,
        stored.about.runs,
        progress=progress,
    )
    known = _first_columns(stored)
    if absent := [key for key, _ in found.results if key not in known]:
        detector, run = absent[0]
        raise DataError(f"no row of {detector}, run {run}", where=f"{folder}/results.parquet")
    return Results(
        results=table_of([(*known[key], *row) for key, row in found.results], RESULTS),
        scores=stored.scores,
        predictions=stored.predictions,
        by_class=table_of([(*key, *row) for key, row in found.classes], BY_CLASS),
        by_nearness=table_of([(*key, *row) for key, row in found.bins], BY_NEARNESS),
        about=stored.about.model_copy(update={"options": options}),
        sweeps=stored.sweeps,
    )


def _first_columns(stored: Results) -> Mapping[DetectorRun, tuple[Any, ...]]:
    """Return what the rows of each detector and run begin with: benchmark, model, and the values chosen."""
    rows = stored.results.select([*USE, *CHOICE]).group_by([*USE, *CHOICE]).aggregate([]).to_pylist()
    return {(row["detector"], row["run"]): tuple(row[name] for name in (*USE, *CHOICE)) for row in rows}
