"""ImageNet-R: renditions (art, cartoons, toys, ...) of 200 ImageNet classes, ``imagenet-r/<wnid>/art_0.jpg``.

Reference: Hendrycks et al., The Many Faces of Robustness, ICCV 2021.
"""

from __future__ import annotations

from typing import ClassVar

from wordnet_splits.sources.base import register
from wordnet_splits.sources.layouts.declared import InClassFolders, openood
from wordnet_splits.sources.layouts.names import Naming


@register
class ImageNetR(InClassFolders):
    """30,000 images; a number is given anew in each class, so ids bear the class."""

    name: ClassVar[str] = "imagenet-r"
    splits: ClassVar[tuple[str, ...]] = ("all",)
    looks_for: ClassVar[str] = "imagenet-r/<wnid>/art_0.jpg and the like"
    images: ClassVar[Naming] = Naming("imagenet-r", ("all",), r"[a-z]+_\d+", qualified=True)
    begins: ClassVar[tuple[str, ...]] = ("imagenet-r", *openood("imagenet_r"))
