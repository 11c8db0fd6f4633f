"""Fill the missing shards of stored lists, and check stored ones by the canary.

Batches are halved where memory runs out.

The key of a model covers its weights and its printed form, but not its code. So the inputs and logits of a
few images of every list, the canary, are stored. Whenever the list is read again the model is applied to
them, and its logits, features and arrays of probes are compared with the stored ones. The images are spread
over the list, the last one first: a change that spares the first images, or the first places of a batch, is
noticed.
"""

from __future__ import annotations

import platform
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

import numpy
import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from wordnet_splits.base.errors import DataError, SplitsError
from wordnet_splits.base.progress import Progress, Task
from wordnet_splits.base.untrusted import USER_CODE_ERRORS, describe_error

from ..data.array_checks import nearly_equal
from ..data.arrays import Array, array_of
from ..models.model import Model
from ..models.reproducibility import (
    Ranks,
    depends_on_batch,
    is_deterministic,
    logits_in_other_batch,
)
from ..probes import Probe
from .forward import BatchReader, ImageBatch, SharedReader, compute, image_ids
from .stored_list import FORWARD, ShardRecord, StoredList, StoreError

Outputs = dict[str, dict[str, list[Any]]]
"""unit -> array -> the tensors of each batch of a shard."""


WORKER: Final = "DataLoader worker (pid"
"""Start of PyTorch's message about a terminated reader process."""


@dataclass
class ModelShare:
    """One model of an extraction: the list that it fills, its reader and its probes.

    Attributes
    ----------
    rows : of the dataset, for each image of the list.
    only : shards to compute, all by default.
    batch_size : images of a forward pass.
    """

    model: Model
    stored: StoredList
    reader: BatchReader
    probes: Mapping[str, Probe]
    rows: Array
    forward: bool = True
    only: Collection[int] | None = None
    batch_size: int = 1
    missing: dict[str, set[int]] = field(default_factory=dict)

    def find_missing(self) -> set[int]:
        """Return the shards that are missing for the forward pass or a probe."""
        units = ((FORWARD,) if self.forward else ()) + tuple(self.probes)
        self.missing = {unit: set(self.stored.missing(unit, self.only)) for unit in units}
        return set().union(*self.missing.values())

    def computes(self, shard: int) -> bool:
        """Return whether a shard was missing."""
        return any(shard in shards for shards in self.missing.values())

    def compute(self, batch: ImageBatch, inputs: Tensor, table: pa.Table, outputs: Outputs) -> None:
        """Apply the model and the probes that lack the shard of a batch, in batches of its own size."""
        probes = {unit: probe for unit, probe in self.probes.items() if batch.shard in self.missing[unit]}
        forward = batch.shard in self.missing.get(FORWARD, ())
        names = image_ids(table.slice(batch.rows.start, len(batch.rows)))
        for start in range(0, len(names), self.batch_size):
            part = slice(start, start + self.batch_size)
            computed = compute(self.model, inputs[part], probes, names[part], forward=forward)
            for unit, arrays in computed.items():
                for name, tensor in arrays.items():
                    outputs.setdefault(unit, {}).setdefault(name, []).append(tensor.detach())


