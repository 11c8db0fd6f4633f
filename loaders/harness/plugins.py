"""Names with parameters, ``name[parameter=value,...]``; user code and its errors are in `base.user_code`.

An error of a user's model, probe or detector is reported in one line; the original error is chained to it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.names import printable
from wordnet_splits.base.untrusted import sha256_of
from wordnet_splits.base.user_code import USER_CODE_ERRORS as USER_CODE_ERRORS
from wordnet_splits.base.user_code import describe_error as describe_error
from wordnet_splits.base.user_code import import_object as import_object
from wordnet_splits.base.user_code import user_errors as user_errors

LARGEST_MODULE = 1 << 28
"""Largest file of a module of code, in bytes."""
IN_PYTHON = "as given in Python"
"""Description of the weights of a model that was passed as an object."""
IN_ARRAYS = "as given in arrays"
"""Description of the weights of a model of which only the outputs were given."""
Value = int | float | str | bool

_NAMED = re.compile(r"(?P<name>[^\[\]]+?)(?:\[(?P<parameters>[^\[\]]*)\])?")
_TRUTH = {"true": True, "false": False}


def file_identity(path: str) -> str:
    """Return ``MODULE:NAME`` of an imported object with 12 hex digits of the SHA-256 of its module's file."""
    file = getattr(sys.modules.get(path.partition(":")[0]), "__file__", None)
    content = sha256_of(Path(file), largest=LARGEST_MODULE)[:12] if file else "builtin"
    return f"{path} {content}"


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
