"""The forward path: images as batches, and a model and probes on them."""

from __future__ import annotations

import copy
import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import DataLoader

from wordnet_splits.base.errors import DataError, SplitsError
from wordnet_splits.base.untrusted import USER_CODE_ERRORS, describe_error

from ..data.array_checks import as_float32
from ..data.arrays import Array, array_of
from ..models.model import Model
from ..models.reproducibility import depends_on_batch, deterministic_kernels, logits_in_other_batch
from ..models.transforms import (
    Transform,
    to_uint8,
)
from ..probes import Probe
from .stored_list import FORWARD

ImageSet = Any
"""An `UnknownDetectionSet`, or an object with its ``table``, both transforms and ``__getitems__``."""


class ImageBatch(NamedTuple):
    """One batch: its shard, its rows of the list, and its images on the host, by image step."""

    shard: int
    rows: range
    images: Sequence[Tensor]


class BatchReader:
    """Reads images of a dataset as inputs of a model."""

    def __init__(self, dataset: ImageSet, transform: Transform, *, device: Any, dtype: Any) -> None:
        self.transform = transform
        self.device, self.dtype = torch.device(device), dtype
        self.dataset = _with_steps(dataset, [image_step(transform)])

    def rows(self, rows: Sequence[int], read: dict[Any, Tensor] | None = None) -> Tensor:
        """Return some rows' images as input of the model; ``read`` keeps them for readers of equal steps."""
        key = (*_step_key(image_step(self.transform)), *rows)
        read = {} if read is None else read
        if key not in read:
            (read[key],) = _stacked(self.dataset.__getitems__(list(rows)))
        return self.finish(read[key].clone())  # a model may write into its input

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
        keys = [_step_key(step) for step in steps]
        distinct = dict(zip(keys, steps, strict=True))
        self._step_of = [list(distinct).index(key) for key in keys]
        self.dataset = _with_steps(readers[0].dataset, list(distinct.values()))

    def batches(
        self, shards: Sequence[tuple[int, range]], batch_size: int, rows_of: Array
    ) -> Iterator[ImageBatch]:
        """Yield the batches of ``shards`` (number, rows): of ``batch_size`` rows, fewer at a shard's end."""
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


def _step_key(step: ImageStep) -> tuple[int, bool]:
    return id(step.image), step.to_pixels  # a function may not be hashable


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


ImageName = tuple[str, ...]
"""Source, id and view of an image."""


def compute(
    model: Model,
    x: Tensor,
    probes: Mapping[str, Probe],
    names: Sequence[ImageName],
    *,
    forward: bool = True,
) -> dict[str, dict[str, Tensor]]:
    """Apply a model and probes to a batch; return unit -> array -> tensor (n, ...) on the model's device."""
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
) -> dict[str, Array]:
    """Apply a model and probes to all batches of transformed images, and return the arrays by name."""
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
                raise DataError(message, where=where) from error
            for unit, arrays in outputs.items():
                prefix = "" if unit == FORWARD else f"{unit}/"
                for name, tensor in arrays.items():
                    parts.setdefault(f"{prefix}{name}", []).append(array_of(tensor))
    return {name: np.concatenate(arrays) for name, arrays in parts.items()}


def forward_arrays(result: tuple[Any, Any], where: str) -> dict[str, Any]:
    """Return the arrays of a forward pass, at most in single precision; features may be missing."""
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


def image_ids(rows: pa.Table) -> list[ImageName]:
    """Return the (source, image_id, view) of images."""
    return list(zip(*(rows[name].to_pylist() for name in ("source", "image_id", "view")), strict=True))


def image_generator(*names: str) -> torch.Generator:
    """Return a generator seeded by the names of a probe and an image, equal in any batch on any device."""
    digest = hashlib.blake2b("\x1f".join(names).encode(), digest_size=8).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest, "big") >> 1)
