"""Layouts of small images that share a file, or have other names than the publisher's.

An image is identified by its published name if the copy has names, else by its digest. If the shipped
inventory has digests, images are matched by (split, class, digest), and equal images are assigned in
image_id order. Ids that are positions are valid only for files with the publisher's checksums; without
digests the ``order`` of another copy is "unknown".
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar, Final

import numpy as np

from fix_resize.decode import decode_bytes
from wordnet_splits.base.digests import Pixels, digest_pixels
from wordnet_splits.base.errors import SourceError
from wordnet_splits.base.untrusted import read_image
from wordnet_splits.datasets.catalog import load_catalog
from wordnet_splits.datasets.catalog.inventory import inventory_splits, load_inventory
from wordnet_splits.datasets.sources.layouts.layout import Image, Layout, Location, Note
from wordnet_splits.datasets.sources.layouts.walk import bases, entries, folders, subfolder

Shape = tuple[int, int, int]
"""Height, width and channels of every image of a dataset."""

WHOLE_COPY = ""
"""Split of all images of a copy without splits."""

MOST_DIGITS: Final = 9
"""Largest number of digits of a position in an id."""


@dataclass(frozen=True)
class Listing:
    """The images of a split, in the order stored.

    Attributes
    ----------
    classes : class_id of each image, None if its label belongs to no class.
    describe : function from a position to the heading under which an unidentified image is counted.
    names : published file name of each image, without extension; empty where the copy has no names.
    unexpected : names of entries that are not images.
    """

    classes: Sequence[str | None]
    describe: Callable[[int], str]
    names: Sequence[str] = ()
    unexpected: Mapping[str, int] = field(default_factory=dict)


class MatchedImages(Layout):
    """Images identified by name, digest or position; ids are ``<split>/<class>/<name>`` or ``<split>/<n>``.

    Parameters
    ----------
    source : the dataset.
    root : its folder.
    positional : whether an id is a position, counted from 0, so that only digests or the publisher's files
        identify its image.

    Attributes
    ----------
    by_split : whether the copy separates its splits; if not, all images are listed as `WHOLE_COPY`.
    """

    decoded: ClassVar[bool] = True
    by_split: bool = True

    def __init__(self, source: str, root: Path, *, positional: bool = False) -> None:
        self.source, self.root, self.positional = source, root, positional
        catalog = load_catalog(source)
        self.splits, self.class_ids = catalog.splits, tuple(item.class_id for item in catalog)

    @abstractmethod
    def listing(self, split: str) -> Listing:
        """Return the images of a split, none if it is absent. Raises SourceError."""

    @abstractmethod
    def pixels(self, split: str, index: int) -> Pixels:
        """Return an image, uint8 (h, w, 3) or (h, w); SourceError if it cannot be decoded."""

    def is_published(self) -> bool:
        """Return whether the files are the publisher's, whose order makes positional ids."""
        return False

    def prepare(self) -> None:
        """Compare the files with the publisher's checksums, if ids are positions."""
        if self.positional and not self.is_published():
            self.positional = not _has_all_digests(self.source, self.splits)
            self.order = "unknown" if self.positional else "published"

    def images(self, note: Note, splits: Collection[str]) -> Iterator[Image]:
        """Yield every image that has an id."""
        if self.positional:
            for split in splits:
                listing = self._listing(split)
                for position, class_id in enumerate(listing.classes):
                    if class_id is None:
                        note(listing.describe(position))
                    else:
                        yield Image(f"{split}/{position}", class_id, split, (split, position))
            return
        for listed in dict.fromkeys(split if self.by_split else WHOLE_COPY for split in splits):
            locations, unexpected = self._index(listed)
            classes = self._listing(listed).classes
            for image_id, (_, position) in locations.items():
                split = image_id.partition("/")[0]
                if split in splits:
                    yield Image(image_id, str(classes[position]), split, (listed, position))
            for name in unexpected.elements():
                note(name)

    def locate(self, image_id: str) -> Location:
        """Return the split of an image in the copy, and its position there."""
        split, _, text = image_id.partition("/")
        if split not in self.splits:
            raise KeyError(image_id)
        if not self.positional:
            return self._index(split if self.by_split else WHOLE_COPY)[0][image_id]
        position = parse_position(text)
        if position >= len(self._listing(split).classes):
            raise KeyError(image_id)
        return split, position

    def read(self, location: Location) -> Pixels:
        """Return the pixels, uint8 (h, w, 3) or (h, w)."""
        return self.pixels(str(location[0]), int(location[1]))

    def _listing(self, split: str) -> Listing:
        return self.cached(f"listing {split}", lambda: self.listing(split))

    def _index(self, listed: str) -> tuple[dict[str, tuple[str, int]], Counter[str]]:
        """Return the location of each identified image, and the number of unexpected entries by name."""
        return self.cached(f"index {listed}", lambda: self._identify(listed))

    def _identify(self, listed: str) -> tuple[dict[str, tuple[str, int]], Counter[str]]:
        """Return the index of a listing.

        Raises SourceError where two images have one name, or an inventory is needed and not there.
        """
        listing = self._listing(listed)
        splits = (listed,) if self.by_split else self.splits
        inventory = {image_id: row for split in splits for image_id, row in self._inventory(split)}
        locations: dict[str, tuple[str, int]] = {}
        unexpected = Counter(listing.unexpected)
        unnamed: list[tuple[int, str]] = []
        for position, class_id in enumerate(listing.classes):
            if class_id is None:
                unexpected[listing.describe(position)] += 1
                continue
            name = listing.names[position] if listing.names else ""
            ids = [i for s in splits if name and (i := f"{s}/{class_id}/{name}") in inventory]
            if len(ids) != 1:
                unnamed.append((position, class_id))
            elif locations.setdefault(ids[0], (listed, position)) != (listed, position):
                where = f"{self.root}: {listing.describe(position)}"
                raise SourceError(f"image {ids[0]!r} of {self.source} is there twice", where=where)
        unidentified: dict[tuple[str, bytes], list[str]] = defaultdict(list)
        for image_id, (class_id, digest) in inventory.items():
            if digest is not None and image_id not in locations:
                unidentified[class_id, digest].append(image_id)
        for position, class_id in unnamed:
            key = class_id, self._digest(listed, position) if unidentified else b""
            if unidentified.get(key):
                locations[unidentified[key].pop(0)] = listed, position
            else:
                unexpected[listing.describe(position)] += 1
        return locations, unexpected

    def _inventory(self, split: str) -> Iterator[tuple[str, tuple[str, bytes | None]]]:
        """Yield (image_id, (class_id, digest)) of the shipped inventory."""
        table = load_inventory(self.source, split)
        if table is None:
            message = f"the inventory of {self.source} {split} is not installed"
            raise SourceError(message, hint="reinstall wordnet-splits")
        ids, classes, digests = (table[name].to_pylist() for name in ("image_id", "class_id", "digest"))
        yield from zip(ids, zip(classes, digests, strict=True), strict=True)

    def _digest(self, listed: str, position: int) -> bytes:
        """Return the digest of an image, which is empty if it cannot be read."""
        try:
            return digest_pixels(self.pixels(listed, position))
        except (SourceError, OSError):
            return b""


