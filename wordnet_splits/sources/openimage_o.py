"""OpenImage-O: 17,632 pictures of the OpenImage-V3 test set, ``openimage_o/images/<16 digits>.jpg``.

Reference: Wang, Li, Feng, Zhang, ViM: Out-Of-Distribution with Virtual-logit Matching, CVPR 2022.
"""

from __future__ import annotations

from typing import ClassVar

from wordnet_splits.sources.base import register
from wordnet_splits.sources.layouts.declared import InOneFolder, openood
from wordnet_splits.sources.layouts.names import Naming


@register
class OpenImageO(InOneFolder):
    """Pictures chosen one by one as of no ImageNet-1K class, and given no class of their own."""

    name: ClassVar[str] = "openimage-o"
    splits: ClassVar[tuple[str, ...]] = ("all",)
    looks_for: ClassVar[str] = "openimage_o/images/<16 hexadecimal digits>.jpg"
    images: ClassVar[Naming] = Naming("openimage-o", ("all",), r"[0-9a-f]{16}")
    begins: ClassVar[tuple[str, ...]] = ("OpenImage-O", *openood("openimage_o"))
    inside: ClassVar[tuple[str, ...]] = ("images", "test", "")
