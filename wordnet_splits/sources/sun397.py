"""SUN397: ``<letter>/<class>/sun_<letters>.jpg``, one split, in folders or in the publisher's tar.

The image list is published nowhere but in the archive itself, so what is drawn from it awaits a copy.

Reference: Xiao, Hays, Ehinger, Oliva, Torralba, SUN Database: Large-scale Scene Recognition from Abbey to
Zoo, CVPR 2010.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from wordnet_splits.sources.base import register
from wordnet_splits.sources.layouts.class_tars import ClassTar
from wordnet_splits.sources.layouts.folders import below_letter, class_folders
from wordnet_splits.sources.layouts.names import Naming
from wordnet_splits.sources.layouts.parts import PartedSource, SourcePart
from wordnet_splits.sources.layouts.tars import archive
from wordnet_splits.sources.layouts.walk import bases

IMAGES = Naming("sun397", ("all",), r"sun_[a-z]{16}", qualified=True)


@register
class Sun397(PartedSource):
    """397 scene classes, 108,754 images; the publisher's ten train/test partitions are lists over them."""

    name: ClassVar[str] = "sun397"
    splits: ClassVar[tuple[str, ...]] = ("all",)
    looks_for: ClassVar[str] = (
        "SUN397 with class folders such as a/abbey (sun_*.jpg), or SUN397.tar (unpack the gzip, not the tar)"
    )

    @classmethod
    def find(cls, root: Path) -> tuple[SourcePart, ...]:
        """Return the folder of the class folders, or the archive."""
        for base in bases(root, "SUN397", "sun397"):
            if part := class_folders(base, "", root, IMAGES, spellings=below_letter):
                return (part,)
            if path := archive(base, "SUN397.tar", root):
                return (ClassTar(path, IMAGES, below_letter),)
        return ()
