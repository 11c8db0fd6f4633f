"""Sources of small images: CIFAR-10 and CIFAR-100, MNIST and Fashion-MNIST, and SVHN's cropped digits.

CIFAR's ids are ``<split>/<class>/<publisher's file name>``: file names are unique only within split and
class. The other images have no names, so ids are positions, ``<split>/<index>``; they hold for files with
the publisher's MD5, and any other copy may be in another order and has ``order`` "unknown".

References: Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009; LeCun, Bottou, Bengio,
Haffner, Gradient-based learning applied to document recognition, 1998; Xiao, Rasul, Vollgraf, Fashion-MNIST,
2017; Netzer, Wang, Coates, Bissacco, Wu, Ng, Reading Digits in Natural Images with Unsupervised Feature
Learning, 2011.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np

from wordnet_splits.base.digests import Pixels
from wordnet_splits.base.errors import SourceError
from wordnet_splits.base.untrusted import LONGEST_NAME, check_link, open_untrusted
from wordnet_splits.datasets.sources.layouts.image_arrays import find_idx_files, find_mat_files
from wordnet_splits.datasets.sources.layouts.layout import Layout
from wordnet_splits.datasets.sources.layouts.matched_images import Listing, MatchedImages, find_image_folders
from wordnet_splits.datasets.sources.layouts.parquet_files import find_parquet_images
from wordnet_splits.datasets.sources.layouts.unpickle import LARGEST_FILE, load_pickle
from wordnet_splits.datasets.sources.layouts.walk import bases
from wordnet_splits.datasets.sources.source import Source, register_source

SIDE = 32
_CHANNELS = 3
LARGEST_LABEL = 1 << 16
_PICKLE = b"\x80"  # the first byte of every pickle since protocol 2


class PickleNames(NamedTuple):
    """Names of the files of a CIFAR dataset, and of their keys."""

    folder: str
    batches: Mapping[str, tuple[str, ...]]  # publisher's split -> files
    label_key: str
    meta: str
    meta_key: str


class _Batch(NamedTuple):
    file: str
    data: Pixels  # (n, 3072), channel by channel
    labels: Sequence[int]
    names: Sequence[str]


def find_pickles(source: str, root: Path, *, names: PickleNames) -> Pickles | None:
    """Return the folder at or directly in ``root`` that has a batch, None without one."""
    layouts = (Pickles(source, root, base, names) for base in bases(root, names.folder))
    return next((layout for layout in layouts if layout.paths), None)


class Pickles(MatchedImages):
    """The pickles in a folder; ``paths`` maps file name -> path of the batches that are present."""

    name = "pickle"

    def __init__(self, source: str, root: Path, folder: Path, names: PickleNames) -> None:
        super().__init__(source, root)
        self._folder, self._names = folder, names
        files = [file for batch in names.batches.values() for file in batch]
        self.paths = {file: folder / file for file in files if (folder / file).is_file()}

    def is_unambiguous(self) -> bool:
        """Return whether a batch begins like a pickle: other datasets may have a file ``train``, too."""
        for path in self.paths.values():
            with open_untrusted(path, largest=LARGEST_FILE, error=SourceError) as stream:
                if stream.read(1) == _PICKLE:
                    return True
        return False

    def listing(self, split: str) -> Listing:
        """Return the images of the batches of ``split`` that are there."""
        batches = self._batches(split)
        labels = [label for batch in batches for label in batch.labels]
        names = [PurePosixPath(n).stem for b in batches for n in b.names or [""] * len(b.labels)]
        class_ids = self.cached("classes", self._labels)
        classes = [class_ids[n] if 0 <= n < len(class_ids) else None for n in labels]
        files = [batch.file for batch in batches for _ in batch.labels]

        def describe(index: int) -> str:
            if classes[index] is None:
                return f"{files[index]}: label {labels[index]}"
            return f"{split}/{classes[index]}/{names[index] or '(no name)'}"

        return Listing(classes, describe, names)

    def pixels(self, split: str, index: int) -> Pixels:
        """Return an image, uint8 (32, 32, 3)."""
        for batch in self._batches(split):
            if index < len(batch.labels):
                planes = batch.data[index].reshape(_CHANNELS, SIDE, SIDE)
                return np.ascontiguousarray(planes.transpose(1, 2, 0))
            index -= len(batch.labels)
        raise KeyError(index)

    def _batches(self, split: str) -> list[_Batch]:
        files = (file for file in self._names.batches[split] if file in self.paths)
        return self.cached(f"batches {split}", lambda: [self._read(file) for file in files])

    def _labels(self) -> tuple[str, ...]:
        """Return the class of each label: by the copy's own meta file, or the publisher's without one."""
        path = self._folder / self._names.meta
        if not path.exists():
            return self.class_ids
        names = [_text(name) for name in _list(self._load(path), self._names.meta_key, path)]
        if sorted(names) != sorted(self.class_ids):
            raise _not_a_batch(path, "its classes are not the published ones")
        return tuple(names)

    def _read(self, file: str) -> _Batch:
        path = self.paths[file]
        batch = self._load(path)
        if self._names.label_key not in batch or "data" not in batch:
            raise _not_a_batch(path, f"its keys are {', '.join(sorted(batch)) or 'none'}"[:200])
        data = batch["data"]
        if not isinstance(data, np.ndarray) or data.dtype != np.uint8 or data.ndim != 2:
            raise _not_a_batch(path, "its data are not rows of bytes")
        labels = _list(batch, self._names.label_key, path)
        names = [_text(name) for name in _list(batch, "filenames", path)] if "filenames" in batch else []
        if data.shape != (len(labels), _CHANNELS * SIDE * SIDE) or len(names) not in (0, len(labels)):
            raise _not_a_batch(path, f"{len(labels)} labels, {len(names)} names, data of shape {data.shape}")
        if not all(isinstance(label, int) and abs(label) < LARGEST_LABEL for label in labels):
            raise _not_a_batch(path, "a label is not a whole number")
        return _Batch(file, data, labels, names)

    def _load(self, path: Path) -> dict[str, Any]:
        if path.is_symlink():
            check_link(path, self.root)
        loaded = load_pickle(path)
        if not isinstance(loaded, dict):
            raise _not_a_batch(path, "it is not a dictionary")
        return {_text(key): value for key, value in loaded.items()}


def _list(batch: Mapping[str, Any], key: str, path: Path) -> Sequence[Any]:
    value = batch.get(key)
    if isinstance(value, np.ndarray) and value.ndim == 1:
        return [int(number) for number in value]
    if not isinstance(value, list):
        raise _not_a_batch(path, f"{key!r} is not a list")
    return value


def _text(value: object) -> str:
    """Return a name; in copies written by Python 3 names are bytes."""
    if isinstance(value, bytes):
        return value[:LONGEST_NAME].decode("latin-1")
    return value[:LONGEST_NAME] if isinstance(value, str) else f"({type(value).__name__})"


def _not_a_batch(path: Path, why: str) -> SourceError:
    return SourceError(f"not a batch of CIFAR: {why}", where=str(path), hint="fetch the dataset again")


Finder = Callable[[str, Path], MatchedImages | None]
"""Returns the layout of a dataset under a root, None where the root does not have it."""

CIFAR, GREY = (32, 32, 3), (28, 28, 3)


class SmallImages(Source):
    """Small images stored without loss; ``finders`` find its layouts, the preferred layout first."""

    splits: ClassVar[tuple[str, ...]] = ("train", "test")
    lossless: ClassVar[bool] = True
    finders: ClassVar[tuple[Finder, ...]]

    @classmethod
    def layouts(cls, root: Path) -> Iterator[Layout]:
        """Yield the layouts that the root has."""
        try:
            for find in cls.finders:
                if layout := find(cls.name, root):
                    yield layout
        except PermissionError as error:
            raise SourceError("cannot be read: permission denied", where=str(error.filename)) from error


@register_source
class Cifar10(SmallImages):
    """CIFAR-10: 10 classes of 5,000 train and 1,000 test images."""

    name = "cifar10"
    expected_files = (
        "data_batch_1 to _5 and test_batch, train/<class>/<name>.png, or Parquet with columns img and label"
    )
    batches = PickleNames(
        folder="cifar-10-batches-py",
        batches={"train": tuple(f"data_batch_{n}" for n in range(1, 6)), "test": ("test_batch",)},
        label_key="labels",
        meta="batches.meta",
        meta_key="label_names",
    )
    finders = (
        partial(find_pickles, names=batches),
        partial(find_image_folders, shape=CIFAR),
        partial(find_parquet_images, configs=("cifar10", "plain_text"), image="img", shape=CIFAR),
    )


@register_source
class Cifar100(SmallImages):
    """CIFAR-100: 100 classes of 500 train and 100 test images."""

    name = "cifar100"
    expected_files = (
        "the files train, test and meta, train/<class>/<name>.png, or Parquet with columns img and fine_label"
    )
    batches = PickleNames(
        folder="cifar-100-python",
        batches={"train": ("train",), "test": ("test",)},
        label_key="fine_labels",
        meta="meta",
        meta_key="fine_label_names",
    )
    misspelt = MappingProxyType({"cra": "crab"})  # a slip in the Hub's card
    finders = (
        partial(find_pickles, names=batches),
        partial(find_image_folders, shape=CIFAR, misspelt=misspelt),
        partial(
            find_parquet_images,
            configs=("cifar100",),
            image="img",
            label="fine_label",
            shape=CIFAR,
            misspelt=misspelt,
        ),
    )


def _idx_files(content: str, folder: str) -> str:
    """Return the files of a dataset in MNIST's formats, in words."""
    return (
        "train-images-idx3-ubyte and train-labels-idx1-ubyte, or t10k-..., plain or .gz, of "
        f"{content}; or {folder}/*.parquet"
    )


