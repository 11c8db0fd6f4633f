"""Names with parameters, ``name[parameter=value,...]``, and classes whose fields are parameters."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Any, Final, TypeVar, cast, dataclass_transform, get_type_hints

import numpy as np
from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as pydantic_dataclass

from wordnet_splits.base.errors import DataError, SplitsError, unknown
from wordnet_splits.base.names import printable
from wordnet_splits.base.untrusted import sha256_of

LARGEST_MODULE = 1 << 28
"""Largest file of a module of code, in bytes."""
Value = int | float | str | bool
Class = TypeVar("Class")

_NAMED = re.compile(r"(?P<name>[^\[\]]+?)(?:\[(?P<parameters>[^\[\]]*)\])?")
CONFIG: Final = ConfigDict(extra="forbid", strict=True, arbitrary_types_allowed=True, allow_inf_nan=False)
"""Validation of parameters: numbers are finite, and no type is converted to another but int to float."""


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


def parse_named(text: Any, *, where: str | None = None) -> tuple[str, dict[str, str]]:
    """Return the name and the parameters, as text, of ``name[parameter=value,...]``.

    >>> parse_named("odin[T=10,eps=0.002]")
    ('odin', {'T': '10', 'eps': '0.002'})
    """
    if not isinstance(text, str):
        hint = "give its name, or MODULE:NAME[parameter=value] of a class of yours"
        raise DataError(f"a name must be text, got {type(text).__name__}", where=where, hint=hint)
    match = _NAMED.fullmatch(text)
    if not match:
        raise DataError(f"{printable(text)!r} is not NAME[parameter=value,...]", where=where)
    parameters: dict[str, str] = {}
    for item in split_list(match["parameters"] or ""):
        key, equals, value = (part.strip() for part in item.partition("="))
        if not equals:
            raise DataError(f"{printable(item)!r} is not parameter=value", where=where or printable(text))
        if key in parameters:
            raise DataError(f"{printable(key)!r} is given twice", where=where or printable(text))
        parameters[key] = value
    return match["name"], parameters


def format_named(name: str, parameters: Mapping[str, Any]) -> str:
    """Return ``name[parameter=value,...]``, or the name alone; floats as ``%g``."""
    items = (
        f"{key}={value:g}" if isinstance(value, float) else f"{key}={value}"
        for key, value in parameters.items()
    )
    return f"{name}[{','.join(items)}]" if parameters else name


@dataclass_transform(frozen_default=True)
def parameters(cls: type[Class]) -> type[Class]:
    """Make a class a frozen pydantic dataclass whose fields are parameters.

    Ranges are declared as in pydantic's models: ``PositiveFloat``, ``Annotated[float, Field(ge=0, lt=1)]``,
    ``Literal["mean", "sum"]``. Making an instance raises DataError for an unknown parameter, a value of
    another type, or one out of range.
    """
    made: Any = pydantic_dataclass(frozen=True, config=CONFIG)(cls)
    initialise = made.__init__

    @wraps(initialise)
    def checked(self: Any, *values: Any, **named: Any) -> None:
        named = {name: _plain(value) for name, value in named.items()}
        try:
            initialise(self, *map(_plain, values), **named)
        except ValidationError as error:
            raise _refused(error, cls.__name__, [item.name for item in fields(made)]) from None

    made.__init__ = checked
    return cast(type[Class], made)


def convert_parameters(
    implementation: Any, defaults: Mapping[str, Any], values: Mapping[str, Any], where: str
) -> dict[str, Any]:
    """Return values, possibly text, of parameters of a class or function as their annotations demand.

    A parameter without an annotation has the type of its default.

    Raises
    ------
    UnknownNameError : no such parameter. DataError : a value of the wrong type or out of range.
    """
    try:
        annotations = get_type_hints(implementation, include_extras=True)
    except (NameError, TypeError, AttributeError):  # a user's annotations for type checkers alone
        annotations = {}
    converted = {}
    for name, value in values.items():
        if name not in defaults:
            raise unknown("parameter", name, defaults, where=where)
        default = defaults[name]
        kind = annotations.get(name, Any if default is None else type(default))
        adapter = TypeAdapter(kind, config=None if is_dataclass(kind) else CONFIG)
        try:
            converted[name] = adapter.validate_python(_plain(value), strict=not isinstance(value, str))
        except ValidationError as error:
            raise _refused(error, f"{where}: {name}", defaults) from None
    return converted


def _plain(value: Any) -> Any:
    """Return a number of NumPy as Python's."""
    return value.item() if isinstance(value, np.generic) else value


def _refused(error: ValidationError, where: str, names: Iterable[str]) -> SplitsError:
    """Return the error of a parameter: the first one that pydantic found."""
    first = error.errors(include_url=False)[0]
    name, *_ = (*first["loc"], "")
    if isinstance(name, int):  # a positional argument
        name = (*names, *[""] * (name + 1))[name]
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, SplitsError):  # of the class itself
        return cause
    if first["type"] == "unexpected_keyword_argument":
        return unknown("parameter", name, names, where=where)
    text = first["msg"] if first["type"] == "literal_error" else first["msg"].partition(",")[0]
    problem = text.replace("Input should be", "must be")
    value = printable(repr(first["input"]))
    return DataError(f"{problem}, got {value}", where=f"{where}: {name}" if name else where)
