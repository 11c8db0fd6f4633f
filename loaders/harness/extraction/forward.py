"""The forward path: a model and probes on batches of images, in memory or shard by shard into a store.

Batches are halved where memory runs out.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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
from wordnet_splits.base.user_code import USER_CODE_ERRORS, describe_error

from ..data.array_checks import as_float32
from ..data.arrays import Array, array_of
from ..models import Model
from ..models.reproducibility import Ranks, depends_on_batch, deterministic_kernels, logits_in_other_batch
from ..models.transforms import Transform
from ..probes import Probe
from .batches import BatchReader, ImageBatch, SharedReader
from .stored_list import FORWARD, ShardRecord, StoredList

Outputs = dict[str, dict[str, list[Any]]]
"""unit -> array -> the tensors of each batch of a shard."""
ImageName = tuple[str, ...]
"""Source, id and view of an image."""
WORKER: Final = "DataLoader worker (pid"
"""Start of PyTorch's message about a terminated reader process."""


def compute(
    model: Model,
    x: Tensor,
    probes: Mapping[str, Probe],
    names: Sequence[ImageName],
    *,
    forward: bool = True,
) -> dict[str, dict[str, Tensor]]:
    """Apply a model and probes to one batch; return unit -> array -> tensor (n, ...), on the model's device.

    Parameters
    ----------
    x : (n, 3, h, w), on the model's device. probes : unit -> probe.
    names : of the images, which seed random probes. forward : whether features and logits are computed.

    Raises
    ------
    DataError : an array has another number of rows than the batch.
    """
    layers = sorted({layer for probe in probes.values() for layer in probe.layers})
    outputs: dict[str, dict[str, Tensor]] = {}
    with model.batch(x, layers, skip=not forward and not layers) as result:
        if forward and result is not None:
            outputs[FORWARD] = forward_arrays(result, model.name)
        for unit, probe in probes.items():
            generators = ([image_generator(unit, *name) for name in names],) if probe.random else ()
            outputs[unit] = {k: v.detach().float() for k, v in probe(model, x, *generators).items()}
    for unit, arrays in outputs.items():
        for name, tensor in arrays.items():
            if len(tensor) != len(x):
                message = f"{name} of {len(tensor)} rows for {len(x)} images"
                raise DataError(message, where=model.name if unit == FORWARD else unit)
    return outputs


def compute_in_memory(
    model: Model,
    transform: Transform,
    batches: Iterable[tuple[Tensor, Sequence[ImageName]]],
    probes: Mapping[str, Probe],
    *,
    forward: bool = True,
    where: str,
    hint: str | None = None,
) -> dict[str, Array]:
    """Apply a model and probes to all batches of transformed images, and return the arrays by name.

    Raises
    ------
    DataError : the model fails for a batch.
    """
    parts: dict[str, list[Array]] = {}
    with deterministic_kernels(full_float32=True), model.evaluating(transform):
        for images, names in batches:
            x = images.to(model.device, model.dtype)
            try:
                others = None if model.width is not None else logits_in_other_batch(model, x)
                outputs = compute(model, x, probes, names, forward=forward)
                if others is not None and FORWARD in outputs:
                    logits = outputs[FORWARD]["logits"][: len(others)]
                    depends_on_batch(model, array_of(others), array_of(logits), x)
            except SplitsError:
                raise
            except USER_CODE_ERRORS as error:
                message = (
                    f"the forward pass failed for images {tuple(images.shape[1:])}: {describe_error(error)}"
                )
                raise DataError(message, where=where, hint=hint) from error
            for unit, arrays in outputs.items():
                prefix = "" if unit == FORWARD else f"{unit}/"
                for name, tensor in arrays.items():
                    parts.setdefault(f"{prefix}{name}", []).append(array_of(tensor))
    return {name: np.concatenate(arrays) for name, arrays in parts.items()}


@dataclass
class ModelShare:
    """One model of an extraction: the list that it fills, its reader and its probes.

    Attributes
    ----------
    rows : of the dataset, for each image of the list.
    only : shards to compute, all by default.
    """

    model: Model
    stored: StoredList
    reader: BatchReader
    probes: Mapping[str, Probe]
    rows: Array
    forward: bool = True
    only: Collection[int] | None = None
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
        """Apply the model and the probes that lack the shard of a batch."""
        probes = {unit: probe for unit, probe in self.probes.items() if batch.shard in self.missing[unit]}
        forward = batch.shard in self.missing.get(FORWARD, ())
        names = image_ids(table.slice(batch.rows.start, len(batch.rows)))
        for unit, arrays in compute(self.model, inputs, probes, names, forward=forward).items():
            for name, tensor in arrays.items():
                outputs.setdefault(unit, {}).setdefault(name, []).append(tensor.detach())


@dataclass
class Extraction:
    """One call's missing shards of a list of images, for one model or several: images are decoded once.

    The lists of all models are of the same images, in shards of the same size; ``table`` has their rows.
    """

    shares: Sequence[ModelShare]
    reader: SharedReader
    table: pa.Table
    ranks: Ranks
    batch_size: int
    progress: Progress

    def __post_init__(self) -> None:
        self.shards = self.shares[0].stored.shards
        self._current = self.shares[0]  # the computing model, named in errors

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
                        task.advance(len(batch.rows))
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
        shard_settings = settings(share.model.device, share.model.dtype, self.batch_size)
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
        """Concatenate the batches of an array, in its stored type.

        Raises
        ------
        DataError : a value is NaN or infinite; the message has the first image.
        """
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
        before, self.batch_size = self.batch_size, self.batch_size // 2
        return f"out of memory at batch {before}: shard {shard} restarted at {self.batch_size}"


def forward_arrays(result: tuple[Any, Any], where: str) -> dict[str, Any]:
    """Return the arrays of a forward pass, at most in single precision; features may be missing.

    Raises
    ------
    DataError : float32 would make different values of double precision equal.
    """
    features, logits = result
    arrays = {"logits": _single(logits, "logits", where).float()}
    return arrays if features is None else {"features": _single(features, "features", where), **arrays}


def _single(values: torch.Tensor, name: str, where: str) -> torch.Tensor:
    if values.is_complex():
        raise DataError(f"{name} must be real numbers, got {values.dtype}", where=where)
    if values.dtype != torch.float64:
        return values
    array = values.detach().cpu().numpy()
    rounded = as_float32(array, name=name, where=where, by_column=name == "features")
    return torch.from_numpy(rounded).to(values.device)


def out_of_memory(error: BaseException) -> bool:
    """Return whether an error means that the device or the host ran out of memory."""
    return isinstance(error, torch.cuda.OutOfMemoryError | MemoryError)


def image_ids(rows: pa.Table) -> list[ImageName]:
    """Return the (source, image_id, view) of images."""
    return list(zip(*(rows[name].to_pylist() for name in ("source", "image_id", "view")), strict=True))


def image_generator(*names: str) -> torch.Generator:
    """Return a generator seeded by the names of a probe and an image, equal in any batch on any device."""
    digest = hashlib.blake2b("\x1f".join(names).encode(), digest_size=8).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest, "big") >> 1)


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
