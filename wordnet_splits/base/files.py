"""The one writer and the one lock: a kill, a full disk or a second writer leaves whole files only.

A file is written beside its place under a name that ends in ``.part``, flushed to the disk, and renamed; a
folder likewise. Files have the rights that the umask leaves, but are never writable by everybody. What a
killed writer left of a file is removed by the next holder of the file's lock, and what it left in a folder by
`clear_parts`, which the holder of the folder's lock calls.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from filelock import FileLock, Timeout

from wordnet_splits.base.errors import OutputError

PART: Final = ".part"
"""Ending of what is not finished; no reader takes such a file."""

LOCK: Final = ".lock"
"""Ending of the hidden, empty file that `locked` holds, and leaves."""

HINT: Final = "check that the folder may be written to and has space left"

_HERE: Final = -100  # AT_FDCWD
_EXCHANGE: Final = 2  # RENAME_EXCHANGE

FileId = tuple[str, int, int, int]
"""What tells that a file is the one that was read before: absolute path, bytes, time of change, inode."""


def file_id(path: Path) -> FileId:
    """Return the key under which what was read from a file may be kept. Raises OSError as `Path.stat`."""
    found = path.stat()
    return str(path.absolute()), found.st_size, found.st_mtime_ns, found.st_ino


@contextmanager
def writing(path: Path, *, hint: str = HINT) -> Iterator[None]:
    """Turn the system's refusal to write ``path`` into one error.

    Raises
    ------
    OutputError : the block raised an OSError (Arrow's errors are OSErrors too).
    """
    try:
        yield
    except OSError as error:
        raise OutputError(
            f"cannot be written: {os.strerror(error.errno) if error.errno else error}",
            where=str(path),
            hint=_umask_hint() or hint if isinstance(error, PermissionError) else hint,
        ) from error


def _umask_hint() -> str | None:
    """Return what to do about a umask that takes the user's own rights away, None where it does not."""
    umask = os.umask(0o077)
    os.umask(umask)
    if not umask & stat.S_IRWXU:
        return None
    return f"the umask {umask:03o} takes your own rights from what is written: run `umask 022` first"


@contextmanager
def replacing(path: Path, *, hint: str = HINT, aside: Path | None = None) -> Iterator[Path]:
    """Yield a path to write to, which becomes ``path`` in one step when the block ends well.

    Folders are made as needed. Readers see the old file or the whole new one, also after a power cut.

    Parameters
    ----------
    aside : for the many files of a journalled job: the folder of the job, on the same disk, that holds what
        is unfinished. They are not flushed one by one; the job's journal has to tell whether they are whole.

    Raises
    ------
    OutputError : it cannot be written.
    """
    name = f".{path.name}.{uuid4().hex}{PART}" if aside is None else uuid4().hex
    part = (aside or path.parent) / name
    with writing(path, hint=hint):
        try:
            if aside is None:
                path.parent.mkdir(parents=True, exist_ok=True)
            yield part
            _close_to_others(part)
            if aside is None:
                _to_disk(part)
                part.replace(path)
            else:
                _place(part, path)
        finally:
            with suppress(OSError):
                part.unlink(missing_ok=True)


def _close_to_others(part: Path) -> None:
    """Take everybody's right to write from a file, which a umask of 0 gives."""
    mode = part.stat().st_mode
    if mode & stat.S_IWOTH:
        part.chmod(stat.S_IMODE(mode) & ~stat.S_IWOTH)


def _place(part: Path, path: Path) -> None:
    try:
        part.replace(path)
    except FileNotFoundError:  # the first file of its folder
        path.parent.mkdir(parents=True, exist_ok=True)
        part.replace(path)


def write_bytes(path: Path, data: bytes, *, hint: str = HINT, aside: Path | None = None) -> None:
    """Write a whole file in one step. Raises as `replacing`."""
    with replacing(path, hint=hint, aside=aside) as part:
        part.write_bytes(data)


def write_text(path: Path, text: str, *, hint: str = HINT) -> None:
    """Write a text in UTF-8 in one step; what cannot be encoded is escaped. Raises as `replacing`."""
    write_bytes(path, text.encode("utf-8", errors="backslashreplace"), hint=hint)


def append_text(path: Path, text: str) -> None:
    """Add to a journal, whose reader ignores a last line that a kill has torn. Raises OutputError."""
    with writing(path), path.open("a", encoding="utf-8") as file:
        file.write(text)


def write_json(path: Path, value: Mapping[str, Any], *, hint: str = HINT) -> None:
    """Write an object in one step, keys sorted. Raises as `replacing`."""
    write_text(path, json_text(value), hint=hint)


def json_text(value: Mapping[str, Any]) -> str:
    """Return an object as every JSON file of ours holds it."""
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


@contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """Yield an empty folder to fill, which takes the place of ``path`` when the block ends well.

    Where ``path`` is a link, the folder that it leads to is replaced.

    The two folders are exchanged in one step where the system can do that. Elsewhere the old one is moved
    aside, never half deleted; `restore` puts it back where a kill between the two renames left it there. To
    be called by the holder of the lock of ``path``.

    Raises
    ------
    OutputError : it cannot be written.
    """
    path = _linked(path)
    part = path.with_name(f".{path.name}{PART}")
    old = _aside(path)
    with writing(path):
        try:
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir(parents=True)
            yield part
            shutil.rmtree(old, ignore_errors=True)
            if path.is_dir() and _exchanged(part, path):
                return
            if path.exists():
                path.rename(old)
            try:
                part.rename(path)
            except OSError:
                if old.exists():
                    old.rename(path)
                raise
        finally:
            shutil.rmtree(part, ignore_errors=True)
    shutil.rmtree(old, ignore_errors=True)


def _exchanged(a: Path, b: Path) -> bool:
    """Let two folders change places in one step; False where the system or the disk cannot, or one is absent.

    No reader ever finds ``b`` absent, as it does between two renames.
    """
    try:
        exchange = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, TypeError, AttributeError):  # no Linux, or a C library from before 2018
        return False
    return bool(exchange(_HERE, os.fsencode(a), _HERE, os.fsencode(b), _EXCHANGE) == 0)


