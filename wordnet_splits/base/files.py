"""Writing and locking of files: a kill, a full disk or a second writer never leaves half a file.

A file or folder is written next to its place under a name that ends in ``.part``, flushed to the disk, and
renamed. The next holder of a file's lock removes the unfinished files of killed writers; the holder of a
folder's lock calls `clear_parts`.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from filelock import FileLock, Timeout

from wordnet_splits.base.errors import DataError, OutputError

PART: Final = ".part"
"""Ending of unfinished files, which no reader opens."""

LOCK: Final = ".lock"
"""Ending of the hidden, empty file that `locked` locks; a killed process leaves it there."""

HINT: Final = "check that the folder may be written to and has space left"

_WORKING_FOLDER: Final = -100  # AT_FDCWD
_EXCHANGE: Final = 2  # RENAME_EXCHANGE

FileId = tuple[str, int, int, int]
"""Identity of a file that was read: absolute path, bytes, time of change, inode."""


def file_id(path: Path) -> FileId:
    """Return the identity of a file, a key for caching its contents. Raises OSError."""
    status = path.stat()
    return str(path.absolute()), status.st_size, status.st_mtime_ns, status.st_ino


def as_path(path: Any, *, where: str) -> Path:
    """Return an argument called ``where`` as a path; DataError if it is not a text or a path."""
    if not isinstance(path, str | os.PathLike):
        raise DataError(f"must be a path, got {type(path).__name__}", where=where)
    return Path(path)


def check_outputs(
    *outputs: Path | None, inputs: Iterable[str | Path | None] = (), new: Iterable[Path | None] = ()
) -> None:
    """Raise OutputError if an output file cannot be written, is a folder or an input, or is given twice.

    The outputs in ``new`` must not exist either.
    """
    files = {os.path.realpath(path): "is read by this command" for path in inputs if path is not None}
    for path in outputs:
        if path is not None and path.is_dir():
            raise OutputError("is a folder", where=str(path), hint="give a file")
        if path is not None and (reason := files.setdefault(os.path.realpath(path), "")):
            raise OutputError(reason, where=str(path), hint="give another file")
        if path is not None:
            files[os.path.realpath(path)] = "is given for two outputs"
            with writing(path):
                above = next(folder for folder in path.absolute().parents if folder.exists())
                with tempfile.TemporaryFile(dir=above):
                    pass
    for path in new:
        if path is not None and path.exists():
            raise OutputError("is there already", where=str(path), hint="remove it, or give another file")


@contextmanager
def writing(path: Path, *, hint: str = HINT) -> Iterator[None]:
    """Turn an OSError of the block, which writes ``path``, into an OutputError.

    Arrow's errors are OSErrors, too.
    """
    try:
        yield
    except OSError as error:
        raise OutputError(
            f"cannot be written: {os.strerror(error.errno) if error.errno else error}",
            where=str(path),
            hint=hint,
        ) from error


@contextmanager
def replacing(path: Path, *, hint: str = HINT, aside: Path | None = None) -> Iterator[Path]:
    """Yield a path to write to, which is renamed to ``path`` when the block ends without an error.

    Folders are created as needed. Readers see the old file or the whole new one, also after a power cut.

    Parameters
    ----------
    aside : folder for the unfinished files of a job with a journal, on the same disk. Its files are not
        flushed one by one; the journal has to record which files are complete.

    Raises
    ------
    OutputError : the file cannot be written.
    """
    name = f".{path.name}.{uuid4().hex}{PART}" if aside is None else uuid4().hex
    part = (aside or path.parent) / name
    with writing(path, hint=hint):
        try:
            if aside is None:
                path.parent.mkdir(parents=True, exist_ok=True)
            yield part
            if aside is None:
                _to_disk(part)
                part.replace(path)
            else:
                _place(part, path)
        finally:
            with suppress(OSError):
                part.unlink(missing_ok=True)


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
    """Write a text as UTF-8 in one step, lone surrogates escaped. Raises as `replacing`."""
    write_bytes(path, text.encode("utf-8", errors="backslashreplace"), hint=hint)


def append_text(path: Path, text: str) -> None:
    """Append to a journal, whose reader ignores an incomplete last line. Raises OutputError."""
    with writing(path), path.open("a", encoding="utf-8") as file:
        file.write(text)


def write_json(path: Path, value: Mapping[str, Any], *, hint: str = HINT) -> None:
    """Write an object in one step, keys sorted. Raises as `replacing`."""
    write_text(path, json_text(value), hint=hint)


def json_text(value: Mapping[str, Any]) -> str:
    """Return an object as our JSON files store it: indented, keys sorted."""
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


@contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """Yield an empty folder, which replaces ``path`` when the block ends without an error.

    If ``path`` is a link, its target folder is replaced. The two folders are exchanged in a single step
    where the system can do that. Otherwise the old folder is moved aside, never half deleted, and `restore`
    puts it back after a kill between the two renames. The caller holds the lock of ``path``.

    Raises
    ------
    OutputError : the folder cannot be written.
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
    """Exchange two folders in one step, so that ``b`` is never absent; return False where that fails."""
    try:
        exchange = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, TypeError, AttributeError):  # not Linux, or a C library from before 2018
        return False
    return bool(exchange(_WORKING_FOLDER, os.fsencode(a), _WORKING_FOLDER, os.fsencode(b), _EXCHANGE) == 0)


