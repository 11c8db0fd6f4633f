"""Names with parameters, ``name[parameter=value,...]``; user code and its errors are in `base.user_code`.

An error of a user's model, probe or detector is reported in one line; the original error is chained to it.
"""

from __future__ import annotations

import inspect
import math
import operator
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from numbers import Integral, Real
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, cast, get_args, get_origin, get_type_hints

from wordnet_splits.base.errors import DataError, unknown
from wordnet_splits.base.names import printable
from wordnet_splits.base.untrusted import sha256_of
from wordnet_splits.base.user_code import USER_CODE_ERRORS as USER_CODE_ERRORS
from wordnet_splits.base.user_code import describe_error as describe_error
from wordnet_splits.base.user_code import import_object as import_object
from wordnet_splits.base.user_code import require_trust as require_trust
from wordnet_splits.base.user_code import require_trusted_name as require_trusted_name
from wordnet_splits.base.user_code import user_errors as user_errors

LARGEST_MODULE = 1 << 28
"""Largest file of a module of code, in bytes."""
Value = int | float | str | bool

BOUNDS: Final[Mapping[str, tuple[str, Callable[[float, float], bool]]]] = {
    "gt": ("above", operator.gt),
    "ge": ("at least", operator.ge),
    "lt": ("below", operator.lt),
    "le": ("at most", operator.le),
}
"""Kind of a bound -> its words and its comparison."""
_NAMED = re.compile(r"(?P<name>[^\[\]]+?)(?:\[(?P<parameters>[^\[\]]*)\])?")
KINDS: Final[Mapping[type, type]] = {bool: bool, int: Integral, float: Real, str: str}
"""Type of a parameter's default -> type of its values."""
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


def parse_named(text: Any, *, where: str | None = None) -> tuple[str, dict[str, str]]:
    """Return the name and the parameters, as text, of ``name[parameter=value,...]``.

    Raises
    ------
    DataError : the text does not have that form, or gives a parameter twice.

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
    if isinstance(value, bool):  # Python's int(True) is 1
        raise DataError(f"{value!r} is not {kind.__name__}", where=where)
    try:
        converted = kind(value)
    except (TypeError, ValueError, OverflowError):
        raise DataError(f"{printable(value)!r} is not {kind.__name__}", where=where) from None
    if kind is int and isinstance(value, float) and converted != value:
        raise DataError(f"{value!r} is not int", where=where)
    return converted


class Parameters:
    """Base of dataclasses whose fields are parameters; values are checked by annotation and type of default.

    Unknown names are refused. Ranges are declared as in
    pydantic's models: ``PositiveFloat``, ``Annotated[float, Field(ge=0, lt=1)]``, ``Literal["mean", "sum"]``.
    Numbers without bounds are ``FiniteFloat``.
    """

    def __new__(cls, *values: Any, **named: Any) -> Self:
        """Refuse unknown parameters before ``__init__`` raises a TypeError."""
        signature = inspect.signature(cls.__init__)
        try:
            signature.bind_partial(None, *values, **named)
        except TypeError as error:
            _, *names = signature.parameters
            for name in sorted(named.keys() - set(names)):
                raise unknown("parameter", name, names, where=cls.__name__) from None
            raise DataError(str(error), where=cls.__name__) from None
        return super().__new__(cls)

    def __post_init__(self) -> None:
        for item in fields(cast(Any, self)):
            value, kind = getattr(self, item.name), type(item.default)
            fits = isinstance(value, KINDS.get(kind, object)) and isinstance(value, bool) <= (kind is bool)
            if kind in KINDS and not fits:
                where = f"{type(self).__name__}: {item.name}"
                raise DataError(f"{printable(repr(value))} is not {kind.__name__}", where=where)
        require_ranges(type(self), vars(self), type(self).__name__)


def convert_parameters(
    cls: Any, defaults: Mapping[str, Any], values: Mapping[str, Any], where: str
) -> dict[str, Any]:
    """Return values, possibly text, of parameters of a class or function as the types of their defaults.

    Raises
    ------
    UnknownNameError : no such parameter. DataError : a value of the wrong type or out of range.
    """
    converted = {}
    for name, value in values.items():
        if name not in defaults:
            raise unknown("parameter", name, defaults, where=where)
        converted[name] = convert(value, defaults[name], f"{where}: {name}")
    require_ranges(cls, converted, where)
    return converted


def require_ranges(cls: Any, values: Mapping[str, Any], where: str) -> None:
    """Raise DataError or UnknownNameError for a value outside of the annotation of its parameter."""
    for name, bounds in ranges_of(cls).items():
        if name in values:
            require_range(values[name], bounds, f"{where}: {name}")
    for name, annotation in _annotations(cls).items():
        if get_origin(annotation) is Literal and name in values and values[name] not in get_args(annotation):
            raise unknown("value", values[name], get_args(annotation), where=f"{where}: {name}")


def _annotations(cls: Any) -> dict[str, Any]:
    try:
        return get_type_hints(cls, include_extras=True)
    except (NameError, TypeError, AttributeError):  # a user's annotations for type checkers alone
        return {}


def ranges_of(cls: Any) -> dict[str, list[tuple[str, float]]]:
    """Return the bounds, as ``("gt", 0)``, of the numbers that are declared as of `Parameters`."""
    ranges = {}
    for name, annotation in _annotations(cls).items():
        if get_origin(annotation) is Annotated and get_args(annotation)[0] in (int, float):
            items = [part for item in get_args(annotation)[1:] for part in getattr(item, "metadata", [item])]
            ranges[name] = [
                (key, getattr(item, key)) for item in items for key in BOUNDS if hasattr(item, key)
            ]
    return ranges


def require_range(value: float, bounds: Sequence[tuple[str, float]], where: str) -> None:
    """Raise DataError unless a number is finite and within its bounds, as of `ranges_of`."""
    finite = isinstance(value, int) or math.isfinite(value)
    if not finite or not all(BOUNDS[key][1](value, bound) for key, bound in bounds):
        allowed = " and ".join(f"{BOUNDS[key][0]} {bound:g}" for key, bound in bounds)
        shown = f"{value:g}" if isinstance(value, float) else printable(str(value))
        raise DataError(
            f"{shown} is out of range", where=where, hint=f"allowed: {allowed or 'finite numbers'}"
        )
