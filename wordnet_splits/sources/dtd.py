"""Describable Textures Dataset: ``images/<texture>/<texture>_<number>.jpg``, one split.

Reference: Cimpoi, Maji, Kokkinos, Mohamed, Vedaldi, Describing Textures in the Wild, CVPR 2014.
"""

from __future__ import annotations

from typing import ClassVar

from wordnet_splits.sources.base import register
from wordnet_splits.sources.layouts.declared import CLASSIC, InClassFolders, openood
from wordnet_splits.sources.layouts.names import Naming


@register
class DescribableTextures(InClassFolders):
    """47 textures of 120 images; the publisher's ten train/val/test splits are lists over these ids."""

    name: ClassVar[str] = "dtd"
    splits: ClassVar[tuple[str, ...]] = ("all",)
    looks_for: ClassVar[str] = "images/<texture>/*.jpg with textures such as banded"
    images: ClassVar[Naming] = Naming("dtd", ("all",), r"(?P<class>[a-z-]+)_\d{4}", qualified=True)
    begins: ClassVar[tuple[str, ...]] = ("dtd", *openood("texture", CLASSIC))
    inside: ClassVar[tuple[str, ...]] = ("images", "")
