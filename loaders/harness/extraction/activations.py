"""Features, logits and probes of a model on images, stored on disk.

``extract`` computes missing arrays and opens all. Later calls, also for other benchmarks, read the images
that are stored, and compute the rest::

    activations = extract(model, UnknownDetectionSet("digits", role="near"), Store(Path("activations")))
    activations.features, activations.logits        # array views over memory-mapped shards
    activations.data(model.class_map(space, activations.width))     # what detectors get
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch
from torch import Tensor

from wordnet_splits.base.errors import DataError, unknown
from wordnet_splits.base.progress import Progress, Silent

from ..data.arrays import Array, Arrays, ArrayView, Head
from ..models.class_map import ClassMap
from ..models.model import Model
from ..models.reproducibility import Ranks, current_ranks, deterministic_kernels
from ..models.transforms import choose_transform
from ..probes import Probe, parse_probe, probe_name
from .batch_size import propose_batch_size
from .forward import BatchReader, ImageSet, SharedReader
from .outputs import Store, StoredModel, image_names
from .shards import (
    FEATURES_DTYPES,
    ROWS,
    Extraction,
    ModelShare,
    check_list,
    create_list,
    differences,
    features_notes,
    note_batch_statistics,
    settings,
)
from .stored_list import FORWARD, SHARD_ROWS, StoredList, list_key

OTHER_LISTS = "images were computed in other batches; equality is rtol 1e-4"


@dataclass(frozen=True, eq=False)
class Activations:
    """The stored activations of a model on some images, opened.

    Attributes
    ----------
    arrays : over all columns: ``features`` (n, D), ``logits`` (n, K) and arrays of probes.
    table : the image rows, in the order of the arrays (`IMAGE_SCHEMA` of
        `wordnet_splits.benchmark.manifest.tables`).
    labels : (n,) int64, the benchmark's, -1 where an image has none.
    head : the linear head over all columns, None where the model has none.
    notes : deviations from an undisturbed run, e.g. a batch halved for lack of memory.
    model_key, transform_key : names of the folders.
    model : the model's name.
    transform : description of the transform.
    shape : (3, h, w) of the model's inputs.
    """

    arrays: Arrays
    table: pa.Table
    labels: npt.NDArray[np.int64]
    head: Head | None
    notes: tuple[str, ...]
    model: str
    model_key: str
    transform_key: str
    transform: str
    shape: tuple[int, ...]

    @property
    def n(self) -> int:
        """Number of images."""
        return self.arrays.n

    @property
    def features(self) -> ArrayView:
        """Features (n, D)."""
        return self.arrays["features"]

    @property
    def logits(self) -> ArrayView:
        """Logits (n, K) over all columns."""
        return self.arrays["logits"]

    @property
    def width(self) -> int:
        """K, the columns of the model's output."""
        return self.logits.shape[1]

    def data(self, classes: ClassMap | None = None, *, labels: bool = False) -> Arrays:
        """Return the arrays of detectors: logits restricted by ``classes``, and optionally labels."""
        class_map = classes or ClassMap(tuple(range(self.width)), self.width)
        return class_map.arrays(self.arrays, self.labels if labels else None)

    def head_of(self, classes: ClassMap | None = None) -> Head | None:
        """Return the head whose rows are the columns of `data`'s logits."""
        return self.head if self.head is None or classes is None else self.head.rows(classes.class_columns)


@dataclass(frozen=True)
class ExtractionOptions:
    """Options of `extract`.

    Attributes
    ----------
    batch_size : halved, for the rest of the call, when memory runs out; by default that of the stored shards,
        or else proposed, see `batch_size.propose_batch_size`.
    workers : processes that read images; 0: a thread.
    features_dtype : ``float32`` or ``float16``, for a new group.
    transform : by default the dataset's, else the model's, else the benchmark's.
    transform_id : name of a transform that is a plain function.
    """

    batch_size: int | None = None
    workers: int = 0
    features_dtype: str = "float32"
    transform: Any = None
    transform_id: str | None = None
    progress: Progress | None = None


def extract(
    model: Model,
    dataset: ImageSet,
    store: Store,
    *,
    probes: Sequence[Probe | str] = (),
    **options: Any,
) -> Activations:
    """Compute the activations of a model on a dataset that ``store`` lacks, and open all.

    Under ``torchrun`` the ranks share the shards; every rank returns the same result.

    Parameters
    ----------
    dataset : the images of a group.
    probes : probes, or their names: ``odin[T=1000,eps=0.0014]``.
    options : see `ExtractionOptions`.

    Raises
    ------
    StoreError : stored files are damaged, or a model with the same key computed different values.
    DataError : activations that are not finite, no images, or a function without a name.
    OutputError : the store cannot be written to.
    """
    (activations,) = extract_together([(model, probes)], dataset, store, **options)
    return activations


