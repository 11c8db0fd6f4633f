"""The facts and predictions of an evaluated network, and the software that it ran with."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import pyarrow as pa

from ..extraction.runs import GroupOutputs, ModelRun, predict
from ..results.metadata import ColumnsUsed, RunFacts
from ..results.scores import CALIBRATION_COLUMNS, PREDICTED


def run_facts(number: int, run: ModelRun, test: Mapping[str, GroupOutputs]) -> RunFacts:
    """Return the description of a network for ``about.json``."""
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


def predicted_table(outputs: GroupOutputs, name: str) -> pa.Table:
    """Return the columns `PREDICTED` of a set, filled with nulls if the model lacks logits.

    Parameters
    ----------
    name : the network's, for errors.
    """
    predictions = predict(outputs, name)
    if predictions is None:
        return pa.table({field.name: pa.nulls(outputs.arrays.n, field.type) for field in PREDICTED})
    of_label = (predictions.of_predicted, predictions.log_target, predictions.squared_norm)
    columns = {
        "prediction": pa.array(predictions.label, pa.int32()),
        "target_probability": pa.array(predictions.of_target, mask=np.isnan(predictions.of_target)),
        "max_probability": pa.array(predictions.greatest, mask=np.isnan(predictions.greatest)),
    }
    for column, values in zip(CALIBRATION_COLUMNS, of_label, strict=True):
        columns[column] = pa.array(values, mask=np.isnan(predictions.of_target) | np.isnan(values))
    return pa.table(columns, schema=PREDICTED)


PROGRAM = "wordnet-splits"
LIBRARIES = ("numpy", "scipy")
TORCH_LIBRARIES = ("torch", "torchvision", "timm", "transformers", "onnxruntime")
"""Packages whose versions are recorded if the evaluation ran a network."""


def software(*, with_torch: bool) -> dict[str, str]:
    """Return name -> version of what runs, with ``commit`` in a checkout and ``date`` (of UTC).

    ``SOURCE_DATE_EPOCH`` (seconds since 1970) sets the date.

    Parameters
    ----------
    with_torch : whether networks ran here; False for given arrays.
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
    """Return the commit of a checkout, with ``-dirty`` if files differ; "" outside a checkout."""
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
