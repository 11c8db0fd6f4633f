"""The registry of training methods: modules of this folder, entry points, and ``MODULE:NAME``."""

from __future__ import annotations

import dataclasses
import pkgutil
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from importlib import import_module
from typing import Any, Final, TypeVar

from wordnet_splits.base.errors import DataError, SplitsError, unknown
from wordnet_splits.base.user_code import EntryPoints, defined_in, registered, warn_replaced

from ..plugins import convert_parameters, import_object, parse_named, ranges_of, require_range
from .interface import Method

MethodClass = TypeVar("MethodClass", bound=type[Method])
METHODS: dict[str, type[Method]] = {}
PLUGINS: Final = EntryPoints("wordnet_splits.methods", "training method")
"""Training methods of installed packages; the name of an entry point is that of its method."""
PACKAGE: Final = str(__package__)
PAPER_NAMES: Final = {
    "s": "softmax",
    "ce": "softmax",
    "cross-entropy": "softmax",
    "bg": "background",
    "styleaugment": "augmented-copies",
    "deepaugment": "augmented-copies",
}
"""Names in tables of papers that are unlike ours, in lower case; initials (OE, EOS) need no row here."""


def register_method(name: str) -> Callable[[MethodClass], MethodClass]:
    """Register the decorated dataclass as a training method.

    Raises
    ------
    SplitsError : the class is no method, a parameter has no default, or two methods share the name.
    """

    def add(cls: MethodClass) -> MethodClass:
        _check(cls)
        existing = METHODS.get(name)
        if existing is not None and cls.__qualname__ != existing.__qualname__:
            if defined_in(existing, PACKAGE):
                raise SplitsError(f"two training methods are called {name!r}")
            warn_replaced("training method", name, stacklevel=3)
        cls.name = name
        METHODS[name] = cls
        return cls

    return add


def list_methods(pattern: str = "*") -> tuple[str, ...]:
    """Return the names of the training methods that match a shell pattern, sorted.

    Those of installed packages are among them.
    """
    _load_built_in()
    names = {*METHODS, *PLUGINS.names(METHODS)}
    return tuple(sorted(name for name in names if fnmatchcase(name, pattern)))


def get_method(
    text: str, parameters: Mapping[str, Any] | None = None, *, where: str = "training method"
) -> Method:
    """Return a training method by name, ``NAME[parameter=value,...]`` or ``MODULE:NAME``.

    Raises
    ------
    UnknownNameError : no such method or parameter. DataError : a value of the wrong type or out of range.
    """
    name, written = parse_named(text, where=where)
    cls = _class_of(name, where)
    where = f"{where}: {name}"
    defaults = {item.name: item.default for item in dataclasses.fields(cls)}
    values = convert_parameters(cls, defaults, {**written, **(parameters or {})}, where)
    for key in set(values) - set(ranges_of(cls)):
        if isinstance(values[key], float):
            require_range(values[key], (), f"{where}: {key}")
    return cls(**values)


def _class_of(name: str, where: str) -> type[Method]:
    if ":" in name:
        cls: type[Method] = import_object(name, where=where)
        _check(cls)
        cls.name = vars(cls).get("name") or name  # not the name of a method that it derives from
        return cls
    _load_built_in()
    if name not in METHODS:
        if name not in PLUGINS.names(METHODS):
            near = [ours for theirs, ours in PAPER_NAMES.items() if theirs == name.lower()]
            raise unknown("training method", name, list_methods(), where=where, near=near)
        PLUGINS.load(name)
        registered("training method", name, METHODS)
    return METHODS[name]


def _load_built_in() -> None:
    """Import every module of this folder, so that its methods register themselves."""
    for module in pkgutil.iter_modules(import_module(PACKAGE).__path__, f"{PACKAGE}."):
        import_module(module.name)


def _check(cls: Any) -> None:
    where = str(getattr(cls, "__qualname__", cls))
    is_method = isinstance(cls, type) and issubclass(cls, Method)
    if not is_method or "step" in cls.__abstractmethods__:
        base = "loaders.harness.methods.Method"
        message = f"a training method is a dataclass derived from {base}, with a `step` of its own"
        raise DataError(message, where=where)
    for item in dataclasses.fields(cls):
        if item.default is dataclasses.MISSING:
            raise DataError(f"parameter {item.name!r} has no default", where=where)
