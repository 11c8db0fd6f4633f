"""Code and objects that are not ours: imported by ``MODULE:NAME``, and run so that a failure is one line.

A user's model, probe or detector may raise anything. What it raises is chained to the error of ours, for
whoever wants its traceback in Python; a command line prints the one line.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from wordnet_splits.errors import DataError, SplitsError, unknown
from wordnet_splits.untrusted import printable

LONGEST_REASON = 300


@contextmanager
def in_one_line(what: str, *, where: str, hint: str | None = None) -> Iterator[None]:
    """Turn anything that the block raises, but our own errors, into one DataError: "WHAT: reason"."""
    try:
        yield
    except SplitsError:
        raise
    except Exception as error:
        raise DataError(f"{what}: {reason(error)}", where=where, hint=hint) from error


def reason(error: BaseException) -> str:
    """Return the kind and the first line of an error that is not ours, printable."""
    lines = str(error).strip().splitlines()
    kind = "out of memory" if isinstance(error, MemoryError) else type(error).__name__
    return printable(f"{kind}: {lines[0]}" if lines else kind, LONGEST_REASON)


def imported(path: str, *, where: str) -> Any:
    """Return the object at ``MODULE:NAME``; the working directory is searched too.

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
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        with in_one_line(
            f"module {module_name!r} cannot be imported",
            where=where,
            hint="it is looked for on the Python path and in the working directory",
        ):
            module = import_module(module_name)
    finally:
        sys.path.remove(here)
    if not hasattr(module, name):
        public = [n for n in vars(module) if not n.startswith("_")]
        raise unknown("name", name, public, where=f"{where} {module_name}".strip())
    return getattr(module, name)
