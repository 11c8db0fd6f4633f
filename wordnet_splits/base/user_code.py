"""Code of other packages and of users: entry points, ``MODULE:NAME``, and the errors that it raises."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
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
    """Convert any error of the block, except a SplitsError, to a DataError of one line: "PROBLEM: error"."""
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


@dataclass(frozen=True)
class EntryPoints:
    """The objects that installed packages register under one group of entry points.

    Attributes
    ----------
    group : as in ``[project.entry-points."GROUP"]``. kind : noun for messages, e.g. "layout".
    error : raised where an object cannot be loaded.
    """

    group: str
    kind: str
    error: type[SplitsError] = DataError

    def names(self, built_in: Collection[str] = ()) -> tuple[str, ...]:
        """Return the registered names, sorted; built-in names are refused with a warning."""
        names = {point.name for point in entry_points(group=self.group)}
        for name in sorted(names & set(built_in)):
            warnings.warn(
                f"the {self.kind} {name!r} of another package is ignored: a built-in one has that name",
                stacklevel=2,
            )
        return tuple(sorted(names - set(built_in)))

    def load(self, name: str) -> Any:
        """Return the object registered as ``name``.

        Raises
        ------
        SplitsError : of the type `error`, where it cannot be loaded, or two packages register the name.
        """
        points = {point.value: point for point in entry_points(group=self.group) if point.name == name}
        if len(points) != 1:
            raise self.error(
                f"{len(points)} packages register the {self.kind} {name!r}",
                where=", ".join(sorted(points)) or None,
                hint="uninstall all but one",
            )
        ((value, point),) = points.items()
        try:
            return point.load()
        except SplitsError:
            raise
        except USER_CODE_ERRORS as error:
            raise self.error(
                f"the {self.kind} {name!r} cannot be loaded: {describe_error(error)}",
                where=value,
                hint="install it again",
            ) from error


def warn_replaced(kind: str, name: str, *, stacklevel: int) -> None:
    """Warn that an object of a user replaces an earlier one of its name, as when a cell runs again."""
    warnings.warn(f"the {kind} {name!r} replaces the earlier one of that name", stacklevel=stacklevel)


def defined_in(value: object, package: str) -> bool:
    """Return whether a class or function is defined in a package or one of its subpackages."""
    return f"{getattr(value, '__module__', '')}.".startswith(f"{package}.")


def registered(kind: str, name: str, registry: Mapping[str, Any]) -> Any:
    """Return the object that loading the entry point ``name`` registered.

    Raises
    ------
    DataError : it registered nothing under that name.
    """
    if name not in registry:
        raise DataError(
            f"the entry point {name!r} registers no {kind} of that name",
            hint="the name of the entry point is that of the decorated object",
        )
    return registry[name]
