"""User-provided names and code: ``name[parameter=value,...]``, ``MODULE:NAME``, and errors of user code.

An error of a user's model, probe or detector is reported in one line; the original error is chained to it.
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
from wordnet_splits.base.names import printable

MAX_ERROR_LENGTH = 300
USER_CODE_ERRORS = (Exception, SystemExit)
"""Errors of user code that are reported; ``SystemExit`` would otherwise end the program without one."""
IN_PYTHON = "as given in Python"
"""Description of the weights of a model that was passed as an object."""
Value = int | float | str | bool

_NAMED = re.compile(r"(?P<name>[^\[\]]+?)(?:\[(?P<parameters>[^\[\]]*)\])?")
_TRUTH = {"true": True, "false": False}


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


def import_object(path: str, *, where: str) -> Any:
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
    DataError : the text does not have that form.

    >>> parse_named("odin[T=10,eps=0.002]")
    ('odin', {'T': '10', 'eps': '0.002'})
    """
    match = _NAMED.fullmatch(text)
    if not match:
        raise DataError(f"{printable(text)!r} is not NAME[parameter=value,...]", where=where)
    parameters: dict[str, str] = {}
    for item in split_list(match["parameters"] or ""):
        key, equals, value = item.partition("=")
        if not equals:
            raise DataError(f"{printable(item)!r} is not parameter=value", where=where or printable(text))
        parameters[key.strip()] = value.strip()
    return match["name"], parameters


def format_named(name: str, parameters: Mapping[str, Any]) -> str:
    """Return ``name[parameter=value,...]``, or the name alone; floats as ``%g``."""
    items = (
        f"{key}={value:g}" if isinstance(value, float) else f"{key}={value}"
        for key, value in parameters.items()
    )
    return f"{name}[{','.join(items)}]" if parameters else name


def convert(value: Any, default: Any, where: str) -> Any:
    """Return a value, possibly text, as the type of its parameter's default.

    The value is returned as it is where the default is not a number, text or truth value.

    Raises
    ------
    DataError : the value cannot be converted.
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
