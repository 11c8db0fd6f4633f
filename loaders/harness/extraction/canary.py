"""The canary: a check that stored activations equal those that the model computes today.

The key of a model covers its weights and its printed form, but not its code. So the inputs and logits of a
few images of every list are stored. Whenever the list is read again the model is applied to these inputs, and
its logits, features and arrays of probes are compared with the stored ones. The images are spread over the
list, the last one first: a change that spares the first images, or the first places of a batch, is noticed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from wordnet_splits.base.errors import DataError

from ..data.array_checks import nearly_equal
from ..data.arrays import Array, array_of
from ..models import Model
from ..models.reproducibility import depends_on_batch, is_deterministic, logits_in_other_batch
from ..probes import Probe
from .forward import ModelShare, compute
from .stored_list import FORWARD, StoredList, StoreError

ROWS = 16
"""Number of images of the canary; a probe reads two of them, as some need dozens of passes per image."""
RTOL, RTOL_FLOAT16, RTOL_PROBE = 1e-4, 2e-3, 1e-2
"""Tolerances relative to an array's greatest value; gradients and whitening amplify rounding."""
ROUNDINGS = 8
"""Largest difference between batch sizes, in epsilons of the model's type; negligible in single precision."""
FEATURES_DTYPES = ("float32", "float16")


def create_list(share: ModelShare, table: pa.Table, images: Sequence[str], features_dtype: str) -> None:
    """Create a list's folder with its description and the canary; remove files of an interrupted run.

    Parameters
    ----------
    table : the rows of its images. images : their identities.
    """
    stored, model = share.stored, share.model
    stored.clear_parts()
    if stored.begun:
        return
    rows = np.unique(np.linspace(0, table.num_rows - 1, ROWS).astype(np.int64))[::-1].tolist()
    inputs = share.reader.rows(share.rows[rows].tolist())
    logits = array_of(model.prepare(inputs))
    about = {
        "features_dtype": features_dtype,
        "head": model.head_name,
        "model": model.name,
        "sources": sorted(table["source"].unique().to_pylist()),
        "transform": dict(share.reader.transform.spec),
    }
    stored.begin(about, images, {"inputs": array_of(inputs), "logits": logits}, rows)


def check_list(model: Model, stored: StoredList, probes: Mapping[str, Probe]) -> None:
    """Compare the model's arrays for the canary's inputs with the stored ones.

    Raises
    ------
    StoreError : an array differs.
    DataError : the model is not deterministic.
    """
    inputs, logits, rows = stored.canary()
    x = torch.from_numpy(inputs).to(model.device, model.dtype)

    def compare(unit: str, expected: Mapping[str, Array], computed: Mapping[str, Any], rtol: float) -> None:
        for name in sorted({*expected, *computed}):
            if not _alike(expected.get(name), computed.get(name), rtol):
                raise _difference(model, stored, x, name if unit == FORWARD else f"{unit}/{name}")

    compare(FORWARD, {"logits": logits}, {"logits": model.prepare(x)}, RTOL)
    rounding = ROUNDINGS * torch.finfo(model.dtype).eps
    rtol = max(rounding, RTOL_FLOAT16 if stored.about.features_dtype == "float16" else RTOL)
    positions, arrays = stored.stored_rows(FORWARD, rows)
    if positions and depends_on_batch(model, logits[positions], arrays["logits"]):
        return  # the stored arrays depend on the other images of the batch
    if positions:
        computed = compute(model, x, {}, ())[FORWARD]
        compare(FORWARD, arrays, {name: tensor[positions] for name, tensor in computed.items()}, rtol)
    for unit, probe in probes.items():
        names = stored.image_ids(rows) if probe.random else [()] * len(rows)
        held, arrays = stored.stored_rows(unit, rows)
        if held:
            ends = sorted({0, len(held) - 1})  # of the last and of the first finished shard
            positions, arrays = [held[e] for e in ends], {name: array[ends] for name, array in arrays.items()}
            few = {unit: probe}
            computed = compute(model, x[positions], few, [names[p] for p in positions], forward=False)[unit]
            compare(unit, arrays, computed, max(rounding, RTOL_PROBE))


def note_batch_statistics(model: Model, stored: StoredList) -> None:
    """Note where the logits of the canary's inputs depend on the batch: see `depends_on_batch`."""
    inputs, logits, rows = stored.canary()
    positions, arrays = stored.stored_rows(FORWARD, rows)
    depends_on_batch(model, logits[positions], arrays["logits"])
    if stored.n == len(rows):  # the stored batch may have had exactly these images
        few = logits_in_other_batch(model, torch.from_numpy(inputs).to(model.device, model.dtype))
        if few is not None:
            depends_on_batch(model, array_of(few), logits[: len(few)])


def _difference(model: Model, stored: StoredList, x: Tensor, array_name: str) -> DataError:
    """Return the error for an array that differs from the stored one of the same inputs."""
    if stored.fresh or not is_deterministic(model, x):
        return DataError(
            f"it is not deterministic: two passes of the same images give other {array_name}",
            where=model.name,
            hint="switch off what draws numbers or remembers images in its forward pass, such as dropout",
        )
    return StoreError(
        f"the model's {array_name} for the stored inputs differ from the stored ones: its code has changed",
        where=str(stored.folder),
        hint="delete that folder, or give the model another name (model_id)",
    )


def _alike(expected: Array | None, computed: Any, rtol: float) -> bool:
    if expected is None or computed is None:
        return False
    values, others = expected.astype(np.float32), array_of(computed)
    return nearly_equal(values, others[: len(values)], rtol)


def features_note(stored_dtype: str, features_dtype: str, where: str) -> list[str]:
    """Return a note on features that are stored in another type than requested.

    Raises
    ------
    StoreError : they are stored in half precision and requested in single.
    """
    if stored_dtype == features_dtype:
        return []
    if stored_dtype == "float16":
        raise StoreError(
            "features are stored as float16 here, not as float32",
            where=where,
            hint="take float16, delete that folder, or use another store",
        )
    return [f"features are {stored_dtype}, as the first ones of this model"]
