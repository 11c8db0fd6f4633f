"""The training data of a benchmark: uint8 tensors, labels and fingerprints, and draws of a subset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch
from torch import Tensor

from wordnet_splits.base.digests import order_images, share_total
from wordnet_splits.base.errors import DataError
from wordnet_splits.base.names import counted
from wordnet_splits.base.progress import Progress, Silent
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.datasets.sources.roots import Roots

from ...dataset import UnknownDetectionSet
from ..models.transforms import Normalise, geometry
from .methods.interface import OUTLIER
from .recipe import Resizing

READ_ROWS = 1024
LEAKS = {
    "class": ("class", "in common with the ID classes of"),
    "ancestry": ("class", "above or below an ID class of"),
    "digest": ("image", "in common with the ID images of"),
}
"""Kind of leak that outliers must not have -> the unit counted, and its relation to the ID data."""


@dataclass(frozen=True)
class Images:
    """Images in memory: pixels (n, 3, h, w) uint8 and labels (n,) int64, -1 for negatives."""

    pixels: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)

    def to(self, device: Any) -> Images:
        """Return the images on a device."""
        return Images(self.pixels.to(device), self.labels.to(device))


@dataclass(frozen=True)
class TrainingData:
    """Training and validation images of a benchmark.

    Attributes
    ----------
    benchmark : name, version, fingerprint and the fingerprints of the parts used; goes into checkpoints.
    classes : names of the ID classes in label order.
    normalise : normalisation of the benchmark's recipe.
    train : ID train.
    val : ID val, None if the benchmark lacks it.
    negatives, val_negatives : external images of train and val, None if not used or missing.
    manifest : the benchmark, None for images outside a benchmark.
    margin : pixels on each side of a train image that a network sees only through random windows.
    """

    benchmark: Mapping[str, Any]
    classes: tuple[str, ...]
    normalise: Normalise
    train: Images
    val: Images | None = None
    negatives: Images | None = None
    val_negatives: Images | None = None
    manifest: Manifest | None = None
    margin: int = 0

    @property
    def size(self) -> tuple[int, int]:
        """(h, w) of the images that a network sees."""
        h, w = self.train.pixels.shape[2:]
        return h - 2 * self.margin, w - 2 * self.margin

    def centre(self, pixels: Tensor) -> Tensor:
        """Return train images without their margin."""
        h, w = self.size
        return pixels[..., self.margin : self.margin + h, self.margin : self.margin + w]

    def describe_network(self, name: str, *, background: bool) -> dict[str, Any]:
        """Return the record of a network for these classes and images (`checkpoint.NetworkRecord`)."""
        classes, pixels = len(self.classes), self.train.pixels
        grey = all(torch.equal(pixels[:, 0], pixels[:, channel]) for channel in (1, 2))
        return {
            "name": name,
            "outputs": classes + background,
            "background": classes if background else None,
            "channels": 1 if grey else 3,
            "size": list(self.size),
        }


@dataclass(frozen=True)
class DeviceData:
    """A benchmark's images on the device, knowns and negatives in one pool; shared by all runs."""

    facts: TrainingData
    pool: Images
    n_known: int
    val: Images | None
    val_negatives: Images | None

    @classmethod
    def from_data(cls, data: TrainingData, device: Any) -> DeviceData:
        """Move a benchmark's images to a device; negatives, labelled -1, follow the knowns."""
        images = data.train
        if data.negatives is not None:
            if data.negatives.pixels.shape[1:] != images.pixels.shape[1:]:
                raise DataError("negatives must have the size of the ID images", hint="resize the negatives")
            labels = torch.full_like(data.negatives.labels, OUTLIER)
            pixels = torch.cat([images.pixels, data.negatives.pixels])
            images = Images(pixels, torch.cat([images.labels, labels]))
        val, negatives = (None if s is None else s.to(device) for s in (data.val, data.val_negatives))
        return cls(data, images.to(device), len(data.train), val, negatives)

    @property
    def n_negatives(self) -> int:
        """Number of negatives."""
        return len(self.pool) - self.n_known

    def validated_on(self, images: int) -> DeviceData:
        """Return the data with the first validation images alone, of ID images and of negatives."""
        val, negatives = (
            part and Images(part.pixels[:images], part.labels[:images])
            for part in (self.val, self.val_negatives)
        )
        return replace(self, val=val, val_negatives=negatives)


