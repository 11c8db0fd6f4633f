"""Losslessly stored pictures in class folders: ``<split>/<class>/<name>.png``, or ``<class>/<name>.png``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path

from wordnet_splits.base.digests import Pixels
from wordnet_splits.base.errors import SourceError
from wordnet_splits.base.untrusted import read_image
from wordnet_splits.sources.layouts.pictures import Listing, PictureCopy, decode_pixels
from wordnet_splits.sources.layouts.walk import entries, folders, subfolder

LOSSLESS = frozenset({"png", "bmp", "ppm", "tif", "tiff"})
LARGEST_FILE = 1 << 20  # bytes; a picture of 32 x 32 has about 2 kB


class PictureFolders(PictureCopy):
    """The class folders of a copy.

    Parameters
    ----------
    folder : folder of the splits, or of the classes of all splits together.
    root : the dataset's root, which no link may leave.
    splits : the publisher's splits.
    class_folders : folder name -> class; a class may have several names.
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
        self._paths: dict[str, list[str]] = {}
        self.by_split = bool(_split_folders(folder, root, splits, class_folders))

    def listing(self, split: str) -> Listing:
        """Return the files of the class folders of ``split`` (of all splits, if they are together)."""
        unexpected: Counter[str] = Counter()
        names: list[str] = []
        classes: list[str | None] = []
        paths = self._paths[split] = []
        parent = subfolder(self._folder, split, self._root) if self.by_split else self._folder
        for folder in [] if parent is None else entries(parent, self._root):
            above = folder.name if not self.by_split else f"{split}/{folder.name}"
            if not folder.is_dir() or folder.name not in self._class_folders:
                unexpected[above] += 1
                continue
            # By name, so that which of two equal pictures gets which id does not depend on the file system.
            for file in sorted(entries(folder.path, self._root), key=lambda entry: entry.name):
                stem, _, extension = file.name.rpartition(".")
                if extension.lower() in LOSSLESS and stem and file.is_file():
                    names.append(stem)
                    classes.append(self._class_folders[folder.name])
                    paths.append(f"{above}/{file.name}")
                else:
                    unexpected[f"{above}/{file.name}"] += 1
        return Listing(classes, paths.__getitem__, names, unexpected)

    def pixels(self, split: str, index: int) -> Pixels:
        """Return a picture, uint8 (h, w, 3)."""
        path = self._folder / self._paths[split][index]
        if path.stat().st_size > LARGEST_FILE:
            raise SourceError("far larger than a picture of this dataset", where=str(path))
        return decode_pixels(read_image(path, self._root), where=str(path), shape=self._shape)


def find_class_ids(
    folder: Path, root: Path, splits: Collection[str], class_folders: Mapping[str, str]
) -> set[str]:
    """Return the classes that have a folder; none where most folders are of other classes."""
    parents = _split_folders(folder, root, splits, class_folders) or [folder]
    names = {name for parent in parents for name in folders(parent, root)}
    classes = {class_folders[name] for name in names if name in class_folders}
    return classes if 2 * len(classes) > len(names) else set()


def _split_folders(
    folder: Path, root: Path, splits: Collection[str], class_folders: Collection[str]
) -> list[Path]:
    """Return the folders of splits, which have class folders: ``train`` is a class of CIFAR-100, too."""
    subfolders = [below for split in splits if (below := subfolder(folder, split, root))]
    return [below for below in subfolders if not set(class_folders).isdisjoint(folders(below, root))]
