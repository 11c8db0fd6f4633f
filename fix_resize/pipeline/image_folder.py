"""A folder of images as a source: its subfolders are the classes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar

from wordnet_splits.base.errors import SourceError
from wordnet_splits.base.untrusted import read_image
from wordnet_splits.sources.base import Raw, Row, Source
from wordnet_splits.sources.layouts.walk import check_root, entries
from wordnet_splits.sources.pixels import EXTENSIONS

SPLIT = "all"


class ImageFolder(Source):
    """A folder of images and subfolders.

    The id of an image is its path below the root without extension (with extension if two files of its folder
    would otherwise have the same id); its class is the path of its folder, empty at the root. Links are
    followed only within the root. Hidden files are ignored, other files are counted in ``unexpected``.
    """

    name: ClassVar[str] = "folder"
    splits: ClassVar[tuple[str, ...]] = (SPLIT,)
    looks_for: ClassVar[str] = "image files, at any depth"

    @classmethod
    def detect(cls, root: Path | None) -> str | None:
        """Return ``folder``, the only layout."""
        return None if root is None else "folder"

    @classmethod
    def open(cls, root: Path | None, layout: str = "folder", **params: Any) -> ImageFolder:
        """Open a folder.

        Raises
        ------
        SourceError : the folder does not exist, is empty or cannot be read.
        """
        if root is None or params:
            raise SourceError("a folder of images has no parameters except its path", where="--root")
        return cls(check_root(root, cls.name, hint="give a folder that contains images"), layout)

    def rows(self, splits: Collection[str]) -> Iterator[Row]:
        """Yield (image_id, class_id, split) of every image file."""
        return self._below(PurePosixPath()) if SPLIT in splits else iter(())

    def _below(self, folder: PurePosixPath) -> Iterator[Row]:
        assert self.root is not None, "rooted"
        class_id = "" if folder == PurePosixPath() else str(folder)
        entries_here = sorted(entries(self.root / folder, self.root), key=lambda entry: entry.name)
        files = [entry.name for entry in entries_here if not entry.is_dir()]
        for name in files:
            if not _is_image(name):
                self.note_unexpected(str(folder / name).encode("utf-8", "backslashreplace").decode())
        yield from ((str(folder / stem), class_id, SPLIT) for stem in names_by_stem(files))
        for entry in entries_here:
            if entry.is_dir():
                yield from self._below(folder / entry.name)

    def read_one(self, image_id: str) -> Raw:
        """Return the bytes of a file."""
        assert self.root is not None, "rooted"
        folder = PurePosixPath(image_id).parent
        names = self.cached(f"names {folder}", lambda: self._names(folder))
        return read_image(self.root / folder / names[PurePosixPath(image_id).name], self.root)

    def _names(self, folder: PurePosixPath) -> dict[str, str]:
        assert self.root is not None, "rooted"
        entries_here = entries(self.root / folder, self.root)
        return names_by_stem(entry.name for entry in entries_here if not entry.is_dir())


def names_by_stem(files: Iterator[str] | Collection[str]) -> dict[str, str]:
    """Return the image files of a folder by stem, or by full name if two have the same stem."""
    names = sorted(filter(_is_image, files))
    stems = [name.rpartition(".")[0] for name in names]
    most_common = Counter(stems).most_common(1)[:1]
    return dict(zip(names if most_common and most_common[0][1] > 1 else stems, names, strict=True))


def _is_image(name: str) -> bool:
    stem, _, extension = name.rpartition(".")
    return bool(stem) and extension.lower() in EXTENSIONS and not _has_surrogates(name)


def _has_surrogates(name: str) -> bool:
    """Return whether a file name is not valid UTF-8, so that tables cannot contain it."""
    return any("\ud800" <= letter <= "\udfff" for letter in name)
