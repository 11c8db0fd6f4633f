"""Recompute every metric of stored results from their scores, without the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from wordnet_splits.base.progress import Progress, choose_progress
from wordnet_splits.base.schemas import validate
from wordnet_splits.metrics.uncertainty import REPLICATES

from .metadata import MetricFacts, MetricOptions, ResultsMetadata, user_metrics
from .metric_rows import FULL_SPECTRUM
from .results import Results
from .rows_from_scores import compute_rows, similarities


def metrics_to_leave_out(about: ResultsMetadata) -> tuple[list[str], list[MetricFacts]]:
    """Return the names of registered users' metrics that results lack, and their metrics not registered."""
    stored = {facts.name for facts in about.metrics}
    registered = {facts.name for facts in user_metrics()}
    return sorted(registered - stored), [facts for facts in about.metrics if facts.name not in registered]


def without_metrics(results: Results, names: Sequence[str]) -> Results:
    """Return the results without the rows of some metrics."""
    if not names:
        return results
    rows = pa.array([*names, *(name + FULL_SPECTRUM for name in names)])
    table = results.results
    return replace(results, results=table.filter(pc.invert(pc.is_in(table["metric"], value_set=rows))))


def remeasure(
    folder: str | Path,
    *,
    bootstrap: int = REPLICATES,
    seed_boot: int = 0,
    progress: Progress | bool | None = None,
) -> Results:
    """Return stored results with every metric recomputed from their scores, with intervals.

    Scores, predictions and sweeps do not change. Metrics that are newer than the results are added; a user's
    metric that is not installed is left out, with a note.

    Parameters
    ----------
    folder : written by `Results.write`.
    bootstrap : replicates behind the intervals, 0 for none. seed_boot : of the bootstrap.
    progress : as of `evaluate`.

    Raises
    ------
    DataError : the results are damaged or were altered, or the number of replicates or the seed is out of
        range.
    """
    stored = Results.read(folder)
    stored.require_scores("recomputing")
    values = {**stored.about.options.model_dump(), "replicates": bootstrap, "seed": seed_boot}
    options = validate(MetricOptions, values, where="options of the evaluation")
    computed = compute_rows(
        stored.scores,
        stored.predictions,
        similarities(stored.by_class),
        options,
        stored.about.runs,
        progress=choose_progress(progress),
    )
    _, not_installed = metrics_to_leave_out(stored.about)
    notes = (
        f"not installed, so left out when the metrics were recomputed: {facts.name} ({facts.origin})"
        for facts in not_installed
    )
    update = {
        "options": options,
        "metrics": user_metrics(),
        "notes": tuple(dict.fromkeys([*stored.about.notes, *notes])),
    }
    return replace(
        stored,
        results=computed.result_table({facts.run: facts.model for facts in stored.about.runs}),
        by_class=computed.by_class,
        by_nearness=computed.by_nearness,
        about=stored.about.model_copy(update=update),
    )
