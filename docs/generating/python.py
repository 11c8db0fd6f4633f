"""Every public name of a package, with its docstring; and our docstrings' sections as Sphinx reads them."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from typing import Any

from generating.markdown import entries, sections_of

FIELDS = {"Parameters": "param", "Attributes": "ivar", "Raises": "raises"}


PACKAGES = ("wordnet_splits", "fix_resize", "loaders", "loaders.harness")


def import_all() -> None:
    """Import every public name before autodoc sets `typing.TYPE_CHECKING`, which breaks pydantic."""
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in module.__all__:
            getattr(module, name)


def lines(package: str) -> Iterator[str]:
    """Yield a heading and an autodoc directive for each public name of a package."""
    module = importlib.import_module(package)
    for name in module.__all__:
        yield f"### `{name}`"
        yield ""
        yield "```{eval-rst}"
        if inspect.isclass(getattr(module, name)):
            yield from (f".. autoclass:: {package}.{name}", "   :members:")
        else:
            yield f".. autofunction:: {package}.{name}"
        yield from ("```", "")


def read_sections(app: Any, what: str, name: str, of: Any, options: Any, lines: list[str]) -> None:
    """Turn the sections of a docstring, in place, into fields (a handler of autodoc-process-docstring).

    Our docstrings have no types, which are in the signature: ``name : meaning``.
    """
    del app, what, name, of, options
    before, *rest = sections_of("\n".join(lines)).items()
    lines[:] = [*before[1].splitlines(), ""]
    for title, text in rest:
        if title in FIELDS:
            lines += [f":{FIELDS[title]} {key}: {said}" for key, said in entries(text).items()]
        elif title == "Returns":
            lines += [f":returns: {' '.join(text.split())}"]
        else:
            lines += [f".. rubric:: {title}", "", *text.splitlines()]
        lines += [""]
