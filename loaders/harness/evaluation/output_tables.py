"""The outputs of models as tables of results, the facts of each run, and the software."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ..arrays import Array
from ..extraction.runs import GroupOutputs, ModelRun, predict
from .rows_from_scores import DetectorRun
from .schema import CALIBRATION_COLUMNS, PREDICTIONS, SCORES, ColumnsUsed, RunFacts


def run_facts(number: int, run: ModelRun, test: Mapping[str, GroupOutputs]) -> RunFacts:
    """Return the description of one network for ``about.json``."""
    class_map = next(iter(test.values())).classes
    known_classes = 1 if class_map is None else len(class_map.columns) or len(class_map.class_columns)
    return RunFacts(
        run=number,
        model=run.model,
        name=run.name,
        model_key=run.model_key,
        weights=run.weights,
        device=run.device,
        transforms={outputs.transform_key: outputs.transform for outputs in test.values()},
        class_map=None if class_map is None else ColumnsUsed.model_validate(class_map.record()),
        known_classes=known_classes,
        other_columns=class_map is not None and len(class_map.softmax_columns) > known_classes,
        named=run.user_named or run.model != run.name,
    )


def score_table(
    key: DetectorRun, test: Mapping[str, GroupOutputs], confidences: Mapping[str, Array]
) -> pa.Table:
    """Return `schema.SCORES` of the groups in their order."""
    return pa.concat_tables(
        _rows_of(SCORES, key, group, outputs, {"confidence": pa.array(confidences[group], pa.float32())})
        for group, outputs in test.items()
    )


def prediction_table(
    key: DetectorRun, test: Mapping[str, GroupOutputs], roles: Mapping[str, str], name: str
) -> pa.Table:
    """Return `schema.PREDICTIONS` of the groups in their order; nulls where the model gives no logits."""
    parts = []
    for group, outputs in test.items():
        n, predictions = outputs.arrays.n, predict(outputs, name)
        columns = {
            "role": pa.repeat(pa.scalar(roles[group]), n),
            "label": outputs.table["label"],
            "class_id": outputs.table["class_id"],
            "prediction": pa.nulls(n, pa.int32()),
            "target_probability": pa.nulls(n, pa.float32()),
            "max_probability": pa.nulls(n, pa.float32()),
            **{column: pa.nulls(n, pa.float32()) for column in CALIBRATION_COLUMNS},
        }
        if predictions is not None:
            target, greatest = predictions.of_target, predictions.greatest
            columns["prediction"] = pa.array(predictions.label, pa.int32())
            columns["target_probability"] = pa.array(target, mask=np.isnan(target))
            columns["max_probability"] = pa.array(greatest, mask=np.isnan(greatest))
            calibration = (predictions.of_predicted, predictions.log_target, predictions.squared_norm)
            for column, values in zip(CALIBRATION_COLUMNS, calibration, strict=True):
                columns[column] = pa.array(values, mask=np.isnan(target) | np.isnan(values))
        parts.append(_rows_of(PREDICTIONS, key, group, outputs, columns))
    return pa.concat_tables(parts)


def _rows_of(
    schema: pa.Schema, key: DetectorRun, group: str, outputs: GroupOutputs, columns: Mapping[str, Any]
) -> pa.Table:
    n = outputs.arrays.n
    all_columns = {
        "detector": pa.repeat(pa.scalar(key[0]), n),
        "run": pa.repeat(pa.scalar(key[1], pa.int32()), n),
        "source": outputs.table["source"],
        "image_id": outputs.table["image_id"],
        "group": pa.repeat(pa.scalar(group), n),
        **columns,
    }
    return pa.table({name: all_columns[name] for name in schema.names}).cast(schema)


def joined_keys(values: Iterable[str]) -> str:
    """Return the distinct ``values`` in order, joined by ``+``."""
    return "+".join(dict.fromkeys(values))


PROGRAM = "wordnet-splits"
LIBRARIES = ("numpy", "scipy")
TORCH_LIBRARIES = ("torch", "torchvision", "timm", "transformers", "onnxruntime")
"""Packages whose versions are recorded where a network ran."""


def software(*, with_torch: bool) -> dict[str, str]:
    """Return name -> version of what runs, with ``commit`` in a checkout and ``date`` (of UTC).

    ``SOURCE_DATE_EPOCH`` (seconds since 1970) sets the date.

    Parameters
    ----------
    with_torch : whether networks ran here; not for arrays that were computed elsewhere.
    """
    seconds = os.environ.get("SOURCE_DATE_EPOCH", "")
    now = datetime.fromtimestamp(int(seconds), UTC) if seconds.isdecimal() else datetime.now(UTC)
    names = (PROGRAM, *LIBRARIES, *(TORCH_LIBRARIES if with_torch else ()))
    versions = {name: found for name in names if (found := _version(name))}
    commit = commit_of(Path(__file__).parents[3])
    return {
        **versions,
        **({"commit": commit} if commit else {}),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "date": now.strftime("%Y-%m-%d"),
    }


@cache
def commit_of(folder: Path) -> str:
    """Return the commit of a checkout, with ``-dirty`` where files differ from it; "" where there is none."""
    if not (folder / ".git").exists():
        return ""
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
