"""The publisher's tar archives, read in place: members are found by offset, nothing is unpacked."""

from __future__ import annotations

import io
import os
import tarfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from weakref import finalize

from wordnet_splits.base.errors import SourceError, UnsafeDataError
from wordnet_splits.base.names import printable
from wordnet_splits.base.untrusted import LARGEST_IMAGE, LONGEST_NAME, check_file, check_link
from wordnet_splits.sources.layouts.catalog_folders import Spellings, class_paths
from wordnet_splits.sources.layouts.named_files import Entry, NamedFiles
from wordnet_splits.sources.layouts.names import NameIndex, Naming, split_extension

MAX_MEMBERS = 200_000  # ImageNet's validation archive has 50,000, its largest class 1,300
LARGEST_HEADER = 16 * 2**10  # bytes of a pax or GNU header before a member, mostly its name
LARGEST_ARCHIVE = 1 << 40
_BLOCK = 512


class Window(io.RawIOBase):
    """A read-only stretch of an archive, by ``pread``: forks and threads share no position.

    Only headers are read through it, so a header that asks for megabytes is refused.
    """

    def __init__(self, descriptor: int, start: int, size: int, where: str) -> None:
        self._descriptor, self._start, self._size, self._at = descriptor, start, size, 0
        self._where = where

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position in the stretch."""
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move to a position in the stretch and return it."""
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        return self._at

    def read(self, size: int = -1, /) -> bytes:
        """Return ``size`` bytes from the position on, fewer at the end."""
        if not 0 <= size <= LARGEST_HEADER:
            raise UnsafeDataError(f"a header of {size:,} bytes", where=self._where)
        length = max(0, min(size, self._size - self._at))
        data = os.pread(self._descriptor, length, self._start + self._at)
        self._at += len(data)
        return data


@dataclass(frozen=True)
class Member:
    """A regular file in an archive: its name, and where its bytes lie in the outermost file."""

    name: str
    offset: int
    size: int


def members(descriptor: int, start: int, size: int, where: str) -> Iterator[Member]:
    """Yield the regular files of the archive that lies at [start, start + size) of an open file.

    Raises
    ------
    UnsafeDataError : a member named outside the archive's folder, a link, a device, or too many members.
    SourceError : a truncated or corrupt archive.
    """
    try:
        with (
            Window(descriptor, start, size, where) as window,
            tarfile.open(fileobj=window, mode="r:", encoding="utf-8", errors="replace") as archive,
        ):
            number = 0
            while (info := archive.next()) is not None:
                archive.members.clear()  # type: ignore[attr-defined]  # it would keep them all
                _check(info, number, where)
                number += 1
                if info.offset_data + info.size > size:
                    raise _truncated(where, f"member {info.name} ends behind it")
                if info.isfile():
                    yield Member(info.name, start + info.offset_data, info.size)
            end = archive.offset
        if os.pread(descriptor, _BLOCK, start + end) != bytes(_BLOCK):
            raise _truncated(where, "its closing block is missing")
    except (tarfile.TarError, OSError, ValueError, RecursionError) as error:
        raise _truncated(where, printable(error)) from error


def _check(info: tarfile.TarInfo, number: int, where: str) -> None:
    if len(info.name) > LONGEST_NAME:
        raise UnsafeDataError(f"an archive member's name has {len(info.name):,} letters", where=where)
    path = PurePosixPath(info.name)
    if path.is_absolute() or ".." in path.parts or "\\" in info.name:
        raise UnsafeDataError(
            f"archive member {info.name!r} lies outside the archive's folder",
            where=where,
            hint="this is not the publisher's archive; fetch it again from the publisher",
        )
    if not (info.isfile() or info.isdir()) or info.issparse() or info.size < 0:
        raise UnsafeDataError(
            f"archive member {info.name!r} is a link or a device, or has holes", where=where
        )
    if number >= MAX_MEMBERS:
        raise UnsafeDataError(f"the archive has more than {MAX_MEMBERS:,} members", where=where)


def _truncated(where: str, why: str) -> SourceError:
    return SourceError(
        f"the archive is truncated or corrupt ({why})", where=where, hint="fetch it again and compare its MD5"
    )


@dataclass(frozen=True)
class FlatTar(NamedFiles):
    """An archive of image files: ILSVRC2012_img_val.tar."""

    path: Path
    naming: Naming
    name: str = "tars"

    def entries(self) -> Iterator[Entry]:
        """Yield the members' names."""
        with OpenTar(self.path) as file:
            yield from (_entry(None, member) for member in file.members())

    def reader(self) -> TarReader:
        """Open the archive; its index is made when the first image is read."""
        return TarReader(self.path, per_class=False)


@dataclass(frozen=True)
class NestedTar(NamedFiles):
    """An archive of one archive per class: ILSVRC2012_img_train.tar."""

    path: Path
    naming: Naming
    name: str = "tars"

    def entries(self) -> Iterator[Entry]:
        """Yield the names in all inner archives, and outer members that are not archives."""
        with OpenTar(self.path) as file:
            for class_id, outer in _class_archives(file):
                if class_id is None:
                    yield None, None, outer.name
                    continue
                for member in file.members(outer):
                    yield _entry(class_id, member)

    def reader(self) -> TarReader:
        """Open the archive; a class is indexed when its first image is read."""
        return TarReader(self.path, per_class=True)


class OpenTar:
    """An open tar file; it is closed at the latest when the object is garbage or the program ends."""

    def __init__(self, path: Path) -> None:
        check_file(path, largest=LARGEST_ARCHIVE, error=SourceError)
        self.path = path
        self.descriptor = os.open(path, os.O_RDONLY)
        self.close = finalize(self, os.close, self.descriptor)

    def __enter__(self) -> OpenTar:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def members(self, inner: Member | None = None) -> Iterator[Member]:
        """Yield the members of the archive, or of an archive in it."""
        if inner is None:
            return members(self.descriptor, 0, os.fstat(self.descriptor).st_size, str(self.path))
        return members(self.descriptor, inner.offset, inner.size, f"{self.path}:{inner.name}")


