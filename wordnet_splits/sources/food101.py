"""Food-101: ``images/<class>/<number>.jpg``; which image is train and which is test, the inventory says.

Reference: Bossard, Guillaumin, Van Gool, Food-101: Mining Discriminative Components with Random Forests,
ECCV 2014.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from wordnet_splits.sources.base import register
from wordnet_splits.sources.layouts.folders import class_folders
from wordnet_splits.sources.layouts.names import Naming
from wordnet_splits.sources.layouts.parts import PartedSource, SourcePart
from wordnet_splits.sources.layouts.walk import bases

IMAGES = Naming("food101", ("train", "test"), r"\d+", qualified=True)


@register
class Food101(PartedSource):
    """101 dishes, 750 train and 250 test images each, in the same class folders."""

    name: ClassVar[str] = "food101"
    splits: ClassVar[tuple[str, ...]] = ("train", "test")
    looks_for: ClassVar[str] = "images/<class>/<number>.jpg with classes such as apple_pie"

    @classmethod
    def find(cls, root: Path) -> tuple[SourcePart, ...]:
        """Return the images folder."""
        for base in bases(root, "food-101"):
            part = class_folders(base, "images", root, IMAGES) or class_folders(base, "", root, IMAGES)
            if part is not None:
                return (part,)
        return ()
