"""Batches of images within shards; the next batch is read during the computation of one."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from wordnet_splits.base.errors import DataError

from ..backend.transforms import Transform

ImageSet = Any
"""An `UnknownDetectionSet`, or an object with its ``table``, both transforms and ``__getitems__``."""


class ImageBatch(NamedTuple):
    """One batch: its shard, its rows of the list, and its images, on the device and transformed."""

    shard: int
    rows: range
    images: Tensor


class BatchReader:
    """Reads the batches of some shards in order.

    Parameters
    ----------
    dataset : the images; its own transforms are not used.
    transform : applied here; its batch step on the device.
    workers : processes that read and transform; 0: a thread of this process reads one batch ahead.
    """

    def __init__(
        self, dataset: ImageSet, transform: Transform, *, device: Any, dtype: Any, workers: int
    ) -> None:
        self.transform, self.workers = transform, workers
        self.device, self.dtype = torch.device(device), dtype
        self.dataset = copy.copy(dataset)
        self.dataset.transform = transform.image
        self.dataset.batch_transform = torch.nn.Identity() if transform.batch else None  # uint8 (n, 3, h, w)

    def rows(self, rows: Sequence[int]) -> Tensor:
        """Return the images of some rows as input of the model."""
        return self.finish(_stacked(self.dataset.__getitems__(list(rows))))

    def batches(self, shards: Sequence[tuple[int, range]], batch_size: int) -> Iterator[ImageBatch]:
        """Yield the batches of ``shards`` (number, rows): of ``batch_size`` rows, fewer at a shard's end."""
        plan = [
            (shard, rows[start : start + batch_size])
            for shard, rows in shards
            for start in range(0, len(rows), batch_size)
        ]
        read_images = self._by_workers if self.workers else self._by_thread
        for (shard, rows), images in zip(plan, read_images([list(rows) for _, rows in plan]), strict=True):
            yield ImageBatch(shard, rows, self.finish(images))

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

    def _by_thread(self, plan: list[list[int]]) -> Iterator[Tensor]:
        def load(rows: list[int]) -> Tensor:
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

    def _by_workers(self, plan: list[list[int]]) -> Iterator[Tensor]:
        loader = iter(DataLoader(self.dataset, batch_sampler=plan, num_workers=self.workers))
        for rows in plan:
            try:
                images, _ = next(loader)
            except Exception:  # a worker's error arrives as text: raise the original one here
                _stacked(self.dataset.__getitems__(rows))
                raise
            yield images


def refuse_unscaled(images: Tensor, where: str) -> None:
    """Raise DataError for integer images, 0 to 255, which a model does not take."""
    if not images.is_floating_point():
        raise DataError(
            f"images of {str(images.dtype).removeprefix('torch.')} values: a model takes scaled floats",
            where=where,
            hint="let the transform scale them, or end it with .float() where the model does",
        )


def _stacked(items: Any) -> Tensor:
    """Return the images of a batch that already is one tensor, or of (image, label) pairs."""
    images = getattr(items, "images", None)
    if images is not None:
        return images
    images = [image for image, _ in items]
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
    return torch.stack(images)