def load_arrays(
    dataset: UnknownDetectionSet,
    progress: Progress | None = None,
    rows: npt.NDArray[np.int64] | None = None,
) -> tuple[Tensor, Tensor]:
    """Return all images (n, 3, h, w) uint8 and labels (n,) int64 of a dataset, in item order."""
    n = len(dataset) if rows is None else len(rows)
    pixels, labels, start = None, torch.empty(n, dtype=torch.int64), 0
    with (progress or Silent()).task(f"reading {dataset!r}", n) as task:
        for images, batch_labels in dataset.batches(READ_ROWS, rows=rows):
            if images.dtype != torch.uint8:
                raise DataError(
                    f"training images must be uint8, got {images.dtype}",
                    where=repr(dataset),
                    hint="leave normalisation to the trainer",
                )
            if pixels is None:
                pixels = torch.empty((n, *images.shape[1:]), dtype=torch.uint8)
            if images.shape[1:] != pixels.shape[1:]:
                raise DataError(
                    f"images must have one size, got {tuple(pixels.shape[1:])} and {tuple(images.shape[1:])}",
                    where=repr(dataset),
                    hint="give a transform that makes them one size",
                )
            pixels[start : start + len(batch_labels)], labels[start : start + len(batch_labels)] = (
                images,
                batch_labels,
            )
            start += len(batch_labels)
            task.advance(len(batch_labels))
    if pixels is None:
        raise DataError("there are no images", where=repr(dataset))
    return pixels, labels


def load_training_data(
    benchmark: Manifest | str | Path,
    *,
    roots: Roots | None = None,
    packed: Any = None,
    negatives: bool = False,
    images: int | None = None,
    val_negatives: bool = False,
    resize: Resizing | None = None,
    margin: int = 0,
    allow_leaks: bool = False,
    progress: Progress | None = None,
) -> TrainingData:
    """Read the ID train and val images of a benchmark, and its external images if ``negatives`` is set.

    Images whose ID class has no label (is not a class of the classifier) are left out.

    Parameters
    ----------
    images : number of ID train images (`draw_rows`), all by default; the other sets are not reduced.
    val_negatives : whether to read the external val images without ``negatives``, too.
    resize, margin : geometry of the images (by default the benchmark's), and pixels more on each side of the
        train images.
    allow_leaks : whether external images may show ID classes or be ID images.

    Raises
    ------
    DataError : no ID train images, no external images for ``negatives``, external images of ID classes, or
        unequal sizes.
    Errors of `UnknownDetectionSet` : a root, the source of a group, or an image is missing.
    """
    manifest = load_manifest(benchmark)
    if (negatives or val_negatives) and not allow_leaks:
        _refuse_leaks(manifest)
    read_role = _RoleReader(manifest, roots, packed, progress or Silent(), resize, margin)
    train = read_role("id", "train", images)
    if train is None:
        hint = "its train images may await their source, see `wordnet-splits list`"
        raise DataError("no ID images to train with", where=manifest.name, hint=hint)
    outliers = read_role("external", "train") if negatives else None
    if negatives and outliers is None:
        raise DataError(
            "this method needs external training images, and the benchmark has none",
            where=manifest.name,
            hint="take a benchmark whose external group has train images, or a recipe without negatives",
        )
    val = read_role("id", "val")
    val_outliers = read_role("external", "val") if negatives or val_negatives else None
    declared = manifest.data.recipe.normalise
    return TrainingData(
        benchmark={
            "name": manifest.name,
            "version": manifest.version,
            "fingerprint": manifest.fingerprint,
            "parts": read_role.used,
        },
        classes=read_role.classes,
        normalise=Normalise() if declared is None else Normalise.of(declared.mean, declared.sd),
        train=_labelled(train),
        val=None if val is None else _labelled(val),
        negatives=outliers,
        val_negatives=val_outliers,
        manifest=manifest,
        margin=margin,
    )


def load_validation_data(
    benchmark: Manifest | str | Path,
    *,
    roots: Roots | None = None,
    packed: Any = None,
    resize: Resizing | None = None,
    allow_leaks: bool = False,
    progress: Progress,
) -> tuple[Images, Images | None, list[dict[str, Any]]]:
    """Return ID val and external val (None if there is none) of a benchmark, and their fingerprints.

    Raises
    ------
    DataError : no ID val images, or external images of ID classes. Errors of `load_training_data`.
    """
    manifest = load_manifest(benchmark)
    if not allow_leaks:
        _refuse_leaks(manifest)
    read_role = _RoleReader(manifest, roots, packed, progress, resize)
    known, outliers = read_role("id", "val"), read_role("external", "val")
    if known is None:
        raise DataError("no ID validation images to choose on", where=manifest.name)
    return _labelled(known), outliers, read_role.used


def _refuse_leaks(manifest: Manifest) -> None:
    """Raise DataError if the manifest records ID classes or ID images among the outliers."""
    groups = {f"group:{row.group}": row.role for row in manifest.groups}
    for leak in manifest.data.leaks:
        roles = {groups.get(leak.a), groups.get(leak.b)}
        if roles == {"id", "external"} and leak.kind in LEAKS:
            outliers, known = sorted((leak.a, leak.b), key=lambda group: groups[group] == "id")
            noun, relation = LEAKS[leak.kind]
            ordered = (pair if leak.b == outliers else pair[::-1] for pair in leak.examples[:1])
            example = "".join(f", as {b} and {a}" for a, b in ordered)
            raise DataError(
                f"the outliers {outliers.removeprefix('group:')} have {counted(leak.count, noun)} {relation} "
                f"{known.removeprefix('group:')}{example}",
                where=manifest.name,
                hint="the -clean benchmarks have none; --allow-leaks (allow_leaks=True) trains with them",
            )


