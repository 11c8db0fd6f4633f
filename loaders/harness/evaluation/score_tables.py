"""Confidences and predictions of the test sets of one detector and run as tables, row by image row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from ..activations.runs import Group, predict
from ..arrays import Array
from .results import PREDICTIONS, SCORES

Key = tuple[str, int]
"""(detector, run)."""


def score_table(key: Key, test: Mapping[str, Group], confidences: Mapping[str, Array]) -> pa.Table:
    """Return `results.SCORES` of the groups in their order, given the confidence of every image."""
    return pa.concat_tables(
        _table(SCORES, key, group, seen, {"confidence": pa.array(confidences[group], pa.float32())})
        for group, seen in test.items()
    )


def prediction_table(
    key: Key, test: Mapping[str, Group], roles: Mapping[str, str], *, model: str = ""
) -> pa.Table:
    """Return `results.PREDICTIONS` of the groups in their order; nulls where the model gives no logits."""
    return pa.concat_tables(
        _table(PREDICTIONS, key, group, seen, _predicted(seen, roles[group], model))
        for group, seen in test.items()
    )


def _predicted(seen: Group, role: str, model: str) -> dict[str, Any]:
    n = seen.arrays.n
    said = predict(seen, model)
    return {
        "role": pa.repeat(pa.scalar(role), n),
        "label": seen.table["label"],
        "class_id": seen.table["class_id"],
        "prediction": pa.nulls(n, pa.int32()) if said is None else pa.array(said.label, pa.int32()),
        "target_probability": _floats(None if said is None else said.of_target, n),
        "max_probability": _floats(None if said is None else said.greatest, n),
    }


def _table(schema: pa.Schema, key: Key, group: str, seen: Group, columns: Mapping[str, Any]) -> pa.Table:
    n = seen.arrays.n
    known = {
        "detector": pa.repeat(pa.scalar(key[0]), n),
        "run": pa.repeat(pa.scalar(key[1], pa.int32()), n),
        "source": seen.table["source"],
        "image_id": seen.table["image_id"],
        "group": pa.repeat(pa.scalar(group), n),
        **columns,
    }
    return pa.table({name: known[name] for name in schema.names}).cast(schema)


def _floats(values: Array | None, n: int) -> pa.Array:
    """Probabilities, null where there is none."""
    return (
        pa.nulls(n, pa.float32()) if values is None else pa.array(values, pa.float32(), mask=np.isnan(values))
    )


def joined(values: Iterable[str]) -> str:
    """Return the different ones of ``values`` in order, joined by ``+``."""
    return "+".join(dict.fromkeys(values))
