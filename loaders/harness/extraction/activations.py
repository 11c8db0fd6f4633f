"""Features, logits and probes of a model on a group of images, stored on disk.

``extract`` computes missing arrays and opens all; later calls, also for other benchmarks, read them::

    activations = extract(model, UnknownDetectionSet("digits", role="near"), Store(Path("activations")))
    activations.features, activations.logits        # array views over memory-mapped shards
    activations.data(model.class_map(space, activations.width))     # what detectors get
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from torch import Tensor

from wordnet_splits.base.errors import DataError, unknown
from wordnet_splits.base.progress import Progress, Silent
from wordnet_splits.benchmark.manifest.metadata import Declared

from ..arrays import Arrays, ArrayView, Head
from ..models import Model
from ..models.class_map import ClassMap
from ..models.devices import current_ranks, deterministic_kernels
from ..models.keys import list_key
from ..models.transforms import (
    Normalise,
    Transform,
    as_transform,
    evaluation_transform,
    imported_transform,
    recipe_normalisation,
)
from ..probes import Probe, parse_probe, probe_name
from .batches import BatchReader, ImageSet, SharedReader
from .canary import FEATURES_DTYPES, ROWS, check_group, create_group, note_batch_statistics
from .extraction import Extraction, ModelShare, differences
from .store import FORWARD, SHARD_ROWS, Store

BATCH = 128


@dataclass(frozen=True, eq=False)
class Activations:
    """The stored activations of one model on one group, opened.

    Attributes
    ----------
    arrays : over all columns: ``features`` (n, D), ``logits`` (n, K) and arrays of probes.
    table : the image rows, in the order of the arrays (`IMAGE_SCHEMA` of
        `wordnet_splits.benchmark.manifest.tables`).
    labels : (n,) int64, the benchmark's, -1 where an image has none.
    head : the linear head over all columns, None where the model has none.
    notes : deviations from an undisturbed run, e.g. a batch halved for lack of memory.
    model_key, transform_key, list_key : names of the folders. model : the model's name.
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
    list_key: str
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
    batch_size : halved, for the rest of the call, when memory runs out.
    workers : processes that read images; 0: a thread.
    features_dtype : ``float32`` or ``float16``, for a new group.
    transform : by default the dataset's, else the model's, else the benchmark's.
    transform_id : name of a transform that is a plain function.
    """

    batch_size: int = BATCH
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
    dataset : the images of one group.
    probes : probes, or their names: ``odin[T=1000,eps=0.0014]``.
    options : see `ExtractionOptions`.

    Raises
    ------
    StoreError : stored files are damaged, or of a model that computes something else under the same key.
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
    """Compute the activations of several models, and open all; every image is decoded once.

    Parameters
    ----------
    work : each model with its probes; keys of models differ. The others are as of `extract`.
    """
    extraction = ExtractionOptions(**options)
    shares = _shares(work, dataset, store, extraction)
    notes = _compute(shares, dataset.table, extraction)
    return [
        _opened(share, dataset.table, share_notes) for share, share_notes in zip(shares, notes, strict=True)
    ]


def extract_shards(
    work: Sequence[tuple[Model, Sequence[Probe | str]]],
    dataset: ImageSet,
    store: Store,
    shards: Sequence[Collection[int]],
    **options: Any,
) -> None:
    """Compute some shards (their numbers, for each model) of what `extract_together` computes."""
    extraction = ExtractionOptions(**options)
    shares = _shares(work, dataset, store, extraction)
    for share, numbers in zip(shares, shards, strict=True):
        share.only = numbers
    _compute(shares, dataset.table, extraction)


def _shares(
    work: Sequence[tuple[Model, Sequence[Probe | str]]],
    dataset: ImageSet,
    store: Store,
    options: ExtractionOptions,
) -> list[ModelShare]:
    """Return what each model computes."""
    if options.features_dtype not in FEATURES_DTYPES:
        raise unknown("type of features", options.features_dtype, FEATURES_DTYPES)
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
    images_key = list_key(table)
    shares = []
    for model, probes in work:
        used = choose_transform(model, dataset, options.transform, options.transform_id)
        by_name = {probe_name(p): p for p in (parse_probe(p) if isinstance(p, str) else p for p in probes)}
        group = store.group(model.key, used.key, images_key, n=table.num_rows)
        reader = BatchReader(dataset, used, device=model.device, dtype=model.dtype)
        shares.append(ModelShare(model, group, reader, by_name))
    return shares


def _compute(shares: Sequence[ModelShare], table: pa.Table, options: ExtractionOptions) -> list[list[str]]:
    """Create the groups, check what they hold, and compute what is missing; return each model's notes."""
    batch_size, features_dtype = options.batch_size, options.features_dtype
    if batch_size < 1 or batch_size > SHARD_ROWS:
        raise DataError(f"batch_size must be between 1 and {SHARD_ROWS}, not {batch_size}")
    ranks = current_ranks()
    notes = []
    with deterministic_kernels(full_float32=True), ExitStack() as stack:
        for share in shares:
            stack.enter_context(share.model.evaluating(share.reader.transform))
        if ranks.first:
            for share in sorted(shares, key=lambda share: share.group.folder):  # the same order everywhere
                stack.enter_context(share.group.locked())
        with ranks.all_ranks("opening the store"):
            if ranks.first:
                for share in shares:
                    create_group(share.model, share.group, share.reader, table, features_dtype)
        with ranks.all_ranks("the check of the stored activations"):
            for share in shares:
                notes.append(check_group(share.model, share.group, share.probes, table, features_dtype))
        with ranks.all_ranks("the extraction"):
            by_shard_rows: dict[int, list[ModelShare]] = {}
            for share in shares:
                by_shard_rows.setdefault(share.group.about.shard_rows, []).append(share)
            for together in by_shard_rows.values():
                reader = SharedReader([share.reader for share in together], workers=options.workers)
                progress = options.progress or Silent()
                Extraction(together, reader, table, ranks, batch_size, progress).run()
        for share in shares:
            if share.only is None:
                note_batch_statistics(share.model, share.group)  # every rank has written its shards
    return notes


