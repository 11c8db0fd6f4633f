"""`UnknownDetectionSet`: the images of a frozen benchmark as a map-style torch dataset."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch
from PIL import Image
from torch.utils.data import Dataset
from torch.utils.data._utils.collate import default_collate_fn_map

from wordnet_splits import torch as pickle_home
from wordnet_splits.base.digests import Pixels
from wordnet_splits.base.errors import DataError
from wordnet_splits.base.lazy import need
from wordnet_splits.benchmark.images.raw_images import PartImages, RowNumbers, different_sizes
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.datasets.sources.roots import Roots

from .opening import MISSING_SCHEMA, OpenedPart, PackedFolders, open_parts, ready_groups, select_parts

ImageTransform = Callable[[Image.Image], Any]
BatchTransform = Callable[[torch.Tensor], torch.Tensor]
HF_COLUMNS = ("image_id", "source", "class_id", "role", "group", "split", "view")
"""Columns of the image table in a Hugging Face dataset."""


class BatchItem(tuple[Any, ...]):
    """(image, label) of a `Batch`: a tuple recognised by its type."""

    __slots__ = ()


class Batch(Sequence[BatchItem]):
    """Images and labels as two tensors; as a sequence, the (image, label) pairs.

    Parameters
    ----------
    images : (n, ...) tensor.
    labels : (n,) int64 tensor.
    """

    def __init__(self, images: torch.Tensor, labels: torch.Tensor) -> None:
        self.images = images
        self.labels = labels

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return Batch(self.images[index], self.labels[index])
        return BatchItem((self.images[index], int(self.labels[index])))

    def __iter__(self) -> Iterator[BatchItem]:
        return (BatchItem(pair) for pair in zip(self.images.unbind(0), self.labels.tolist(), strict=True))

    def __reduce__(self) -> tuple[Any, ...]:
        return list, ([tuple(item) for item in self],)


def collate_items(
    batch: Sequence[BatchItem], *, collate_fn_map: Mapping[Any, Any] | None = None
) -> list[Any]:
    """Return [images, labels]: the tensors that a `Batch` holds, or the stacked items of a sequence."""
    if isinstance(batch, Batch):
        return [batch.images, batch.labels]
    images, labels = zip(*batch, strict=True)
    return [torch.stack(images), torch.tensor(labels)]


# the documented way to collate a custom type; only this package creates `BatchItem`
default_collate_fn_map[BatchItem] = collate_items


class UnknownDetectionSet(Dataset):
    """Images of a benchmark, by role, group and split.

    Items are ``(image, label)`` as in torchvision: without a transform a PIL RGB image; the label is 0..K-1
    for images of ID classes, -1 for all other images. Works with fork and spawn workers, and can be pickled.

    Parameters
    ----------
    benchmark : name of a frozen benchmark, the folder of a manifest (a build's too), or a `Manifest`.
    role : ``id``, ``near``, ``far``, ``external`` or ``csid``; every role by default.
    group : one group of the benchmark; every group by default.
    split : ``train``, ``val`` or ``test``.
    roots : folder of each source, except built-in sources. By default the environment or roots.toml sets
        the folders.
    packed : folder or folders written by ``wordnet-splits pack`` or, for groups in a view, by
        ``fix-resize build``. Groups that they lack are read from the roots.
    transform : function that takes a PIL RGB image in the group's view.
    batch_transform : function that takes a uint8 tensor (n, 3, h, w). `batches` and `__getitems__` (and so a
        ``DataLoader``) call it. If images differ in size, ``transform`` is applied first and must return
        images of equal size: PIL images or uint8 tensors (3, h, w).
    allow_missing : leave out images that a root or store lacks, images whose source has no root, and groups
        whose source is not available yet; `missing` and `awaiting` list them.

    Attributes
    ----------
    table : the image rows, in the order of the items (`IMAGE_SCHEMA` of
        `wordnet_splits.benchmark.manifest.tables`).
    labels : int64 (n,).
    classes : names of the ID classes in label order.
    missing : rows left out, with a column ``reason``.
    awaiting : groups left out because their source is not available yet.
    manifest : the `Manifest`: name, version, groups, fingerprints.

    Raises
    ------
    UnknownNameError : no such benchmark, role, group, split or source.
    ManifestError : a group's source is not available yet, or the split has no images.
    SourceError : a root is absent or holds a different dataset, or a store is damaged or has a different
        version.
    MissingImageError : while reading, an image is not under its root; the message names both.

    Examples
    --------
    >>> data = UnknownDetectionSet("digits", role="id")
    >>> image, label = data[0]
    >>> image.size, label, len(data), len(data.classes)
    ((8, 8), 0, 360, 6)
    """

    table: pa.Table
    labels: npt.NDArray[np.int64]
    classes: list[str]
    missing: pa.Table
    awaiting: list[str]
    manifest: Manifest

    def __init__(
        self,
        benchmark: Manifest | str | Path,
        *,
        role: str | None = None,
        group: str | None = None,
        split: str = "test",
        roots: Roots | None = None,
        packed: PackedFolders | None = None,
        transform: ImageTransform | None = None,
        batch_transform: BatchTransform | None = None,
        allow_missing: bool = False,
    ) -> None:
        manifest = load_manifest(benchmark)
        parts, awaiting = select_parts(manifest, role, group, split, allow_missing=allow_missing)
        opened = open_parts(manifest, parts, roots=roots, packed=packed, allow_missing=allow_missing)
        self._fill(manifest, opened, awaiting, transform, batch_transform)

    @classmethod
    def parts(
        cls,
        benchmark: Manifest | str | Path,
        split: str = "test",
        *,
        roots: Roots | None = None,
        packed: PackedFolders | None = None,
        transform: ImageTransform | None = None,
        batch_transform: BatchTransform | None = None,
        allow_missing: bool = False,
    ) -> dict[str, UnknownDetectionSet]:
        """Return a dataset for every group that has images in a split, in the recipe's order.

        Groups whose source is not available yet are left out. Each root is opened and scanned once.
        Parameters and errors are those described in the class.
        """
        manifest = load_manifest(benchmark)
        select_parts(manifest, None, None, split, allow_missing=True)
        selected = [(split, group) for group in ready_groups(manifest, split)]
        opened = open_parts(manifest, selected, roots=roots, packed=packed, allow_missing=allow_missing)
        datasets = {}
        for opened_part in opened:
            datasets[opened_part.part[1]] = cls.__new__(cls)
            datasets[opened_part.part[1]]._fill(manifest, [opened_part], [], transform, batch_transform)
        return datasets

    def _fill(
        self,
        manifest: Manifest,
        opened: Sequence[OpenedPart],
        awaiting: list[str],
        transform: ImageTransform | None,
        batch_transform: BatchTransform | None,
    ) -> None:
        self.manifest = manifest
        self.classes = manifest.class_names()
        self.awaiting = awaiting
        self.table = pa.concat_tables([part.table for part in opened])
        self.missing = pa.concat_tables([MISSING_SCHEMA.empty_table(), *(part.missing for part in opened)])
        self.labels = self.table["label"].to_numpy().astype(np.int64)
        self.transform = transform
        self.batch_transform = batch_transform
        self._images: list[PartImages] = [part.images for part in opened]
        self._starts = np.cumsum([0, *(len(part.table) for part in opened)])[:-1]

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: SupportsIndex) -> tuple[Any, int]:
        rows = self._rows([operator.index(index)])
        if self.batch_transform is not None:
            return self._batch(rows).images[0], int(self.labels[rows[0]])
        return self._transformed(rows)[0], int(self.labels[rows[0]])

    def __getitems__(self, indices: Sequence[int]) -> Sequence[tuple[Any, int]]:
        """Return many items at once, as a ``DataLoader`` with automatic batching requests them.

        With ``batch_transform`` they already are one batch, which ``default_collate`` does not stack again.
        """
        rows = self._rows(indices)
        if self.batch_transform is not None:
            return self._batch(rows)
        return list(zip(self._transformed(rows), self.labels[rows].tolist(), strict=True))

    def batches(
        self, n: int, *, drop_last: bool = False, rows: RowNumbers | None = None
    ) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Yield (images, labels) of up to ``n`` items each, in order, or of the items ``rows`` alone.

        Images are what ``batch_transform`` returns; without one, the stacked results of ``transform`` or
        uint8 (n, 3, h, w). Labels are int64 (n,).

        Raises
        ------
        DataError : images in a batch differ in size.
        """
        if n < 1:
            raise DataError(f"a batch cannot hold {n} images")
        selected = np.arange(len(self)) if rows is None else self._rows(rows)
        stop = len(selected) - len(selected) % n if drop_last else len(selected)
        for start in range(0, stop, n):
            batch = self._batch(selected[start : min(start + n, stop)])
            yield batch.images, batch.labels

    def encoded(self, index: SupportsIndex) -> tuple[bytes, str]:
        """Return a stored image in the group's view: the bytes of the file, and its extension."""
        images, _, part_rows = next(self._by_part(self._rows([operator.index(index)])))
        return images.encoded(int(part_rows[0]))

    def to_hf(self) -> Any:
        """Return a Hugging Face ``datasets.Dataset``: image, label (-1 for OOD images), `HF_COLUMNS`.

        Images are those in the group's view, without the transforms; they are written to the library's cache
        one by one: original files unchanged, pixels as PNG.

        Raises
        ------
        MissingPackageError : ``datasets`` is not installed (extra ``hub``).
        """
        datasets = need("datasets", "hub", where="to_hf")
        features = datasets.Features(
            {
                "image": datasets.Image(),
                "label": datasets.ClassLabel(names=self.classes),
                **{name: datasets.Value("string") for name in HF_COLUMNS},
            }
        )
        split = str(self.table["split"][0].as_py()) if len(self) else "test"
        return datasets.Dataset.from_generator(
            _hf_rows, features=features, gen_kwargs={"data": self}, split=datasets.NamedSplit(split)
        )

    def _rows(self, indices: Sequence[int] | RowNumbers) -> RowNumbers:
        rows = np.asarray(indices, np.int64)
        rows = np.where(rows < 0, rows + len(self), rows)
        if len(rows) and not (rows.min() >= 0 and rows.max() < len(self)):
            raise IndexError(f"index out of range: the dataset has {len(self):,} items")
        return rows

    def _by_part(self, rows: RowNumbers) -> Iterator[tuple[PartImages, RowNumbers, RowNumbers]]:
        """Yield for each part with rows: its images, positions in ``rows``, and rows within the part."""
        if len(self._images) == 1:
            yield self._images[0], np.arange(len(rows)), rows
            return
        part_of = np.searchsorted(self._starts, rows, side="right") - 1
        for number in np.unique(part_of).tolist():
            positions = np.flatnonzero(part_of == number)
            yield self._images[number], positions, rows[positions] - self._starts[number]

    def _pixels(self, rows: RowNumbers) -> Pixels:
        parts = [
            (positions, images.pixels(part_rows)) for images, positions, part_rows in self._by_part(rows)
        ]
        if len(parts) == 1:
            return parts[0][1]
        shapes = [(pixels.shape[2], pixels.shape[3]) for _, pixels in parts]
        first_ids = [self._id(rows[positions[0]]) for positions, _ in parts]
        for shape, image_id in zip(shapes, first_ids, strict=True):
            if shape != shapes[0]:
                raise different_sizes(shape, image_id, shapes[0], first_ids[0])
        joined = np.empty((len(rows), 3, *(shapes[0] if shapes else (0, 0))), np.uint8)
        for positions, pixels in parts:
            joined[positions] = pixels
        return joined

    def _transformed(self, rows: RowNumbers) -> list[Any]:
        """Return images after ``transform``, one at a time, as decoded photographs are large."""
        transformed: list[Any] = [None] * len(rows)
        for images, positions, part_rows in self._by_part(rows):
            for position, picture in zip(positions.tolist(), images.pictures(part_rows), strict=True):
                transformed[position] = picture if self.transform is None else self.transform(picture)
        return transformed

    def _batch(self, rows: RowNumbers) -> Batch:
        if self.transform is None:
            images = torch.from_numpy(self._pixels(rows))
        else:
            images = self._stacked(self._transformed(rows), rows)
        if self.batch_transform is not None:
            images = self.batch_transform(images)
            if len(images) != len(rows):
                raise DataError(f"batch_transform returned {len(images)} images for {len(rows)}")
        return Batch(images, torch.from_numpy(self.labels[rows]))

    def _stacked(self, images: Sequence[Any], rows: RowNumbers) -> torch.Tensor:
        tensors = [_tensor(image) for image in images]
        for tensor, row in zip(tensors, rows, strict=True):
            if tensor.shape != tensors[0].shape:
                raise DataError(
                    f"`transform` makes {tuple(tensor.shape)} of image {self._id(row)!r} and "
                    f"{tuple(tensors[0].shape)} of {self._id(rows[0])!r}: these do not make a batch",
                    hint="end it with a crop or a resize to one size",
                )
        return torch.stack(tensors) if tensors else torch.empty((0, 3, 0, 0), dtype=torch.uint8)

    def _id(self, row: SupportsIndex) -> str:
        return str(self.table["image_id"][operator.index(row)].as_py())

    def __repr__(self) -> str:
        groups = ", ".join(self.table["group"].unique().to_pylist())
        return f"{type(self).__name__}({self.manifest.name}: {groups}; {len(self):,} images)"

    def __copy__(self) -> UnknownDetectionSet:
        copied = type(self).__new__(type(self))
        copied.__dict__.update(self.__dict__)
        return copied

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        if type(self) is UnknownDetectionSet:  # pickles must not name `loaders`: see wordnet_splits.torch
            return pickle_home.revive, (type(self).__name__, self.__dict__)
        return super().__reduce_ex__(protocol)


def _hf_rows(data: UnknownDetectionSet) -> Iterator[dict[str, Any]]:
    """Yield the rows of `UnknownDetectionSet.to_hf`."""
    batches = data.table.select([*HF_COLUMNS, "label"]).to_batches()
    for row, values in enumerate(values for batch in batches for values in batch.to_pylist()):
        content, extension = data.encoded(row)
        path = values["image_id"].replace("/", "_") + extension
        yield {**values, "image": {"bytes": content, "path": path}}


def _tensor(image: Any) -> torch.Tensor:
    if isinstance(image, torch.Tensor):
        return image
    return torch.from_numpy(np.array(image).transpose(2, 0, 1).copy())
