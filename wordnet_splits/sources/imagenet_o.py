"""ImageNet-O: images of no ImageNet class, ``imagenet-o/<wnid>/<what it shows>_0.99.JPEG``.

The folder is the ImageNet class that a network takes the picture for, and not what it shows: class ids are
those folders, and the catalog gives them no synset.

Reference: Hendrycks, Zhao, Basart, Steinhardt, Song, Natural Adversarial Examples, CVPR 2021.
"""

from __future__ import annotations

from typing import ClassVar

from wordnet_splits.sources.base import register
from wordnet_splits.sources.layouts.declared import InClassFolders, openood
from wordnet_splits.sources.layouts.names import Naming


@register
class ImageNetO(InClassFolders):
    """2,000 images in the folders of 200 ImageNet classes."""

    name: ClassVar[str] = "imagenet-o"
    splits: ClassVar[tuple[str, ...]] = ("all",)
    looks_for: ClassVar[str] = "imagenet-o/<wnid>/<words>_<number>.JPEG"
    images: ClassVar[Naming] = Naming("imagenet-o", ("all",), r"[^/\\]+_[\d.e-]+", qualified=True)
    begins: ClassVar[tuple[str, ...]] = ("imagenet-o", *openood("imagenet_o"))