def restore(path: Path) -> None:
    """Put back the folder ``path`` that a kill left moved aside, if its successor is not there."""
    path = _linked(path)
    if _aside(path).exists() and not path.exists():
        _aside(path).rename(path)


def _linked(path: Path) -> Path:
    """Return what a link leads to, the path itself where it is none."""
    return path.resolve() if path.is_symlink() else path


def _aside(path: Path) -> Path:
    return path.with_name(f".{path.name}.old")


@contextmanager
def locked(
    path: Path, *, busy: str, hint: str = "wait for it, or give another folder", wait: bool = False
) -> Iterator[None]:
    """Hold ``path``, a file or folder to be written, for this process; the lock lies beside it.

    What a killed writer of the file left unfinished is removed.

    Parameters
    ----------
    busy : what to say where another process holds it, such as "another build is writing here".
    wait : wait until it is free instead.

    Raises
    ------
    OutputError : it is held elsewhere, or its folder cannot be written.
    """
    lock = FileLock(str(path.with_name(f".{path.name}{LOCK}")), timeout=-1 if wait else 0)
    with writing(path.parent, hint=f"{HINT}, or give another one"):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire()
        except Timeout:
            raise OutputError(busy, where=str(path), hint=hint) from None
    try:
        clear_parts_of(path)
        yield
    finally:
        lock.release()


def is_lock(name: str) -> bool:
    """Return whether a file of this name is what `locked` leaves: no content of its folder."""
    return name.startswith(".") and name.endswith(LOCK)


def clear_parts(folder: Path) -> None:
    """Remove what killed writers left unfinished directly in ``folder``; only for the holder of its lock."""
    for part in folder.glob(f".*{PART}"):
        if part.is_dir() and not part.is_symlink():
            shutil.rmtree(part, ignore_errors=True)
        else:
            with suppress(OSError):
                part.unlink()


def clear_parts_of(path: Path) -> None:
    """Remove what killed writers left unfinished of one file; only for the holder of its lock."""
    unfinished = re.compile(re.escape(f".{path.name}.") + "[0-9a-f]{32}" + re.escape(PART))
    with suppress(OSError):
        for part in path.parent.iterdir():
            if unfinished.fullmatch(part.name):
                part.unlink(missing_ok=True)


def _to_disk(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