def extract_together(
    work: Sequence[tuple[Model, Sequence[Probe | str]]],
    dataset: ImageSet,
    store: Store,
    **options: Any,
) -> list[Activations]:
    """Compute the activations of several models, and open all; every image is decoded once."""
    extraction, ranks = ExtractionOptions(**options), current_ranks()
    tasks = _tasks(work, dataset, store, extraction, ranks)
    notes = _compute(tasks, dataset.table, extraction, ranks)
    return [_opened(task, dataset.table, task_notes) for task, task_notes in zip(tasks, notes, strict=True)]


def extract_shards(
    work: Sequence[tuple[Model, Sequence[Probe | str]]],
    dataset: ImageSet,
    store: Store,
    shards: Sequence[Collection[int]],
    **options: Any,
) -> None:
    """Compute some shards (their numbers, for each model) of what `extract_together` computes."""
    extraction, ranks = ExtractionOptions(**options), current_ranks()
    tasks = _tasks(work, dataset, store, extraction, ranks, shards)
    _compute(tasks, dataset.table, extraction, ranks)


@dataclass(frozen=True, eq=False)
class _Task:
    """A model of a call: its images and stored lists, and the shares that compute missing arrays."""

    model: Model
    probes: Mapping[str, Probe]
    reader: BatchReader
    images: Sequence[str]
    stored: StoredModel
    shares: list[ModelShare] = field(default_factory=list)
    read: dict[str, Sequence[StoredList]] = field(default_factory=dict)

    @property
    def units(self) -> tuple[str, ...]:
        """The forward pass and the probes."""
        return (FORWARD, *self.probes)

    @property
    def lists(self) -> list[StoredList]:
        """The lists that are read or filled, in the same order in every process."""
        read = (stored for of_unit in self.read.values() for stored in of_unit)
        lists = {stored.folder: stored for stored in (*read, *(share.stored for share in self.shares))}
        return [lists[folder] for folder in sorted(lists)]

    @property
    def features_lists(self) -> list[StoredList]:
        """The lists whose features are read or computed."""
        computed = (share.stored for share in self.shares if share.forward)
        return [*self.read.get(FORWARD, ()), *computed]


def _tasks(
    work: Sequence[tuple[Model, Sequence[Probe | str]]],
    dataset: ImageSet,
    store: Store,
    options: ExtractionOptions,
    ranks: Ranks,
    shards: Sequence[Collection[int]] | None = None,
) -> list[_Task]:
    """Return each model's task: compute the images that no list has, or some ``shards`` of all images."""
    if options.features_dtype not in FEATURES_DTYPES:
        raise unknown("type of features", options.features_dtype, FEATURES_DTYPES)
    if options.batch_size is not None and not 1 <= options.batch_size <= SHARD_ROWS:
        raise DataError(f"batch_size must be between 1 and {SHARD_ROWS}, not {options.batch_size}")
    for model, _ in work:
        if store.permanent and not model.identified:
            raise DataError(
                "a function has no weights to identify its activations by",
                where=model.name,
                hint="add --model-id NAME (model_id='NAME') and change it whenever the function changes",
            )
    table: pa.Table = dataset.table
    if not table.num_rows:
        raise DataError("there are no images", where=work[0][0].name)
    images = image_names(table)
    tasks = []
    for number, (model, given) in enumerate(work):
        transform = choose_transform(model, dataset, options.transform, options.transform_id)
        probes = {probe_name(p): p for p in (parse_probe(p) if isinstance(p, str) else p for p in given)}
        reader = BatchReader(dataset, transform, device=model.device, dtype=model.dtype)
        stored = store.model(model.key, transform.key)
        task = _Task(model, probes, reader, images, stored)
        gaps: dict[bytes, tuple[Array, list[str]]] = {}
        for unit in task.units:
            missing = np.arange(len(images))
            if shards is None:
                places = stored.places(images, unit)
                task.read[unit] = places.used
                missing = places.missing
            if len(missing):
                gaps.setdefault(missing.tobytes(), (missing, []))[1].append(unit)
        for rows, units in ranks.of_first(list(gaps.values())):  # another process may write meanwhile
            filled = stored.list_at(list_key([images[row] for row in rows]), len(rows))
            own = {unit: probes[unit] for unit in units if unit != FORWARD}
            only = None if shards is None else shards[number]
            task.shares.append(ModelShare(model, filled, reader, own, rows, FORWARD in units, only))
        tasks.append(task)
    return tasks


