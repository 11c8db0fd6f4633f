"""Custom datasets and loaders, which `evaluate` takes as ``sets=``, and the outputs of models on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, default_collate

from wordnet_splits.base.errors import DataError, SplitsError, UnusableError
from wordnet_splits.base.progress import PartOfTask, Progress, Task
from wordnet_splits.base.untrusted import describe_error, user_errors
from wordnet_splits.benchmark.manifest import Manifest, Part

from ..data.arrays import Array, Arrays
from ..extraction.activations import Activations
from ..extraction.batch_size import LARGEST_BATCH, propose_batch_size
from ..extraction.extractor import Extractor
from ..extraction.forward import ImageName, compute_in_memory
from ..extraction.outputs import ModelRun
from ..models.class_map import ClassMap, LabelSpace
from ..models.loading import Models
from ..models.model import Model
from ..models.transforms import Transform, as_transform
from ..probes import Probe, probe_name
from .loader_sets import (
    PixelRange,
    as_set,
    class_names,
    dataset_of,
    images_and_labels,
    is_dataset,
    is_indexed,
    length,
    pair_of,
    range_notes,
    refuse_another_count,
    refuse_other_scales,
)
from .notes import custom_set_notes
from .sets import (
    NAME_THE_COLUMNS,
    CustomSet,
    check_class_names,
    checked_labels,
    content_id,
    digest_of,
    manifest_of_sets,
    parse_set_name,
    refuse_equal_sets,
    require_sets,
)

REPEATED_IMAGES = 8
"""Images of a set that are read twice, to notice random augmentation."""
COMPARISON = "as the model gets them"
SAMPLED = 8
"""Images of a set that a model is tried with."""
RANDOM = "an image read twice is not the same: its transform is random, and so are these figures"
Outputs = dict[str, Array]
"""Array -> (n, ...)."""


@dataclass
class CustomImages:
    """Custom sets of images, read batch by batch, in the same order each time.

    An `Extractor` reads them; they keep its outputs, as their manifest is known after the first reading.
    """

    sets: Mapping[str, Any]
    batch_size: int | None
    workers: int
    transform: Transform | None
    progress: Progress
    classes: int | None = None
    std: tuple[float, ...] | None = None
    name: str = "own-sets"
    custom_sets: dict[str, CustomSet] = field(default_factory=dict)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    ranges: dict[str, PixelRange] = field(default_factory=dict)
    outputs: dict[tuple[int, str], Outputs] = field(default_factory=dict)
    proposed: dict[tuple[int, str], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for set_name in require_sets(self.sets):
            parse_set_name(set_name)  # a bad name fails before hours of reading
        self.sets = {set_name: as_set(data, set_name) for set_name, data in self.sets.items()}
        check_class_names({name: class_names(data) for name, data in self.sets.items()}, self.classes)

    def read(
        self,
        set_name: str,
        model: Model,
        probes: Sequence[Probe] = (),
        *,
        forward: bool = True,
        progress: Progress | None = None,
    ) -> Outputs:
        """Put a set through a model and its probes."""
        labels: list[Any] = []
        ids: list[str] = []
        digests: list[str] = []
        pixels = PixelRange()
        role, group, split = parse_set_name(set_name)
        data, size = self.sets[set_name], self._batch_size(set_name, model)

        def batches(task: Task) -> Iterator[tuple[Tensor, list[ImageName]]]:
            for images, batch_labels in self.batches(set_name, size):
                start = len(ids)
                digests.extend(_digest(image) for image in images)
                ids.extend(content_id(n, digests[n]) for n in range(start, start + len(images)))
                labels.append(batch_labels)
                self.shapes[set_name] = tuple(images.shape[1:])
                pixels.add(images)
                yield images, [(group, name, "raw") for name in ids[start:]]
                task.advance(len(images))

        where = f"{model.name} on {set_name}"
        with (progress or self.progress).task(where, length(data)) as task:
            outputs = compute_in_memory(
                model,
                self.transform_of(set_name),
                batches(task),
                {probe_name(probe): probe for probe in probes},
                forward=forward,
                where=where,
            )
        if not ids:
            raise DataError("there are no images", where=set_name)
        refuse_another_count(data, len(ids), len(set(digests)), set_name)
        self.ranges[set_name] = pixels
        refuse_other_scales(self.ranges)
        joined = None if any(batch is None for batch in labels) else np.concatenate(labels)
        checked = checked_labels(joined, len(ids), role=role, where=set_name)
        custom_set = CustomSet(role, group, split, checked, ids, digests, class_names(data))
        first_reading = self.custom_sets.setdefault(set_name, custom_set)
        if first_reading.ids != ids or not np.array_equal(first_reading.labels, checked):
            raise DataError(
                "yields other images, or another order, at each reading",
                where=set_name,
                hint="turn shuffling and augmentation off",
            )
        return outputs

    def read_all(self, model: Model) -> None:
        """Put every set through a model; progress shows a single task."""
        total = sum(map(length, self.sets.values()))
        with self.progress.task(model.name, total) as task:
            for name in self.sets:
                self.outputs[id(model), name] = self.read(name, model, progress=PartOfTask(task, name))

    def require(self, split: str, name: str) -> None:
        """Raise UnusableError if the set is absent."""
        self._set_name(split, name)

    def class_map(self, model: Model, split: str, name: str) -> ClassMap:
        """Match the columns of a model with the labels of the sets."""
        labels, width = LabelSpace.of(self.manifest.classes), int(model.width or 0)
        try:
            return model.class_map(labels, width)
        except DataError as error:
            if self.classes is not None or width <= len(labels.labels):
                raise
            hint = f"are there more classes than these labels show? give classes={width}; else mapping="
            if any(custom.class_names for custom in self.custom_sets.values() if custom.role == "id"):
                hint = NAME_THE_COLUMNS
            raise DataError(error.what, where=model.name, hint=hint) from error

    @contextmanager
    def sample(self, model: Model, split: str, name: str) -> Iterator[Tensor]:
        """Yield the first images of a set, with the model in evaluation mode."""
        set_name = self._set_name(split, name)
        with model.evaluating(self.transform_of(set_name)):
            images, _ = next(iter(self.batches(set_name, SAMPLED)))
            yield images[:SAMPLED].to(model.device, model.dtype)

    def extract(
        self, extractor: Extractor, split: str, name: str, probes: Sequence[Probe], progress: Progress
    ) -> Activations:
        """Return the outputs on a set; probes that are not computed yet take another pass."""
        set_name, model = self._set_name(split, name), extractor.model
        outputs = self.outputs[id(model), set_name]
        computed = {array.rpartition("/")[0] for array in outputs}
        pending = [probe for probe in probes if probe_name(probe) not in computed]
        if pending:
            outputs |= self.read(set_name, model, pending, forward=False)
        transform, table = self.transform_of(set_name), self.manifest.parts[split, name]()
        return Activations(
            Arrays(outputs),
            table,
            table["label"].to_numpy().astype(np.int64),
            model.head,
            (),
            model.name,
            model.key,
            transform.key,
            transform.description,
            self.shapes[set_name],
        )

    def notes_on(self, model: Model, name: str) -> list[str]:
        """Return nothing: custom sets do not name the classes of OOD images."""
        return []

    def _set_name(self, split: str, group: str) -> str:
        names: dict[Part, str] = {custom.part: name for name, custom in self.custom_sets.items()}
        if (split, group) not in names:
            raise UnusableError(
                f"there are no outputs for {group}/{split}",
                where="sets",
                hint=f"there are {', '.join(self.sets)}",
            )
        return names[split, group]

    def transform_of(self, set_name: str) -> Transform:
        """Return the transform of a set's images: the given transform, else the dataset's."""
        dataset = dataset_of(self.sets[set_name])
        function = getattr(dataset, "transform", None)
        transform = self.transform or as_transform(function, transform_id="the dataset's own")
        return transform if self.std is None else replace(transform, std=self.std)

    def _batch_size(self, set_name: str, model: Model) -> int:
        """Return the batch size of a dataset's images; by default proposed, once for a model and a set."""
        data, key = self.sets[set_name], (id(model), set_name)
        if self.batch_size is None and key not in self.proposed and is_dataset(data) and is_indexed(data):
            for x, _ in islice(self.batches(set_name, 1), 1):
                with model.evaluating(self.transform_of(set_name)):
                    self.proposed[key] = propose_batch_size(model, x.to(model.device, model.dtype))
        return self.batch_size or self.proposed.get(key, LARGEST_BATCH)

    def batches(self, set_name: str, size: int) -> Iterator[tuple[Tensor, Any]]:
        """Yield the images and labels of a set, batch by batch: of ``size`` images, or of a loader's size."""
        data = self.sets[set_name]
        if isinstance(data, Iterator):
            raise DataError(
                "an iterator can be read only once", where=set_name, hint="give the dataset or loader itself"
            )
        if self.transform is not None and not is_dataset(data):
            raise DataError(
                "a loader's images are transformed already", where=set_name, hint="give its dataset"
            )
        if is_dataset(data):
            workers = self.workers if is_indexed(data) else 0  # each worker would read a whole iterable
            collate = partial(self._collate, set_name)
            data = DataLoader(data, batch_size=size, num_workers=workers, collate_fn=collate)
        try:
            for batch in data:
                yield images_and_labels(batch, set_name)
        except SplitsError:
            raise
        except Exception as error:
            hint = "give transform=, or a dataset whose items are (tensor, label)"
            raise DataError(f"cannot be read: {describe_error(error)}", where=set_name, hint=hint) from error

    def _collate(self, set_name: str, items: Sequence[Any]) -> Any:
        pairs = [pair_of(item, set_name) for item in items]
        if self.transform is not None:
            pairs = [(self.transform(image), *label) for image, *label in pairs]
        return default_collate(pairs)

    def notes(self) -> list[str]:
        """Return sentences on conditions that may make the figures of these sets misleading."""
        random = [set_name for set_name in self.sets if self._is_random(set_name)]
        notes = [f"{set_name}: {RANDOM}" for set_name in random]
        return [*notes, *range_notes(self.ranges), *custom_set_notes(self.custom_sets, "image", COMPARISON)]

    def _is_random(self, set_name: str) -> bool:
        """Return whether a few items of a dataset, read twice, are different images."""
        data = self.sets[set_name]
        dataset = dataset_of(data)
        if not is_indexed(dataset):
            return False
        count = len(self.custom_sets[set_name].ids)
        indices = range(count)[:: max(1, -(-count // REPEATED_IMAGES))]
        own = partial(self._collate, set_name)
        collate = own if data is dataset else getattr(data, "collate_fn", default_collate)
        with user_errors("cannot be read once more", where=set_name):
            readings = (collate([dataset[n] for n in indices]) for _ in range(2))
            first, second = (images_and_labels(batch, set_name)[0] for batch in readings)
        return not torch.equal(first, second)

    @cached_property
    def manifest(self) -> Manifest:
        """The sets as a manifest, after the first reading."""
        sets = [self.custom_sets[set_name] for set_name in self.sets]
        digests = {name: custom_set.digests for name, custom_set in self.custom_sets.items()}
        refuse_equal_sets(digests, {name: of.role for name, of in self.custom_sets.items()}, "image")
        return manifest_of_sets(sets, name=self.name, classes=self.classes)


def loader_runs(images: CustomImages, models: Models) -> tuple[Manifest, list[ModelRun]]:
    """Put every set through every model and return the sets as a manifest, and the runs."""
    runs = []
    for name, model_runs in models.items():
        for model in model_runs:
            images.read_all(model)
            extractor = Extractor(model, images, progress=images.progress)
            runs.append(extractor.run(name, user_named=models.user_named))
    return images.manifest, runs


def standard_deviations(std: Any) -> tuple[float, ...]:
    """Return standard deviations as a tuple; DataError unless they are positive and finite numbers."""
    message = f"{std!r} is not a standard deviation: give a positive number, or one for each channel"
    with user_errors(message, where="std"):
        values = np.atleast_1d(np.asarray(std, dtype=np.float64))
    if values.ndim != 1 or not values.size or not (np.isfinite(values) & (values > 0)).all():
        raise DataError(message, where="std")
    return tuple(values.tolist())


def _digest(image: Tensor) -> str:
    """Return the digest of a tensor that goes into the model."""
    return digest_of(image.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