def refuse_folder(folder: Path, names: Collection[str], *, holding: str, overwrite: bool) -> None:
    """Refuse to replace a folder that holds other files, or one of this kind without ``overwrite``.

    Parameters
    ----------
    names : files and folders of this kind of folder.
    holding : its content, such as "a detector".

    Raises
    ------
    OutputError : also where the path is a file.
    """
    if not folder.exists():
        return
    hint = "give another folder"
    if not folder.is_dir():
        raise OutputError("is a file, not a folder", where=str(folder), hint=hint)
    present = {path.name for path in folder.iterdir()}
    if others := present.difference(names):
        message = f"holds other files than those of {holding}, such as {min(others)}"
        raise OutputError(message, where=str(folder), hint=hint)
    if present and not overwrite:
        raise OutputError(
            f"holds {holding}", where=str(folder), hint=f"{hint}, or overwrite it (--overwrite)"
        )


def restore(path: Path) -> None:
    """Put back the folder ``path`` if a kill left it moved aside and its successor is absent."""
    path = _linked(path)
    if _aside(path).exists() and not path.exists():
        _aside(path).rename(path)


def _linked(path: Path) -> Path:
    """Return the target of a link, or the path itself."""
    return path.resolve() if path.is_symlink() else path


def _aside(path: Path) -> Path:
    return path.with_name(f".{path.name}.old")


@contextmanager
def locked(
    path: Path, *, busy: str, hint: str = "wait for it, or give another folder", wait: bool = False
) -> Iterator[None]:
    """Lock ``path``, a file or folder to be written; the lock file is next to it.

    Unfinished files of a killed writer are removed.

    Parameters
    ----------
    busy : message if another process has the lock, such as "another build is writing here".
    wait : wait for the lock instead.

    Raises
    ------
    OutputError : another process has the lock, or the folder cannot be written.
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
        try:
            # removed while it is locked: a waiting process sees that the file is gone and makes another
            with suppress(OSError):
                Path(lock.lock_file).unlink()
        finally:
            lock.release()


def is_lock(name: str) -> bool:
    """Return whether a file is a lock of `locked`."""
    return name.startswith(".") and name.endswith(LOCK)


def clear_parts(folder: Path) -> None:
    """Remove the unfinished files of killed writers in ``folder``; the caller holds its lock."""
    for part in folder.glob(f".*{PART}"):
        if part.is_dir() and not part.is_symlink():
            shutil.rmtree(part, ignore_errors=True)
        else:
            with suppress(OSError):
                part.unlink()


def clear_parts_of(path: Path) -> None:
    """Remove the unfinished files of killed writers of ``path``; the caller holds its lock."""
    unfinished = re.compile(re.escape(f".{path.name}.") + "[0-9a-f]{32}" + re.escape(PART))
    with suppress(OSError):
        for part in path.parent.iterdir():
            if unfinished.fullmatch(part.name):
                part.unlink(missing_ok=True)


def _to_disk(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
