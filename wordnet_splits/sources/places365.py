"""Places365: train-standard in (nested) class folders, validation flat or in class folders; 256 or large.

Train ids are ``<class_id>/00000001``, validation ids ``Places365_val_00000001``. The challenge set numbers
its files apart from the standard set and is not read.

Reference: Zhou, Lapedriza, Khosla, Oliva, Torralba, Places: A 10 Million Image Database for Scene
Recognition, TPAMI 2018.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from wordnet_splits.sources.base import register
from wordnet_splits.sources.layouts.declared import CLASSIC, openood
from wordnet_splits.sources.layouts.folders import below_letter, class_folders, flat_folder
from wordnet_splits.sources.layouts.names import Naming
from wordnet_splits.sources.layouts.parts import PartedSource, SourcePart
from wordnet_splits.sources.layouts.walk import bases

TRAIN = Naming("places365", ("train",), r"\d{8}", qualified=True)
VAL = Naming("places365", ("val",), r"Places365_val_\d{8}")

# The publisher's archives, torchvision's names, and the plain ones; the first present is read.
TRAIN_FOLDERS = (
    "data_256_standard",
    "data_256",
    "data_large_standard",
    "data_large",
    "train-standard",
    "train_256",
    "train_large",
    "train",
)
VAL_FOLDERS = ("val_256", "val_large", "val")


@register
class Places365(PartedSource):
    """365 scene classes, 1,803,460 train and 36,500 validation images."""

    name: ClassVar[str] = "places365"
    splits: ClassVar[tuple[str, ...]] = ("train", "val")
    looks_for: ClassVar[str] = (
        "val_256, val_large or val (Places365_val_*.jpg, flat or in class folders), "
        "or data_256_standard, data_256 or train with class folders such as a/airfield"
    )

    @classmethod
    def find(cls, root: Path) -> tuple[SourcePart, ...]:
        """Return the train folder, the validation folder or both."""
        for base in bases(root, *openood("places365", CLASSIC), "places365_standard"):
            parts = tuple(part for part in (_train(base, root), _val(base, root)) if part is not None)
            if parts:
                return parts
        return ()


def _train(base: Path, root: Path) -> SourcePart | None:
    for name in TRAIN_FOLDERS:
        if part := class_folders(base, name, root, TRAIN, spellings=below_letter):
            return part
    return None


def _val(base: Path, root: Path) -> SourcePart | None:
    for name in (*VAL_FOLDERS, ""):
        part = flat_folder(base, name, root, VAL) or (
            class_folders(base, name, root, VAL, spellings=below_letter)
        )
        # the class folders of OpenOOD's copy lie in no folder of a split, as those of train may
        if part is not None and (name or Places365._recognised(part)):
            return part
    return None
