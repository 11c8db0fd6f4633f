"""Models on a user's own datasets and loaders: what `evaluate` does with ``sets=``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset, TensorDataset, default_collate

from wordnet_splits.base.errors import DataError, SplitsError
from wordnet_splits.base.progress import PartOfTask, Progress
from wordnet_splits.manifest import Manifest, Part

from ..activations.batches import refuse_unscaled
from ..activations.extraction import forward_arrays, image_generator
from ..activations.on_benchmark import probes_of, unavailable_reason
from ..activations.runs import GroupOutputs, ModelRun, Need
from ..activations.settings import settings
from ..arrays import Arrays
from ..backend.devices import deterministic_kernels
from ..backend.transforms import Transform, as_transform
from ..model import Model
from ..model.class_map import ClassMap, LabelSpace
from ..model.loading import Models
from ..plugins import USER_CODE_ERRORS, describe_error, user_errors
from ..probes import Probe, probe_name, restrict_to_columns
from .notes import own_set_notes
from .user_sets import (
    OwnSet,
    content_id,
    digest_of,
    labels_of,
    named_sets,
    own_manifest,
    place_of,
    refuse_reordered_classes,
)

IMAGES, LABELS = ("pixel_values", "images", "image"), ("labels", "label")
"""Names of the two in a batch that is a mapping, as Hugging Face's datasets have them."""
FEW = 8
"""Images of a set that are read twice, to notice random augmentation."""
EQUAL = "as the model gets them"
RANDOM = "an image read twice is not the same: its transform is random, and so are these figures"
Outputs = dict[str, Any]


@dataclass
class OwnImages:
    """A user's sets of images, read batch by batch, in the same order each time."""

    sets: Mapping[str, Any]
    batch_size: int
    workers: int
    transform: Transform | None
    progress: Progress
    classes: int | None = None
    std: tuple[float, ...] | None = None
    name: str = "own-sets"
    known: dict[str, OwnSet] = field(default_factory=dict)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for text in named_sets(self.sets):
            place_of(text)  # before hours of reading
        self.sets = {text: as_set(given) for text, given in self.sets.items()}
        refuse_reordered_classes({text: class_names(given) for text, given in self.sets.items()})

    def read(
        self,
        text: str,
        model: Model,
        probes: Sequence[Probe] = (),
        *,
        forward: bool = True,
        shown: Progress | None = None,
    ) -> Outputs:
        """Put a set through a model and its probes; return array -> (n, ...).

        Raises
        ------
        DataError : batches that are none, a model that fails on them, or other images than the first time.
        """
        layers = sorted({layer for probe in probes for layer in probe.layers})
        kept: dict[str, list[Any]] = {}
        labels: list[Any] = []
        ids: list[str] = []
        digests: list[str] = []
        role, group, split = place_of(text)
        with (
            deterministic_kernels(full_float32=True),
            model.evaluating(self.transform_of(text)),
            (shown or self.progress).task(f"{model.name} on {text}", length(self.sets[text])) as task,
        ):
            for images, given in self.batches(text):
                numbers = range(len(ids), len(ids) + len(images))
                digests += [_digest(image) for image in images]
                ids += [content_id(n, digests[n]) for n in numbers]
                labels.append(given)
                self.shapes[text] = tuple(images.shape[1:])
                x = images.to(model.device, model.dtype)
                try:
                    outputs = _outputs(model, x, probes, layers, forward, group, ids[numbers.start :])
                except SplitsError:
                    raise
                except USER_CODE_ERRORS as error:
                    raise DataError(
                        f"the forward pass failed: {describe_error(error)}", where=f"{model.name} on {text}"
                    ) from error
                for name, tensor in outputs.items():
                    kept.setdefault(name, []).append(tensor.detach().float().cpu().numpy())
                task.advance(len(images))
        if not ids:
            raise DataError("there are no images", where=text)
        joined = None if any(one is None for one in labels) else np.concatenate(labels)
        checked = labels_of(joined, len(ids), role=role, where=text)
        own = OwnSet(role, group, split, checked, ids, digests, class_names(self.sets[text]))
        before = self.known.setdefault(text, own)
        if before.ids != own.ids or not np.array_equal(before.labels, own.labels):
            raise DataError(
                "gives other images, or another order, each time it is read",
                where=text,
                hint="turn shuffling and augmentation off",
            )
        return {name: np.concatenate(parts) for name, parts in kept.items()}

    def read_all(self, model: Model) -> dict[str, Outputs]:
        """Put every set through a model, shown as one task."""
        total = sum(map(length, self.sets.values()))
        with self.progress.task(model.name, total) as whole:
            return {text: self.read(text, model, shown=PartOfTask(whole, text)) for text in self.sets}

    def transform_of(self, text: str) -> Transform:
        """Return what the images of a set go through: the given, else the function that its dataset names."""
        given = self.sets[text]
        function = getattr(getattr(given, "dataset", given), "transform", None)
        found = self.transform or as_transform(function, transform_id="the dataset's own")
        return found if self.std is None else replace(found, std=self.std)

    def batches(self, text: str) -> Iterator[tuple[Tensor, Any]]:
        """Yield the images and labels of a set, batch by batch."""
        given = self.sets[text]
        if isinstance(given, Iterator):
            raise DataError(
                "an iterator can be read only once", where=text, hint="give the dataset or loader itself"
            )
        if self.transform is not None and not isinstance(given, Dataset):
            raise DataError("a loader's images are transformed already", where=text, hint="give its dataset")
        if isinstance(given, Dataset):
            given = DataLoader(
                given, batch_size=self.batch_size, num_workers=self.workers, collate_fn=self._collate
            )
        try:
            for batch in given:
                yield _parts(batch, text)
        except SplitsError:
            raise
        except Exception as error:
            hint = "give transform=, or a dataset whose items are (tensor, label)"
            raise DataError(f"cannot be read: {describe_error(error)}", where=text, hint=hint) from error

    def _collate(self, items: Sequence[Any]) -> Any:
        if self.transform is None:
            return default_collate(list(items))
        pairs = [item if isinstance(item, tuple | list) else (item,) for item in items]
        return default_collate([(self.transform(pair[0]), *pair[1:]) for pair in pairs])

    def notes(self) -> list[str]:
        """Return what may make the figures of these sets other than they seem, as sentences."""
        random = [text for text in self.sets if self._differs(text)]
        return [*(f"{text}: {RANDOM}" for text in random), *own_set_notes(self.known, "image", EQUAL)]

    def _differs(self, text: str) -> bool:
        """Whether the first few items of a dataset, read twice, are different images."""
        given = self.sets[text]
        dataset = getattr(given, "dataset", given)
        if not isinstance(dataset, Dataset) or isinstance(dataset, IterableDataset):
            return False
        few = range(min(FEW, len(self.known[text].ids)))
        collate = self._collate if given is dataset else getattr(given, "collate_fn", default_collate)
        twice = [_parts(collate([dataset[n] for n in few]), text)[0] for _ in range(2)]
        return not torch.equal(*twice)

    def manifest(self) -> Manifest:
        """Return what was read so far as a manifest."""
        return own_manifest([self.known[text] for text in self.sets], name=self.name, classes=self.classes)