def _compute(
    tasks: Sequence[_Task], table: pa.Table, options: ExtractionOptions, ranks: Ranks
) -> list[list[str]]:
    """Create the lists, check their stored arrays, and compute missing ones; return each model's notes."""
    notes = []
    with deterministic_kernels(full_float32=True), ExitStack() as stack:
        for task in tasks:
            stack.enter_context(task.model.evaluating(task.reader.transform))
        shares = sorted((share for task in tasks for share in task.shares), key=lambda s: s.stored.folder)
        if ranks.first:
            for share in shares:  # the same order everywhere
                stack.enter_context(share.stored.locked())
        with ranks.all_ranks("opening the store"):
            read: dict[Any, Tensor] = {}
            for task in tasks if ranks.first else ():
                held = [*task.read.get(FORWARD, ()), *task.stored.lists]
                features_dtype = held[0].about.features_dtype if held else options.features_dtype
                for share in task.shares:
                    rows = table.take(pa.array(share.rows))
                    images = [task.images[row] for row in share.rows]
                    create_list(share, rows, images, features_dtype, read)
        with ranks.all_ranks("the check of the stored activations"):
            for task in tasks:
                notes.append(features_notes(task.features_lists, options.features_dtype))
                for stored in task.lists:
                    check_list(task.model, stored, task.probes)
        work, sizes = [(task, share) for task in tasks for share in task.shares], []
        with ranks.all_ranks("the trial of a batch"):
            if ranks.first:
                sizes = [options.batch_size or _batch_size(task, share) for task, share in work]
        for (_, share), size in zip(work, ranks.of_first(sizes), strict=True):
            share.batch_size = size
        with ranks.all_ranks("the extraction"):
            alike: dict[tuple[str, int, int], list[ModelShare]] = {}
            for share in shares:
                size = share.batch_size
                divides = 0 if size & (size - 1) == 0 else size  # powers of two divide the largest batch
                key = (share.stored.folder.name, share.stored.about.shard_rows, divides)
                alike.setdefault(key, []).append(share)
            for together in alike.values():
                reader = SharedReader([share.reader for share in together], workers=options.workers)
                rows = table.take(pa.array(together[0].rows))
                progress = options.progress or Silent()
                Extraction(together, reader, rows, ranks, progress).run()
        for share in shares:
            if share.only is None and share.forward:
                note_batch_statistics(share.model, share.stored)  # every rank has written its shards
    return notes


def _batch_size(task: _Task, share: ModelShare) -> int:
    """Return the batch size of a model's stored shards of equal inputs and device, or else a proposal."""
    inputs, model = share.stored.canary()[0], task.model
    device = settings(model.device, model.dtype, 1)["device"]
    for stored in (share.stored, *task.stored.lists):
        if stored.about.canary.inputs.shape[1:] == list(inputs.shape[1:]):
            for unit in task.units:
                if (size := stored.batch_size(unit, device)) is not None:
                    return size
    return propose_batch_size(model, torch.from_numpy(inputs).to(model.device, model.dtype))


def _opened(task: _Task, table: pa.Table, notes: Sequence[str]) -> Activations:
    """Open the activations of a model, which are complete."""
    transform = task.reader.transform
    arrays: dict[str, ArrayView] = {}
    for unit in task.units:
        prefix = "" if unit == FORWARD else f"{unit}/"
        opened = task.stored.open(task.images, unit)
        arrays |= {f"{prefix}{name}": view for name, view in opened.items()}
    places = {unit: task.stored.places(task.images, unit).used for unit in task.units}
    records = [
        record for unit, lists in places.items() for stored in lists for record in stored.records(unit)
    ]
    shard_notes = [note for record in records for note in record.settings.notes]
    own = [list_key(task.images)]
    if any([stored.keys["list_key"] for stored in lists] != own for lists in places.values()):
        shard_notes.append(OTHER_LISTS)
    return Activations(
        Arrays(arrays),
        table,
        table["label"].to_numpy().astype(np.int64),
        task.model.head,
        tuple(dict.fromkeys([*shard_notes, *differences(records), *notes])),
        task.model.name,
        task.model.key,
        transform.key,
        transform.description,
        tuple(task.lists[0].canary()[0].shape[1:]),
    )


def output_width(model: Model, dataset: ImageSet) -> int:
    """Return the columns of a model's output, by a forward pass of a few images of ``dataset``."""
    if model.width is None:
        with sample_images(model, dataset):
            pass
    return int(model.width or 0)


@contextmanager
def sample_images(model: Model, dataset: ImageSet) -> Iterator[Tensor]:
    """Yield a few inputs from ``dataset``, with the model prepared and in evaluation mode."""
    transform = choose_transform(model, dataset)
    reader = BatchReader(dataset, transform, device=model.device, dtype=model.dtype)
    with model.evaluating(transform):
        x = reader.rows(range(min(ROWS, len(dataset))))
        if model.width is None:
            model.prepare(x)
        yield x
