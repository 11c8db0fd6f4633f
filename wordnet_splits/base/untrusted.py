"""Files and code of unknown origin.

Files are opened only if they are regular and not too large, and paths must stay inside their folder.

Reading a pipe or a device could hang or never end. `text_formats` and `parquet` check contents before they
parse them. Every refusal is an error of the caller's kind, in one line.

Code of users is ``MODULE:NAME``. A name in a file is imported only if it is trusted; any error of the code is
reported in one line.
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from io import BufferedReader
from pathlib import Path
from typing import IO, Any, Final

from wordnet_splits.base.errors import DataError, SourceError, SplitsError, UnsafeDataError, unknown
from wordnet_splits.base.names import printable

MiB, GiB = 1 << 20, 1 << 30

LARGEST_TEXT: Final = 16 * MiB
"""Largest JSON or TSV file, in bytes; parsing takes up to 30 times as many (our largest has 3 MiB)."""
LARGEST_IMAGE: Final = 128 * MiB
"""Largest image file, in bytes (ImageNet's largest has 15 MB)."""
LONGEST_NAME: Final = 1024
"""Longest name inside an archive or a table, in bytes (a file system allows 255)."""

_NO_WAITING: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
"""Flags for opening; without O_NONBLOCK, opening a pipe waits for ever for a writer."""

ErrorType = type[SplitsError]

MAX_ERROR_LENGTH: Final = 300
USER_CODE_ERRORS: Final = (Exception, SystemExit)
"""Errors of user code that are reported; ``SystemExit`` would otherwise end the program without a message."""
_imported: set[str] = set()
"""``MODULE:NAME`` of the objects that were imported in this process: the user named or trusted each."""


@contextmanager
def open_untrusted(path: Path, *, largest: int, error: ErrorType = DataError) -> Iterator[BufferedReader]:
    """Yield ``path`` open for reading.

    Raises
    ------
    error : absent, not a regular file, larger than ``largest`` bytes, or unreadable.
    """
    try:
        descriptor = os.open(path, _NO_WAITING)
    except FileNotFoundError as cause:
        raise error("no such file", where=str(path)) from cause
    except (OSError, ValueError) as cause:  # ValueError: a null byte in the name
        raise error(f"cannot be read: {reason_of(cause)}", where=str(path)) from cause
    _regular_size(descriptor, path, largest, error)
    with os.fdopen(descriptor, "rb") as file:
        try:
            yield file
        except OSError as cause:
            raise error(f"cannot be read: {reason_of(cause)}", where=str(path)) from cause


def sha256_of(path: Path, *, largest: int, error: ErrorType = DataError) -> str:
    """Return the SHA-256 of a file's bytes, in hex. Raises as `open_untrusted`."""
    with open_untrusted(path, largest=largest, error=error) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_file(path: Path, *, largest: int, error: ErrorType = DataError) -> int:
    """Return the size of a file that a library will open by its name. Raises as `open_untrusted`."""
    with open_untrusted(path, largest=largest, error=error) as file:
        return os.fstat(file.fileno()).st_size


def read_bytes(path: Path, *, largest: int, error: ErrorType = DataError) -> bytes:
    """Return the bytes of a file. Raises as `open_untrusted`."""
    with open_untrusted(path, largest=largest, error=error) as file:
        return file.read(os.fstat(file.fileno()).st_size)  # `read` allocates the requested size


def read_text(path: Path, *, largest: int = LARGEST_TEXT, error: ErrorType = DataError) -> str:
    """Return the text of a file in UTF-8. Raises as `open_untrusted`, and where it is not UTF-8."""
    try:
        return read_bytes(path, largest=largest, error=error).decode("utf-8-sig")
    except UnicodeDecodeError as cause:
        raise error(f"is not UTF-8 text at byte {cause.start}", where=str(path)) from None


def read_chunks(stream: IO[bytes] | io.BufferedIOBase, most: int) -> Iterator[bytes]:
    """Yield the first ``most`` bytes of a stream in chunks of 1 MiB.

    A single ``read`` of that many bytes would allocate them all before reading.
    """
    while most > 0 and (chunk := stream.read(min(most, MiB))):
        most -= len(chunk)
        yield chunk


def read_image(path: Path | str, root: Path) -> bytes:
    """Return the bytes of an image file; a link is followed if it stays inside ``root``.

    Raises
    ------
    OSError : from the system; the caller adds the name of the absent image.
    SourceError : not a regular file, or more than `LARGEST_IMAGE` bytes.
    UnsafeDataError : a link that leaves ``root``.
    """
    try:
        descriptor = os.open(path, _NO_WAITING | getattr(os, "O_NOFOLLOW", 0))
    except OSError as cause:
        if cause.errno not in (errno.ELOOP, errno.EMLINK) or not Path(path).is_symlink():
            raise
        check_link(path, root)
        descriptor = os.open(path, _NO_WAITING)
    size = _regular_size(descriptor, path, LARGEST_IMAGE, SourceError)
    try:
        data = os.read(descriptor, size)  # which allocates the requested size
        while len(data) < size and (more := os.read(descriptor, size - len(data))):
            data += more
    finally:
        os.close(descriptor)
    return data


def _regular_size(descriptor: int, path: Path | str, largest: int, error: ErrorType) -> int:
    """Return the size of an open file; close it and raise ``error`` if it is not regular or too large."""
    status = os.fstat(descriptor)
    problem = None
    if not stat.S_ISREG(status.st_mode):
        problem = "is not a regular file"
    elif status.st_size > largest:
        problem = f"has {status.st_size:,} bytes, at most {largest:,} are read"
    if problem is not None:
        os.close(descriptor)
        raise error(problem, where=printable(path))
    return status.st_size


def check_link(path: Path | str, root: Path) -> None:
    """Raise an error for a symbolic link that leaves ``root`` or makes a loop.

    Raises
    ------
    FileNotFoundError : the link leads nowhere. SourceError : it makes a loop, or cannot be followed.
    UnsafeDataError : it leaves ``root``.
    """
    try:
        target = Path(path).resolve(strict=True)
    except FileNotFoundError:
        raise
    except (OSError, RuntimeError) as cause:  # RuntimeError: a circle of links, before Python 3.13
        raise unreadable("the symbolic link", str(path), cause) from cause
    if Path(path).parent.resolve().is_relative_to(target):
        raise SourceError(
            "a symbolic link makes a loop", where=str(path), hint="remove it: it leads to a folder above it"
        )
    if not target.is_relative_to(root):
        raise UnsafeDataError(
            f"a symbolic link leads out of the root, to {target}",
            where=str(path),
            hint="links are followed only inside the root: give a root that holds both ends",
        )


def unreadable(name: str, where: str, cause: BaseException) -> SourceError:
    """Return the error for a folder or link of a dataset, called ``name``, that cannot be read."""
    if isinstance(cause, PermissionError):
        return SourceError(f"{name} cannot be read: permission denied", where=where, hint="check its rights")
    if isinstance(cause, RuntimeError) or getattr(cause, "errno", None) == errno.ELOOP:
        return SourceError(f"{name} makes a loop", where=where, hint="remove the link that leads back")
    return SourceError(f"{name} cannot be read: {reason_of(cause)}", where=where)


def path_below(folder: Path, relative: str) -> Path:
    """Return ``folder/relative`` if it is below ``folder`` after every link is followed.

    In the cache of `huggingface_hub` files are links from ``snapshots/COMMIT`` to the ``blobs`` of the same
    repository: these are followed.

    Raises
    ------
    DataError : the path is absolute, leaves the folder, or is not a path.
    """
    try:
        path = (folder / relative).resolve()
        inside = path.is_relative_to(folder.resolve()) or _is_blob(folder.resolve(), relative, path)
    except (OSError, ValueError, RuntimeError):  # a null byte; a circle of links
        inside = False
    if not inside or Path(relative).is_absolute():
        raise DataError(f"the path {printable(relative)!r} leaves its folder", where=str(folder))
    return folder / relative


def _is_blob(folder: Path, relative: str, target: Path) -> bool:
    """Return whether a path below a snapshot's folder leads to a blob of the same repository."""
    snapshots = next((parent for parent in folder.parents if parent.name == "snapshots"), None)
    written_below = Path(os.path.normpath(folder / relative)).is_relative_to(folder)
    return snapshots is not None and written_below and target.parent == snapshots.parent / "blobs"


def expand_home(path: Path | str, *, where: str) -> Path:
    """Return a path with a leading ``~`` or ``~NAME`` replaced by the home folder.

    Raises
    ------
    SourceError : the user is unknown.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise SourceError(
            f"{printable(path)} names the home folder of an unknown user", where=where
        ) from None


def reason_of(error: BaseException) -> str:
    """Return the reason that an error of the system or a library gives, as a single line."""
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return printable(str(text).split("\n")[0])


@contextmanager
def user_errors(problem: str, *, where: str, hint: str | None = None) -> Iterator[None]:
    """Convert any error of the block, except a SplitsError, to a one-line DataError: "PROBLEM: error"."""
    try:
        yield
    except SplitsError:
        raise
    except USER_CODE_ERRORS as error:
        raise DataError(f"{problem}: {describe_error(error)}", where=where, hint=hint) from error


def describe_error(error: BaseException) -> str:
    """Return the kind and the first line of an error, printable."""
    lines = str(error).strip().splitlines()
    kind = "out of memory" if isinstance(error, MemoryError) else type(error).__name__
    return printable(f"{kind}: {lines[0]}" if lines else kind, MAX_ERROR_LENGTH)


def require_trust(problem: str, *, trusted: bool, where: str) -> None:
    """Raise UnsafeDataError for a file that is code or names code, unless the user trusts it."""
    if not trusted:
        raise UnsafeDataError(
            problem,
            where=where,
            hint="if you trust its origin, pass --trust-model (trust_model=True)",
        )


def require_trusted_name(path: str, *, trusted: bool, where: str) -> None:
    """Raise UnsafeDataError for ``MODULE:NAME`` in a file, unless the user trusts the file.

    A name that the user gave in this process, as to `train`, is trusted in its files too. Every name of code
    that is read from a file passes through here before `import_object`.
    """
    problem = f"{printable(path)!r} is code that has to be imported"
    require_trust(problem, trusted=trusted or path in _imported, where=where)


def import_object(path: str, *, where: str) -> Any:
    """Return the object at ``MODULE:NAME``; the working directory is searched too.

    Check a name from a file with `require_trusted_name` first.

    Raises
    ------
    DataError : the module cannot be imported, or is given as a file. UnknownNameError : it has no such name.
    """
    module_name, _, name = path.partition(":")
    if module_name.endswith(".py") or not all(part.isidentifier() for part in module_name.split(".")):
        stem = Path(module_name).stem
        raise DataError(
            f"{printable(module_name)!r} is a file, not the name of a module",
            where=where,
            hint=f"write {printable(stem)}:{printable(name)} in the folder that holds the file",
        )
    directory = str(Path.cwd())
    sys.path.insert(0, directory)
    try:
        with user_errors(
            f"module {module_name!r} cannot be imported",
            where=where,
            hint="it is looked for on the Python path and in the working directory",
        ):
            module = import_module(module_name)
    finally:
        sys.path.remove(directory)
    if not hasattr(module, name):
        public = [n for n in vars(module) if not n.startswith("_")]
        raise unknown("name", name, public, where=f"{where} {module_name}".strip())
    _imported.add(path)
    return getattr(module, name)
