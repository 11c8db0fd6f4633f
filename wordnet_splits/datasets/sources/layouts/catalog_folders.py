"""Image files in the class folders of a catalog, or flat in one folder."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path

from wordnet_splits.base.errors import SourceError
from wordnet_splits.base.untrusted import check_link, read_image
from wordnet_splits.datasets.catalog import CatalogClass, load_catalog
from wordnet_splits.datasets.sources.layouts.layout import Location
from wordnet_splits.datasets.sources.layouts.named_files import (
    SAMPLE,
    Entry,
    NamedFiles,
    Naming,
    split_extension,
)
from wordnet_splits.datasets.sources.layouts.walk import entries, subfolder

Spellings = Callable[[CatalogClass], Iterable[str]]
"""Returns the folders that a class may have."""


def as_published(row: CatalogClass) -> tuple[str, ...]:
    """Return the folder of a class where all copies use the same name."""
    return (row.class_id,)


def with_blanks(row: CatalogClass) -> tuple[str, ...]:
    """Return the folder's name with underscores, as in ids, and with blanks."""
    return row.class_id, row.class_id.replace("_", " ")


def by_index(row: CatalogClass) -> tuple[str, ...]:
    """Return the number of the class, and its id for copies that are sorted by that."""
    return str(row.index), row.class_id


def below_letter(row: CatalogClass) -> tuple[str, ...]:
    """Return the folders of a class in copies of scene datasets.

    ``a/arena/hockey`` as published, ``arena/hockey``, ``arena-hockey``, ``arena_hockey``.
    """
    name = row.class_id
    return f"{name[0]}/{name}", name, name.replace("/", "-"), name.replace("/", "_")


class FolderFiles(NamedFiles):
    """Image files in folders, whose extensions are not known beforehand.

    ``root`` is the folder that no link may leave.
    """

    root: Path

    @abstractmethod
    def folder_of(self, class_id: str) -> str:
        """Return the folder of a class's files; KeyError without one."""

    def read(self, location: Location) -> bytes:
        """Return a file's bytes.

        Raises KeyError or FileNotFoundError if it is absent, SourceError if two files have the name.
        """
        return read_image(self._path(location), self.root)

    def file(self, location: Location) -> Path:
        """Return a file's path, its links followed. Raises as `read`, and where a link leaves the root."""
        path = Path(self._path(location))
        if path.is_symlink():
            check_link(path, self.root)
        return path.resolve(strict=True)

    def _path(self, location: Location) -> str:
        class_id, stem = map(str, location)
        folder = self.folder_of(class_id)
        extension, names = self.cached(f"names {folder}", lambda: self._names(folder))
        name = names.get(stem, f"{stem}{extension}")
        if not name:
            raise SourceError(f"two files are named {stem!r}", where=folder, hint="remove one of them")
        return f"{folder}/{name}"

    def _names(self, folder: str) -> tuple[str, dict[str, str]]:
        """Return the usual extension, and stem -> name of other files, "" for an ambiguous stem."""
        with os.scandir(folder) as listed:
            names = [entry.name for entry in listed]  # links among them are checked when opened
        stems = [(stem, name) for name in names if (stem := split_extension(name)) is not None]
        extensions = Counter(name[len(stem) :] for stem, name in stems)
        usual = max(extensions, key=extensions.__getitem__, default="")
        others: dict[str, str] = {}
        plain_stems = Counter(self.naming.plain(stem) for stem, _ in stems)
        for stem, name in stems:
            plain = self.naming.plain(stem)
            if plain_stems[plain] > 1:
                others[plain] = ""
            elif name != plain + usual:
                others[plain] = name
        return usual, others


@dataclass(frozen=True)
class FlatFolder(FolderFiles):
    """Files directly in one folder; their classes are known from the inventory.

    ``marker`` is a file next to the images; without it, they may be another dataset's.
    """

    path: Path
    root: Path
    naming: Naming
    name: str = "flat"
    marker: str = ""

    def entries(self) -> Iterator[Entry]:
        """Yield the folder's entries."""
        return _files(str(self.path), None, self.root)

    def folder_of(self, class_id: str) -> str:
        """Return the folder."""
        return str(self.path)

    def is_unambiguous(self) -> bool:
        """Return whether the marker is there; without one, whether the names are this dataset's."""
        return (self.path / self.marker).is_file() if self.marker else super().is_unambiguous()


