"""CIFAR-10 and CIFAR-100 (Krizhevsky 2009) as pickles, PNG folders or the Hub's Parquet.

An id is ``<split>/<class>/<publisher's file name>``: file names are unique only within split and class.
Pickles have the names, so their order does not matter; a copy without names is matched by pixels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

from wordnet_splits.base.errors import SourceError
from wordnet_splits.catalog import load_catalog
from wordnet_splits.sources.layouts.cifar_pickles import PickleLayout, Pickles
from wordnet_splits.sources.layouts.layout import Layout
from wordnet_splits.sources.layouts.parquet_pictures import HubLayout, ParquetPictures
from wordnet_splits.sources.layouts.picture_folders import PictureFolders, find_class_ids
from wordnet_splits.sources.layouts.pictures import Pictures
from wordnet_splits.sources.layouts.walk import bases
from wordnet_splits.sources.source import Source, register_source

SPLITS = ("train", "test")
SHAPE = (32, 32, 3)


class Cifar(Source):
    """Base of CIFAR-10 and CIFAR-100: 32 x 32 RGB, stored without loss."""

    splits: ClassVar[tuple[str, ...]] = SPLITS
    lossless: ClassVar[bool] = True
    pickles: ClassVar[PickleLayout]
    hub: ClassVar[HubLayout]
    misspelt: ClassVar[Mapping[str, str]] = MappingProxyType({})

    @classmethod
    def layouts(cls, root: Path) -> Iterator[Layout]:
        """Yield pickles, PNG folders and Parquet files."""
        try:
            yield from cls._layouts(root)
        except PermissionError as error:
            raise SourceError("cannot be read: permission denied", where=str(error.filename)) from error

    @classmethod
    def _layouts(cls, root: Path) -> Iterator[Layout]:
        class_ids = tuple(item.class_id for item in load_catalog(cls.name))
        if cls.pickles.find(root) is not None:
            pickles = partial(Pickles, cls.pickles, root, class_ids)
            yield Pictures("pickle", cls.name, SPLITS, root, pickles, partial(cls.pickles.certain, root))
        class_folders = {class_id: class_id for class_id in class_ids} | dict(cls.misspelt)
        for base in bases(root, cls.name):
            if present := find_class_ids(base, root, SPLITS, class_folders):
                folders = partial(PictureFolders, base, root, SPLITS, class_folders, SHAPE)
                is_whole = partial(bool, len(present) == len(class_ids))
                yield Pictures("folder", cls.name, SPLITS, root, folders, is_whole)
                break
        if cls.hub.find(root, class_ids):
            yield Pictures(
                "parquet", cls.name, SPLITS, root, partial(ParquetPictures, cls.hub, root, class_ids)
            )


@register_source
class Cifar10(Cifar):
    """CIFAR-10: 10 classes of 5,000 train and 1,000 test images."""

    name: ClassVar[str] = "cifar10"
    looks_for: ClassVar[str] = (
        "data_batch_1 to _5 and test_batch, train/<class>/<name>.png, or Parquet with columns img and label"
    )
    pickles: ClassVar[PickleLayout] = PickleLayout(
        folder="cifar-10-batches-py",
        batches={"train": tuple(f"data_batch_{n}" for n in range(1, 6)), "test": ("test_batch",)},
        label_key="labels",
        meta="batches.meta",
        meta_key="label_names",
    )
    hub: ClassVar[HubLayout] = HubLayout(("img",), "label", ("cifar10", "plain_text"), SPLITS, SHAPE)


@register_source
class Cifar100(Cifar):
    """CIFAR-100: 100 classes of 500 train and 100 test images."""

    name: ClassVar[str] = "cifar100"
    looks_for: ClassVar[str] = (
        "the files train, test and meta, train/<class>/<name>.png, or Parquet with columns img and fine_label"
    )
    pickles: ClassVar[PickleLayout] = PickleLayout(
        folder="cifar-100-python",
        batches={"train": ("train",), "test": ("test",)},
        label_key="fine_labels",
        meta="meta",
        meta_key="fine_label_names",
    )
    misspelt: ClassVar[Mapping[str, str]] = MappingProxyType({"cra": "crab"})  # a slip in the Hub's card
    hub: ClassVar[HubLayout] = HubLayout(
        ("img",), "fine_label", ("cifar100",), SPLITS, SHAPE, misspelt={"cra": "crab"}
    )
