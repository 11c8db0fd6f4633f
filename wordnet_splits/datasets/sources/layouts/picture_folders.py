"""Losslessly stored images in class folders: ``<split>/<class>/<name>.png``, or ``<class>/<name>.png``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from wordnet_splits.base.digests import Pixels
from wordnet_splits.base.errors import SourceError
from wordnet_splits.base.untrusted import read_image
from wordnet_splits.datasets.catalog import load_catalog
from wordnet_splits.datasets.sources.layouts.pictures import Listing, Pictures, Shape, decode_pixels
from wordnet_splits.datasets.sources.layouts.walk import bases, entries, folders, subfolder

LOSSLESS = frozenset({"png", "bmp", "ppm", "tif", "tiff"})
LARGEST_FILE = 1 << 20  # bytes; an image of 32 x 32 has about 2 kB


class PictureFolders(Pictures):
    """The class folders of a copy.

    Parameters
    ----------
    folder : folder of the splits, or of the classes of all splits together.
    class_folders : folder name -> class; a class may have several names.
    shape : (h, w, 3) that every image must have.
    """

    name = "folder"

    def __init__(
        self,
        source: str,
        root: Path,
        folder: Path,
        class_folders: Mapping[str, str],
        shape: Shape,
    ) -> None:
        super().__init__(source, root)
        self._folder, self._class_folders, self._shape = folder, class_folders, shape
        # `train` is a class of CIFAR-100, too: a folder of a split has class folders
        subfolders = [below for split in self.splits if (below := subfolder(folder, split, root))]
        parents = [below for below in subfolders if not set(class_folders).isdisjoint(folders(below, root))]
        self.by_split = bool(parents)
        names = {name for parent in parents or [folder] for name in folders(parent, root)}
        classes = {class_folders[name] for name in names if name in class_folders}
        self.fits = 2 * len(classes) > len(names)
        self._whole = len(classes) == len(self.class_ids)

    def is_unambiguous(self) -> bool:
        """Return whether every class has a folder."""
        return self._whole

    def listing(self, split: str) -> Listing:
        """Return the files of the class folders of ``split`` (of all splits, if they are together)."""
        unexpected: Counter[str] = Counter()
        names: list[str] = []
        classes: list[str | None] = []
        paths: list[str] = []
        parent = subfolder(self._folder, split, self.root) if self.by_split else self._folder
        for folder in [] if parent is None else entries(parent, self.root):
            above = folder.name if not self.by_split else f"{split}/{folder.name}"
            if not folder.is_dir() or folder.name not in self._class_folders:
                unexpected[above] += 1
                continue
            # By name, so that which of two equal images gets which id does not depend on the file system.
            for file in sorted(entries(folder.path, self.root), key=lambda entry: entry.name):
                stem, _, extension = file.name.rpartition(".")
                if extension.lower() in LOSSLESS and stem and file.is_file():
                    names.append(stem)
                    classes.append(self._class_folders[folder.name])
                    paths.append(f"{above}/{file.name}")
                else:
                    unexpected[f"{above}/{file.name}"] += 1
        return Listing(classes, paths.__getitem__, names, unexpected)

    def pixels(self, split: str, index: int) -> Pixels:
        """Return an image, uint8 (h, w, 3)."""
        path = self._folder / self._listing(split).describe(index)
        if path.stat().st_size > LARGEST_FILE:
            raise SourceError("far larger than a picture of this dataset", where=str(path))
        return decode_pixels(read_image(path, self.root), where=str(path), shape=self._shape)


def find_picture_folders(
    source: str,
    root: Path,
    *,
    shape: Shape,
    misspelt: Mapping[str, str] = MappingProxyType({}),
) -> PictureFolders | None:
    """Return the class folders of a dataset, None where most folders are of other classes.

    ``misspelt`` has other names of class folders.
    """
    class_folders = {item.class_id: item.class_id for item in load_catalog(source)} | dict(misspelt)
    layouts = (PictureFolders(source, root, base, class_folders, shape) for base in bases(root, source))
    return next((layout for layout in layouts if layout.fits), None)
