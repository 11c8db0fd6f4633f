"""ImageNet-1K (ILSVRC 2012), train and validation, in every layout it is commonly kept in.

Reference: Russakovsky et al., ImageNet Large Scale Visual Recognition Challenge, IJCV 2015.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Self

from wordnet_splits.base.errors import SourceError
from wordnet_splits.sources.base import Row, register
from wordnet_splits.sources.layouts.corruptions import is_corrupted
from wordnet_splits.sources.layouts.declared import openood
from wordnet_splits.sources.layouts.folders import (
    ClassFolders,
    FileReader,
    FlatFolder,
    class_folders,
    flat_folder,
)
from wordnet_splits.sources.layouts.names import Naming
from wordnet_splits.sources.layouts.parquet_named import hub_part
from wordnet_splits.sources.layouts.parts import PartedSource, SourcePart
from wordnet_splits.sources.layouts.tars import FlatTar, NestedTar, archive
from wordnet_splits.sources.layouts.walk import bases
from wordnet_splits.sources.pixels import size_of

TRAIN = Naming("imagenet1k", ("train",), r"(?P<class>n\d{8})_\d+")
VAL = Naming("imagenet1k", ("val",), r"ILSVRC2012_val_\d{8}")

KAGGLE = "CLS-LOC"
BEGINS = (
    "ILSVRC/Data/CLS-LOC",
    "Data/CLS-LOC",
    KAGGLE,
    "imagenet",
    "ILSVRC2012",
    *openood("imagenet_1k"),
)
HUB_SUFFIX = r"_n\d{8}"  # the Hub appends the class: n01440764_10026_n01440764.JPEG
SMALL, SIZED = (224, 224), 8  # width and height of ImageNet-C's pictures; how many of these tell
TINY_NUMBERS = 500  # Tiny ImageNet renumbers 0..499 what ImageNet numbers into the ten thousands


@register
class ImageNet1K(PartedSource):
    """1,281,167 train and 50,000 validation images of 1,000 synsets."""

    name: ClassVar[str] = "imagenet1k"
    splits: ClassVar[tuple[str, ...]] = ("train", "val")
    looks_for: ClassVar[str] = (
        "train/<wnid>/*.JPEG or val/<wnid>/*.JPEG (torchvision), ILSVRC/Data/CLS-LOC (Kaggle), "
        "train-*.parquet or validation-*.parquet (Hub), ILSVRC2012_img_train.tar or ILSVRC2012_img_val.tar, "
        "or ILSVRC2012_val_*.JPEG flat"
    )

    @classmethod
    def find(cls, root: Path) -> tuple[SourcePart, ...]:
        """Return the train part, the validation part or both, of the first place that has one."""
        for base in bases(root, *BEGINS):
            if is_corrupted(base):
                continue
            parts = tuple(p for p in (_train(base, root), _val(base, root)) if p) or _lone(base, root)
            if parts:
                return parts
        return ()

    @classmethod
    def open(cls, root: Path | None, layout: str, **params: Any) -> Self:
        """Open the parts under ``root``.

        Raises SourceError where the validation folder holds pictures that were made smaller.
        """
        source = super().open(root, layout, **params)
        for part in source.parts:
            if part.naming == VAL and isinstance(part, FlatFolder | ClassFolders) and _made_small(part):
                raise SourceError(
                    "the validation images are of 224 x 224 pixels, as ImageNet-C's and resized copies",
                    where=str(part.folder),
                    hint="give the publisher's files; a folder of ImageNet-C is a root of imagenet-c",
                )
        return source

    @classmethod
    def distinctive(cls, row: Row) -> bool:
        """Return whether an id cannot be one of Tiny ImageNet's."""
        return row[2] != "train" or int(row[0].rpartition("_")[2]) >= TINY_NUMBERS


def _made_small(part: FlatFolder | ClassFolders) -> bool:
    """Return whether all of a sample of pictures have the size of ImageNet-C's: no name tells them apart."""
    reader = part.reader()
    found = ((stem, part.naming.row(class_id, stem)) for class_id, stem, _ in part.names() if stem)
    sample = islice(((row[1], stem) for stem, row in found if row), SIZED)
    sizes = [_size(reader, *named) for named in sample]
    return len(sizes) == SIZED and set(sizes) == {SMALL}


def _size(reader: FileReader, class_id: str, stem: str) -> tuple[int, int] | None:
    try:
        return size_of(reader.read(class_id, stem))
    except (SourceError, KeyError, OSError):
        return None  # reading it says why


def _train(base: Path, root: Path) -> SourcePart | None:
    for name in ("train", "ILSVRC2012_img_train"):
        if part := class_folders(base, name, root, TRAIN, layout=_layout(base)):
            return part
    if path := archive(base, "ILSVRC2012_img_train.tar", root):
        return NestedTar(path, TRAIN)
    return hub_part(base, root, "train", TRAIN, HUB_SUFFIX)


def _val(base: Path, root: Path) -> SourcePart | None:
    flat = "kaggle" if base.name == KAGGLE else "flat"
    for name in ("val", "ILSVRC2012_img_val"):
        part = flat_folder(base, name, root, VAL, flat) or class_folders(
            base, name, root, VAL, layout=_layout(base)
        )
        if part:
            return part
    if path := archive(base, "ILSVRC2012_img_val.tar", root):
        return FlatTar(path, VAL)
    return hub_part(base, root, "val", VAL, HUB_SUFFIX) or flat_folder(base, "", root, VAL, flat)


def _lone(base: Path, root: Path) -> tuple[SourcePart, ...]:
    """Return ``base`` as a part where it is itself a train folder or a sorted validation folder."""
    part = class_folders(base, "", root, VAL)
    if part is None:
        return ()
    return (part,) if ImageNet1K._recognised(part) else (ClassFolders(base, root, TRAIN),)


def _layout(base: Path) -> str:
    return "kaggle" if base.name == KAGGLE else "folders"
