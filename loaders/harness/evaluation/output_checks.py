"""What a model's outputs on whole sets show that its first images need not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa

from wordnet_splits.benchmark.manifest import Part

from ..array_checks import logit_notes, refuse_probabilities
from ..arrays import Arrays
from ..extraction.runs import GroupOutputs, ModelRun
from .notes import accuracy_notes
from .output_tables import predicted_table

CHECKED_ROWS = 10_000
"""Largest number of images of a set whose outputs are checked, evenly spread."""


def checked_outputs(outputs: GroupOutputs, run: ModelRun) -> list[str]:
    """Return the notes on a network's outputs on one set; those of arrays are checked where they are given.

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
