"""Code of users: ``MODULE:NAME``, trust, and the errors that it raises."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from wordnet_splits.base.errors import DataError, SplitsError, UnsafeDataError, unknown
from wordnet_splits.base.names import printable

MAX_ERROR_LENGTH: Final = 300
USER_CODE_ERRORS: Final = (Exception, SystemExit)
"""Errors of user code that are reported; ``SystemExit`` would otherwise end the program without a message."""
_imported: set[str] = set()
"""``MODULE:NAME`` of the objects that were imported in this process: the user named or trusted each."""


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