class TarReader:
    """Reads members by offset; one descriptor per process."""

    def __init__(self, path: Path, *, per_class: bool) -> None:
        self._file = OpenTar(path)
        self._per_class = per_class
        self._indexes: dict[str, NameIndex] = {}

    def read(self, class_id: str, stem: str) -> bytes:
        """Return a member's bytes; KeyError if there is no such image, SourceError if there are two."""
        offset, size = self._index(class_id).position(stem)
        if size > LARGEST_IMAGE:
            raise UnsafeDataError(f"image {stem} has {size:,} bytes", where=str(self._file.path))
        return os.pread(self._file.descriptor, size, offset)

    def position(self, class_id: str, stem: str) -> tuple[int, ...]:
        """Return where the member begins."""
        return (self._index(class_id).position(stem)[0],)

    def _index(self, class_id: str) -> NameIndex:
        key = class_id if self._per_class else ""
        if key not in self._indexes:
            inner = self._inner[class_id] if self._per_class else None
            entries = ((stem_of(m.name), (m.offset, m.size)) for m in self._file.members(inner))
            self._indexes[key] = NameIndex(entries, f"{self._file.path}{':' * bool(key)}{key}")
        return self._indexes[key]

    @cached_property
    def _inner(self) -> dict[str, Member]:
        return {class_id: outer for class_id, outer in _class_archives(self._file) if class_id is not None}


@dataclass(frozen=True)
class ClassTar(NamedFiles):
    """An archive of class folders (SUN397.tar), at its top or in one folder.

    ``spellings`` gives the paths that a class may have.
    """

    path: Path
    naming: Naming
    spellings: Spellings
    name: str = "tars"

    def entries(self) -> Iterator[Entry]:
        """Yield the members' names, without files beside the class folders that are not images.

        Raises SourceError for two members of one image: members of one class need not be adjacent.
        """
        names: set[tuple[str, str]] = set()
        with OpenTar(self.path) as file:
            for member in file.members():
                stem, class_id = stem_of(member.name), self.class_of(member.name)
                if class_id is not None and stem is not None:
                    if (class_id, stem) in names:
                        message = f"two members are named {class_id}/{printable(stem)}"
                        raise SourceError(message, where=str(self.path), hint="fetch this file again")
                    names.add((class_id, stem))
                if class_id is not None or stem is not None:
                    yield class_id, stem, member.name

    def reader(self) -> ClassTarReader:
        """Open the archive; its index is made when the first image is read."""
        return ClassTarReader(self)

    def class_of(self, name: str) -> str | None:
        """Return the class of a member's folder, None outside the class folders."""
        paths, _ = class_paths(self.naming.source, self.spellings)
        folder = str(PurePosixPath(name).parent)
        return paths.get(folder) or paths.get(folder.partition("/")[2])


class ClassTarReader(TarReader):
    """Reads members of class folders by offset; one descriptor per process."""

    def __init__(self, layout: ClassTar) -> None:
        super().__init__(layout.path, per_class=True)
        self._layout = layout

    def _index(self, class_id: str) -> NameIndex:
        return self._class_indexes[class_id]

    @cached_property
    def _class_indexes(self) -> dict[str, NameIndex]:
        members: dict[str, list[tuple[str | None, tuple[int, ...]]]] = defaultdict(list)
        for member in self._file.members():
            class_id = self._layout.class_of(member.name)
            if class_id is not None:
                members[class_id].append((stem_of(member.name), (member.offset, member.size)))
        return {c: NameIndex(entries, f"{self._layout.path}:{c}") for c, entries in members.items()}


def archive_files(path: Path, is_wanted: Callable[[str], bool], largest: int) -> Iterator[tuple[str, bytes]]:
    """Yield name and bytes of the members of an archive whose names ``is_wanted`` accepts.

    Raises
    ------
    UnsafeDataError, SourceError : as `members`, or such a member has more than ``largest`` bytes.
    """
    with OpenTar(path) as file:
        for member in file.members():
            if is_wanted(member.name):
                if member.size > largest:
                    raise UnsafeDataError(f"{member.name} has {member.size:,} bytes", where=str(path))
                yield member.name, os.pread(file.descriptor, member.size, member.offset)


def find_archive(base: Path, name: str, root: Path) -> Path | None:
    """Return ``base/name`` if it is a file that does not lead out of the root."""
    path = base / name
    if not path.is_file():
        return None
    if path.is_symlink():
        check_link(path, root)
    return path


def _class_archives(file: OpenTar) -> Iterator[tuple[str | None, Member]]:
    """Yield the members and their classes, None for one that is not an archive.

    Raises
    ------
    SourceError : two archives are of one class.
    """
    classes: set[str] = set()
    for member in file.members():
        path = PurePosixPath(member.name)
        class_id = path.stem if path.suffix == ".tar" else None
        if class_id is not None:
            if class_id in classes:
                message = f"two archives in it are of class {printable(class_id)}"
                raise SourceError(message, where=str(file.path), hint="fetch this file again")
            classes.add(class_id)
        yield class_id, member


def stem_of(name: str) -> str | None:
    """Return a member's file name without extension, None if it is hidden or not an image."""
    base = PurePosixPath(name).name
    return None if base.startswith(".") else split_extension(base)


def _entry(class_id: str | None, member: Member) -> Entry:
    return (
        class_id,
        stem_of(member.name),
        member.name if class_id is None else f"{class_id}.tar/{member.name}",
    )
