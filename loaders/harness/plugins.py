"""What users name or bring: ``name[parameter=value,...]``, ``MODULE:NAME``, and code that may raise anything.

Whatever a user's model, probe or detector raises becomes one line, with the original error chained to it for
whoever wants its traceback in Python.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from wordnet_splits.base.errors import DataError, SplitsError, unknown
from wordnet_splits.base.untrusted import printable

LONGEST_REASON = 300
FOREIGN = (Exception, SystemExit)
"""What code from outside may raise; one that exits would end ours, as if all were done."""
IN_PYTHON = "as given in Python"
"""Description of the weights of a model that was passed as an object."""
Value = int | float | str | bool

_NAMED = re.compile(r"(?P<name>[^\[\]]+?)(?:\[(?P<parameters>[^\[\]]*)\])?")
_TRUTH = {"true": True, "false": False}


@contextmanager
def in_one_line(what: str, *, where: str, hint: str | None = None) -> Iterator[None]:
    """Turn anything that the block raises, but our own errors, into one DataError: "WHAT: reason"."""
    try:
        yield
    except SplitsError:
        raise
    except FOREIGN as error:
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


def split_list(text: str) -> list[str]:
    """Return the parts of a list at the commas outside of brackets.

    >>> split_list("msp, knn[k=50,x=1]")
    ['msp', 'knn[k=50,x=1]']
    """
    return [part.strip() for part in re.split(r",(?![^\[]*\])", text) if part.strip()]


def parse_named(text: str, *, where: str | None = None) -> tuple[str, dict[str, str]]:
    """Return the name and the parameters, as text, of ``name[parameter=value,...]``.

    Raises
    ------
    DataError : it does not have that form.

    >>> parse_named("odin[T=10,eps=0.002]")
    ('odin', {'T': '10', 'eps': '0.002'})
    """
    found = _NAMED.fullmatch(text)
    if not found:
        raise DataError(f"{printable(text)!r} is not NAME[parameter=value,...]", where=where)
    parameters: dict[str, str] = {}
    for item in split_list(found["parameters"] or ""):
        key, equals, value = item.partition("=")
        if not equals:
            raise DataError(f"{printable(item)!r} is not parameter=value", where=where or printable(text))
        parameters[key.strip()] = value.strip()
    return found["name"], parameters


def show_named(name: str, parameters: Mapping[str, Any]) -> str:
    """Return ``name[parameter=value,...]``, or the name alone; floats as ``%g``."""
    shown = (
        f"{key}={value:g}" if isinstance(value, float) else f"{key}={value}"
        for key, value in parameters.items()
    )
    return f"{name}[{','.join(shown)}]" if parameters else name


def converted(value: Any, default: Any, where: str) -> Any:
    """Return a value, which may be given as text, as the type of its parameter's default.

    A default that is not a number, text or truth value says nothing about the type: the value stays as it is.

    Raises
    ------
    DataError : it cannot be converted.
    """
    kind = type(default)
    if kind is bool:
        if str(value).lower() not in _TRUTH:
            raise DataError(f"{value!r} is not true or false", where=where)
        return _TRUTH[str(value).lower()]
    if kind not in (int, float, str):
        return value
    try:
        return kind(value)
    except (TypeError, ValueError):
        raise DataError(f"{printable(value)!r} is not {kind.__name__}", where=where) from None