def _opened(share: ModelShare, table: pa.Table, notes: Sequence[str]) -> Activations:
    """Open the activations of a model, which are complete."""
    model, group, transform = share.model, share.group, share.reader.transform
    arrays: dict[str, ArrayView] = dict(group.open(FORWARD))
    for name in share.probes:
        arrays |= {f"{name}/{array}": view for array, view in group.open(name).items()}
    records = [record for unit in (FORWARD, *share.probes) for record in group.records(unit)]
    shard_notes = [note for record in records for note in record.settings.notes]
    return Activations(
        Arrays(arrays),
        table,
        table["label"].to_numpy().astype(np.int64),
        model.head,
        tuple(dict.fromkeys([*shard_notes, *differences(records), *notes])),
        model.name,
        model.key,
        transform.key,
        transform.words,
        group.folder.name,
        tuple(group.canary()[0].shape[1:]),
    )


def output_width(model: Model, dataset: ImageSet) -> int:
    """Return the columns of a model's output, by a forward pass of a few images of ``dataset``.

    Raises
    ------
    DataError : the model fails for them, or returns no logits, see `Model.prepare`.
    """
    if model.width is None:
        with sample_images(model, dataset):
            pass
    return int(model.width or 0)


@contextmanager
def sample_images(model: Model, dataset: ImageSet) -> Iterator[Tensor]:
    """Yield a few inputs from ``dataset``, with the model prepared and in evaluation mode.

    Raises
    ------
    DataError : the model fails for them, or returns no logits, see `Model.prepare`.
    """
    transform = choose_transform(model, dataset)
    reader = BatchReader(dataset, transform, device=model.device, dtype=model.dtype)
    with model.evaluating(transform):
        x = reader.rows(range(min(ROWS, len(dataset))))
        if model.width is None:
            model.prepare(x)
        yield x


def choose_transform(
    model: Model, dataset: ImageSet, transform: Any = None, transform_id: str | None = None
) -> Transform:
    """Return the given transform, else the dataset's, the model's, or the benchmark's for the source.

    Raises
    ------
    DataError : a plain function without ``transform_id``, or groups whose sources have different transforms.
    """
    if transform is not None:
        return as_transform(transform, transform_id=transform_id)
    image, batch = getattr(dataset, "transform", None), getattr(dataset, "batch_transform", None)
    if image is not None or batch is not None:
        return as_transform(image, batch, transform_id)
    if model.preprocess is not None:
        if model.normalise is not None:
            raise DataError(
                "mean and std change nothing: the model brings its preprocessing",
                where=model.name,
                hint="replace that too: --transform resize-224 (transform='resize-224')",
            )
        return model.preprocess
    manifest = getattr(dataset, "manifest", None)
    recipe = None if manifest is None else manifest.data.recipe
    named = {} if recipe is None else recipe.transforms
    names = {named.get(source, "none") for source in dataset.table["source"].unique().to_pylist()}
    if len(names) > 1:
        raise DataError(
            "the sources of these images have different evaluation transforms",
            where=model.name,
            hint="extract one group at a time: UnknownDetectionSet.parts(...)",
        )
    return input_transform(model, names.pop(), recipe)


def with_transform(model: Model, transform: Transform | str, recipe: Declared) -> Model:
    """Return a copy of a model whose images go through a transform, or through a named one."""
    if isinstance(transform, str):
        transform = input_transform(model, transform, recipe)
    copied = copy(model)
    copied.preprocess, copied.normalise = transform, None
    return copied


def input_transform(model: Model, name: str, recipe: Declared | None = None) -> Transform:
    """Return a named transform with the normalisation of the user, else the model, else the benchmark.

    Where none is stated, an object given in Python gets pixels in [0, 1], and its results a note.

    Parameters
    ----------
    name : as of `evaluation_transform`, or ``MODULE:NAME``, a function of a PIL image.
    recipe : the benchmark's, None for other images.

    Raises
    ------
    DataError : no normalisation is stated for a model that is a file or a name.
    """
    if ":" in name:
        return imported_transform(name, model.normalise)
    declared = None if recipe is None else recipe_normalisation(recipe)
    normalise = model.normalise or model.own_normalise or declared
    stated = normalise or Normalise()
    transform = evaluation_transform(name, stated.mean, stated.std)
    if normalise is None and not model.in_python:
        benchmark = "" if recipe is None else f" or {recipe.name}"
        raise DataError(
            f"no normalisation of its inputs is stated by the model{benchmark}",
            where=model.name,
            hint="give --mean and --std (mean=, std=): 0 and 1 for pixels in [0, 1]",
        )
    return replace(transform, assumed=normalise is None)
