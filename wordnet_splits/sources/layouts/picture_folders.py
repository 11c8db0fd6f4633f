"""Losslessly stored pictures in class folders: ``<split>/<class>/<name>.png``, or ``<class>/<name>.png``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from wordnet_splits.base.digests import Pixels
from wordnet_splits.base.errors import SourceError
from wordnet_splits.base.untrusted import read_image
from wordnet_splits.sources.layouts.matching import Copy, UnnamedPicture, decode_pixels
from wordnet_splits.sources.layouts.walk import entries, folders, subfolder

LOSSLESS = frozenset({"png", "bmp", "ppm", "tif", "tiff"})
LARGEST_FILE = 1 << 20  # bytes; a picture of 32 x 32 has about 2 kB


class PictureFolders(Copy[str]):
    """The class folders of a copy. A picture's place is its path below the folder.

    Parameters
    ----------
    folder : where the splits are, or the classes of all splits together.
    root : the dataset's root, which no link may leave.
    splits : the publisher's.
    class_folders : the class of each folder name; some copies have names of their own for a class.
    shape : (h, w, 3) that every picture must have.
    """

    def __init__(
        self,
        folder: Path,
        root: Path,
        splits: Collection[str],
        class_folders: Mapping[str, str],
        shape: tuple[int, int, int],
    ) -> None:
        self._folder = folder
        self._root = root
        self._class_folders = class_folders
        self._shape = shape
        self.by_split = bool(_split_folders(folder, root, splits, class_folders))

    @classmethod
    def held(
        cls, folder: Path, root: Path, splits: Collection[str], class_folders: Mapping[str, str]
    ) -> set[str]:
        """Return the classes that have a folder; none where most folders are of other classes."""
        parents = _split_folders(folder, root, splits, class_folders) or [folder]
        names = {name for parent in parents for name in folders(parent, root)}
        known = {class_folders[name] for name in names if name in class_folders}
        return known if 2 * len(known) > len(names) else set()

    def items(self, split: str, unexpected: Counter[str]) -> Iterator[UnnamedPicture[str]]:
        """Yield the files of the class folders of ``split`` (of all splits, if they are together)."""
        parent = subfolder(self._folder, split, self._root) if self.by_split else self._folder
        if parent is None:
            return
        for folder in entries(parent, self._root):
            place = folder.name if not self.by_split else f"{split}/{folder.name}"
            if not folder.is_dir() or folder.name not in self._class_folders:
                unexpected[place] += 1
                continue
            yield from self._files(folder.path, self._class_folders[folder.name], place, unexpected)

    def _files(
        self, folder: str, class_id: str, place: str, unexpected: Counter[str]
    ) -> Iterator[UnnamedPicture[str]]:
        # By name, so that which of two equal pictures gets which id does not hang on the file system.
        for file in sorted(entries(folder, self._root), key=lambda entry: entry.name):
            stem, _, extension = file.name.rpartition(".")
            label = f"{place}/{file.name}"
            if extension.lower() in LOSSLESS and stem and file.is_file():
                yield UnnamedPicture(class_id, stem, label, label)
            else:
                unexpected[label] += 1

    def pixels(self, place: str) -> Pixels:
        """Return one picture, uint8 (h, w, 3)."""
        path = self._folder / place
        if path.stat().st_size > LARGEST_FILE:
            raise SourceError("far larger than a picture of this dataset", where=str(path))
        return decode_pixels(read_image(path, self._root), where=str(path), shape=self._shape)


def _split_folders(
    folder: Path, root: Path, splits: Collection[str], class_folders: Collection[str]
) -> list[Path]:
    """Return the folders of splits: they hold class folders. (``train`` is a class of CIFAR-100 too.)"""
    found = [below for split in splits if (below := subfolder(folder, split, root))]
    return [below for below in found if not set(class_folders).isdisjoint(folders(below, root))]
