"""Sources that are one tree: class folders, or one flat folder, in one of a few known places."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from wordnet_splits.sources.layouts.folders import class_folders, flat_folder
from wordnet_splits.sources.layouts.names import Naming
from wordnet_splits.sources.layouts.parts import PartedSource, SourcePart
from wordnet_splits.sources.layouts.walk import bases

CLASSIC, LARGE = "images_classic", "images_largescale"  # OpenOOD's two folders of datasets


def openood(name: str, folder: str = LARGE) -> tuple[str, str]:
    """Return where a dataset called ``name`` begins in OpenOOD's folders."""
    return name, f"{folder}/{name}"


class InClassFolders(PartedSource):
    """A source whose images all lie in one tree of class folders.

    Attributes
    ----------
    images : how the images are named.
    begins : folders that the dataset may begin in, beside the root itself.
    inside : the folders of the class folders below that, "" for the place itself; the first found is read.
    """

    images: ClassVar[Naming]
    begins: ClassVar[tuple[str, ...]]
    inside: ClassVar[tuple[str, ...]] = ("",)

    @classmethod
    def spellings(cls, class_id: str) -> tuple[str, ...]:
        """Return the folders that copies give to a class."""
        return (class_id,)

    @classmethod
    def find(cls, root: Path) -> tuple[SourcePart, ...]:
        """Return the tree of class folders."""
        for base in bases(root, *cls.begins):
            for name in cls.inside:
                part = class_folders(base, name, root, cls.images, spellings=cls.spellings)
                if part is not None:
                    return (part,)
        return ()


class InOneFolder(PartedSource):
    """A source whose images all lie directly in one folder; their classes are known from the inventory.

    Attributes
    ----------
    images : how the images are named.
    begins : folders that the dataset may begin in, beside the root itself.
    inside : the folders of the images below that, "" for the place itself; the first found is read.
    """

    images: ClassVar[Naming]
    begins: ClassVar[tuple[str, ...]]
    inside: ClassVar[tuple[str, ...]] = ("images", "")

    @classmethod
    def find(cls, root: Path) -> tuple[SourcePart, ...]:
        """Return the folder of the images."""
        for base in bases(root, *cls.begins):
            for name in cls.inside:
                part = flat_folder(base, name, root, cls.images)
                if part is not None:
                    return (part,)
        return ()
