"""The publisher's tar archives, read in place: members are found by offset, nothing is unpacked."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

import numpy as np

from wordnet_splits.errors import SourceError, UnsafeDataError
from wordnet_splits.sources.layouts.names import Naming, split_extension
from wordnet_splits.sources.layouts.parts import Found
from wordnet_splits.sources.layouts.walk import check_link

MAX_MEMBERS = 200_000  # ImageNet's validation archive has 50,000, its largest class 1,300
MAX_IMAGE_BYTES = 64 * 2**20  # ImageNet's largest file has 15 MB
_BLOCK = 512


class Window(io.RawIOBase):
    """A read-only stretch of an open file, by ``pread``: forks and threads share no position."""

    def __init__(self, descriptor: int, start: int, size: int) -> None:
        self._descriptor, self._start, self._size, self._at = descriptor, start, size, 0

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

    def readinto(self, buffer: object) -> int:
        """Fill a buffer from the position on; return the number of bytes, 0 at the end."""
        view = memoryview(buffer)  # type: ignore[arg-type]
        length = max(0, min(len(view), self._size - self._at))
        data = os.pread(self._descriptor, length, self._start + self._at)
        view[: len(data)] = data
        self._at += len(data)
        return len(data)


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
            io.BufferedReader(Window(descriptor, start, size), _BLOCK) as window,
            tarfile.open(fileobj=window, mode="r:") as archive,
        ):
            for number, info in enumerate(archive):
                _check(info, number, where)
                if info.offset_data + info.size > size:
                    raise _truncated(where, f"member {info.name} ends behind it")
                if info.isfile():
                    yield Member(info.name, start + info.offset_data, info.size)
            end = archive.offset
        if os.pread(descriptor, _BLOCK, start + end) != bytes(_BLOCK):
            raise _truncated(where, "its closing block is missing")
    except (tarfile.TarError, OSError) as error:
        raise _truncated(where, str(error)) from error


def _check(info: tarfile.TarInfo, number: int, where: str) -> None:
    path = PurePosixPath(info.name)
    if path.is_absolute() or ".." in path.parts or "\\" in info.name:
        raise UnsafeDataError(
            f"archive member {info.name!r} lies outside the archive's folder",
            where=where,
            hint="this is not the publisher's archive; fetch it again from the publisher",
        )
    if not (info.isfile() or info.isdir()):
        raise UnsafeDataError(f"archive member {info.name!r} is a link or a device", where=where)
    if number >= MAX_MEMBERS:
        raise UnsafeDataError(f"the archive has more than {MAX_MEMBERS:,} members", where=where)


def _truncated(where: str, why: str) -> SourceError:
    return SourceError(
        f"the archive is truncated or corrupt ({why})", where=where, hint="fetch it again and compare its MD5"
    )


class TarIndex:
    """Where each image of one archive lies: 16 bytes and the name for each, found by binary search."""

    def __init__(self, found: Iterator[Member]) -> None:
        images = [(stem, m) for m in found if (stem := _stem(m.name)) is not None]
        names = np.array([stem for stem, _ in images] or [""], dtype=np.bytes_)
        order = np.argsort(names, kind="stable")
        self._names = names[order]
        self._places = np.array([(m.offset, m.size) for _, m in images] or [(0, 0)], dtype=np.int64)[order]

    def place(self, stem: str) -> tuple[int, int]:
        """Return (offset, size); KeyError where the archive has no such image."""
        key = stem.encode()
        found = int(np.searchsorted(self._names, key))
        if found == len(self._names) or self._names[found] != key:
            raise KeyError(stem)
        return int(self._places[found, 0]), int(self._places[found, 1])


@dataclass(frozen=True)
class FlatTar:
    """An archive of image files: ILSVRC2012_img_val.tar."""

    path: Path
    naming: Naming
    layout: str = "tars"

    def names(self) -> Iterator[Found]:
        """Yield the members' names."""
        with _Opened(self.path) as file:
            yield from (_found(None, member) for member in file.members())

    def reader(self) -> TarReader:
        """Open the archive; its index is made when the first image is read."""
        return TarReader(self.path, per_class=False)


@dataclass(frozen=True)
class NestedTar:
    """An archive of one archive per class: ILSVRC2012_img_train.tar."""

    path: Path
    naming: Naming
    layout: str = "tars"

    def names(self) -> Iterator[Found]:
        """Yield the names in all inner archives, and outer members that are no archive."""
        with _Opened(self.path) as file:
            for outer in file.members():
                class_id = _class_of(outer)
                if class_id is None:
                    yield None, None, outer.name
                    continue
                for member in file.members(outer):
                    yield _found(class_id, member)

    def reader(self) -> TarReader:
        """Open the archive; a class is indexed when its first image is read."""
        return TarReader(self.path, per_class=True)


class _Opened:
    """A tar file held open."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.descriptor = os.open(path, os.O_RDONLY)

    def __enter__(self) -> _Opened:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file, once."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def members(self, inner: Member | None = None) -> Iterator[Member]:
        """Yield the members of the archive, or of an archive in it."""
        if inner is None:
            return members(self.descriptor, 0, os.fstat(self.descriptor).st_size, str(self.path))
        return members(self.descriptor, inner.offset, inner.size, f"{self.path}:{inner.name}")


class TarReader:
    """Reads members by offset; one descriptor per process."""

    def __init__(self, path: Path, *, per_class: bool) -> None:
        self._file = _Opened(path)
        self._per_class = per_class
        self._indexes: dict[str, TarIndex] = {}

    def read(self, class_id: str, stem: str) -> bytes:
        """Return a member's bytes; KeyError where the archive has no such image."""
        offset, size = self._index(class_id).place(stem)
        if size > MAX_IMAGE_BYTES:
            raise UnsafeDataError(f"image {stem} has {size:,} bytes", where=str(self._file.path))
        return os.pread(self._file.descriptor, size, offset)

    def position(self, class_id: str, stem: str) -> tuple[int, ...]:
        """Return where the member begins."""
        return (self._index(class_id).place(stem)[0],)

    def _index(self, class_id: str) -> TarIndex:
        key = class_id if self._per_class else ""
        if key not in self._indexes:
            inner = self._inner[class_id] if self._per_class else None
            self._indexes[key] = TarIndex(self._file.members(inner))
        return self._indexes[key]

    @cached_property
    def _inner(self) -> dict[str, Member]:
        outer = ((_class_of(member), member) for member in self._file.members())
        return {class_id: member for class_id, member in outer if class_id is not None}

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            self._file.close()


def archive(base: Path, name: str, root: Path) -> Path | None:
    """Return ``base/name`` if it is a file that does not lead out of the root."""
    path = base / name
    if not path.is_file():
        return None
    if path.is_symlink():
        check_link(path, root)
    return path


def _class_of(member: Member) -> str | None:
    path = PurePosixPath(member.name)
    return path.stem if path.suffix == ".tar" else None


def _stem(name: str) -> str | None:
    base = PurePosixPath(name).name
    return None if base.startswith(".") else split_extension(base)


def _found(class_id: str | None, member: Member) -> Found:
    return class_id, _stem(member.name), member.name if class_id is None else f"{class_id}.tar/{member.name}"
