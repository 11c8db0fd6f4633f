"""Scores and predictions of results with a row for each detector, run and image, for tests."""

from __future__ import annotations

import pyarrow as pa

from loaders.harness.results.scores import IMAGES, ResultTables, column_of, predicted_keys, scored_keys


def long_scores(results: ResultTables) -> pa.Table:
    """Return detector, run, the columns of the images, and confidence."""
    images, parts = results.scores.select(IMAGES.names), []
    for key in scored_keys(results.scores):
        confidence = results.scores[column_of(key)]
        parts.append(_with_key(images.append_column("confidence", confidence), key))
    return pa.concat_tables(parts)


def long_predictions(results: ResultTables) -> pa.Table:
    """Return detector ("(model)" for the network), run, the columns of the images, and the predictions."""
    keys = predicted_keys(results.predictions)
    return pa.concat_tables(_with_key(results.predicted(run, name), (name, run)) for name, run in keys)


def _with_key(table: pa.Table, key: tuple[str, int]) -> pa.Table:
    for number, (name, value) in enumerate(zip(("detector", "run"), key, strict=True)):
        kind = pa.string() if name == "detector" else pa.int32()
        table = table.add_column(number, name, pa.repeat(pa.scalar(value, kind), table.num_rows))
    return table
