"""The publisher's tar and zip archives, read in place: members are found by offset, nothing is unpacked."""

from __future__ import annotations

import io
import os
import stat
import struct
import tarfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from weakref import finalize

from wordnet_splits.base.errors import SourceError, UnsafeDataError
from wordnet_splits.base.names import printable
from wordnet_splits.base.untrusted import LARGEST_IMAGE, LONGEST_NAME, MiB, check_file, check_link
from wordnet_splits.datasets.sources.layouts.catalog_folders import Spellings, class_paths
from wordnet_splits.datasets.sources.layouts.named_files import (
    Entry,
    IndexedFiles,
    NameIndex,
    Naming,
    Position,
    split_extension,
)

MAX_MEMBERS = 200_000  # ImageNet's validation archive has 50,000, its largest class 1,300
LARGEST_HEADER = 16 * 2**10  # bytes of a pax or GNU header before a member, mostly its name
LARGEST_ARCHIVE = 1 << 40
_BLOCK = 512


class _Headers(io.FileIO):
    """An archive opened for its headers only: reads of megabytes are refused."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or not 0 <= size <= LARGEST_HEADER:
            raise UnsafeDataError(f"a header of {size:,} bytes", where=str(self.name))
        return super().read(size)


@dataclass(frozen=True)
class Member:
    """A regular file in an archive: its name, and where its bytes lie in the outermost file."""

    name: str
    offset: int
    size: int


def members(path: Path, start: int, size: int, where: str) -> Iterator[Member]:
    """Yield the regular files of the archive at [start, start + size) of a file.

    Raises
    ------
    UnsafeDataError : a member named outside the archive's folder, a link, a device, or too many members.
    SourceError : a truncated or corrupt archive.
    """
    try:
        with _Headers(path) as file:
            file.seek(start)
            with tarfile.open(fileobj=file, mode="r:", encoding="utf-8", errors="replace") as archive:
                number = 0
                while (info := archive.next()) is not None:
                    archive.members.clear()  # type: ignore[attr-defined]  # it would keep them all
                    check_member(info.name, number, where)
                    if not (info.isfile() or info.isdir()) or info.issparse() or info.size < 0:
                        message = f"archive member {info.name!r} is a link or a device, or has holes"
                        raise UnsafeDataError(message, where=where)
                    number += 1
                    if info.offset_data + info.size > start + size:
                        raise _truncated(where, f"member {info.name} ends behind it")
                    if info.isfile():
                        yield Member(info.name, info.offset_data, info.size)
                file.seek(archive.offset)
                if file.read(_BLOCK) != bytes(_BLOCK):
                    raise _truncated(where, "its closing block is missing")
    except (tarfile.TarError, OSError, ValueError, RecursionError) as error:
        raise _truncated(where, printable(error)) from error


def check_member(name: str, number: int, where: str) -> None:
    """Refuse a member by its name or number, from 0, with UnsafeDataError."""
    if len(name) > LONGEST_NAME:
        raise UnsafeDataError(f"an archive member's name has {len(name):,} letters", where=where)
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name:
        hint = "this is not the publisher's archive; fetch it again from the publisher"
        message = f"archive member {printable(name)!r} is outside the archive's folder"
        raise UnsafeDataError(message, where=where, hint=hint)
    if number >= MAX_MEMBERS:
        raise UnsafeDataError(f"the archive has more than {MAX_MEMBERS:,} members", where=where)


def _truncated(where: str, why: str) -> SourceError:
    return SourceError(
        f"the archive is truncated or corrupt ({why})", where=where, hint="fetch it again and compare its MD5"
    )


class TarFiles(IndexedFiles):
    """Image files in a tar archive; a position is an offset and a size."""

    name = "tars"

    def __init__(self, path: Path, naming: Naming) -> None:
        self.path, self.naming = path, naming

    def read_at(self, position: Position) -> bytes:
        """Return the bytes of a member."""
        offset, size = position
        if size > LARGEST_IMAGE:
            raise UnsafeDataError(f"an image has {size:,} bytes", where=str(self.path))
        return os.pread(self.file_of_process().descriptor, size, offset)

    def file_of_process(self) -> OpenTar:
        """Return the archive, opened once per process."""
        return self.cached("file", lambda: OpenTar(self.path))


class FlatTar(TarFiles):
    """An archive of image files: ILSVRC2012_img_val.tar."""

    def members(self, class_id: str | None = None) -> Iterator[tuple[Entry, Position]]:
        """Yield the members."""
        file = OpenTar(self.path)
        for member in file.members():
            yield (None, stem_of(member.name), member.name), (member.offset, member.size)


class NestedTar(TarFiles):
    """An archive with an archive per class: ILSVRC2012_img_train.tar."""

    by_class = True

    def index(self, class_id: str) -> NameIndex:
        """Return the index of a class; the archive has too many members for one of all."""
        return self.cached(f"index {class_id}", lambda: self.make_index(class_id))

    def members(self, class_id: str | None = None) -> Iterator[tuple[Entry, Position]]:
        """Yield the members of all inner archives, and outer members that are not archives."""
        file = self.file_of_process()
        for outer in self.cached("archives", self._archives):
            inner_class = _class_of_archive(outer)
            if inner_class is None:
                yield (None, None, outer.name), ()
            elif class_id in (None, inner_class):
                for member in file.members(outer):
                    entry = inner_class, stem_of(member.name), f"{inner_class}.tar/{member.name}"
                    yield entry, (member.offset, member.size)

    def _archives(self) -> list[Member]:
        """Return the outer members; SourceError for two archives of the same class."""
        members = list(self.file_of_process().members())
        classes = Counter(class_id for member in members if (class_id := _class_of_archive(member)))
        if repeated := [class_id for class_id, count in classes.items() if count > 1]:
            message = f"two archives in it are of class {printable(repeated[0])}"
            raise SourceError(message, where=str(self.path), hint="fetch this file again")
        return members


class ClassTar(TarFiles):
    """An archive of class folders (SUN397.tar), at its top or in one folder.

    ``spellings`` gives the paths that a class may have.
    """

    by_class = True

    def __init__(self, path: Path, naming: Naming, spellings: Spellings) -> None:
        super().__init__(path, naming)
        self._spellings = spellings

    def members(self, class_id: str | None = None) -> Iterator[tuple[Entry, Position]]:
        """Yield the members, without files outside the class folders that are not images.

        Raises SourceError for two members of the same image: members of a class need not be adjacent.
        """
        paths, _ = class_paths(self.naming.source, self._spellings)
        names: set[tuple[str, str]] = set()
        file = OpenTar(self.path)
        for member in file.members():
            folder, stem = str(PurePosixPath(member.name).parent), stem_of(member.name)
            member_class = paths.get(folder) or paths.get(folder.partition("/")[2])
            if member_class is not None and stem is not None:
                if (member_class, stem) in names:
                    message = f"two members are named {member_class}/{printable(stem)}"
                    raise SourceError(message, where=str(self.path), hint="fetch this file again")
                names.add((member_class, stem))
            if member_class is not None or stem is not None:
                yield (member_class, stem, member.name), (member.offset, member.size)


class OpenTar:
    """An open tar file; it is closed at the latest when the object is garbage or the program ends."""

    def __init__(self, path: Path) -> None:
        check_file(path, largest=LARGEST_ARCHIVE, error=SourceError)
        self.path = path
        self.descriptor = os.open(path, os.O_RDONLY)
        self.close = finalize(self, os.close, self.descriptor)

    def members(self, inner: Member | None = None) -> Iterator[Member]:
        """Yield the members of the archive, or of an archive in it."""
        if inner is None:
            return members(self.path, 0, os.fstat(self.descriptor).st_size, str(self.path))
        return members(self.path, inner.offset, inner.size, f"{self.path}:{inner.name}")


def archive_files(path: Path, is_wanted: Callable[[str], bool], largest: int) -> Iterator[tuple[str, bytes]]:
    """Yield name and bytes of the members of an archive whose names ``is_wanted`` accepts.

    Raises as `members`, and UnsafeDataError if such a member has more than ``largest`` bytes.
    """
    file = OpenTar(path)
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


def _class_of_archive(member: Member) -> str | None:
    path = PurePosixPath(member.name)
    return path.stem if path.suffix == ".tar" else None


def stem_of(name: str) -> str | None:
    """Return a member's file name without extension, None if it is hidden or not an image."""
    base = PurePosixPath(name).name
    return None if base.startswith(".") else split_extension(base)


