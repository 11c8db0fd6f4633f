"""Docstrings as Markdown, and tables, for all generated pages."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence
from typing import Any

SECTION = re.compile(r"^([A-Z][A-Za-z ]+)\n-{3,}$", re.MULTILINE)
LIST_ITEM = re.compile(r"\n(?=- )")


def sections(what: Any) -> dict[str, str]:
    """Return an object's docstring by its sections."""
    return sections_of(inspect.getdoc(what) or "")


def sections_of(text: str) -> dict[str, str]:
    """Return a docstring by its numpydoc sections; the text before the first has the key ``""``."""
    before, *rest = SECTION.split(text)
    return {
        "": before.strip(),
        **{name: text.strip("\n") for name, text in zip(rest[::2], rest[1::2], strict=True)},
    }


def entries(section: str) -> dict[str, str]:
    """Return name -> text of a section's entries, ``name : text`` with further lines indented."""
    found: dict[str, str] = {}
    name = ""
    for line in section.splitlines():
        if line.startswith(" "):
            found[name] += " " + line.strip()
        elif line.strip():
            name, _, text = line.partition(" : ")
            found[name] = text
    return found


def attributes(what: Any) -> dict[str, str]:
    """Return the documentation of each attribute, as Markdown."""
    return {name: spoken(text) for name, text in entries(sections(what).get("Attributes", "")).items()}


def spoken(text: str) -> str:
    """Return a docstring's text as Markdown: one kind of backticks, paragraphs and list items on one line."""
    parts = text.replace("``", "`").split("`")
    parts[::2] = [re.sub(r"([<>*_])", r"\\\1", part) for part in parts[::2]]
    return "\n\n".join(
        "\n".join(" ".join(item.split()) for item in LIST_ITEM.split(paragraph))
        for paragraph in "`".join(parts).split("\n\n")
    )


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield a Markdown table, ended by a blank line."""
    yield "| " + " | ".join(columns) + " |"
    yield "|" + "---|" * len(columns)
    for row in rows:
        yield "| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |"
    yield ""
