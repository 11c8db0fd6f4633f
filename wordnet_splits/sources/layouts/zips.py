"""Class folders in a publisher's zip archive, read in place: nothing is unpacked on disk."""

from __future__ import annotations

import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from wordnet_splits.base.errors import SourceError, UnsafeDataError
from wordnet_splits.base.names import printable
from wordnet_splits.base.untrusted import LARGEST_IMAGE, LONGEST_NAME, MiB, check_file
from wordnet_splits.sources.layouts.named_files import Entry, NamedFiles
from wordnet_splits.sources.layouts.names import Naming, split_extension
from wordnet_splits.sources.layouts.tars import MAX_MEMBERS

LARGEST_ARCHIVE = 32 * MiB  # Omniglot's largest has 10 MB; the index is held in memory, 500 bytes an entry

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


@dataclass(frozen=True)
class ZipFolders(NamedFiles):
    """An archive whose class folders lie in the folder ``top``; a class may be nested folders."""

    path: Path
    naming: Naming
    top: str
    name: str = "zip"

    def entries(self) -> Iterator[Entry]:
        """Yield the entries, sorted, so that those of one class are adjacent."""
        with _opened(self.path) as archive:
            entries = sorted(_entries(archive, self.path), key=lambda entry: entry.filename)
        for entry in entries:
            class_id, name = self.class_and_name(entry.filename)
            yield class_id, split_extension(name), f"{self.path.name}/{entry.filename}"

    def reader(self) -> ZipReader:
        """Open the archive and index it."""
        return ZipReader(self)

    def class_and_name(self, filename: str) -> tuple[str | None, str]:
        """Return the class folder of an entry, None outside ``top``, and its file name."""
        path = PurePosixPath(filename)
        below = len(path.parts) > 2 and path.parts[0] == self.top
        return "/".join(path.parts[1:-1]) if below else None, path.name


class ZipReader:
    """Reads entries of one archive by class and name; it stays open."""

    def __init__(self, layout: ZipFolders) -> None:
        self._path = layout.path
        self._archive = _opened(layout.path)
        self._entries: dict[tuple[str | None, str], zipfile.ZipInfo | None] = {}
        for entry in _entries(self._archive, layout.path):
            class_id, name = layout.class_and_name(entry.filename)
            stem = split_extension(name)
            if stem is not None:
                key = class_id, stem
                self._entries[key] = None if key in self._entries else entry

    def read(self, class_id: str, stem: str) -> bytes:
        """Return an entry's bytes, checked with the archive's checksum.

        Raises
        ------
        KeyError : it is not there.
        SourceError : it is there twice, or damaged.
        UnsafeDataError : it would expand to more than a picture has.
        """
        entry = self._entries[class_id, stem]
        if entry is None:
            raise SourceError(f"two entries are named {class_id}/{stem}", where=str(self._path))
        if entry.file_size > LARGEST_IMAGE:
            raise UnsafeDataError(f"image {stem} has {entry.file_size:,} bytes", where=str(self._path))
        with _one_line(self._path):
            return self._archive.read(entry)

    def position(self, class_id: str, stem: str) -> tuple[int, ...]:
        """Return where the entry begins."""
        entry = self._entries[class_id, stem]
        return () if entry is None else (entry.header_offset,)

    def __del__(self) -> None:
        if hasattr(self, "_archive"):
            self._archive.close()


def _opened(path: Path) -> zipfile.ZipFile:
    check_file(path, largest=LARGEST_ARCHIVE, error=SourceError)
    with _one_line(path):
        return zipfile.ZipFile(path)


def _entries(archive: zipfile.ZipFile, path: Path) -> Iterator[zipfile.ZipInfo]:
    """Yield the regular files of an archive.

    Raises
    ------
    UnsafeDataError : an entry named outside the archive's folder, a link or device, an encrypted one, or
        too many of them.
    """
    entries = archive.infolist()
    if len(entries) > MAX_MEMBERS:
        raise UnsafeDataError(f"the archive has more than {MAX_MEMBERS:,} entries", where=str(path))
    for entry in entries:
        _check(entry, str(path))
        if not entry.is_dir():
            yield entry


def _check(entry: zipfile.ZipInfo, where: str) -> None:
    name = printable(entry.filename)
    if len(entry.filename) > LONGEST_NAME:
        raise UnsafeDataError(f"an archive entry's name has {len(entry.filename):,} letters", where=where)
    inside = PurePosixPath(entry.filename)
    if inside.is_absolute() or ".." in inside.parts or "\\" in entry.filename:
        raise UnsafeDataError(
            f"archive entry {name!r} lies outside the archive's folder",
            where=where,
            hint="this is not the publisher's archive; fetch it again from the publisher",
        )
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise UnsafeDataError(f"archive entry {name!r} is a link or a device", where=where)
    if entry.flag_bits & _ENCRYPTED or entry.compress_type not in _METHODS:
        raise UnsafeDataError(f"archive entry {name!r} is encrypted, or packed in a rare way", where=where)


@contextmanager
def _one_line(path: Path) -> Iterator[None]:
    """Turn errors of zipfile on a damaged archive into one SourceError."""
    try:
        yield
    except _DAMAGED as error:
        raise SourceError(
            f"the archive is truncated or corrupt ({printable(error)})",
            where=str(path),
            hint="fetch it again and compare its MD5",
        ) from error
