"""The HTML page: a template that escapes every text, SVG without inline styles, and a security policy."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from importlib.resources import files
from xml.etree import ElementTree

from wordnet_splits.base.lazy import need
from wordnet_splits.base.names import printable
from wordnet_splits.base.plotting import dark_rules

from ..results.table import NOTHING, Table
from .mistakes import Mistake

MAX_TEXT_LENGTH = 2000
_NUMBER = re.compile(r"-?[\d,]*\.?\d+(e-?\d+)?(?!\w)")


@dataclass(frozen=True)
class DrawnPlot:
    """A plot: the name of its kind, its title and its SVG element."""

    name: str
    title: str
    svg: str
    panels: int = 1
    notes: tuple[str, ...] = ()

    @property
    def width(self) -> str:
        """The CSS class of its width: ``one`` panel, or ``several`` side by side."""
        return "one" if self.panels == 1 else "several"


@dataclass(frozen=True)
class Section:
    """A part of the page; an empty part is left out.

    Attributes
    ----------
    listing : a text of several lines.
    folded : whether a click opens it.
    """

    title: str
    tables: tuple[Table, ...] = ()
    plots: tuple[DrawnPlot, ...] = ()
    mistakes: tuple[Mistake, ...] = ()
    lines: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    listing: str = ""
    folded: bool = False

    @property
    def anchor(self) -> str:
        """The id of its heading."""
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")


def page(title: str, facts: str, sections: Sequence[Section]) -> str:
    """Return the page; MissingPackageError without jinja2."""
    jinja2 = need("jinja2", "plots", where="unknown-eval report")
    style, script = (_asset(name) for name in ("report.css", "report.js"))
    dark = "svg{fill:currentColor}\n" + dark_rules('[{name}="{colour}"]')
    style = f"{style}@media (prefers-color-scheme: dark) {{\n{dark}}}\n"
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["plain"] = lambda text: printable(text, MAX_TEXT_LENGTH)
    environment.filters["sort_key"] = sort_key
    environment.filters["kinds"] = column_kinds
    environment.filters["with_values"] = with_values
    filled = [s for s in sections if s.tables or s.plots or s.mistakes or s.lines or s.commands or s.listing]
    return str(
        environment.from_string(_asset("report.html.jinja")).render(
            title=title,
            facts=facts,
            sections=filled,
            style=style,
            script=script,
            policy=policy(style, script),
            program=f"wordnet-splits {version('wordnet-splits')}",
        )
    )


def policy(style: str, script: str) -> str:
    """Return the content security policy, which allows this style, this script and embedded images."""
    return (
        f"default-src 'none'; img-src data:; style-src 'sha256-{_hash(style)}'; "
        f"script-src 'sha256-{_hash(script)}'; base-uri 'none'; form-action 'none'"
    )


def sort_key(text: str) -> str:
    """Return the number at the start of a cell, to sort its column; "" without a number."""
    match = _NUMBER.match(text.strip())
    return match.group().replace(",", "") if match else ""


def column_kinds(table: Table) -> list[str]:
    """Return the kind of each column: ``number`` where all its values are numbers, else ``text``."""
    kinds = []
    for cells in zip(*table.cells, strict=True) if table.cells else [()] * len(table.columns):
        values = [cell for cell in cells if cell != NOTHING]
        kinds.append("number" if values and all(map(sort_key, values)) else "text")
    return kinds


def with_values(table: Table) -> Table:
    """Return a table without the columns that have no value in any row."""
    cells = list(zip(*table.cells, strict=True))
    kept = [n for n, column in enumerate(cells) if not {*column} <= {"", NOTHING}]
    bold = frozenset((row, kept.index(column)) for row, column in table.bold if column in kept)
    columns = tuple(table.columns[n] for n in kept) if cells else table.columns
    rows = tuple(tuple(row[n] for n in kept) for row in table.cells)
    return replace(table, columns=columns, cells=rows, bold=bold, spans=())


def _asset(name: str) -> str:
    return (files(str(__package__)) / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
DROPPED = frozenset({"metadata", "style", "title"})
_REFERENCE = re.compile(r"url\(#([^)]+)\)")


def inline_svg(svg: str, prefix: str, label: str) -> str:
    """Return an SVG document of matplotlib as an element of a page.

    Styles become presentation attributes, ids get ``prefix`` so that no two plots share one, and
    comments, metadata and style sheets are removed.

    Parameters
    ----------
    svg : a whole document.
    prefix : letters and digits.
    label : a description of the plot.
    """
    ElementTree.register_namespace("", SVG)
    root = ElementTree.fromstring(svg)
    _clean(root, prefix)
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    # matplotlib's one style sheet, for all elements
    root.attrib |= {"stroke-linejoin": "round", "stroke-linecap": "butt"}
    root.attrib |= {"role": "img", "aria-label": label}
    return ElementTree.tostring(root, encoding="unicode")


def _clean(element: ElementTree.Element, prefix: str) -> None:
    for child in list(element):
        if child.tag.rpartition("}")[2] in DROPPED:
            element.remove(child)
        else:
            _clean(child, prefix)
    attributes = {name: value for name, value in element.attrib.items() if name != "style"}
    for part in element.get("style", "").split(";"):  # each property is also a valid SVG attribute
        name, colon, value = part.partition(":")
        if colon:
            attributes[name.strip()] = value.strip()
    element.attrib.clear()
    for name, value in attributes.items():
        if name == f"{{{XLINK}}}href":
            element.set("href", f"#{prefix}{value[1:]}" if value.startswith("#") else value)
        else:
            prefixed = f"{prefix}{value}" if name == "id" else _REFERENCE.sub(rf"url(#{prefix}\1)", value)
            element.set(name, prefixed)
