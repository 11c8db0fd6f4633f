"""LSUN scenes (Yu et al. 2015) as LMDB files per category, or as folders exported from them.

An id is ``<split>/<category>/<lmdb key>``; the key is the file name of an exported image.
"""

from __future__ import annotations

import os
import re
import weakref
from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

from wordnet_splits.base.errors import SourceError
from wordnet_splits.base.untrusted import check_file, check_link, read_image
from wordnet_splits.datasets.catalog import load_catalog
from wordnet_splits.datasets.sources.layouts.layout import CompositeLayout, Image, Layout, Location, Note
from wordnet_splits.datasets.sources.layouts.walk import bases, entries, folders, subfolder
from wordnet_splits.datasets.sources.source import Source, register_source

SPLITS = ("train", "val")
EXTENSIONS = ("webp", "jpg", "jpeg", "png")
LARGEST_FILE = 1 << 40  # bytes; the largest published has 160 GB
NESTING = 6  # the publisher's export puts a file below a folder for each of the first characters of its key

_KEY = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,254}")
_SHA1 = re.compile(r"[0-9a-f]{40}")

Entry = tuple[str | None, str]
"""The key of an image, None for another entry, and its name in messages."""


@dataclass(frozen=True)
class KeyedImages(Layout):
    """The images of a category and split; the location of an image is its key."""

    split: str
    category: str
    path: Path
    root: Path

    @abstractmethod
    def entries(self) -> Iterator[Entry]:
        """Yield all entries."""

    def images(self, note: Note, splits: Collection[str]) -> Iterator[Image]:
        """Yield the images of every valid key."""
        if self.split not in splits:
            return
        for key, shown in self.entries():
            if key is None or not _KEY.fullmatch(key):
                note(f"{self.split}/{self.category}/{shown}"[:300])
            else:
                yield Image(f"{self.split}/{self.category}/{key}", self.category, self.split, (key,))

    def locate(self, image_id: str) -> Location:
        """Return the key of an image."""
        split, category, key = ([*image_id.split("/", 2), "", ""])[:3]
        if (split, category) != (self.split, self.category) or not _KEY.fullmatch(key):
            raise KeyError(image_id)
        return (key,)


@dataclass(frozen=True)
class LmdbImages(KeyedImages):
    """An LMDB folder."""

    name: str = "lmdb"

    def entries(self) -> Iterator[Entry]:
        """Yield every key, in byte order; one that is not ASCII is not an image."""
        import lmdb

        environment = self._open()
        try:
            with environment.begin() as transaction:
                for key in transaction.cursor().iternext(keys=True, values=False):
                    text = key.decode("ascii", "backslashreplace")
                    yield (text if key.isascii() else None), text
        except lmdb.Error as error:
            raise _broken(self.path / "data.mdb", f"is corrupt ({error})") from error

    def read(self, location: Location) -> bytes:
        """Return the bytes of an image."""
        import lmdb

        key = str(location[0])
        try:
            with self.cached("environment", self._open).begin() as transaction:
                value: bytes | None = transaction.get(key.encode("ascii"))
        except lmdb.BadValsizeError as error:  # a key longer than any in the file
            raise KeyError(key) from error
        except lmdb.Error as error:
            raise _broken(self.path / "data.mdb", f"is corrupt ({error})") from error
        if value is None:
            raise KeyError(key)
        return value

    def count(self, splits: Collection[str]) -> Mapping[str, int]:
        """Return the number of entries in the header: LSUN has up to three million keys."""
        return {self.split: self._open().stat()["entries"]} if self.split in splits else {}

    def _open(self) -> Any:
        for path in (self.path, self.path / "data.mdb"):
            if path.is_symlink():
                check_link(path, self.root)
        return open_environment(self.path)


_ENVIRONMENTS: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()
_OPENED_BY = [0]  # id of the process that opened them


def open_environment(folder: Path) -> Any:
    """Return the environment in ``folder``, one object per process while it is referenced.

    LMDB forbids opening a file twice in a process and using an environment after a fork, so environments
    inherited from a parent are closed first (which closes nothing in the parent).

    Raises SourceError if the LMDB file is absent, truncated or corrupt.
    """
    if _OPENED_BY[0] != os.getpid():
        for inherited in list(_ENVIRONMENTS.values()):
            inherited.close()
        _ENVIRONMENTS.clear()
        _OPENED_BY[0] = os.getpid()
    key = str(folder.resolve())
    opened = _ENVIRONMENTS.get(key)
    if opened is None:
        opened = _ENVIRONMENTS[key] = _open(folder)
    return opened


def _open(folder: Path) -> Any:
    import lmdb

    path = folder / "data.mdb"
    check_file(path, largest=LARGEST_FILE, error=SourceError)
    try:
        env = lmdb.open(
            str(folder), readonly=True, lock=False, readahead=False, create=False, subdir=True, max_dbs=0
        )
        pages, size = env.info()["last_pgno"] + 1, path.stat().st_size
        needed = pages * env.stat()["psize"]
    except (lmdb.Error, OSError) as error:
        raise _broken(path, f"is truncated or not an LMDB file ({error})") from error
    if size < needed:  # reading past the end of a mapped file would kill the process
        env.close()
        raise _broken(path, f"is truncated: it has {size:,} of {needed:,} bytes")
    return env


