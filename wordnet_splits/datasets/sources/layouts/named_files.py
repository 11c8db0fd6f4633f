"""Layouts whose image files or archive members have the publisher's names, the basis of ids."""

from __future__ import annotations

import re
import sys
from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import ClassVar

import numpy as np

from wordnet_splits.base.errors import SourceError
from wordnet_splits.datasets.catalog import load_catalog
from wordnet_splits.datasets.catalog.inventory import load_inventory
from wordnet_splits.datasets.sources.layouts.layout import Image, Layout, Location, Note, Raw, Row

IMAGE_EXTENSIONS = frozenset({"jpg", "jpeg", "png", "gif"})
LONGEST_KEY = 160  # characters; no publisher has longer names, and each takes as many bytes in an index


@dataclass(frozen=True)
class Naming:
    """The names of the images of a split, or of several splits kept in the same folders.

    If the inventories of all its splits are shipped, a file is an image if its id is in them. Otherwise its
    name must match ``stem`` and the catalog must have its class in one of the splits (a count of 0 means that
    a split has no images of the class).

    Attributes
    ----------
    source, splits : dataset and splits that have these names.
    stem : regular expression of a whole file name without extension; a group ``class`` holds the class.
    qualified : whether the id is ``class_id/stem`` (True) or the stem alone.
    prefix : the beginning of all ids, such as ``test/``.
    underscored : whether ids have underscores where the file names of some copies have blanks.
    distinctive : regular expression of the stems that no other dataset has; by default, it matches all stems.
    """

    source: str
    splits: tuple[str, ...]
    stem: str
    qualified: bool = False
    prefix: str = ""
    underscored: bool = False
    distinctive: str = ".*"

    def plain(self, stem: str) -> str:
        """Return a file name without extension as ids write it."""
        return stem.replace(" ", "_") if self.underscored else stem

    def row(self, class_id: str | None, stem: str) -> Row | None:
        """Return (image_id, class_id, split) of a file, None where it is not an image of these splits.

        ``class_id`` is the class whose folder holds the file, None in a flat folder.
        """
        stem = self.plain(stem)
        match = re.fullmatch(self.stem, stem)  # the pattern's compilation is cached by re
        if match is None:
            return None
        named_class = match.groupdict().get("class") or class_id
        if class_id is not None and named_class != class_id:
            return None
        image_id = self.prefix + (f"{named_class}/{stem}" if self.qualified else stem)
        inventory = _inventory(self.source, self.splits)
        if inventory is not None:
            inventory_class, split = inventory.get(image_id, (None, ""))
            if inventory_class is None or named_class not in (None, inventory_class):
                return None
            return image_id, inventory_class, split
        if named_class is None or named_class not in load_catalog(self.source):
            return None
        only_split = self._split_of(named_class)
        return None if only_split is None else (image_id, named_class, only_split)

    def locate(self, image_id: str) -> tuple[str, str]:
        """Return (class_id, stem) of an id; KeyError where it cannot be an id of these splits.

        Nothing but an id reaches the file system: ids come from manifests that others wrote.
        """
        rest = image_id.removeprefix(self.prefix)  # an id without it is refused below
        class_id, _, stem = rest.rpartition("/") if self.qualified else ("", "", rest)
        row = self.row(class_id or None, stem)
        if row is None or row[0] != image_id:
            raise KeyError(image_id)
        return row[1], stem

    def _split_of(self, class_id: str) -> str | None:
        counts = load_catalog(self.source)[class_id].counts
        splits = [split for split in self.splits if counts[split] != 0]
        if len(splits) > 1:
            message = f"cannot assign the images of {self.source} to {' and '.join(self.splits)}"
            raise SourceError(message, hint="its inventory is not installed; reinstall wordnet-splits")
        return splits[0] if splits else None


class NameIndex:
    """Positions of the named images in an archive or table: a name and 8 bytes a number, found by bisection.

    Parameters
    ----------
    entries : (name or None, numbers that make the position) of every entry.
    where : the file, for errors.
    """

    def __init__(self, entries: Iterable[tuple[str | None, tuple[int, ...]]], where: str) -> None:
        short = [(s.encode(), at) for s, at in entries if s and len(s) <= LONGEST_KEY and s.isascii()]
        names = np.array([name for name, _ in short] or [b""], dtype=np.bytes_)
        order = np.argsort(names, kind="stable")
        self._names = names[order]
        self._positions = np.array([at for _, at in short] or [()], dtype=np.int64)[order]
        self._where = where

    def position(self, name: str) -> tuple[int, ...]:
        """Return the position of an image.

        Raises KeyError if it is absent, SourceError if two entries have the name.
        """
        start, stop = (int(np.searchsorted(self._names, name.encode(), side)) for side in ("left", "right"))
        if start == stop or not name:
            raise KeyError(name)
        if stop - start > 1:
            message = f"{stop - start} files are named {name!r}"
            raise SourceError(message, where=self._where, hint="fetch this file again")
        return tuple(self._positions[start].tolist())


@cache
def _inventory(source: str, splits: tuple[str, ...]) -> dict[str, tuple[str, str]] | None:
    """Return image_id -> (class_id, split) of the splits, or None where one has no inventory."""
    rows: dict[str, tuple[str, str]] = {}
    for split in splits:
        table = load_inventory(source, split)
        if table is None:
            return None
        ids = table.column("image_id").to_pylist()
        classes = table.column("class_id").to_pylist()
        pairs = {class_id: (sys.intern(class_id), split) for class_id in set(classes)}
        rows.update(zip(ids, map(pairs.__getitem__, classes), strict=True))
    return rows


