"""Images as inputs of models: the transform in force, and batches within shards, read once for all."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import DataLoader

from wordnet_splits.base.errors import DataError
from wordnet_splits.benchmark.manifest.metadata import Declared

from ..data.arrays import Array
from ..models import Model
from ..models.transforms import (
    Normalise,
    Transform,
    as_transform,
    evaluation_transform,
    imported_transform,
    recipe_normalisation,
    to_uint8,
)

ImageSet = Any
"""An `UnknownDetectionSet`, or an object with its ``table``, both transforms and ``__getitems__``."""


class ImageBatch(NamedTuple):
    """One batch: its shard, its rows of the list, and its images on the host, by image step."""

    shard: int
    rows: range
    images: Sequence[Tensor]


class BatchReader:
    """Reads images of a dataset as inputs of a model.

    Parameters
    ----------
    dataset : the images; its own transforms are not used.
    transform : applied here; its batch step on the device.
    """

    def __init__(self, dataset: ImageSet, transform: Transform, *, device: Any, dtype: Any) -> None:
        self.transform = transform
        self.device, self.dtype = torch.device(device), dtype
        self.dataset = _with_steps(dataset, [image_step(transform)])

    def rows(self, rows: Sequence[int]) -> Tensor:
        """Return the images of some rows as input of the model."""
        (images,) = _stacked(self.dataset.__getitems__(list(rows)))
        return self.finish(images)

    def finish(self, images: Tensor) -> Tensor:
        """Bring a batch to the device and apply the transform's batch step."""
        if self.device.type == "cuda":
            images = images.pin_memory().to(self.device, non_blocking=True)
        else:
            images = images.to(self.device)
        if self.transform.batch is not None:
            images = self.transform.batch(images)
        refuse_unscaled(images, "transform")
        return images.to(self.dtype)


class SharedReader:
    """Reads the batches of some shards in order for several models; every image is decoded once.

    While the models compute a batch, the next batch is read.

    Parameters
    ----------
    readers : the reader of each model, all of the same images.
    workers : processes that read and transform; 0: a thread of this process reads one batch ahead.
    """

    def __init__(self, readers: Sequence[BatchReader], *, workers: int) -> None:
        self.readers, self.workers = readers, workers
        steps = [image_step(reader.transform) for reader in readers]
        keys = [(id(step.image), step.to_pixels) for step in steps]  # a function may not be hashable
        distinct = dict(zip(keys, steps, strict=True))
        self._step_of = [list(distinct).index(key) for key in keys]
        self.dataset = _with_steps(readers[0].dataset, list(distinct.values()))

    def batches(
        self, shards: Sequence[tuple[int, range]], batch_size: int, rows_of: Array
    ) -> Iterator[ImageBatch]:
        """Yield the batches of ``shards`` (number, rows): of ``batch_size`` rows, fewer at a shard's end.

        Parameters
        ----------
        rows_of : the row of the dataset for each row of the list.
        """
        plan = [
            (shard, rows[start : start + batch_size])
            for shard, rows in shards
            for start in range(0, len(rows), batch_size)
        ]
        read_images = self._by_workers if self.workers else self._by_thread
        read = read_images([rows_of[rows].tolist() for _, rows in plan])
        for (shard, rows), images in zip(plan, read, strict=True):
            yield ImageBatch(shard, rows, images)

    def model_input(self, number: int, batch: ImageBatch) -> Tensor:
        """Return a batch as input of model ``number``."""
        step = self._step_of[number]
        images = batch.images[step]
        shared = self._step_of.count(step) > 1
        return self.readers[number].finish(images.clone() if shared else images)  # models may write into them

    def _by_thread(self, plan: list[list[int]]) -> Iterator[list[Tensor]]:
        def load(rows: list[int]) -> list[Tensor]:
            return _stacked(self.dataset.__getitems__(rows))

        with ThreadPoolExecutor(1, thread_name_prefix="read") as pool:
            pending = deque(pool.submit(load, rows) for rows in plan[:1])
            for rows in [*plan[1:], []]:
                if not pending:
                    return
                images = pending.popleft().result()
                if rows:
                    pending.append(pool.submit(load, rows))
                yield images

    def _by_workers(self, plan: list[list[int]]) -> Iterator[list[Tensor]]:
        loader = iter(DataLoader(self.dataset, batch_sampler=plan, num_workers=self.workers))
        for rows in plan:
            try:
                images, _ = next(loader)
            except Exception:  # a worker's error arrives as text: raise the original one here
                _stacked(self.dataset.__getitems__(rows))
                raise
            yield images if isinstance(images, list) else [images]


class ImageStep(NamedTuple):
    """The part of a transform that is applied to each image on the host.

    Attributes
    ----------
    image : function of a PIL image, None for the image as it is.
    to_pixels : whether the result is brought to uint8 pixels, for a batch step.
    """

    image: Callable[[Image.Image], Any] | None
    to_pixels: bool

    def __call__(self, image: Image.Image) -> Any:
        """Return an image as a tensor (3, h, w), if the transform makes one."""
        transformed = image if self.image is None else self.image(image)
        return (
            to_uint8(transformed) if self.to_pixels and isinstance(transformed, Image.Image) else transformed
        )


def image_step(transform: Transform) -> ImageStep:
    """Return the part of a transform that is applied to each image on the host."""
    return ImageStep(transform.image, transform.batch is not None)


@dataclass(frozen=True)
class EachStep:
    """Several image steps on the same decoded image, which they must not change; picklable for workers."""

    steps: Sequence[ImageStep]

    def __call__(self, image: Image.Image) -> tuple[Any, ...]:
        """Return the result of every step."""
        return tuple(step(image) for step in self.steps)


def _with_steps(dataset: ImageSet, steps: Sequence[ImageStep]) -> ImageSet:
    """Return a copy of a dataset whose items are images after one step, or tuples after several."""
    copied = copy.copy(dataset)
    if len(steps) == 1:
        copied.transform = steps[0].image
        copied.batch_transform = torch.nn.Identity() if steps[0].to_pixels else None  # uint8 (n, 3, h, w)
    else:
        copied.transform, copied.batch_transform = EachStep(steps), None
    return copied


def refuse_unscaled(images: Tensor, where: str) -> None:
    """Raise DataError for integer images, 0 to 255, which a model does not take."""
    if not images.is_floating_point():
        raise DataError(
            f"images of {str(images.dtype).removeprefix('torch.')} values: a model takes scaled floats",
            where=where,
            hint="let the transform scale them, or end it with .float() where the model does",
        )


def _stacked(items: Any) -> list[Tensor]:
    """Return the images of (image, label) pairs, or of a batch that already is one tensor, by image step."""
    images = getattr(items, "images", None)
    if images is not None:
        return [images]
    results = [image for image, _ in items]
    by_step = zip(*results, strict=True) if isinstance(results[0], tuple) else [results]
    return [_one_tensor(list(images)) for images in by_step]


def _one_tensor(images: Sequence[Any]) -> Tensor:
    if not all(isinstance(image, torch.Tensor) for image in images):
        raise DataError(
            f"the transform returns {type(images[0]).__name__}, not a tensor", hint="end it with ToTensor"
        )
    shapes = sorted({tuple(image.shape) for image in images})
    if len(shapes) > 1:
        raise DataError(
            f"the transform makes images of different sizes: {shapes[0]} and {shapes[1]}",
            hint="end it with a crop or a resize to one size",
        )
    return torch.stack(list(images))


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
    copied = copy.copy(model)
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