def _broken(path: Path, problem: str) -> SourceError:
    return SourceError(problem, where=str(path), hint="fetch this file again")


@dataclass(frozen=True)
class ExportedFolder(KeyedImages):
    """Image files named by their keys, in one folder or nested by their first characters."""

    name: str = "folder"

    def entries(self) -> Iterator[Entry]:
        """Yield the keys; an entry that could not be read by its key is not an image."""
        return self._entries(self.path, "")

    def count(self, splits: Collection[str]) -> Mapping[str, int]:
        """Return the number of keys."""
        return {self.split: sum(k is not None for k, _ in self.entries())} if self.split in splits else {}

    def is_unambiguous(self) -> bool:
        """Return whether the first entry has a name like LSUN's."""
        return any(key is not None and _SHA1.fullmatch(key) for key, _ in islice(self.entries(), 1))

    def _entries(self, folder: Path, above: str, outside: frozenset[str] = frozenset()) -> Iterator[Entry]:
        keys: set[str] = set()
        deeper = []
        for entry in entries(folder, self.root):
            if entry.is_dir():
                if len(entry.name) == 1 and len(above) < NESTING:
                    deeper.append(entry.name)
                else:
                    yield None, f"{entry.name}/"
                continue
            key, _, extension = entry.name.rpartition(".")
            in_place = not above or key[:NESTING] == above
            if key in keys or key in outside:
                raise _doubled(key, self.path)
            if in_place and extension in EXTENSIONS:
                keys.add(key)
                yield key, entry.name
            else:
                yield None, entry.name
        for name in deeper:  # after the files: a key may lie in one place only
            yield from self._entries(folder / name, above + name, outside or frozenset(keys))

    def read(self, location: Location) -> bytes:
        """Return one file's bytes."""
        key = str(location[0])
        parents = (self.path, self.path.joinpath(*key[:NESTING]))
        paths = [folder / f"{key}.{extension}" for folder in parents for extension in EXTENSIONS]
        present = [path for path in paths if os.path.lexists(path)]
        if len(present) > 1:
            raise _doubled(key, self.path)
        if not present:
            raise KeyError(key)
        return read_image(present[0], self.root)


def _doubled(key: str, folder: Path) -> SourceError:
    return SourceError(f"two files have the key {key!r}", where=str(folder), hint="remove one of them")


@register_source
class Lsun(Source):
    """The ten scene categories of LSUN: 300 validation images each, train up to 3,033,042."""

    name: ClassVar[str] = "lsun"
    splits: ClassVar[tuple[str, ...]] = SPLITS
    expected_files: ClassVar[str] = (
        "<category>_<split>_lmdb/data.mdb, or images in <split>/<category>/ or <category>_<split>/"
    )

    @classmethod
    def layouts(cls, root: Path) -> Iterator[Layout]:
        """Yield LMDB files, or folders, of the first place that has any."""
        for find in (_lmdb_parts, _folder_parts):
            for base in bases(root, "lsun", "LSUN"):
                parts, unexpected = find(base, root)
                if parts:
                    yield CompositeLayout(parts, unexpected)
                    break


@cache
def categories() -> frozenset[str]:
    """Return the scene categories."""
    return frozenset(item.class_id for item in load_catalog("lsun"))


def _lmdb_parts(base: Path, root: Path) -> tuple[list[KeyedImages], list[str]]:
    """Find ``<category>_<split>_lmdb`` folders; the test split's folder has no categories."""
    parts: list[KeyedImages] = []
    unexpected = []
    for name in (name for name in folders(base, root) if name.endswith("_lmdb") and name != "test_lmdb"):
        category, _, split = name.removesuffix("_lmdb").rpartition("_")
        if category in categories() and split in SPLITS:
            parts.append(LmdbImages(split, category, base / name, root))
        else:
            unexpected.append(name)
    return parts, unexpected


def _folder_parts(base: Path, root: Path) -> tuple[list[KeyedImages], list[str]]:
    """Find ``<split>/<category>`` and ``<category>_<split>`` folders.

    Where most folders are of other classes, it is another dataset: Places365 has bedrooms too.
    """
    paths = [(split, name, f"{split}/{name}") for split, name in _split_folders(base, root)]
    for name in folders(base, root):
        category, _, split = name.rpartition("_")
        if split in SPLITS and category:
            paths.append((split, category, name))
    parts: dict[tuple[str, str], KeyedImages] = {}
    unexpected = []
    for split, category, path in paths:
        if category not in categories():
            unexpected.append(path)
        elif (split, category) in parts:
            message = f"{split} {category} is there twice"
            raise SourceError(message, where=str(base), hint="remove one of them")
        else:
            parts[split, category] = ExportedFolder(split, category, base / path, root)
    return ([*parts.values()], unexpected) if len(parts) > len(unexpected) else ([], unexpected)


def _split_folders(base: Path, root: Path) -> Iterator[tuple[str, str]]:
    """Yield split and name of each folder below the folders of the splits."""
    for split in SPLITS:
        if folder := subfolder(base, split, root):
            yield from ((split, name) for name in folders(folder, root))
