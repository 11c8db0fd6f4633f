"""ImageNet-A: photographs that classifiers get wrong.

``imagenet-a/<wnid>/0.000116_digital clock _ digital clock_0.865662.jpg``: the folder is what a picture
shows, the words in the file's name are what two networks took it for.

Reference: Hendrycks, Zhao, Basart, Steinhardt, Song, Natural Adversarial Examples, CVPR 2021.
"""

from __future__ import annotations

from typing import ClassVar

from wordnet_splits.sources.base import register
from wordnet_splits.sources.layouts.declared import InClassFolders, openood
from wordnet_splits.sources.layouts.names import Naming

NAME = (
    r"[\d.e-]+_[^/\\]+ _ [^/\\]+_[\d.e-]+"  # confidence in the class shown, two answers, confidence in them
)


@register
class ImageNetA(InClassFolders):
    """7,500 images of 200 ImageNet classes."""

    name: ClassVar[str] = "imagenet-a"
    splits: ClassVar[tuple[str, ...]] = ("all",)
    looks_for: ClassVar[str] = "imagenet-a/<wnid>/<number>_<class> _ <class>_<number>.jpg"
    images: ClassVar[Naming] = Naming("imagenet-a", ("all",), NAME, qualified=True)
    begins: ClassVar[tuple[str, ...]] = ("imagenet-a", *openood("imagenet_a"))
