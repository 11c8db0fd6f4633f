"""A folder of images as a source: its subfolders are the classes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path, PurePosixPath
from typing import ClassVar

from fix_resize.decode import EXTENSIONS
from wordnet_splits.base.untrusted import read_image
from wordnet_splits.sources.layouts import Image, Layout, Location, Note
from wordnet_splits.sources.layouts.walk import check_root, entries
from wordnet_splits.sources.source import Source

SPLIT = "all"


class ImageTree(Layout):
    """Image files at any depth; the location of an image is its folder and its name in an id."""

    name = "folder"

    def __init__(self, root: Path) -> None:
        self.root = root

    def images(self, note: Note, splits: Collection[str]) -> Iterator[Image]:
        """Yield every image file."""
        return self._below(PurePosixPath(), note)

    def locate(self, image_id: str) -> Location:
        """Return the folder and the name of an image."""
        path = PurePosixPath(image_id)
        return str(path.parent), path.name

    def read(self, location: Location) -> bytes:
        """Return one file's bytes."""
        folder, name = map(str, location)
        names = self.cached(f"names {folder}", lambda: self._names(folder))
        return read_image(self.root / folder / names[name], self.root)

    def _below(self, folder: PurePosixPath, note: Note) -> Iterator[Image]:
        class_id = "" if folder == PurePosixPath() else str(folder)
        inside = sorted(entries(self.root / folder, self.root), key=lambda entry: entry.name)
        files = [entry.name for entry in inside if not entry.is_dir()]
        for name in files:
            if not _is_image(name):
                note(str(folder / name).encode("utf-8", "backslashreplace").decode())
        for stem in names_by_stem(files):
            yield Image(str(folder / stem), class_id, SPLIT, (str(folder), stem))
        for entry in inside:
            if entry.is_dir():
                yield from self._below(folder / entry.name, note)

    def _names(self, folder: str) -> dict[str, str]:
        inside = entries(self.root / folder, self.root)
        return names_by_stem(entry.name for entry in inside if not entry.is_dir())


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
    def layouts(cls, root: Path) -> Iterator[Layout]:
        """Yield the folder, whatever it holds."""
        yield ImageTree(root)

    @classmethod
    def open_folder(cls, root: Path) -> ImageFolder:
        """Open a folder.

        Raises
        ------
        SourceError : the folder does not exist, is empty or cannot be read.
        """
        folder = check_root(root, cls.name, hint="give a folder that holds images")
        return cls.open(folder, ImageTree(folder))


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
