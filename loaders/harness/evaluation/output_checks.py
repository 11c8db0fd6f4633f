"""Checks of outputs: of a model on whole sets, and of a user's detector that scores images again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from wordnet_splits.base.errors import UnusableError
from wordnet_splits.benchmark.manifest import Part

from ..data.array_checks import logit_notes, refuse_probabilities
from ..data.arrays import Array, Arrays
from ..extraction.runs import GroupOutputs, ModelRun
from .notes import accuracy_notes
from .output_tables import predicted_table
from .scoring import Data, Fitted, confidence

CHECKED_ROWS = 10_000
"""Largest number of images of a set whose outputs are checked, evenly spread."""


def checked_outputs(outputs: GroupOutputs, run: ModelRun) -> list[str]:
    """Return the notes on a network's outputs on a set; outputs given as arrays were checked before.

    Raises
    ------
    DataError : its logits are probabilities or percentages, which eight images may leave open.
    """
    if not run.device or "logits" not in outputs.arrays:
        return list(outputs.notes)
    logits = np.asarray(_some(outputs).arrays["logits"])
    refuse_probabilities(logits, where=run.title, hint="leave out the model's final softmax")
    return list(dict.fromkeys([*outputs.notes, *logit_notes(logits)]))


def training_accuracy_notes(fitted_on: Mapping[Part, GroupOutputs], title: str) -> Iterator[str]:
    """Yield a note for every ID set whose labels detectors fit on and the model does not predict."""
    for (split, group), outputs in fitted_on.items():
        few = _some(outputs)
        if few.arrays.n and "logits" in few.arrays and few.table["role"][0].as_py() == "id":
            predictions = predicted_table(few, title)["prediction"]
            rows = {"role": few.table["role"], "label": few.table["label"], "prediction": predictions}
            yield from accuracy_notes(pa.table(rows), f"{group}/{split}")


def _some(outputs: GroupOutputs) -> GroupOutputs:
    """Return at most `CHECKED_ROWS` images and their logits."""
    rows = np.arange(outputs.arrays.n)[:: max(1, -(-outputs.arrays.n // CHECKED_ROWS))]
    logits = {name: outputs.arrays[name][rows] for name in ("logits",) if name in outputs.arrays}
    arrays = logits or {"none": np.empty((len(rows), 0))}
    return replace(outputs, table=outputs.table.take(rows), arrays=Arrays(arrays))


MAX_ROWS = 1000
"""Largest number of images of a set that are scored again: half of a small set, fewer of a large one."""
SPREAD_TOLERANCE, SIZE_TOLERANCE = 1e-3, 1e-5
"""Largest change of a confidence by arithmetic, in standard deviations and in the greatest absolute value."""


def rescoring_notes(fitted: Fitted, data: Mapping[str, Data], scores: Mapping[str, Array]) -> Iterator[str]:
    """Score some images of each set again, in reverse order, and yield a note if confidences differ.

    Parameters
    ----------
    data, scores : set -> the arrays of all its images, and the confidences of these images.
    """
    changed: dict[str, int] = {}
    scored_again = 0
    for group, of_group in data.items():
        first = np.asarray(scores[group], np.float64)
        rows = np.arange(len(first))[::-1][:: max(2, -(-len(first) // MAX_ROWS))]
        scored_again += len(rows)
        try:
            again = confidence(fitted, _taken(of_group, rows), on=group)
        except UnusableError:  # the detector needs all rows
            again = np.full(len(rows), np.nan)
        tolerance = SPREAD_TOLERANCE * first.std() + SIZE_TOLERANCE * np.abs(first).max(initial=0)
        count = int(np.count_nonzero(~(np.abs(again - first[rows]) <= tolerance)))
        changed |= {group: count} if count else {}
    if changed:
        yield (
            f"{fitted.configured.label}: {sum(changed.values()):,} of {scored_again:,} images get another "
            f"confidence when they are scored again among fewer (in {', '.join(changed)}): it depends on the "
            "other images of a set, on their order or on chance, and so do its figures"
        )


def _taken(data: Data, rows: Array) -> Any:
    if isinstance(data, Arrays):
        return Arrays({name: view[rows] for name, view in data.items()})
    return [_taken(of_model, rows) for of_model in data]
