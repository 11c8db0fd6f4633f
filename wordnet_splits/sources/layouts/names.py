"""How a split names its images: from a class folder and a file name to an id, and back."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np

from wordnet_splits.base.errors import SourceError
from wordnet_splits.catalog import load_catalog
from wordnet_splits.catalog.inventory import load_inventory
from wordnet_splits.sources.base import Row

IMAGE_EXTENSIONS = frozenset({"jpg", "jpeg", "png", "gif"})
LONGEST_STEM = 64


@dataclass(frozen=True)
class Naming:
    """The names of the images of one split, or of several kept in the same folders.

    Where inventories of all its splits are shipped, an image is one iff its id is in them; elsewhere the
    name must fit ``stem`` and the catalog must have the class in one of the splits (a count of 0 says that a
    split has none of it).

    Attributes
    ----------
    source, splits : whose names these are.
    stem : regular expression of a whole file name without extension; a group ``class`` holds the class.
    qualified : whether the id is ``class_id/stem`` (True) or the stem alone.
    prefix : what stands before either in an id, such as ``test/``.
    underscored : whether ids have underscores where the file names of some copies have blanks.
    """

    source: str
    splits: tuple[str, ...]
    stem: str
    qualified: bool = False
    prefix: str = ""
    underscored: bool = False

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
        named = match.groupdict().get("class") or class_id
        if class_id is not None and named != class_id:
            return None
        image_id = self.prefix + (f"{named}/{stem}" if self.qualified else stem)
        known = _inventory(self.source, self.splits)
        if known is not None:
            listed, split = known.get(image_id, (None, ""))
            return (image_id, listed, split) if listed and named in (None, listed) else None
        if named is None or named not in load_catalog(self.source):
            return None
        having = self._split_of(named)
        return None if having is None else (image_id, named, having)

    def place(self, image_id: str) -> tuple[str, str]:
        """Return (class_id, stem) of an id; KeyError where it cannot be an id of these splits.

        Nothing but an id reaches the file system: ids come from manifests that others wrote.
        """
        rest = image_id.removeprefix(self.prefix)  # an id without it is no id of these splits: see below
        class_id, _, stem = rest.rpartition("/") if self.qualified else ("", "", rest)
        row = self.row(class_id or None, stem)
        if row is None or row[0] != image_id:
            raise KeyError(image_id)
        return row[1], stem

    def _split_of(self, class_id: str) -> str | None:
        counts = load_catalog(self.source)[class_id].counts
        having = [split for split in self.splits if counts[split] != 0]
        if len(having) > 1:
            raise SourceError(
                f"the images of {self.source} cannot be told apart into {' and '.join(self.splits)}",
                hint="its inventory is not installed; reinstall wordnet-splits",
            )
        return having[0] if having else None


class NameIndex:
    """Where each named image of an archive or table lies: a name and 8 bytes per number, found by bisection.

    Parameters
    ----------
    found : (file name without extension or None, the numbers that say where) of every entry.
    where : the file, for errors.
    """

    def __init__(self, found: Iterable[tuple[str | None, tuple[int, ...]]], where: str) -> None:
        # no publisher uses longer names, and one of megabytes would make every cell as wide
        kept = [(s.encode(), place) for s, place in found if s and len(s) <= LONGEST_STEM and s.isascii()]
        names = np.array([name for name, _ in kept] or [b""], dtype=np.bytes_)
        order = np.argsort(names, kind="stable")
        self._names = names[order]
        self._places = np.array([place for _, place in kept] or [()], dtype=np.int64)[order]
        self._where = where

    def place(self, stem: str) -> tuple[int, ...]:
        """Return where an image lies.

        Raises
        ------
        KeyError : nowhere.
        SourceError : in two places; neither is taken for the image.
        """
        first, last = (int(np.searchsorted(self._names, stem.encode(), side)) for side in ("left", "right"))
        if first == last or not stem:
            raise KeyError(stem)
        if last - first > 1:
            raise SourceError(
                f"{last - first} files are named {stem!r}", where=self._where, hint="fetch this file again"
            )
        return tuple(self._places[first].tolist())


@cache
def _inventory(source: str, splits: tuple[str, ...]) -> dict[str, tuple[str, str]] | None:
    """Return image_id -> (class_id, split) of the splits, or None where one has no inventory."""
    known: dict[str, tuple[str, str]] = {}
    for split in splits:
        table = load_inventory(source, split)
        if table is None:
            return None
        ids = table.column("image_id").to_pylist()
        classes = table.column("class_id").to_pylist()
        pairs = {class_id: (sys.intern(class_id), split) for class_id in set(classes)}
        known.update(zip(ids, map(pairs.__getitem__, classes), strict=True))
    return known


def split_extension(name: str) -> str | None:
    """Return a file name without its extension, None where it has none of an image (in any case)."""
    stem, dot, extension = name.rpartition(".")
    return stem if dot and extension.lower() in IMAGE_EXTENSIONS else None
