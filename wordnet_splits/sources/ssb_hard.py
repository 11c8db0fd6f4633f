"""SSB-hard: the 1,000 classes of ImageNet-21K hardest to tell from ImageNet-1K, 980 of them in winter 2021.

Read from OpenOOD's folders (``ssb_hard/<wnid>/<wnid>_<number>.JPEG``, 50 images of each of the 980) or from
a root of ImageNet-21K, of which the other classes are passed by.

Reference: Vaze, Han, Vedaldi, Zisserman, Open-Set Recognition: A Good Closed-Set Classifier is All You Need?,
ICLR 2022.
"""

from __future__ import annotations

from typing import ClassVar

from wordnet_splits.sources.base import register
from wordnet_splits.sources.imagenet21k import OfImageNet21K
from wordnet_splits.sources.layouts.declared import openood


@register
class SSBHard(OfImageNet21K):
    """The hard part of the semantic shift benchmark."""

    name: ClassVar[str] = "ssb-hard"
    looks_for: ClassVar[str] = "ssb_hard/<wnid>/<wnid>_<number>.JPEG with wnids such as n00470682"
    begins: ClassVar[tuple[str, ...]] = (
        *openood("ssb_hard"),
        "imagenet21k",
        "fall11_whole",
        "winter21_whole",
    )
