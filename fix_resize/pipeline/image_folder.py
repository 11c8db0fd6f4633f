"""Any folder of images as a source: names are kept, subfolders are classes."""

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
    """A folder of images, however deep.

    An image's id is its path below the folder without extension (with it, where two files of its folder
    differ in nothing else); its class is the path of the folder it lies in, empty at the top. Links are
    followed inside the folder only. Hidden files are ignored, others counted in ``unexpected``.
    """

    name: ClassVar[str] = "folder"
    splits: ClassVar[tuple[str, ...]] = (SPLIT,)
    looks_for: ClassVar[str] = "image files, at any depth"

    @classmethod
    def detect(cls, root: Path | None) -> str | None:
        """Return ``folder``: whatever it holds."""
        return None if root is None else "folder"

    @classmethod
    def open(cls, root: Path | None, layout: str = "folder", **params: Any) -> ImageFolder:
        """Open a folder.

        Raises
        ------
        SourceError : it is absent, empty or cannot be read.
        """
        if root is None or params:
            raise SourceError("a folder of images takes its path and nothing else", where="--root")
        return cls(check_root(root, cls.name, hint="give a folder that holds images"), layout)

    def rows(self, splits: Collection[str]) -> Iterator[Row]:
        """Yield (image_id, class_id, split) of every image file."""
        return self._below(PurePosixPath()) if SPLIT in splits else iter(())

    def _below(self, place: PurePosixPath) -> Iterator[Row]:
        assert self.root is not None, "rooted"
        class_id = "" if place == PurePosixPath() else str(place)
        inside = sorted(entries(self.root / place, self.root), key=lambda entry: entry.name)
        files = [entry.name for entry in inside if not entry.is_dir()]
        for name in files:
            if not _is_image(name):
                self.note_unexpected(str(place / name).encode("utf-8", "backslashreplace").decode())
        yield from ((str(place / stem), class_id, SPLIT) for stem in name_by_stem(files))
        for entry in inside:
            if entry.is_dir():
                yield from self._below(place / entry.name)

    def read_one(self, image_id: str) -> Raw:
        """Return one file's bytes."""
        assert self.root is not None, "rooted"
        place = PurePosixPath(image_id).parent
        names = self.cached(f"names {place}", lambda: self._names(place))
        return read_image(self.root / place / names[PurePosixPath(image_id).name], self.root)

    def _names(self, place: PurePosixPath) -> dict[str, str]:
        assert self.root is not None, "rooted"
        inside = entries(self.root / place, self.root)
        return name_by_stem(entry.name for entry in inside if not entry.is_dir())


def name_by_stem(files: Iterator[str] | Collection[str]) -> dict[str, str]:
    """Return the image files of one folder by their stems, or by their whole names where stems clash."""
    names = sorted(filter(_is_image, files))
    stems = [name.rpartition(".")[0] for name in names]
    clash = Counter(stems).most_common(1)[:1]
    return dict(zip(names if clash and clash[0][1] > 1 else stems, names, strict=True))


def _is_image(name: str) -> bool:
    stem, _, extension = name.rpartition(".")
    return bool(stem) and extension.lower() in EXTENSIONS and not _surrogates(name)


def _surrogates(name: str) -> bool:
    """Return whether a file's name is not UTF-8 text, so that no table can hold it."""
    return any("\ud800" <= letter <= "\udfff" for letter in name)
