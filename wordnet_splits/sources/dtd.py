"""Describable Textures Dataset: ``images/<texture>/<texture>_<number>.jpg``, one split.

Reference: Cimpoi, Maji, Kokkinos, Mohamed, Vedaldi, Describing Textures in the Wild, CVPR 2014.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from wordnet_splits.sources.base import register
from wordnet_splits.sources.layouts.folders import class_folders
from wordnet_splits.sources.layouts.names import Naming
from wordnet_splits.sources.layouts.parts import PartedSource, SourcePart
from wordnet_splits.sources.layouts.walk import bases

IMAGES = Naming("dtd", ("all",), r"(?P<class>[a-z-]+)_\d{4}", qualified=True)


@register
class DescribableTextures(PartedSource):
    """47 textures of 120 images; the publisher's ten train/val/test splits are lists over these ids."""

    name: ClassVar[str] = "dtd"
    splits: ClassVar[tuple[str, ...]] = ("all",)
    looks_for: ClassVar[str] = "images/<texture>/*.jpg with textures such as banded"

    @classmethod
    def find(cls, root: Path) -> tuple[SourcePart, ...]:
        """Return the images folder."""
        for base in bases(root, "dtd"):
            part = class_folders(base, "images", root, IMAGES) or class_folders(base, "", root, IMAGES)
            if part is not None:
                return (part,)
        return ()