LARGEST_ZIP = 32 * MiB  # Omniglot's largest has 10 MB; the index is held in memory, 500 bytes an entry

_ENCRYPTED = 1  # bit 0 of an entry's flags
_METHODS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    ValueError,
    OverflowError,
    OSError,
)


class ZipFolders(IndexedFiles):
    """An archive whose class folders lie in the folder ``top``; a class may be nested folders."""

    by_class = True
    name = "zip"

    def __init__(self, path: Path, naming: Naming, top: str) -> None:
        self.path, self.naming, self._top = path, naming, top

    def members(self, class_id: str | None = None) -> Iterator[tuple[Entry, Position]]:
        """Yield the entries, sorted, so that every class is contiguous; a position is a number."""
        entries = enumerate(self._archive().infolist())
        for number, entry in sorted(entries, key=lambda item: item[1].filename):
            check_entry(entry, number, str(self.path))
            if not entry.is_dir():
                path = PurePosixPath(entry.filename)
                below = len(path.parts) > 2 and path.parts[0] == self._top
                folder = "/".join(path.parts[1:-1]) if below else None
                yield (folder, split_extension(path.name), f"{self.path.name}/{entry.filename}"), (number,)

    def read_at(self, position: Position) -> bytes:
        """Return an entry's bytes, checked with the archive's checksum.

        Raises SourceError if it is damaged, UnsafeDataError if it would expand to more than an image has.
        """
        archive = self._archive()
        entry = archive.infolist()[position[0]]
        if entry.file_size > LARGEST_IMAGE:
            raise UnsafeDataError(f"an image has {entry.file_size:,} bytes", where=str(self.path))
        with damaged_archive(self.path):
            return archive.read(entry)

    def _archive(self) -> zipfile.ZipFile:
        return self.cached("archive", lambda: open_zip(self.path))


def open_zip(path: Path, *, largest: int = LARGEST_ZIP) -> zipfile.ZipFile:
    """Open an archive of at most ``largest`` bytes. Raises SourceError."""
    check_file(path, largest=largest, error=SourceError)
    with damaged_archive(path):
        return zipfile.ZipFile(path)


def check_entry(entry: zipfile.ZipInfo, number: int, where: str) -> None:
    """Refuse an entry by its name or number, a link or device, and an encrypted one."""
    check_member(entry.filename, number, where)
    name = printable(entry.filename)
    if stat.S_IFMT(entry.external_attr >> 16) not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise UnsafeDataError(f"archive member {name!r} is a link or a device", where=where)
    if entry.flag_bits & _ENCRYPTED or entry.compress_type not in _METHODS:
        raise UnsafeDataError(f"archive member {name!r} is encrypted, or packed in a rare way", where=where)


@contextmanager
def damaged_archive(path: Path) -> Iterator[None]:
    """Turn errors of zipfile on a damaged archive into one SourceError."""
    try:
        yield
    except _DAMAGED as error:
        message = f"the archive is truncated or corrupt ({printable(error)})"
        raise SourceError(message, where=str(path), hint="fetch it again and compare its MD5") from error
