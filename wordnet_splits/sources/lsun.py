"""LSUN scenes (Yu et al. 2015) as LMDB files per category, or as folders exported from them.

An id is ``<split>/<category>/<lmdb key>``; the key is the file name of an exported image.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Protocol

from wordnet_splits.base.errors import SourceError
from wordnet_splits.base.untrusted import read_image
from wordnet_splits.catalog import load_catalog
from wordnet_splits.sources.base import OneCopyPerProcess, Raw, Row, register
from wordnet_splits.sources.layouts.lmdb_files import LmdbFile
from wordnet_splits.sources.layouts.walk import bases, entries, folders, subfolder

SPLITS = ("train", "val")
EXTENSIONS = ("webp", "jpg", "jpeg", "png")
NESTING = 6  # the publisher's export puts a file below a folder for each of the first characters of its key

_KEY = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,254}")
_SHA1 = re.compile(r"[0-9a-f]{40}")


class KeyedImages(Protocol):
    """The images of one category and split; picklable."""

    def names(self) -> Iterator[tuple[str | None, str]]:
        """Yield each key, None for what is not an image, and how to show it."""

    def count(self) -> int:
        """Return the number of images, faster than ``names`` where that can be."""

    def open(self) -> Any:
        """Return what reading needs, once per process."""

    def read(self, opened: Any, key: str) -> bytes:
        """Return the bytes of one image; KeyError or FileNotFoundError where it is not there."""


@dataclass(frozen=True)
class ExportedFolder:
    """Image files named by their keys, in one folder or nested by their first characters."""

    folder: Path
    root: Path

    def open(self) -> None:
        """Return nothing: each file is opened when it is read."""

    def names(self) -> Iterator[tuple[str | None, str]]:
        """Yield the keys; what could not be read by its key is not an image."""
        return self._names(self.folder, "")

    def count(self) -> int:
        """Return the number of keys."""
        return sum(key is not None for key, _ in self.names())

    def _names(
        self, folder: Path, above: str, outside: frozenset[str] = frozenset()
    ) -> Iterator[tuple[str | None, str]]:
        held: set[str] = set()
        deeper = []
        for entry in entries(folder, self.root):
            if entry.is_dir():
                if len(entry.name) == 1 and len(above) < NESTING:
                    deeper.append(entry.name)
                else:
                    yield None, f"{entry.name}/"
                continue
            key, _, extension = entry.name.rpartition(".")
            placed = not above or key[:NESTING] == above
            if key in held or key in outside:
                raise _doubled(key, self.folder)
            if placed and extension in EXTENSIONS:
                held.add(key)
                yield key, entry.name
            else:
                yield None, entry.name
        for name in deeper:  # after the files: a key may lie in one place only
            yield from self._names(folder / name, above + name, outside or frozenset(held))

    def read(self, opened: None, key: str) -> bytes:
        """Return one file's bytes."""
        places = (self.folder, self.folder.joinpath(*key[:NESTING]))
        paths = [folder / f"{key}.{extension}" for folder in places for extension in EXTENSIONS]
        found = [path for path in paths if os.path.lexists(path)]
        if len(found) > 1:
            raise _doubled(key, self.folder)
        if not found:
            raise KeyError(key)
        return read_image(found[0], self.root)


def _doubled(key: str, folder: Path) -> SourceError:
    return SourceError(f"two files have the key {key!r}", where=str(folder), hint="remove one of them")


Parts = Mapping[tuple[str, str], KeyedImages]
"""The part of each (split, category)."""