@dataclass
class Extraction:
    """One call's missing shards of a list of images, for one model or several: images are decoded once.

    The lists of all models are of the same images, in shards of the same size; ``table`` has their rows.
    Batches of the models' largest size are read; each model computes them in batches of its own size.
    """

    shares: Sequence[ModelShare]
    reader: SharedReader
    table: pa.Table
    ranks: Ranks
    progress: Progress

    def __post_init__(self) -> None:
        self.shards = self.shares[0].stored.shards
        self._current = self.shares[0]  # the computing model, named in errors

    @property
    def batch_size(self) -> int:
        """The images that are read at once: the largest batch of a model."""
        return max(share.batch_size for share in self.shares)

    def _note(self) -> str:
        sizes = sorted({share.batch_size for share in self.shares})
        return f"batches of {', '.join(map(str, sizes))}"

    def run(self) -> None:
        """Compute and write the missing shards of this rank."""
        todo = sorted(set().union(*(share.find_missing() for share in self.shares)))
        own_shards = [s for s in todo if s % self.ranks.world == self.ranks.rank]
        notes: list[str] = []
        total = sum(len(self.shards[s]) * len(self._computing(s)) for s in own_shards)
        with (
            ThreadPoolExecutor(1, thread_name_prefix="write") as writer,
            self.progress.task("images", total) as task,
        ):
            writes: list[Future[None]] = []
            while own_shards:
                memory_full = False
                try:
                    for shard, outputs in self._shards(own_shards, task):
                        # at most one shard of every model is being written while the next one is filled
                        _finish(writes, keep=len(self.shares))
                        for share, share_outputs in zip(self.shares, outputs, strict=True):
                            self._current = share
                            writes += self._submit(writer, share, shard, share_outputs, notes)
                        notes = []
                        own_shards = own_shards[1:]
                except (SplitsError, OSError):
                    raise
                except USER_CODE_ERRORS as error:  # the model or a probe may be a user's code
                    if WORKER in str(error):
                        raise DataError(
                            f"a process that reads images ended: {describe_error(error)}",
                            where=self._current.model.name,
                            hint="killed processes mostly lacked memory: give fewer --workers",
                        ) from error
                    if not out_of_memory(error):
                        raise DataError(
                            f"the forward pass failed in shard {own_shards[0]}: {describe_error(error)}",
                            where=self._current.model.name,
                            hint="images of another size? check the transform",
                        ) from error
                    memory_full = True  # handled below, once the error no longer keeps the batch in memory
                if memory_full:
                    notes.append(self._halve(own_shards[0]))
            _finish(writes, keep=0)

    def _computing(self, shard: int) -> list[ModelShare]:
        """Return the models that compute a shard."""
        return [share for share in self.shares if share.computes(shard)]

    def _shards(self, shards: Sequence[int], task: Task) -> Iterator[tuple[int, list[Outputs]]]:
        """Yield each shard after its last batch, with the outputs of every model."""
        rows = [(s, self.shards[s]) for s in shards]
        outputs: list[Outputs] = [{} for _ in self.shares]
        done = 0
        for batch in self.reader.batches(rows, self.batch_size, self.shares[0].rows):
            try:
                for number, share in enumerate(self.shares):
                    if share.computes(batch.shard):
                        self._current = share
                        inputs = self.reader.model_input(number, batch)
                        share.compute(batch, inputs, self.table, outputs[number])
                        done += len(batch.rows)
                        task.advance(len(batch.rows), note=self._note())
            except BaseException:  # the shard begins again
                task.advance(-done)
                raise
            if batch.rows.stop == self.shards[batch.shard].stop:
                yield batch.shard, outputs
                outputs, done = [{} for _ in self.shares], 0

    def _submit(
        self, writer: ThreadPoolExecutor, share: ModelShare, shard: int, outputs: Outputs, notes: list[str]
    ) -> list[Future[None]]:
        """Copy a model's shard to the host, check it, and submit its writing."""
        shard_settings = settings(share.model.device, share.model.dtype, share.batch_size)
        if notes:
            shard_settings["notes"] = notes
        arrays = {
            unit: {k: self._host(share, unit, k, v, shard) for k, v in unit_arrays.items()}
            for unit, unit_arrays in outputs.items()
        }
        outputs.clear()
        return [
            writer.submit(share.stored.write, unit, shard, unit_arrays, shard_settings)
            for unit, unit_arrays in arrays.items()
        ]

    def _host(self, share: ModelShare, unit: str, name: str, tensors: list[Any], shard: int) -> Array:
        """Concatenate the batches of an array, in its stored type."""
        joined = torch.cat([t.detach() for t in tensors])
        dtype = getattr(torch, share.stored.about.features_dtype) if name == "features" else torch.float32
        array: Array = joined.to(dtype).cpu().numpy()
        finite = np.isfinite(array).reshape(len(array), -1).all(axis=1)
        if finite.all():
            return array
        row = self.shards[shard].start + int(np.flatnonzero(~finite)[0])
        overflow = bool(torch.isfinite(joined).all())
        raise DataError(
            f"{name} of {int((~finite).sum())} images are NaN or infinite, the first of "
            f"{self.table['source'][row]} {self.table['image_id'][row]}",
            where=f"{share.model.name} on {self.table['group'][row]}, {unit}",
            hint="they exceed float16: store float32"
            if overflow
            else "check the model's weights and its transform",
        )

    def _halve(self, shard: int) -> str:
        """Halve the batch and return the note that is stored."""
        if self.batch_size == 1:
            raise SplitsError(
                "out of memory with a batch of one image",
                where=self._current.model.name,
                hint="use a larger device",
            )
        if self._current.model.device.type == "cuda":
            torch.cuda.empty_cache()
        before, halved = self.batch_size, self.batch_size // 2
        for share in self.shares:
            share.batch_size = min(share.batch_size, halved)
        return f"out of memory at batch {before}: shard {shard} restarted at {halved}"


