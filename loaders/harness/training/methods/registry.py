"""The registry of training methods: modules of this folder, entry points, and ``MODULE:NAME``."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.registry import Registry
from wordnet_splits.base.untrusted import import_object

from ...data.parameters import convert_parameters, format_named, parse_named
from .interface import Method

if TYPE_CHECKING:
    from ..recipe import TrainingRecipe

MethodClass = TypeVar("MethodClass", bound=type[Method])
METHODS: Final = Registry[type[Method]]("training method", str(__package__), "wordnet_splits.methods")
PAPER_NAMES: Final = {
    "s": "softmax",
    "ce": "softmax",
    "cross-entropy": "softmax",
    "bg": "background",
    "styleaugment": "augmented-copies",
    "deepaugment": "augmented-copies",
}
"""Names in papers' tables that differ from ours, in lower case, except initials (OE, EOS)."""


def register_method(name: str) -> Callable[[MethodClass], MethodClass]:
    """Register the decorated dataclass as a training method.

    Raises
    ------
    DataError : the class is not a method, a parameter has no default, or a shipped method has the name.
    """

    def add(cls: MethodClass) -> MethodClass:
        _check(cls)
        cls.name = name
        METHODS.register(name)(cls)
        return cls

    return add


def list_methods(pattern: str = "*") -> tuple[str, ...]:
    """Return the names of the training methods that match a shell pattern, sorted.

    Methods of installed packages are included.
    """
    return METHODS.names(pattern)


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
    return cls(**convert_parameters(cls, defaults, {**written, **(parameters or {})}, where))


def with_instance(recipe: TrainingRecipe, method: Method) -> TrainingRecipe:
    """Return a recipe with an instance of a method in place of its own, as `TrainingRecipe.with_method`.

    Raises
    ------
    DataError : not a method, or one that its name does not find, such as a class inside a function.
    """
    if not isinstance(method, Method):
        raise DataError(f"must be a method's name or instance, got {method!r}", where="--method")
    cls: Any = type(method)
    _check(cls)
    if method == recipe.build_method():
        return recipe
    name = str(vars(cls).get("name", ""))
    if name not in METHODS.names() or METHODS[name] is not cls:
        name = f"{cls.__module__}:{cls.__qualname__}"
    values = {item.name: getattr(method, item.name) for item in dataclasses.fields(cls)}
    if "<locals>" in name or get_method(name, values) != method:
        raise DataError("a method's class must be found by its name in a module", where=name)
    text = format_named(name, {key: repr(value) for key, value in values.items()})
    note = f"method {text} in place of {recipe.method.name}"
    return recipe.with_note(text, note, method={"name": name, **values})


def _class_of(name: str, where: str) -> type[Method]:
    if ":" in name:
        cls: type[Method] = import_object(name, where=where)
        _check(cls)
        cls.name = vars(cls).get("name") or name  # not the name of a method that it derives from
        return cls
    near = [ours for theirs, ours in PAPER_NAMES.items() if theirs == name.lower()]
    return METHODS.find(name, where=where, near=near)


def _check(cls: Any) -> None:
    where = str(getattr(cls, "__qualname__", cls))
    is_method = isinstance(cls, type) and issubclass(cls, Method)
    if not is_method or "step" in cls.__abstractmethods__:
        base = "loaders.harness.training.methods.Method"
        message = f"a training method is a dataclass derived from {base}, with a `step` of its own"
        raise DataError(message, where=where)
    for item in dataclasses.fields(cls):
        if item.default is dataclasses.MISSING:
            raise DataError(f"parameter {item.name!r} has no default", where=where)