@register
class Lsun(OneCopyPerProcess):
    """The ten scene categories of LSUN: 300 validation images each, train up to 3,033,042."""

    name: ClassVar[str] = "lsun"
    splits: ClassVar[tuple[str, ...]] = SPLITS
    looks_for: ClassVar[str] = (
        "<category>_<split>_lmdb/data.mdb, or images in <split>/<category>/ or <category>_<split>/"
    )

    @classmethod
    def detect(cls, root: Path | None) -> str | None:
        """Return ``lmdb`` or ``folder``, or None."""
        if root is None:
            return None
        return next((name for name in LAYOUTS if _find(name, root)[0]), None)

    @classmethod
    def certain(cls, root: Path) -> bool:
        """Return whether there is an LMDB file of a category, or an image that is named as LSUN's are."""
        layout = cls.detect(root)
        if layout != "folder":
            return layout is not None
        firsts = (key for part in _find(layout, root)[0].values() for key, _ in islice(part.names(), 1))
        return any(key is not None and _SHA1.fullmatch(key) for key in firsts)

    @classmethod
    def open(cls, root: Path | None, layout: str, **params: Any) -> Lsun:
        """Open the copy at ``root``; no image file is opened before the first scan or read."""
        if params:
            raise SourceError(f"source {cls.name} takes no parameter {min(params)!r}")
        return cls(root, layout)

    def rows(self, splits: Collection[str]) -> Iterator[Row]:
        """Yield (image_id, class_id, split) of every key."""
        parts, others = self._parts()
        for name in others:
            self.note_unexpected(name)
        for (split, category), part in parts.items():
            if split not in splits:
                continue
            for key, shown in part.names():
                if key is None or not _KEY.fullmatch(key):
                    self.note_unexpected(f"{split}/{category}/{shown}"[:300])
                else:
                    yield f"{split}/{category}/{key}", category, split

    def count(self, splits: Collection[str] | None = None) -> dict[str, int]:
        """Return how many images each split has; of LMDB files the header is read, not three million keys."""
        held = dict.fromkeys(self._chosen(splits), 0)
        for (split, _), part in self._parts()[0].items():
            if split in held:
                held[split] += part.count()
        return held

    def read_one(self, image_id: str) -> Raw:
        """Return one image's bytes, WebP or JPEG."""
        split, category, key = ([*image_id.split("/", 2), "", ""])[:3]
        part = self._parts()[0].get((split, category))
        if part is None or not _KEY.fullmatch(key):
            raise KeyError(image_id)
        opened = self.cached(f"open {split}/{category}", part.open)
        return part.read(opened, key)

    def _parts(self) -> tuple[Parts, list[str]]:
        assert self.root is not None, "rooted"
        root = self.root
        return self.cached("parts", lambda: _find(self.layout, root))


@cache
def categories() -> frozenset[str]:
    """Return the scene categories."""
    return frozenset(item.class_id for item in load_catalog("lsun"))


def _find(layout: str, root: Path) -> tuple[Parts, list[str]]:
    """Return the parts in the first place below ``root`` that has any, and the names of what is none."""
    for base in bases(root, "lsun", "LSUN"):
        parts, others = LAYOUTS[layout](base, root)
        if parts:
            return parts, others
    return {}, []


def _lmdb_parts(base: Path, root: Path) -> tuple[Parts, list[str]]:
    """Find ``<category>_<split>_lmdb`` folders; that of the test split has no categories."""
    parts: dict[tuple[str, str], KeyedImages] = {}
    others = []
    for name in (name for name in folders(base, root) if name.endswith("_lmdb") and name != "test_lmdb"):
        category, _, split = name.removesuffix("_lmdb").rpartition("_")
        if category in categories() and split in SPLITS:
            parts[split, category] = LmdbFile(base / name, root)
        else:
            others.append(name)
    return parts, others


def _folder_parts(base: Path, root: Path) -> tuple[Parts, list[str]]:
    """Find ``<split>/<category>`` and ``<category>_<split>`` folders.

    Where most folders are of other classes, it is another dataset: Places365 has bedrooms too.
    """
    places = [(split, name, f"{split}/{name}") for split in SPLITS for name in _inside(base, split, root)]
    for name in folders(base, root):
        category, _, split = name.rpartition("_")
        if split in SPLITS and category:
            places.append((split, category, name))
    parts: dict[tuple[str, str], KeyedImages] = {}
    others = []
    for split, category, place in places:
        if category not in categories():
            others.append(place)
        elif (split, category) in parts:
            raise SourceError(
                f"{split} {category} is there twice", where=str(base), hint="remove one of them"
            )
        else:
            parts[split, category] = ExportedFolder(base / place, root)
    return (parts, others) if len(parts) > len(others) else ({}, others)


def _inside(base: Path, name: str, root: Path) -> list[str]:
    folder = subfolder(base, name, root)
    return folders(folder, root) if folder else []


LAYOUTS: Mapping[str, Callable[[Path, Path], tuple[Parts, list[str]]]] = MappingProxyType(
    {"lmdb": _lmdb_parts, "folder": _folder_parts}
)
"""How each layout is found in a folder, in the order they are looked for."""
