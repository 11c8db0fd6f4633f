"""Custom datasets and loaders: their batches, lengths and classes, and the range of their pixels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset, Subset, TensorDataset

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.untrusted import USER_CODE_ERRORS, user_errors
from wordnet_splits.metrics.counts import to_numpy

from ..extraction.forward import refuse_unscaled

IMAGE_KEYS, LABEL_KEYS = ("pixel_values", "images", "image"), ("labels", "label")
"""Keys of items and batches that are mappings, as in Hugging Face's datasets."""


def as_set(data: Any, where: str = "sets") -> Any:
    """Return images, or a pair of images and labels, as a dataset; anything else unchanged."""
    if _is_array(data):
        return TensorDataset(_tensor(data))
    if isinstance(data, tuple) and len(data) == 2 and _is_array(data[0]) and data[0].ndim > 1:
        with user_errors("labels must be numbers", where=where):
            labels = torch.as_tensor(to_numpy(data[1], where=where))
        if labels.shape == data[0].shape[:1]:
            return TensorDataset(_tensor(data[0]), labels)
    if is_dataset(data) and not isinstance(data, Dataset) and len(data):
        with user_errors("its first item cannot be read", where=where):
            image = pair_of(data[0], where)[0]
        return _Batches(data) if isinstance(image, Tensor) and image.ndim > 3 else data
    return data


@dataclass(frozen=True)
class _Batches:
    """The items of an object that yields batches."""

    items: Any

    def __iter__(self) -> Iterator[Any]:
        return (self.items[number] for number in range(len(self.items)))


def _is_array(data: Any) -> bool:
    return isinstance(data, Tensor) or (isinstance(data, np.ndarray) and data.dtype.kind in "fiu")


def _tensor(images: Any) -> Tensor:
    return (
        images if isinstance(images, Tensor) else torch.from_numpy(np.array(to_numpy(images, where="sets")))
    )


def is_dataset(data: Any) -> bool:
    """Return whether an object gives single images: torch's datasets, and others with a length and items.

    Lists and tuples are of batches.
    """
    if isinstance(data, Dataset):
        return True
    has_items = hasattr(type(data), "__len__") and hasattr(type(data), "__getitem__")
    return has_items and not isinstance(data, DataLoader | Mapping | list | tuple | str | bytes)


def is_indexed(data: Any) -> bool:
    """Return whether a dataset has its images by number."""
    return is_dataset(data) and not isinstance(data, IterableDataset)


def dataset_of(data: Any) -> Any:
    """Return the dataset of a loader; return a dataset unchanged."""
    return getattr(data, "dataset", data)


def length(data: Any) -> int:
    """Return the number of images of a dataset or loader, 0 if its length is unknown."""
    try:
        return len(dataset_of(data)) if not isinstance(data, list | tuple) else 0
    except USER_CODE_ERRORS:
        return 0


def refuse_another_count(data: Any, count: int, distinct: int, where: str) -> None:
    """Raise DataError if the number of images from a set differs from its dataset's or sampler's length."""
    expected = _expected_count(data)
    workers = getattr(data, "num_workers", 0)
    shared = workers > 1 and isinstance(dataset_of(data), IterableDataset)
    if expected is not None and count != expected:
        message = f"gives {count:,} images, though there are {expected:,}"
    elif shared and distinct > 1 and distinct * workers == count:
        message = f"gives each of its {distinct:,} images {workers} times, once from each worker"
    else:
        return
    hint = "give the dataset itself, or a loader that gives every image once: without drop_last, and with "
    raise DataError(message, where=where, hint=f"{hint}a share for each worker (get_worker_info)")


def _expected_count(data: Any) -> int | None:
    """Return the expected number of images in a pass, None if unknown."""
    source: Any = data if isinstance(data, IterableDataset) else None
    if isinstance(data, DataLoader) and data.batch_size is not None:
        source = data.dataset if isinstance(data.dataset, IterableDataset) else data.sampler
    elif isinstance(data, DataLoader) and isinstance(data.batch_sampler, BatchSampler):
        source = data.batch_sampler.sampler
    try:
        return None if source is None else len(source)
    except USER_CODE_ERRORS:
        return None


def class_names(data: Any) -> tuple[str, ...]:
    """Return the names of a dataset's classes in label order, or ().

    They are the attribute ``classes`` of torchvision's datasets, or in the ``features`` of Hugging Face's.
    With a ``target_transform`` a dataset's labels are not the indices of its classes.
    """
    dataset = dataset_of(data)
    while isinstance(dataset, Subset):
        dataset = dataset.dataset
    if getattr(dataset, "target_transform", None) is not None:
        return ()
    names = getattr(dataset, "classes", None)
    features = getattr(dataset, "features", None)
    if names is None and isinstance(features, Mapping):
        names = next((getattr(features[key], "names", None) for key in LABEL_KEYS if key in features), None)
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        return ()
    return tuple(names) if len(set(names)) == len(names) else ()


