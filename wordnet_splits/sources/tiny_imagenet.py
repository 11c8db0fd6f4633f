"""Tiny ImageNet: 200 classes, 64 x 64, ``tiny-imagenet-200/{train,val}``; its test part has no labels.

Reference: Le and Yang, Tiny ImageNet Visual Recognition Challenge, CS 231N, 2015.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from wordnet_splits.sources.base import register
from wordnet_splits.sources.layouts.declared import CLASSIC, openood
from wordnet_splits.sources.layouts.folders import class_folders, flat_folder
from wordnet_splits.sources.layouts.names import Naming
from wordnet_splits.sources.layouts.parts import PartedSource, SourcePart
from wordnet_splits.sources.layouts.walk import bases

TRAIN = Naming("tiny-imagenet", ("train",), r"(?P<class>n\d{8})_\d+")
VAL = Naming("tiny-imagenet", ("val",), r"val_\d+")


@register
class TinyImageNet(PartedSource):
    """``train/<wnid>/images/*.JPEG`` and ``val/images/*.JPEG``, or class folders; OpenOOD's ``tin``."""

    name: ClassVar[str] = "tiny-imagenet"
    splits: ClassVar[tuple[str, ...]] = ("train", "val")
    looks_for: ClassVar[str] = "train/<wnid>/images/*.JPEG, val/images/val_*.JPEG or val/<wnid>/val_*.JPEG"

    @classmethod
    def find(cls, root: Path) -> tuple[SourcePart, ...]:
        """Return the train folder, the validation folder or both."""
        for base in bases(root, "tiny-imagenet-200", *openood("tin", CLASSIC)):
            train = class_folders(base, "train", root, TRAIN, inner=("images", ""))
            val = (
                flat_folder(base, "val/images", root, VAL, "publisher")
                or flat_folder(base, "val", root, VAL, "publisher")
                or class_folders(base, "val", root, VAL, inner=("", "images"))
            )
            parts = tuple(part for part in (train, val) if part is not None)
            if parts:
                return parts
        return ()
