"""ImageNet-V2, matched frequency: ``<0..999>/<hash>.jpeg``, a folder being the class's number in ImageNet-1K.

Reference: Recht, Roelofs, Schmidt, Shankar, Do ImageNet Classifiers Generalize to ImageNet?, ICML 2019.
"""

from __future__ import annotations

from typing import ClassVar

from wordnet_splits.catalog import load_catalog
from wordnet_splits.sources.base import register
from wordnet_splits.sources.layouts.declared import InClassFolders, openood
from wordnet_splits.sources.layouts.names import Naming


@register
class ImageNetV2(InClassFolders):
    """10,000 images, 10 of each class; the files of the other two selections are not in its inventory."""

    name: ClassVar[str] = "imagenet-v2"
    splits: ClassVar[tuple[str, ...]] = ("all",)
    looks_for: ClassVar[str] = "imagenetv2-matched-frequency-format-val/<0..999>/<hash>.jpeg"
    images: ClassVar[Naming] = Naming("imagenet-v2", ("all",), r"[0-9a-f]{40}")
    begins: ClassVar[tuple[str, ...]] = ("imagenetv2-matched-frequency-format-val", *openood("imagenet_v2"))

    @classmethod
    def spellings(cls, class_id: str) -> tuple[str, ...]:
        """Return the class's number, and its wnid for copies that are sorted by that."""
        return str(load_catalog(cls.name)[class_id].index), class_id
