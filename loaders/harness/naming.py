"""``name[parameter=value,...]``: how detectors and probes are written, read and shown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from wordnet_splits.errors import DataError
from wordnet_splits.untrusted import printable

Value = int | float | str | bool

_NAMED = re.compile(r"(?P<name>[^\[\]]+?)(?:\[(?P<parameters>[^\[\]]*)\])?")
_TRUTH = {"true": True, "false": False}


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
    DataError : it is not of that form.

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

    A default that is no number, text or truth value says nothing of the type: the value stays as it is.

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
