"""Every public name of a package: signature, docstring and members."""

from __future__ import annotations

import importlib
import inspect
import types
from collections.abc import Iterator
from functools import cached_property
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from generating.markdown import entries, sections, spoken

LISTS = ("Parameters", "Attributes", "Raises")
"""Sections of our docstrings with entries ``name : meaning``; types are in the signature."""
WIDTH = 100
"""Columns of a signature; a longer one has a parameter a line."""


class Plain(str):
    """An annotation that `inspect.Signature` prints without quotes."""

    def __repr__(self) -> str:
        """Return the text itself."""
        return str(self)


def lines(package: str) -> Iterator[str]:
    """Yield a section for each public name of a package."""
    module = importlib.import_module(package)
    for name in module.__all__:
        public = getattr(module, name)
        yield from (f"### `{name}`", "")
        if not inspect.isclass(public):
            yield from function(name, public)
            continue
        yield from signature(name, public)
        yield from documentation(public)
        for member, value in members(public).items():
            if not member.startswith("_") and member not in vars(BaseModel) and inspect.getdoc(value):
                yield from described(f"{name}.{member}", getattr_static(value))


def members(public: type) -> dict[str, Any]:
    """Return the members of a class and of its bases in the same folder, the bases' first."""
    folder = public.__module__.rpartition(".")[0]
    bases = [base for base in reversed(public.__mro__) if base.__module__.rpartition(".")[0] == folder]
    return {name: value for base in bases for name, value in vars(base).items()}


def getattr_static(value: Any) -> Any:
    """Return the function of a class method, static method or property; anything else as it is."""
    if isinstance(value, property):
        return value
    return getattr(value, "__func__", value)


def described(name: str, value: Any) -> Iterator[str]:
    """Yield a member of a class: a method, or a property with its type."""
    if inspect.isfunction(value):
        yield from (f"#### `{name}`", "")
        yield from function(name.rpartition(".")[2], value)
    elif isinstance(value, property | cached_property):
        getter = value.fget if isinstance(value, property) else value.func
        returned = inspect.signature(getter).return_annotation  # type: ignore[arg-type] # fget is a function
        yield from (f"#### `{name}`", "", "```python", f"{name.rpartition('.')[2]}: {returned}", "```", "")
        yield from documentation(value)


def function(name: str, called: Any) -> Iterator[str]:
    """Yield a function's signature and documentation."""
    yield from signature(name, called)
    yield from documentation(called)


def signature(name: str, called: Any) -> Iterator[str]:
    """Yield a code block with the signature of a function or class."""
    given = inspect.signature(called)
    returned = "" if inspect.isclass(called) else given.return_annotation
    parameters = [
        parameter.replace(annotation=annotation(parameter.annotation), default=default(parameter.default))
        for parameter in given.parameters.values()
        if parameter.name not in ("self", "cls") and not parameter.name.startswith("_")
    ]
    bare = given.replace(parameters=parameters, return_annotation=given.empty)
    arrow = f" -> {annotation(returned)}" if returned not in ("", given.empty) else ""
    text = f"{name}{bare}{arrow}"
    if len(text) > WIDTH:
        each = str(bare)[1:-1]
        parts = [str(bare.replace(parameters=[one]))[1:-1] for one in parameters]
        text = f"{name}(\n" + "".join(f"    {part},\n" for part in marked(parts, each)) + f"){arrow}"
    yield from ("```python", text, "```", "")


def marked(parts: list[str], whole: str) -> Iterator[str]:
    """Yield a signature's parameters with its ``*`` and ``/``, which a single parameter does not show."""
    rest = whole
    for part in parts:
        part = part.removeprefix("*, ").removesuffix(", /")
        before, _, rest = rest.partition(part)
        if (mark := before.strip(" ,")) in ("*", "/"):
            yield mark
        yield part


def annotation(value: Any) -> Any:
    """Return an annotation without quotes, module names and metadata."""
    return value if value is inspect.Parameter.empty else Plain(spell(value))


def spell(value: Any) -> str:
    """Return an annotation as source text."""
    origin, inner = get_origin(value), get_args(value)
    if isinstance(value, str):
        return value
    if origin is Annotated:
        return spell(inner[0])
    if origin in (Union, types.UnionType):
        return " | ".join(map(spell, inner))
    if origin is Literal:
        return f"Literal[{', '.join(map(repr, inner))}]"
    if origin is not None:
        return f"{origin.__name__}[{', '.join(map(spell, inner))}]"
    if value in (None, types.NoneType, Ellipsis):
        return "..." if value is Ellipsis else "None"
    return str(getattr(value, "__name__", value))


def default(value: Any) -> Any:
    """Return a default as source text; ``...`` if it is long."""
    if isinstance(value, types.MappingProxyType):
        return Plain(dict(value))
    if inspect.isroutine(value):
        return Plain(f"{value.__module__.lstrip('_')}.{value.__name__}")
    return Plain("...") if isinstance(value, BaseModel) or "array(" in repr(value) else value


def documentation(of: Any) -> Iterator[str]:
    """Yield the sections of a docstring as Markdown."""
    for title, text in sections(of).items():
        if title == "":
            yield from (spoken(text), "")
        elif title in LISTS:
            yield from (f"**{title}**", "")
            yield from (f"- `{name}`: {spoken(meaning)}" for name, meaning in entries(text).items())
            yield ""
        elif ">>>" in text:
            yield from (f"**{title}**", "", "```pycon", inspect.cleandoc(text), "```", "")
        else:
            yield from (f"**{title}**: {spoken(text)}", "")