def _mnist_finders(source: str, folder: str, config: str, *, similar: str) -> tuple[Finder, ...]:
    idx = partial(find_idx_files, folders=(f"{folder}/raw", "raw", source), similar=similar)
    # the Hub's card of Fashion-MNIST has a name with blanks
    misspelt = {"T - shirt / top": "T-shirt/top"}
    hub = partial(find_parquet_images, configs=(config,), in_config=True, shape=GREY, positional=True)
    return idx, partial(hub, misspelt=misspelt)


@register_source
class Mnist(SmallImages):
    """60,000 train and 10,000 test images of handwritten digits, 28 x 28."""

    name = "mnist"
    expected_files = _idx_files("digits", "mnist")
    finders = _mnist_finders("mnist", "MNIST", "mnist", similar="fashion-mnist")


@register_source
class FashionMnist(SmallImages):
    """60,000 train and 10,000 test images of clothes, 28 x 28."""

    name = "fashion-mnist"
    expected_files = _idx_files("clothes", "fashion_mnist")
    finders = _mnist_finders("fashion-mnist", "FashionMNIST", "fashion_mnist", similar="mnist")


@register_source
class Svhn(SmallImages):
    """SVHN format 2: 73,257 train, 26,032 test and 531,131 extra images of 32 x 32, classes 0 to 9."""

    name = "svhn"
    splits = ("train", "test", "extra")
    expected_files = "train_32x32.mat, test_32x32.mat or extra_32x32.mat, or cropped_digits/*.parquet"
    finders = (
        partial(find_mat_files, folders=("svhn", "SVHN")),
        partial(
            find_parquet_images,
            configs=("cropped_digits", "svhn"),
            in_config=True,
            shape=CIFAR,
            positional=True,
        ),
    )