@dataclass(frozen=True)
class ClassFolders(FolderFiles):
    """Files in one folder per class.

    ``inner`` is the folder between class folder and files ("" for none), ``spellings`` gives the paths below
    ``path`` that a class may have.
    """

    path: Path
    root: Path
    naming: Naming
    inner: str = ""
    spellings: Spellings = as_published
    name: str = "folders"

    def entries(self) -> Iterator[Entry]:
        """Yield the entries of all class folders, and entries outside the class folders."""
        paths: dict[str, str] = {}
        for class_id, path in self.class_folders():
            if class_id is None:
                yield None, None, os.path.relpath(path, self.root)
                continue
            if class_id in paths:
                message = f"class {class_id!r} has two folders, {paths[class_id]} and {path}"
                raise SourceError(message, where=str(self.root), hint="remove one of them")
            paths[class_id] = path
            inside = self._inside(path)
            if inside is not None:
                yield from _files(inside, class_id, self.root)

    def class_folders(self) -> Iterator[tuple[str | None, str]]:
        """Yield (class_id, path) of every class folder, and (None, path) of other entries."""
        return self._walk(str(self.path), "")

    def folder_of(self, class_id: str) -> str:
        """Return the folder of a class's files, which may be below its class folder."""
        return self.cached(f"folder {class_id}", lambda: self._folder_of(class_id))

    def _folder_of(self, class_id: str) -> str:
        inside = self._inside(self.cached("paths", lambda: dict(self.class_folders()))[class_id])
        if inside is None:
            raise KeyError(class_id)
        return inside

    def _inside(self, path: str) -> str | None:
        if not self.inner:
            return path
        folder = subfolder(Path(path), self.inner, self.root)
        return None if folder is None else str(folder)

    def _walk(self, folder: str, above: str) -> Iterator[tuple[str | None, str]]:
        classes, prefixes = class_paths(self.naming.source, self.spellings)
        for entry in entries(folder, self.root, lambda name: above + name in classes):
            if not entry.is_dir():
                if split_extension(entry.name) is not None:
                    yield None, entry.path
                continue  # many copies have lists and labels next to class folders, but no images
            path = above + entry.name
            if path in classes:
                yield classes[path], entry.path
            elif path in prefixes:
                yield from self._walk(entry.path, path + "/")
            else:
                yield None, entry.path


def find_flat_folder(
    base: Path, path: str, root: Path, naming: Naming, name: str = "flat", marker: str = ""
) -> FlatFolder | None:
    """Return ``base/path`` (``base`` itself for "") as a layout, if images of these splits lie in it."""
    folder = subfolder(base, path, root)
    if folder is None:
        return None
    stems = (stem for _, stem, _ in _files(str(folder), None, root))
    valid = (stem is not None and naming.row(None, stem) for stem in islice(stems, SAMPLE))
    return FlatFolder(folder, root, naming, name, marker) if any(valid) else None


def find_class_folders(
    base: Path,
    path: str,
    root: Path,
    naming: Naming,
    *,
    inner: Iterable[str] = ("",),
    spellings: Spellings = as_published,
    name: str = "folders",
) -> ClassFolders | None:
    """Return ``base/path`` as a layout, if it has a class folder that holds image files.

    ``inner`` are the possible folders between class folder and files; the first that has any is read.
    """
    folder = subfolder(base, path, root)
    if folder is None:
        return None
    for between in inner:
        layout = ClassFolders(folder, root, naming, between, spellings, name)
        if any(stem is not None for _, stem, _ in islice(layout.entries(), SAMPLE)):
            return layout
    return None


def _files(folder: str, class_id: str | None, root: Path) -> Iterator[Entry]:
    for entry in entries(folder, root, lambda name: split_extension(name) is not None):
        stem = split_extension(entry.name) if entry.is_file() else None
        yield class_id, stem, entry.name if class_id is None else f"{class_id}/{entry.name}"


@cache
def class_paths(source: str, spellings: Spellings) -> tuple[dict[str, str], frozenset[str]]:
    """Return folder path -> class_id, and every path that only leads to class folders."""
    paths = {path: row.class_id for row in load_catalog(source) for path in spellings(row)}
    above = {path.rsplit("/", k)[0] for path in paths for k in range(1, path.count("/") + 1)}
    return paths, frozenset(above - set(paths))
