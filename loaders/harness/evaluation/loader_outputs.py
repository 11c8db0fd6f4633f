"""Outputs of models on the user's datasets and loaders, which `evaluate` takes as ``sets=``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, default_collate

from wordnet_splits.base.errors import DataError, SplitsError
from wordnet_splits.base.progress import PartOfTask, Progress
from wordnet_splits.benchmark.manifest import Manifest, Part

from ..arrays import Arrays, array_of
from ..extraction.extraction import forward_arrays, image_generator, settings
from ..extraction.on_benchmark import probes_of, unavailable_reason
from ..extraction.runs import GroupOutputs, ModelRun, Need
from ..models import Model
from ..models.batch_dependence import depends_on_batch, logits_in_other_batch
from ..models.class_map import ClassMap, LabelSpace
from ..models.devices import deterministic_kernels
from ..models.loading import Models
from ..models.transforms import Transform, as_transform
from ..plugins import USER_CODE_ERRORS, describe_error, user_errors
from ..probes import Probe, probe_name, restrict_to_columns
from .loader_sets import (
    as_set,
    class_names,
    dataset_of,
    images_and_labels,
    is_dataset,
    is_indexed,
    length,
    pair_of,
    refuse_another_count,
)
from .notes import user_set_notes
from .pixel_ranges import PixelRange, range_notes, refuse_other_scales
from .sets import (
    LABELLED,
    NAME_THE_COLUMNS,
    UserSet,
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
RANDOM = "an image read twice is not the same: its transform is random, and so are these figures"
Outputs = dict[str, Any]
"""Array -> (n, ...)."""


@dataclass
class UserImages:
    """A user's sets of images, read batch by batch, in the same order each time."""

    sets: Mapping[str, Any]
    batch_size: int
    workers: int
    transform: Transform | None
    progress: Progress
    classes: int | None = None
    std: tuple[float, ...] | None = None
    name: str = "own-sets"
    user_sets: dict[str, UserSet] = field(default_factory=dict)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    ranges: dict[str, PixelRange] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for set_name in require_sets(self.sets):
            parse_set_name(set_name)  # before hours of reading
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
        """Put a set through a model and its probes.

        Raises
        ------
        DataError : invalid batches, a model that fails on them, or other images than the first time.
        """
        layers = sorted({layer for probe in probes for layer in probe.layers})
        parts: dict[str, list[Any]] = {}
        labels: list[Any] = []
        ids: list[str] = []
        digests: list[str] = []
        pixels = PixelRange()
        role, group, split = parse_set_name(set_name)
        data = self.sets[set_name]
        with (
            deterministic_kernels(full_float32=True),
            model.evaluating(self.transform_of(set_name)),
            (progress or self.progress).task(f"{model.name} on {set_name}", length(data)) as task,
        ):
            for images, batch_labels in self.batches(set_name):
                start = len(ids)
                digests += [_digest(image) for image in images]
                ids += [content_id(n, digests[n]) for n in range(start, start + len(images))]
                labels.append(batch_labels)
                self.shapes[set_name] = tuple(images.shape[1:])
                pixels.add(images)
                x = images.to(model.device, model.dtype)
                try:
                    outputs = batch_outputs(model, x, probes, layers, forward, group, ids[start:])
                except SplitsError:
                    raise
                except USER_CODE_ERRORS as error:
                    message = f"the forward pass failed: {describe_error(error)}"
                    raise DataError(message, where=f"{model.name} on {set_name}") from error
                for name, tensor in outputs.items():
                    parts.setdefault(name, []).append(array_of(tensor))
                task.advance(len(images))
        if not ids:
            raise DataError("there are no images", where=set_name)
        refuse_another_count(data, len(ids), len(set(digests)), set_name)
        self.ranges[set_name] = pixels
        refuse_other_scales(self.ranges)
        joined = None if any(batch is None for batch in labels) else np.concatenate(labels)
        checked = checked_labels(joined, len(ids), role=role, where=set_name)
        user_set = UserSet(role, group, split, checked, ids, digests, class_names(data))
        first_reading = self.user_sets.setdefault(set_name, user_set)
        if first_reading.ids != ids or not np.array_equal(first_reading.labels, checked):
            raise DataError(
                "gives other images, or another order, each time it is read",
                where=set_name,
                hint="turn shuffling and augmentation off",
            )
        return {name: np.concatenate(arrays) for name, arrays in parts.items()}

    def read_all(self, model: Model) -> dict[str, Outputs]:
        """Put every set through a model, shown as one task."""
        total = sum(map(length, self.sets.values()))
        with self.progress.task(model.name, total) as task:
            return {name: self.read(name, model, progress=PartOfTask(task, name)) for name in self.sets}

    def transform_of(self, set_name: str) -> Transform:
        """Return the transform of a set's images: the given one, else that of its dataset."""
        dataset = dataset_of(self.sets[set_name])
        function = getattr(dataset, "transform", None)
        transform = self.transform or as_transform(function, transform_id="the dataset's own")
        return transform if self.std is None else replace(transform, std=self.std)

    def batches(self, set_name: str) -> Iterator[tuple[Tensor, Any]]:
        """Yield the images and labels of a set, batch by batch."""
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
            workers = self.workers if is_indexed(data) else 0  # each would give all of an iterable dataset
            collate = partial(self._collate, set_name)
            data = DataLoader(data, batch_size=self.batch_size, num_workers=workers, collate_fn=collate)
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
        return [*notes, *range_notes(self.ranges), *user_set_notes(self.user_sets, "image", COMPARISON)]

    def _is_random(self, set_name: str) -> bool:
        """Return whether a few items of a dataset, read twice, are different images."""
        data = self.sets[set_name]
        dataset = dataset_of(data)
        if not is_indexed(dataset):
            return False
        count = len(self.user_sets[set_name].ids)
        indices = range(count)[:: max(1, -(-count // REPEATED_IMAGES))]
        own = partial(self._collate, set_name)
        collate = own if data is dataset else getattr(data, "collate_fn", default_collate)
        with user_errors("cannot be read once more", where=set_name):
            readings = (collate([dataset[n] for n in indices]) for _ in range(2))
            first, second = (images_and_labels(batch, set_name)[0] for batch in readings)
        return not torch.equal(first, second)

    def manifest(self) -> Manifest:
        """Return the sets read so far as a manifest."""
        sets = [self.user_sets[set_name] for set_name in self.sets]
        digests = {name: user_set.digests for name, user_set in self.user_sets.items()}
        refuse_equal_sets(digests, {name: of.role for name, of in self.user_sets.items()}, "image")
        return manifest_of_sets(sets, name=self.name, classes=self.classes)


def loader_runs(images: UserImages, models: Models) -> tuple[Manifest, list[ModelRun]]:
    """Put every set through every model and return the sets as a manifest, and the runs."""
    all_runs = [(name, model) for name, runs in models.items() for model in runs]
    all_outputs = [images.read_all(model) for _, model in all_runs]
    manifest = images.manifest()
    label_space = LabelSpace.of(manifest.classes)
    model_runs = []
    for (name, model), outputs in zip(all_runs, all_outputs, strict=True):
        device = settings(model.device, model.dtype, images.batch_size)["device"]
        reader = _OutputReader(model, images, manifest, label_space, outputs)
        key = model.key if model.identified else ""
        run = ModelRun(name, key, reader.read, model.name, model.weights, device, reader.refuses)
        model_runs.append(replace(run, user_named=models.user_named))
    return manifest, model_runs


def standard_deviations(std: Any) -> tuple[float, ...]:
    """Return standard deviations as a tuple; DataError unless they are positive and finite numbers."""
    message = f"{std!r} is not a standard deviation: give a positive number, or one for each channel"
    with user_errors(message, where="std"):
        values = np.atleast_1d(np.asarray(std, dtype=np.float64))
    if values.ndim != 1 or not values.size or not (np.isfinite(values) & (values > 0)).all():
        raise DataError(message, where="std")
    return tuple(values.tolist())


@dataclass
class _OutputReader:
    model: Model
    images: UserImages
    manifest: Manifest
    label_space: LabelSpace
    outputs: dict[str, Outputs]

    def refuses(self, needs: frozenset[Need], split: str, group: str) -> str:
        """Return why the model cannot give these arrays of a set, "" where it can."""
        checked = [probe for probe in probes_of(needs) if hasattr(probe, "lacks")]
        if not checked or self.model.lacks(needs):
            return self.model.lacks(needs)
        set_name = self._set_name(split, group)
        with self.model.evaluating(self.images.transform_of(set_name)):
            images, _ = next(iter(self.images.batches(set_name)))
            return unavailable_reason(checked, self.model, images[:8].to(self.model.device, self.model.dtype))

    def _set_name(self, split: str, group: str) -> str:
        names: dict[Part, str] = {user_set.part: name for name, user_set in self.images.user_sets.items()}
        if (split, group) not in names:
            raise DataError(
                f"there is no set {group}/{split}",
                where="sets",
                hint=f"there are {', '.join(self.images.sets)}",
            )
        return names[split, group]

    def _class_map(self) -> ClassMap:
        width = int(self.model.width or 0)
        try:
            return self.model.class_map(self.label_space, width)
        except DataError as error:
            if self.images.classes is not None or width <= len(self.label_space.labels):
                raise
            hint = f"are there more classes than these labels show? give classes={width}; else mapping="
            if any(
                user_set.class_names for user_set in self.images.user_sets.values() if user_set.role == "id"
            ):
                hint = NAME_THE_COLUMNS
            raise DataError(error.what, where=self.model.name, hint=hint) from error

    def read(self, split: str, group: str, needs: frozenset[Need]) -> GroupOutputs:
        """Return the outputs on one set; probes are computed in another pass when they are asked for."""
        set_name = self._set_name(split, group)
        class_map = self._class_map()
        outputs = self.outputs[set_name]
        computed = {array.rpartition("/")[0] for array in outputs}
        probes = sorted((restrict_to_columns(probe, class_map) for probe in probes_of(needs)), key=probe_name)
        pending = list({probe_name(p): p for p in probes if probe_name(p) not in computed}.values())
        if pending:
            outputs |= self.images.read(set_name, self.model, pending, forward=False)
        user_set, head = self.images.user_sets[set_name], self.model.head
        labels = user_set.labels if user_set.role in LABELLED else np.full_like(user_set.labels, -1)
        transform = self.images.transform_of(set_name)
        return GroupOutputs(
            self.manifest.parts[split, group](),
            class_map.arrays(Arrays(outputs), None if split == "test" else labels),
            class_map,
            None if head is None else head.rows(class_map.class_columns),
            transform.key,
            transform.words,
            self.model.notes,
            self.images.shapes[set_name],
        )


def batch_outputs(
    model: Model,
    x: Tensor,
    probes: Iterable[Probe],
    layers: Sequence[str],
    forward: bool,
    group: str,
    ids: Sequence[str],
) -> dict[str, Tensor]:
    """Return the arrays of one batch, of the network and of probes.

    Parameters
    ----------
    x : (n, 3, h, w), on the model's device. layers : outputs that probes read. forward : whether features and
        logits are computed. group, ids : name the images, which seed random probes.
    """
    rebatched = None if model.width is not None else logits_in_other_batch(model, x)
    outputs: dict[str, Tensor] = {}
    with model.batch(x, layers, skip=not forward and not layers) as result:
        if forward and result is not None:
            outputs = forward_arrays(result, model.name)
            if rebatched is not None:
                logits = outputs["logits"][: len(rebatched)]
                depends_on_batch(model, array_of(rebatched), array_of(logits), x)
        for probe in probes:
            name = probe_name(probe)
            generators = ([image_generator(name, group, i, "raw") for i in ids],) if probe.random else ()
            outputs |= {f"{name}/{key}": tensor for key, tensor in probe(model, x, *generators).items()}
    for name, tensor in outputs.items():
        if len(tensor) != len(x):
            raise DataError(f"{name} of {len(tensor)} rows for {len(x)} images", where=model.name)
    return outputs


def _digest(image: Tensor) -> str:
    """Return the digest of a tensor that goes into the model."""
    return digest_of(image.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
