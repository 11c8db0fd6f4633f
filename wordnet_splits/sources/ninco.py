"""NINCO: 64 classes without any object of ImageNet-1K, ``NINCO_OOD_classes/<class>/<class>_000_....jpg``.

The publisher writes blanks in two class names (``high heels``), OpenOOD underscores; ids have underscores.

Reference: Bitterwolf, Müller, Hein, In or Out? Fixing ImageNet Out-of-Distribution Detection Evaluation,
ICML 2023.
"""

from __future__ import annotations

from typing import ClassVar

from wordnet_splits.sources.base import register
from wordnet_splits.sources.layouts.declared import InClassFolders, openood
from wordnet_splits.sources.layouts.names import Naming


@register
class Ninco(InClassFolders):
    """5,879 images, each looked at by its publishers."""

    name: ClassVar[str] = "ninco"
    splits: ClassVar[tuple[str, ...]] = ("all",)
    looks_for: ClassVar[str] = "NINCO_OOD_classes/<class>/<class>_*.jpg with classes such as amphiuma_means"
    images: ClassVar[Naming] = Naming(
        "ninco", ("all",), r"[^/\\]+_\d{3}_[^/\\]+", qualified=True, underscored=True
    )
    begins: ClassVar[tuple[str, ...]] = ("NINCO_OOD_classes", "NINCO/NINCO_OOD_classes", *openood("ninco"))

    @classmethod
    def spellings(cls, class_id: str) -> tuple[str, ...]:
        """Return the folder with underscores and the one with blanks."""
        return tuple(dict.fromkeys((class_id, class_id.replace("_", " "))))
