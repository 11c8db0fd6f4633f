"""Caltech-256: ``256_ObjectCategories/<number>.<name>/<number>_<image>.jpg``, one split.

Reference: Griffin, Holub, Perona, Caltech-256 Object Category Dataset, report CNS-TR-2007-001, Caltech 2007.
"""

from __future__ import annotations

from typing import ClassVar

from wordnet_splits.sources.base import register
from wordnet_splits.sources.layouts.declared import InClassFolders
from wordnet_splits.sources.layouts.names import Naming


@register
class Caltech256(InClassFolders):
    """256 object classes; the clutter class is not part of the catalog and is reported as unexpected."""

    name: ClassVar[str] = "caltech256"
    splits: ClassVar[tuple[str, ...]] = ("all",)
    looks_for: ClassVar[str] = "256_ObjectCategories/<class>/*.jpg with classes such as 001.ak47"
    images: ClassVar[Naming] = Naming("caltech256", ("all",), r"\d{3}_\d{4}", qualified=True)
    begins: ClassVar[tuple[str, ...]] = (
        "caltech256",
        "256_ObjectCategories",
        "caltech256/256_ObjectCategories",
    )