def loader_runs(images: OwnImages, models: Models) -> tuple[Manifest, list[ModelRun]]:
    """Put every set through every model and return the sets as a manifest, and the runs."""
    flat = [(name, one) for name, several in models.items() for one in several]
    read = [images.read_all(one) for _, one in flat]
    manifest = images.manifest()
    space = LabelSpace.of(manifest.classes)
    runs = []
    for (name, one), outputs in zip(flat, read, strict=True):
        device = settings(one.device, one.dtype, images.batch_size)["device"]
        reader = _Reader(one, images, manifest, space, outputs)
        held = ModelRun(name, one.key, reader.read, one.name, one.weights, device, reader.refuses)
        runs.append(replace(held, user_named=models.user_named))
    return manifest, runs


def deviations(given: Any) -> tuple[float, ...]:
    """Return standard deviations, one or one for each channel, as a tuple.

    Raises
    ------
    DataError : not positive and finite numbers.
    """
    what = "is no standard deviation: a positive number, or one for each channel, is wanted"
    with user_errors(f"{given!r} {what}", where="std"):
        values = np.atleast_1d(np.asarray(given, dtype=np.float64))
    if values.ndim != 1 or not values.size or not (np.isfinite(values) & (values > 0)).all():
        raise DataError(f"{given!r} {what}", where="std")
    return tuple(values.tolist())


def as_set(given: Any) -> Any:
    """Return a tensor of images, or a pair of one and labels, as a dataset; anything else as it is."""
    if isinstance(given, Tensor):
        return TensorDataset(given)
    if isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], Tensor) and given[0].ndim > 1:
        labels = torch.as_tensor(given[1])
        if labels.shape == given[0].shape[:1]:
            return TensorDataset(given[0], labels)
    return given


def length(given: Any) -> int:
    """Return the number of images of a dataset or loader, 0 where it does not say."""
    try:
        return len(getattr(given, "dataset", given)) if not isinstance(given, list | tuple) else 0
    except TypeError:
        return 0


def class_names(given: Any) -> tuple[str, ...]:
    """Return the names of a dataset's classes in label order, as torchvision's have them; () for none.

    A dataset with a ``target_transform`` gives other labels than those that its classes are listed by.
    """
    dataset = getattr(given, "dataset", given)
    while isinstance(dataset, Subset):
        dataset = dataset.dataset
    if getattr(dataset, "target_transform", None) is not None:
        return ()
    names = getattr(dataset, "classes", None)
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        return ()
    return tuple(names) if len(set(names)) == len(names) else ()


