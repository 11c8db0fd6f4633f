"""CIFAR-10 and CIFAR-100 (Krizhevsky 2009) as pickles, PNG folders or the Hub's Parquet.

An id is ``<split>/<class>/<publisher's file name>``: file names are unique only within split and class.
Pickles hold the names, so their order does not matter; a copy without names is matched by pixels.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

from wordnet_splits.base.errors import SourceError
from wordnet_splits.catalog import load_catalog
from wordnet_splits.sources.base import OneCopyPerProcess, Raw, Row, register
from wordnet_splits.sources.layouts.cifar_pickles import PickleLayout, Pickles
from wordnet_splits.sources.layouts.matching import Copy, Index, match
from wordnet_splits.sources.layouts.parquet_nameless import HubLayout, NamelessParquet
from wordnet_splits.sources.layouts.picture_folders import PictureFolders
from wordnet_splits.sources.layouts.walk import bases

SPLITS = ("train", "test")
SHAPE = (32, 32, 3)


class Cifar(OneCopyPerProcess):
    """What CIFAR-10 and CIFAR-100 have in common: 32 x 32 RGB, stored without loss."""

    splits: ClassVar[tuple[str, ...]] = SPLITS
    lossless: ClassVar[bool] = True
    pickles: ClassVar[PickleLayout]
    hub: ClassVar[HubLayout]
    misspelt: ClassVar[Mapping[str, str]] = MappingProxyType({})

    @classmethod
    def detect(cls, root: Path | None) -> str | None:
        """Return ``pickle``, ``folder`` or ``parquet``, or None."""
        if root is None:
            return None
        try:
            return next((name for name, layout in LAYOUTS.items() if layout.found(cls, root)), None)
        except PermissionError as error:
            raise SourceError("cannot be read: permission denied", where=str(error.filename)) from error

    @classmethod
    def certain(cls, root: Path) -> bool:
        """Return whether file names, class folders or columns fit no other dataset."""
        return any(layout.certain(cls, root) for layout in LAYOUTS.values())

    @classmethod
    def open(cls, root: Path | None, layout: str, **params: Any) -> Cifar:
        """Open the copy at ``root``; nothing is read before the first scan or read."""
        if params:
            raise SourceError(f"source {cls.name} takes no parameter {min(params)!r}")
        return cls(root, layout)

    @classmethod
    def class_ids(cls) -> tuple[str, ...]:
        """Return the classes in the publisher's label order."""
        return tuple(item.class_id for item in load_catalog(cls.name))

    @classmethod
    def class_folders(cls) -> dict[str, str]:
        """Return the class of each folder name."""
        return {**{class_id: class_id for class_id in cls.class_ids()}, **cls.misspelt}

    def rows(self, splits: Collection[str]) -> Iterator[Row]:
        """Yield (image_id, class_id, split) of every image that has an id."""
        noted: set[int] = set()
        for split in splits:
            index = self._index(split)
            for image_id in index.places:
                image_split, class_id, _ = image_id.split("/")
                if image_split == split:
                    yield image_id, class_id, split
            if id(index) not in noted:  # a copy that keeps its splits together has one index
                noted.add(id(index))
                for name, times in index.unexpected.items():
                    self.note_unexpected(name, times)

    def read_one(self, image_id: str) -> Raw:
        """Return the pixels, uint8 (32, 32, 3)."""
        split = image_id.partition("/")[0]
        if split not in self.splits:
            raise KeyError(image_id)
        place = self._index(split).places[image_id]
        try:
            return self._copy().pixels(place)
        except SourceError as error:
            raise self.missing(image_id, f"cannot be read: {error.what}") from error

    def _copy(self) -> Copy[Any]:
        assert self.root is not None, "rooted"
        root = self.root
        return self.cached("copy", lambda: LAYOUTS[self.layout].open(type(self), root))

    def _index(self, split: str) -> Index[Any]:
        splits = (split,) if self._copy().by_split else self.splits
        return self.cached(f"index {splits}", lambda: match(self.name, splits, self._copy(), str(self.root)))


@register
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


@register
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
        ("img",), "fine_label", ("cifar100",), SPLITS, SHAPE, misspelt=misspelt
    )


@dataclass(frozen=True)
class _CifarLayout:
    """How a layout is distinguished from others (present at all, present beyond doubt) and opened."""

    found: Callable[[type[Cifar], Path], bool]
    certain: Callable[[type[Cifar], Path], bool]
    open: Callable[[type[Cifar], Path], Copy[Any]]


def _class_root(cls: type[Cifar], root: Path) -> tuple[Path, set[str]]:
    """Return the folder below ``root`` that holds class folders of ours, and which they are."""
    for base in bases(root, cls.name):
        held = PictureFolders.held(base, root, cls.splits, cls.class_folders())
        if held:
            return base, held
    return root, set()


def _open_folder(cls: type[Cifar], root: Path) -> PictureFolders:
    return PictureFolders(_class_root(cls, root)[0], root, cls.splits, cls.class_folders(), SHAPE)


LAYOUTS: Mapping[str, _CifarLayout] = MappingProxyType(
    {
        "pickle": _CifarLayout(
            found=lambda cls, root: cls.pickles.find(root) is not None,
            certain=lambda cls, root: cls.pickles.certain(root),
            open=lambda cls, root: Pickles(cls.pickles, root, cls.class_ids()),
        ),
        "folder": _CifarLayout(
            found=lambda cls, root: bool(_class_root(cls, root)[1]),
            certain=lambda cls, root: len(_class_root(cls, root)[1]) == len(cls.class_ids()),
            open=_open_folder,
        ),
        "parquet": _CifarLayout(
            found=lambda cls, root: bool(cls.hub.find(root, cls.class_ids())),
            certain=lambda cls, root: bool(cls.hub.find(root, cls.class_ids())),
            open=lambda cls, root: NamelessParquet(cls.hub, root, cls.class_ids()),
        ),
    }
)
"""The layouts of CIFAR, in the order they are looked for."""