def pair_of(item: Any, where: str) -> tuple[Any, ...]:
    """Return the image and, if present, the label of an item, or the images and labels of a batch."""
    if not isinstance(item, Mapping):
        return tuple(item[:2]) if isinstance(item, tuple | list) else (item,)
    found = [[item[key] for key in keys if key in item][:1] for keys in (IMAGE_KEYS, LABEL_KEYS)]
    if not found[0]:
        message = f"images must be named {' or '.join(IMAGE_KEYS)}, got {', '.join(map(str, item))}"
        raise DataError(message, where=where, hint="rename the column of images")
    return (*found[0], *found[1])


def images_and_labels(batch: Any, where: str) -> tuple[Tensor, Any]:
    """Return the images (n, 3, h, w) of a batch, and its labels (n,) or None."""
    images, labels = [*pair_of(batch, where), None][:2]
    if not isinstance(images, Tensor) or images.ndim < 2:
        kind = type(images).__name__
        if isinstance(images, Tensor):
            kind = f"a tensor of shape {tuple(images.shape)}"
        raise DataError(f"a batch of {kind} where images (n, 3, h, w) are expected", where=where)
    refuse_unscaled(images, where)
    return images, None if labels is None else to_numpy(labels, where=where).reshape(-1)


LARGEST_NORMALISED = 16.0
"""Largest value of images in [0, 1] after normalisation by a standard deviation of at least 1/16."""
MIN_SHARE = 0.05
"""Smallest share of images of a scale that gives the set this scale."""
OVERSHOOT = 1.25
"""Largest value that interpolation gives images in [0, 1]; images beyond it are of another scale."""
MIN_SPREAD = 0.5
"""Smallest range of values that determines the scale of a set; constant images fit any scale."""


@dataclass
class PixelRange:
    """The range of a set's pixels.

    Attributes
    ----------
    images : number of images.
    low, high : their least and greatest values.
    unit : images in [0, 1] with a fraction.
    unscaled : images from 0 to more than `LARGEST_NORMALISED`.
    rescaled : images with a negative value, or one above `OVERSHOOT` that is not unscaled.
    """

    images: int = 0
    low: float = 0.0
    high: float = 0.0
    unit: int = 0
    unscaled: int = 0
    rescaled: int = 0

    def add(self, images: Tensor) -> None:
        """Add a batch (n, 3, h, w); arrays of other shapes are ignored."""
        if images.ndim != 4 or not images.numel():
            return
        pixels = images.detach().flatten(1)
        low, high = pixels.amin(1), pixels.amax(1)
        fraction = ((pixels > 0) & (pixels < 1)).any(1)
        least, greatest = float(low.min()), float(high.max())
        self.low = least if not self.images else min(self.low, least)
        self.high = greatest if not self.images else max(self.high, greatest)
        self.images += len(images)
        self.unit += int(((low >= 0) & (high <= 1) & fraction).sum())
        self.unscaled += int(((low >= 0) & (high > LARGEST_NORMALISED)).sum())
        self.rescaled += int(((low < 0) | ((high > OVERSHOOT) & (high <= LARGEST_NORMALISED))).sum())

    def __str__(self) -> str:
        return f"{self.low:.3g} to {self.high:.3g}"

    @property
    def is_unscaled(self) -> bool:
        """Whether pixels are from 0 to 255."""
        return self.unscaled > MIN_SHARE * self.images

    @property
    def is_unit(self) -> bool:
        """Whether pixels are from 0 to 1."""
        return self.unit > MIN_SHARE * self.images

    @property
    def is_normalised(self) -> bool:
        """Whether pixels are around 0, as a mean and a standard deviation make them, or scaled otherwise."""
        return 2 * self.rescaled > self.images and self.high <= LARGEST_NORMALISED


def refuse_other_scales(ranges: Mapping[str, PixelRange]) -> None:
    """Raise DataError if some images are from 0 to 255 and others are scaled, in one set or in two."""
    unscaled = next((name for name, of_set in ranges.items() if of_set.is_unscaled), None)
    scaled = next((name for name, of_set in ranges.items() if of_set.is_unit or of_set.is_normalised), None)
    if unscaled is None or scaled is None:
        return
    message = (
        f"some images of {unscaled} hold pixels of 0 to 255 and others of 0 to 1"
        if scaled == unscaled
        else f"pixels are {ranges[unscaled]} in {unscaled} and {ranges[scaled]} in {scaled}"
    )
    raise DataError(message, where="sets", hint="scale and normalise all images in the same way")


def range_notes(ranges: Mapping[str, PixelRange]) -> Iterator[str]:
    """Yield a note if some sets are normalised, or scaled, and others have pixels from 0 to 1."""
    normalised = [name for name, of_set in ranges.items() if of_set.is_normalised]
    unit = [
        name
        for name, of_set in ranges.items()
        if of_set.images and of_set.low >= 0 and of_set.high <= 1 and of_set.high - of_set.low >= MIN_SPREAD
    ]
    if normalised and unit:
        cells = "; ".join(f"{ranges[name]} in {name}" for name in (*normalised, *unit))
        yield (
            f"some sets are normalised or scaled and others have pixels from 0 to 1 ({cells}): this alone "
            "may separate them"
        )