def split_extension(name: str) -> str | None:
    """Return a file name without its extension, None unless that is an image's, in upper or lower case."""
    stem, dot, extension = name.rpartition(".")
    return stem if dot and extension.lower() in IMAGE_EXTENSIONS else None


Entry = tuple[str | None, str | None, str]
"""One entry: class_id of its folder or None, file name without extension or None if it is not an image file,
and its name in messages."""

Position = tuple[int, ...]
"""Position of a file in an archive or a table."""

SAMPLE = 300
"""Number of names compared to distinguish datasets with similar folders."""


class NamedFiles(Layout):
    """Image files, or files in an archive, with ids made from their name and class folder.

    The location of an image is its class and its file name without extension.

    Attributes
    ----------
    path : the folder or archive.
    naming : how the files are named.
    """

    path: Path
    naming: Naming

    @abstractmethod
    def entries(self) -> Iterator[Entry]:
        """Yield all entries, each class (and the entries without a class) in one run, else in any order."""

    def images(self, note: Note, splits: Collection[str]) -> Iterator[Image]:
        """Yield the valid images, noting other names; SourceError if two files have one id."""
        if set(self.naming.splits).isdisjoint(splits):
            return
        ids: set[str] = set()
        run: str | None = None
        for class_id, stem, shown in self.entries():
            row = None if stem is None else self.naming.row(class_id, stem)
            if stem is None or row is None:
                note(shown)
                continue
            if class_id != run:  # an id names its class, so it cannot recur in another run
                ids, run = set(), class_id
            if row[0] in ids:
                message = f"two files have the id {row[0]!r} of {self.naming.source}; the second is {shown}"
                raise SourceError(message, where=str(self.path), hint="remove one of them")
            ids.add(row[0])
            if row[2] in splits:
                yield Image(*row, (row[1], self.naming.plain(stem)))

    def locate(self, image_id: str) -> Location:
        """Return the class and file name of an id."""
        return self.naming.locate(image_id)

    def is_unambiguous(self) -> bool:
        """Return whether most names in a sample are ids of this dataset, and one is distinctive."""
        stems = ((class_id, stem) for class_id, stem, _ in self.entries() if stem is not None)
        sample = list(islice(stems, SAMPLE))
        valid = [stem for class_id, stem in sample if self.naming.row(class_id, stem)]
        distinctive = re.compile(self.naming.distinctive)
        return 2 * len(valid) >= len(sample) and any(map(distinctive.fullmatch, valid))


class OverlappingFiles(NamedFiles):
    """Layouts that share a naming and classes; a class is listed from the first layout that has it."""

    def __init__(self, layouts: tuple[NamedFiles, ...]) -> None:
        self.layouts = layouts
        self.path = layouts[0].path.parent
        self.naming = layouts[0].naming
        self.name = "+".join(dict.fromkeys(layout.name for layout in layouts))

    def entries(self) -> Iterator[Entry]:
        """Yield the entries of the layouts."""
        listed: set[str | None] = set()
        for layout in self.layouts:
            classes: set[str | None] = set()
            for class_id, stem, shown in layout.entries():
                if class_id is None or class_id not in listed:
                    classes.add(class_id)
                    yield class_id, stem, shown
            listed |= classes

    def read(self, location: Location) -> Raw:
        """Return a file's bytes from the first layout that has it; KeyError if none has it."""
        for layout in self.layouts:
            with suppress(KeyError, FileNotFoundError):
                return layout.read(location)
        raise KeyError(location)


class IndexedFiles(NamedFiles):
    """Image files in an archive or a table, found by an index that is made at the first read.

    ``by_class`` : whether the files are in class folders.
    """

    positioned: ClassVar[bool] = True
    by_class: ClassVar[bool] = False

    @abstractmethod
    def members(self, class_id: str | None = None) -> Iterator[tuple[Entry, Position]]:
        """Yield the entries of a class, or of all, with their positions; further entries do no harm."""

    @abstractmethod
    def read_at(self, position: Position) -> bytes:
        """Return the bytes of a file."""

    def index(self, class_id: str) -> NameIndex:
        """Return the index that has the files of a class, made once per process."""
        return self.cached("index", self.make_index)

    def make_index(self, class_id: str | None = None) -> NameIndex:
        """Return an index of the files of a class, or of all."""
        keys = (
            (stem and self._key(of_class, stem), at) for (of_class, stem, _), at in self.members(class_id)
        )
        return NameIndex(keys, str(self.path))

    def entries(self) -> Iterator[Entry]:
        """Yield the entries in storage order."""
        return (entry for entry, _ in self.members())

    def read(self, location: Location) -> bytes:
        """Return a file's bytes; KeyError if it is absent, SourceError if there are two."""
        return self.read_at(self.storage_position(location))

    def storage_position(self, location: Location) -> Position:
        """Return the position of a file."""
        class_id, stem = map(str, location)
        return self.index(class_id).position(self._key(class_id, stem))

    def _key(self, class_id: str | None, stem: str) -> str:
        return f"{class_id}/{stem}" if self.by_class else stem
