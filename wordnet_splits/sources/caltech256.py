"""Caltech-256: ``256_ObjectCategories/<number>.<name>/<number>_<image>.jpg``, one split.

Reference: Griffin, Holub, Perona, Caltech-256 Object Category Dataset, report CNS-TR-2007-001, Caltech 2007.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from wordnet_splits.sources.base import register
from wordnet_splits.sources.layouts.folders import class_folders
from wordnet_splits.sources.layouts.names import Naming
from wordnet_splits.sources.layouts.parts import PartedSource, SourcePart
from wordnet_splits.sources.layouts.walk import bases

IMAGES = Naming("caltech256", ("all",), r"\d{3}_\d{4}", qualified=True)


@register
class Caltech256(PartedSource):
    """256 object classes; the clutter class is not part of the catalog and is reported as unexpected."""

    name: ClassVar[str] = "caltech256"
    splits: ClassVar[tuple[str, ...]] = ("all",)
    looks_for: ClassVar[str] = "256_ObjectCategories/<class>/*.jpg with classes such as 001.ak47"

    @classmethod
    def find(cls, root: Path) -> tuple[SourcePart, ...]:
        """Return the folder of the class folders."""
        for base in bases(root, "caltech256", "256_ObjectCategories", "caltech256/256_ObjectCategories"):
            part = class_folders(base, "", root, IMAGES)
            if part is not None:
                return (part,)
        return ()
