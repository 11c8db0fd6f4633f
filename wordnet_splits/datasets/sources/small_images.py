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

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

from wordnet_splits.base.errors import SourceError
from wordnet_splits.datasets.sources.layouts.cifar_pickles import PickleNames, find_pickles
from wordnet_splits.datasets.sources.layouts.image_arrays import find_idx_files, find_mat_files
from wordnet_splits.datasets.sources.layouts.layout import Layout
from wordnet_splits.datasets.sources.layouts.matched_images import MatchedImages, find_image_folders
from wordnet_splits.datasets.sources.layouts.parquet_files import find_parquet_images
from wordnet_splits.datasets.sources.source import Source, register_source

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
