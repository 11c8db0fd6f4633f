"""Read-only LMDB files of images: one environment per process, truncated files refused before reading."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wordnet_splits.base.errors import SourceError
from wordnet_splits.base.untrusted import check_file, check_link

LARGEST_FILE = 1 << 40  # bytes; the largest published has 160 GB

_OPEN: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()
_OPENED_BY = [0]  # the process whose environments these are


def environment(folder: Path) -> Any:
    """Return the environment in ``folder``, the same one for as long as anybody in this process holds it.

    LMDB forbids opening a file twice in a process and using an environment after a fork, so those inherited
    from a parent are closed first (which closes nothing in the parent).

    Raises SourceError where there is no LMDB file, or it is truncated or corrupt.
    """
    if _OPENED_BY[0] != os.getpid():
        for inherited in list(_OPEN.values()):
            inherited.close()
        _OPEN.clear()
        _OPENED_BY[0] = os.getpid()
    key = str(folder.resolve())
    found = _OPEN.get(key)
    if found is None:
        found = _OPEN[key] = _open(folder)
    return found


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


def _broken(path: Path, what: str) -> SourceError:
    return SourceError(what, where=str(path), hint="fetch this file again")


@dataclass(frozen=True)
class LmdbFile:
    """The images of one LMDB folder, by key."""

    folder: Path
    root: Path

    def open(self) -> Any:
        """Return the environment, to be held while keys are read."""
        for path in (self.folder, self.folder / "data.mdb"):
            if path.is_symlink():
                check_link(path, self.root)
        return environment(self.folder)

    def count(self) -> int:
        """Return how many entries there are, without reading their keys."""
        entries: int = self.open().stat()["entries"]
        return entries

    def names(self) -> Iterator[tuple[str | None, str]]:
        """Yield every key as text, in byte order, and how to show it; None for a key that is not ASCII."""
        import lmdb

        env = self.open()
        try:
            with env.begin() as transaction:
                for key in transaction.cursor().iternext(keys=True, values=False):
                    text = key.decode("ascii", "backslashreplace")
                    yield (text if key.isascii() else None), text
        except lmdb.Error as error:
            raise _broken(self.folder / "data.mdb", f"is corrupt ({error})") from error

    def read(self, opened: Any, key: str) -> bytes:
        """Return the bytes under ``key`` in what ``open`` returned; KeyError where there is none."""
        import lmdb

        try:
            with opened.begin() as transaction:
                value: bytes | None = transaction.get(key.encode("ascii"))
        except lmdb.BadValsizeError as error:  # a key longer than any in the file
            raise KeyError(key) from error
        except lmdb.Error as error:
            raise _broken(self.folder / "data.mdb", f"is corrupt ({error})") from error
        if value is None:
            raise KeyError(key)
        return value
