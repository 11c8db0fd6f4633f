"""The canary: a check that stored activations equal those that the model computes today.

The key of a model covers its weights and its printed form, but not its code. So the inputs and logits of the
first images are stored, and the model is applied to them whenever its activations are read again: logits,
features and arrays of probes are compared with the stored ones of these images.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from wordnet_splits.base.errors import DataError

from ..array_checks import nearly_equal
from ..arrays import Array, array_of
from ..models import Model
from ..models.batch_dependence import depends_on_batch, is_deterministic, logits_in_other_batch
from ..probes import Probe
from .batches import BatchReader
from .extraction import forward_arrays, randomness
from .store import FORWARD, StoredGroup, StoreError

ROWS, PROBED = 8, 2
"""Images for the model, and for each probe, some of which need dozens of passes."""
RTOL, RTOL_FLOAT16, RTOL_PROBE = 1e-4, 2e-3, 1e-2
"""Tolerances relative to an array's greatest value; gradients and whitening amplify rounding."""
ROUNDINGS = 8
"""Epsilons of the model's type by which batches of other sizes may differ; negligible in single precision."""
FEATURES_DTYPES = ("float32", "float16")


def create_group(
    model: Model, group: StoredGroup, reader: BatchReader, table: pa.Table, features_dtype: str
) -> None:
    """Create a group's folder with its description and the canary; remove files of an interrupted run."""
    group.clear_parts()
    if group.begun:
        return
    inputs = reader.rows(range(min(ROWS, table.num_rows)))
    logits = array_of(model.prepare(inputs))
    about = {
        "features_dtype": features_dtype,
        "head": model.head_name,
        "model": model.name,
        "sources": sorted(table["source"].unique().to_pylist()),
        "transform": dict(reader.transform.spec),
    }
    canary = {"inputs": array_of(inputs), "logits": logits}
    group.begin(about, canary)


def check_group(
    model: Model, group: StoredGroup, probes: Mapping[str, Probe], table: pa.Table, features_dtype: str
) -> list[str]:
    """Compare the model's arrays for the canary's inputs with the stored ones; return notes.

    Raises
    ------
    StoreError : an array differs, or features are stored in half precision and requested in single.
    DataError : the model is not deterministic.
    """
    inputs, logits = group.canary()
    x = torch.from_numpy(inputs).to(model.device, model.dtype)

    def compare(unit: str, stored: Mapping[str, Array], computed: Mapping[str, Tensor], rtol: float) -> None:
        for name in sorted({*stored, *computed}):
            if not _alike(stored.get(name), computed.get(name), rtol):
                raise _difference(model, group, x, name if unit == FORWARD else f"{unit}/{name}")

    compare(FORWARD, {"logits": logits}, {"logits": model.prepare(x)}, RTOL)
    rounding = ROUNDINGS * torch.finfo(model.dtype).eps
    rtol = max(rounding, RTOL_FLOAT16 if group.about.features_dtype == "float16" else RTOL)
    stored = group.first_rows(FORWARD, len(x))
    if stored and depends_on_batch(model, logits, stored["logits"]):
        return _notes(group, features_dtype)  # the stored arrays depend on the other images of the batch
    if stored:
        with model.batch(x) as result:
            assert result is not None
            compare(FORWARD, stored, forward_arrays(result, model.name), rtol)
    for unit, probe in probes.items():
        if stored := group.first_rows(unit, PROBED):
            first_inputs = x[: len(next(iter(stored.values())))]
            computed = _probed(model, unit, probe, first_inputs, table)
            compare(unit, stored, computed, max(rounding, RTOL_PROBE))
    return _notes(group, features_dtype)


def note_batch_statistics(model: Model, group: StoredGroup) -> None:
    """Note where the logits of the canary's inputs depend on the batch: see `depends_on_batch`."""
    inputs, logits = group.canary()
    depends_on_batch(model, logits, group.first_rows(FORWARD, len(logits))["logits"])
    if next(iter(group.records(FORWARD))).settings.batch_size == len(logits):  # that was the same batch
        few = logits_in_other_batch(model, torch.from_numpy(inputs).to(model.device, model.dtype))
        if few is not None:
            depends_on_batch(model, array_of(few), logits[: len(few)])


def _probed(model: Model, unit: str, probe: Probe, x: Tensor, table: pa.Table) -> Mapping[str, Tensor]:
    """Return a probe's arrays of the first few images."""
    with model.batch(x, probe.layers, skip=not probe.layers):
        return probe(model, x, *randomness(unit, probe, table.slice(0, len(x))))


def _difference(model: Model, group: StoredGroup, x: Tensor, array_name: str) -> DataError:
    """Return the error for an array that differs from the stored one of the same inputs."""
    if group.fresh or not is_deterministic(model, x):
        return DataError(
            f"it is not deterministic: two passes of the same images give other {array_name}",
            where=model.name,
            hint="switch off what draws numbers or remembers images in its forward pass, such as dropout",
        )
    return StoreError(
        f"the model's {array_name} for the stored inputs differ from the stored ones: its code has changed",
        where=str(group.folder),
        hint="delete that folder, or give the model another name (model_id)",
    )


def _alike(stored: Array | None, computed: Tensor | None, rtol: float) -> bool:
    if stored is None or computed is None:
        return False
    values, others = stored.astype(np.float32), array_of(computed)
    return nearly_equal(values, others[: len(values)], rtol)


def _notes(group: StoredGroup, features_dtype: str) -> list[str]:
    stored_dtype = group.about.features_dtype
    if stored_dtype == features_dtype:
        return []
    if stored_dtype == "float16":
        raise StoreError(
            "features are stored as float16 here, not as float32",
            where=str(group.folder),
            hint="take float16, delete that folder, or use another store",
        )
    return [f"features are {stored_dtype}, as this group was begun"]