@dataclass
class _Reader:
    model: Model
    images: OwnImages
    manifest: Manifest
    space: LabelSpace
    outputs: dict[str, Outputs]

    def refuses(self, needs: frozenset[Need], split: str, name: str) -> str:
        """Return why the model cannot give these arrays of a set, "" where it can."""
        checked = [probe for probe in probes_of(needs) if hasattr(probe, "lacks")]
        if not checked or self.model.lacks(needs):
            return self.model.lacks(needs)
        text = self._text(split, name)
        with self.model.evaluating(self.images.transform_of(text)):
            images, _ = next(iter(self.images.batches(text)))
            return unavailable_reason(checked, self.model, images[:8].to(self.model.device, self.model.dtype))

    def _text(self, split: str, name: str) -> str:
        texts: dict[Part, str] = {own.part: text for text, own in self.images.known.items()}
        if (split, name) not in texts:
            raise DataError(
                f"there is no set {name}/{split}",
                where="sets",
                hint=f"there are {', '.join(self.images.sets)}",
            )
        return texts[split, name]

    def _class_map(self) -> ClassMap:
        width = int(self.model.width or 0)
        try:
            return self.model.class_map(self.space, width)
        except DataError as error:
            if self.images.classes is not None or width <= len(self.space.labels):
                raise
            more = f"are there more classes than these labels show? give classes={width}; else mapping="
            raise DataError(error.what, where=self.model.name, hint=more) from error

    def read(self, split: str, name: str, needs: frozenset[Need]) -> GroupOutputs:
        """Return the outputs on one set; probes are computed in another pass when they are asked for."""
        text = self._text(split, name)
        class_map = self._class_map()
        probes = sorted((restrict_to_columns(probe, class_map) for probe in probes_of(needs)), key=probe_name)
        held = {array.rpartition("/")[0] for array in self.outputs[text]}
        lacking = {probe_name(p): p for p in probes if probe_name(p) not in held}
        if lacking:
            self.outputs[text] |= self.images.read(text, self.model, list(lacking.values()), forward=False)
        labels = self.images.known[text].labels
        own = labels if self.images.known[text].role in ("id", "csid") else np.full_like(labels, -1)
        head = self.model.head
        chosen = self.images.transform_of(text)
        return GroupOutputs(
            self.manifest.parts[split, name](),
            class_map.arrays(Arrays(self.outputs[text]), None if split == "test" else own),
            class_map,
            None if head is None else head.rows(class_map.class_columns),
            chosen.key,
            chosen.words,
            self.model.notes,
            self.images.shapes[text],
        )


def _outputs(
    model: Model,
    x: Tensor,
    probes: Iterable[Probe],
    layers: Sequence[str],
    forward: bool,
    group: str,
    ids: Sequence[str],
) -> dict[str, Tensor]:
    """Return the arrays of one batch."""
    few = None if model.width is not None else model.logits_in_other_batch(x)
    made: dict[str, Tensor] = {}
    with model.batch(x, layers, skip=not forward and not layers) as result:
        if forward and result is not None:
            made = forward_arrays(result, model.name)
            if few is not None:
                same = made["logits"][: len(few)]
                model.depends_on_batch(few.float().cpu().numpy(), same.float().cpu().numpy())
        for probe in probes:
            unit = probe_name(probe)
            draws = ([image_generator(unit, group, i, "raw") for i in ids],) if probe.random else ()
            made |= {f"{unit}/{name}": tensor for name, tensor in probe(model, x, *draws).items()}
    return made


def _parts(batch: Any, where: str) -> tuple[Tensor, Any]:
    """Return the images (n, 3, h, w) of a batch, and its labels (n,) or None."""
    if isinstance(batch, Mapping):
        found = [next((batch[key] for key in keys if key in batch), None) for keys in (IMAGES, LABELS)]
    else:
        found = [*(batch if isinstance(batch, tuple | list) else (batch,)), None][:2]
    images, labels = found
    if not isinstance(images, Tensor) or images.ndim < 2:
        kind = (
            f"a tensor of shape {tuple(images.shape)}"
            if isinstance(images, Tensor)
            else type(images).__name__
        )
        raise DataError(f"a batch of {kind} where images (n, 3, h, w) are expected", where=where)
    refuse_unscaled(images, where)
    labels = labels.cpu() if isinstance(labels, Tensor) else labels
    return images, None if labels is None else np.asarray(labels).reshape(-1)


def _digest(image: Tensor) -> str:
    """Return the digest of what goes into the model."""
    return digest_of(image.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
