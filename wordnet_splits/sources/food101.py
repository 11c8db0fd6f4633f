"""Food-101: ``images/<class>/<number>.jpg``; which image is train and which is test, the inventory says.

Reference: Bossard, Guillaumin, Van Gool, Food-101: Mining Discriminative Components with Random Forests,
ECCV 2014.
"""

from __future__ import annotations

from typing import ClassVar

from wordnet_splits.sources.base import register
from wordnet_splits.sources.layouts.declared import InClassFolders
from wordnet_splits.sources.layouts.names import Naming


@register
class Food101(InClassFolders):
    """101 dishes, 750 train and 250 test images each, in the same class folders."""

    name: ClassVar[str] = "food101"
    splits: ClassVar[tuple[str, ...]] = ("train", "test")
    looks_for: ClassVar[str] = "images/<class>/<number>.jpg with classes such as apple_pie"
    images: ClassVar[Naming] = Naming("food101", ("train", "test"), r"\d+", qualified=True)
    begins: ClassVar[tuple[str, ...]] = ("food-101",)
    inside: ClassVar[tuple[str, ...]] = ("images", "")