def _has_all_digests(source: str, splits: Collection[str]) -> bool:
    """Return whether the digest of every image of a source is shipped."""
    if set(inventory_splits(source)) != set(splits):
        return False
    tables = (load_inventory(source, split) for split in splits)
    return all(table is not None and table["digest"].null_count == 0 for table in tables)


def decode_pixels(data: bytes, *, where: str, shape: Shape) -> Pixels:
    """Return the pixels of an image file, uint8 of ``shape`` (h, w, 3); SourceError for another shape."""
    pixels = np.array(decode_bytes(data, where=where), dtype=np.uint8)
    if pixels.shape != shape:
        height, width = pixels.shape[:2]
        raise SourceError(f"an image of {height} x {width} pixels, not {shape[0]} x {shape[1]}", where=where)
    return pixels


LOSSLESS = frozenset({"png", "bmp", "ppm", "tif", "tiff"})
LARGEST_FILE = 1 << 20  # bytes; an image of 32 x 32 has about 2 kB


class ImageFolders(MatchedImages):
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
            raise SourceError("far larger than an image of this dataset", where=str(path))
        return decode_pixels(read_image(path, self.root), where=str(path), shape=self._shape)


def find_image_folders(
    source: str,
    root: Path,
    *,
    shape: Shape,
    misspelt: Mapping[str, str] = MappingProxyType({}),
) -> ImageFolders | None:
    """Return the class folders of a dataset, None where most folders are of other classes.

    ``misspelt`` has other names of class folders.
    """
    class_folders = {item.class_id: item.class_id for item in load_catalog(source)} | dict(misspelt)
    layouts = (ImageFolders(source, root, base, class_folders, shape) for base in bases(root, source))
    return next((layout for layout in layouts if layout.fits), None)


def parse_position(text: str) -> int:
    """Return the position that an id ends in; KeyError unless it is written as ids write it."""
    if not (text.isascii() and text.isdigit()) or len(text) > MOST_DIGITS or str(int(text)) != text:
        raise KeyError(text)
    return int(text)
