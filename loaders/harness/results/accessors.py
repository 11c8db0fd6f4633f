"""Accessors of results, such as ``results.plot``, which extensions register without results knowing them.

An extension defines its accessors in a module ``accessor`` of its folder, which is found by that name; other
packages use entry points.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import Any, Final, TypeVar

from wordnet_splits.base.registry import Registry

Accessor = TypeVar("Accessor", bound=Callable[[Any], Any])
ACCESSORS: Final = Registry[Callable[[Any], Any]]("accessor of results", "", "wordnet_splits.accessors")


def register_accessor(name: str) -> Callable[[Accessor], Accessor]:
    """Register a class or function of results as their attribute ``name``.

    It is called with the results and returns the attribute: an object with methods, or a bound function.

    Examples
    --------
    >>> @register_accessor("doctest_count")
    ... def count(results):
    ...     return len(results)
    >>> find_accessor("doctest_count", [1, 2])
    2
    >>> ACCESSORS.remove("doctest_count")
    """
    return ACCESSORS.register(name)


def find_accessor(name: str, results: Any) -> Any:
    """Return the attribute ``name`` of results; AttributeError if no extension registers it."""
    if name.startswith("_") or name not in list_accessors():  # copying and notebooks look up private names
        raise AttributeError(f"{type(results).__name__!r} object has no attribute {name!r}")
    return ACCESSORS[name](results)


def list_accessors() -> tuple[str, ...]:
    """Return the names of all accessors."""
    _import_extensions()
    return ACCESSORS.names()


@cache
def _import_extensions() -> None:
    """Import the module ``accessor`` of every folder next to this one that has it."""
    harness = import_module(__package__.rpartition(".")[0])
    for folder in iter_modules(harness.__path__, f"{harness.__name__}."):
        if folder.ispkg and find_spec(f"{folder.name}.accessor") is not None:
            import_module(f"{folder.name}.accessor")