class _RoleReader:
    """Reads all groups of a role in a split, and collects the fingerprints and the ID classes."""

    def __init__(
        self, manifest: Manifest, roots: Any, packed: Any, progress: Progress, resize: Any, margin: int = 0
    ) -> None:
        self.manifest, self.roots, self.packed, self.progress = manifest, roots, packed, progress
        self.geometries = {"train": resize.geometry(margin), "val": resize.geometry()} if resize else {}
        self.used: list[dict[str, Any]] = []
        self.classes: tuple[str, ...] = ()

    def __call__(self, role: str, split: str, images: int | None = None) -> Images | None:
        """Return all or ``images`` images of the role's groups; None if the role has no group."""
        groups = {row.group for row in self.manifest.groups if row.role == role}
        parts = [row for row in self.manifest.data.fingerprints.images if row.split == split]
        datasets = []
        for part in parts:
            if part.group not in groups:
                continue
            declared = self.manifest.data.recipe.transforms.get(self.manifest.source_of(part.group), "none")
            resize, _ = geometry(self.geometries.get(split, declared))
            dataset = UnknownDetectionSet(
                self.manifest,
                group=part.group,
                split=split,
                roots=self.roots,
                packed=self.packed,
                transform=resize,
            )
            self.classes = tuple(dataset.classes)
            datasets.append(dataset)
            self.used.append(part.model_dump())
        if not datasets:
            return None
        arrays = [
            load_arrays(dataset, self.progress, rows)
            for dataset, rows in zip(datasets, self._rows(datasets, images), strict=True)
        ]
        sizes = {tuple(pixels.shape[1:]) for pixels, _ in arrays}
        if len(sizes) > 1:
            raise DataError(
                f"groups differ in the size of their images: {sorted(sizes)}", where=self.manifest.name
            )
        return Images(torch.cat([p for p, _ in arrays]), torch.cat([labels for _, labels in arrays]))

    def _rows(
        self, datasets: Sequence[UnknownDetectionSet], images: int | None
    ) -> Sequence[npt.NDArray[np.int64] | None]:
        """Return the rows to read of each dataset, None for all."""
        if images is None:
            return [None] * len(datasets)
        selected = draw_rows(pa.concat_tables([d.table for d in datasets]), self.manifest, images)
        ends = np.cumsum([len(d) for d in datasets])
        return [
            rows - end + len(dataset)
            for dataset, end, rows in zip(
                datasets, ends, np.split(selected, np.searchsorted(selected, ends[:-1])), strict=True
            )
        ]


def _labelled(images: Images) -> Images:
    keep = images.labels >= 0
    return images if bool(keep.all()) else Images(images.pixels[keep], images.labels[keep])


def draw_rows(table: pa.Table, manifest: Manifest, images: int) -> npt.NDArray[np.int64]:
    """Return the rows of ``images`` images whose class has a label, ascending.

    Each class gets the same number of images, plus one for the classes with the smallest hashes if the number
    does not divide evenly. Within a class, the first images in the order of the benchmark's draw (a stable
    hash of ids) are taken. So a smaller draw is a subset of a larger draw on any machine, and each resample
    has a different draw.
    """
    names = ("source", "class_id", "image_id", "label")
    of_class: dict[str, dict[str, int]] = {}
    sources = set()
    for row, (source, class_id, image_id, label) in enumerate(
        zip(*(table[name].to_pylist() for name in names), strict=True)
    ):
        if label >= 0:
            sources.add(source)
            of_class.setdefault(class_id, {})[image_id] = row
    if not sources:
        raise DataError("no class of these train images has a label", where=manifest.name)
    if len(sources) > 1:
        raise DataError(
            f"train images can be drawn from one source only, got {', '.join(sorted(sources))}",
            where=manifest.name,
            hint="train on all of them",
        )
    if images < len(of_class):
        raise DataError(
            f"{images:,} images are too few for {len(of_class):,} classes",
            where=manifest.name,
            hint=f"take {len(of_class):,} or more",
        )
    draw, seed = manifest.data.recipe.draw or manifest.data.recipe.name, manifest.data.seed
    (source,) = sources
    shares = share_total(images, draw, seed, source, sorted(of_class))
    selected: list[int] = []
    for class_id, count in shares.items():
        rows = of_class[class_id]
        if count > len(rows):
            raise DataError(
                f"{images:,} images need {count:,} of class {class_id!r}, which has {len(rows):,}",
                where=manifest.name,
                hint=f"take {min(map(len, of_class.values())) * len(of_class):,} or fewer, or all",
            )
        selected += [rows[image_id] for image_id in order_images(draw, seed, source, class_id, rows)[:count]]
    return np.sort(np.asarray(selected, np.int64))
