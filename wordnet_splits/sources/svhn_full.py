"""Street View House Numbers in their surroundings (format 1): whole numbers, each picture of its own size.

An id is ``<split>/<n>`` for ``<split>/<n>.png``, from 1. The digits and their boxes, in ``digitStruct.mat``,
are not read: a picture shows several, so the dataset has one class.

Reference: Netzer, Wang, Coates, Bissacco, Wu, Ng, Reading Digits in Natural Images with Unsupervised Feature
Learning, 2011.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from wordnet_splits.sources.base import register
from wordnet_splits.sources.layouts.folders import flat_folder
from wordnet_splits.sources.layouts.names import Naming
from wordnet_splits.sources.layouts.parts import PartedSource, SourcePart
from wordnet_splits.sources.layouts.walk import bases, subfolder

SPLITS = ("train", "test", "extra")
NUMBER = r"[1-9]\d{0,5}"
FOLDERS = ("svhn-full", "svhn")


@register
class SvhnFull(PartedSource):
    """33,402 train, 13,068 test and 202,353 extra pictures."""

    name: ClassVar[str] = "svhn-full"
    splits: ClassVar[tuple[str, ...]] = SPLITS
    lossless: ClassVar[bool] = True
    looks_for: ClassVar[str] = (
        "train/1.png, test/1.png or extra/1.png and so on, unpacked from train.tar.gz ..."
    )

    @classmethod
    def find(cls, root: Path) -> tuple[SourcePart, ...]:
        """Return the folder of each split, from the first place that has one."""
        for base in bases(root, *FOLDERS):
            namings = (Naming("svhn-full", (split,), NUMBER, prefix=f"{split}/") for split in SPLITS)
            found = (flat_folder(base, naming.splits[0], root, naming) for naming in namings)
            parts = tuple(part for part in found if part is not None)
            if parts:
                return parts
        return ()

    @classmethod
    def certain(cls, root: Path) -> bool:
        """Return whether the publisher's file of boxes lies beside the pictures: anybody numbers files."""
        folders = (subfolder(base, split, root) for base in bases(root, *FOLDERS) for split in SPLITS)
        return any(folder is not None and (folder / "digitStruct.mat").is_file() for folder in folders)