def out_of_memory(error: BaseException) -> bool:
    """Return whether an error means that the device or the host ran out of memory."""
    return isinstance(error, torch.cuda.OutOfMemoryError | MemoryError)


def _finish(writes: list[Future[None]], *, keep: int) -> None:
    """Wait for writes until ``keep`` are left; their errors are raised here."""
    while len(writes) > keep:
        writes.pop(0).result()


def settings(device: Any, dtype: Any, batch_size: int) -> dict[str, Any]:
    """Return the settings, beyond model and images, that the bytes of a shard depend on."""
    device = torch.device(device)
    libraries = {"torch": torch.__version__, "numpy": numpy.__version__}
    if device.type == "cuda":
        kind = torch.cuda.get_device_name(device)
        libraries["cuda"] = str(torch.version.cuda)
        libraries["cudnn"] = str(torch.backends.cudnn.version())
        threads = 0  # GPU kernels do not depend on the host's threads
    else:
        kind = f"{device.type} {platform.machine()}"
        threads = torch.get_num_threads()
    return {
        "batch_size": batch_size,
        "device": kind,
        "dtype": str(dtype).removeprefix("torch."),
        "libraries": libraries,
        "threads": threads,
    }


def differences(records: Sequence[ShardRecord]) -> list[str]:
    """Return a sentence for every setting that differs between shards (then equality is rtol 1e-4)."""
    sentences = []
    for key in ("batch_size", "device", "dtype", "libraries", "threads"):
        values = {str(getattr(record.settings, key)) for record in records}
        if len(values) > 1:
            sentences.append(f"shards differ in {key}: {', '.join(sorted(values))}; equality is rtol 1e-4")
    return sentences


ROWS = 16
"""Number of images of the canary; a probe reads two of them, as some need dozens of passes per image."""
RTOL, RTOL_FLOAT16, RTOL_PROBE = 1e-4, 2e-3, 1e-2
"""Tolerances relative to an array's greatest value; gradients and whitening amplify rounding."""
ROUNDINGS = 8
"""Largest difference between batch sizes, in epsilons of the model's type; negligible in single precision."""
FEATURES_DTYPES = ("float32", "float16")


def create_list(
    share: ModelShare, table: pa.Table, images: Sequence[str], features_dtype: str, read: dict[Any, Tensor]
) -> None:
    """Create a list's folder with its description and the canary; remove files of an interrupted run.

    ``read`` keeps the canary's images for other models.
    """
    stored, model = share.stored, share.model
    stored.clear_parts()
    if stored.begun:
        return
    rows = np.unique(np.linspace(0, table.num_rows - 1, ROWS).astype(np.int64))[::-1].tolist()
    inputs = share.reader.rows(share.rows[rows].tolist(), read)
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


def features_notes(lists: Sequence[StoredList], requested: str) -> list[str]:
    """Return a note on lists whose features are stored in another type than requested.

    Raises
    ------
    StoreError : they are stored in half precision and requested in single.
    """
    other = [stored for stored in lists if stored.about.features_dtype != requested]
    if other and requested == "float32":
        raise StoreError(
            "features are stored as float16 here, not as float32",
            where=str(other[0].folder),
            hint="take float16, delete that folder, or use another store",
        )
    return ["features are float32, as the first ones of this model"] if other else []
