"""The page itself: a template that escapes every text, and a policy that lets nothing else run or load."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.resources import files
from xml.etree import ElementTree

from wordnet_splits.base.lazy import need
from wordnet_splits.base.names import printable

from ..evaluation.tables import NOTHING, Table
from .mistakes import Mistake

LONGEST = 2000
_NUMBER = re.compile(r"-?[\d,]*\.?\d+(e-?\d+)?")


@dataclass(frozen=True)
class Drawn:
    """A plot: its kind, its title and its SVG element."""

    what: str
    title: str
    svg: str
    panels: int = 1
    notes: tuple[str, ...] = ()

    @property
    def width(self) -> str:
        """Whether one panel is drawn, or several beside each other, which need room."""
        return "one" if self.panels == 1 else "several"


@dataclass(frozen=True)
class Section:
    """A part of the page; what it lacks is left out."""

    title: str
    tables: tuple[Table, ...] = ()
    pictures: tuple[Drawn, ...] = ()
    mistakes: tuple[Mistake, ...] = ()
    lines: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()

    @property
    def anchor(self) -> str:
        """The id of its heading."""
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")


def page(title: str, facts: str, sections: Sequence[Section]) -> str:
    """Return the page.

    Raises
    ------
    MissingPackageError : jinja2 is not installed.
    """
    jinja2 = need("jinja2", "plots", where="unknown-eval report")
    style, script = (_asset(name) for name in ("report.css", "report.js"))
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["plain"] = lambda text: printable(text, LONGEST)
    environment.filters["sort_key"] = sort_key
    environment.filters["kinds"] = kinds
    shown = [s for s in sections if s.tables or s.pictures or s.mistakes or s.lines or s.commands]
    return str(
        environment.from_string(_asset("report.html.jinja")).render(
            title=title,
            facts=facts,
            sections=shown,
            style=style,
            script=script,
            policy=policy(style, script),
            program=f"wordnet-splits {version('wordnet-splits')}",
        )
    )


def policy(style: str, script: str) -> str:
    """Return the content security policy: nothing but this style, this script and pictures in the page."""
    return (
        f"default-src 'none'; img-src data:; style-src 'sha256-{_hash(style)}'; "
        f"script-src 'sha256-{_hash(script)}'; base-uri 'none'; form-action 'none'"
    )


def sort_key(text: str) -> str:
    """Return the number that a cell begins with, by which its column is sorted; empty where there is none."""
    found = _NUMBER.match(text.strip())
    return found.group().replace(",", "") if found else ""


def kinds(table: Table) -> list[str]:
    """Return of each column what it holds, ``number`` or ``text``: numbers where it has any and no words."""
    columns = zip(*table.cells, strict=True) if table.cells else [()] * len(table.columns)
    return ["number" if _numeric(cells) else "text" for cells in columns]


def _numeric(cells: Sequence[str]) -> bool:
    held = [cell for cell in cells if cell != NOTHING]
    return bool(held) and all(sort_key(cell) for cell in held)


def _asset(name: str) -> str:
    return (files(str(__package__)) / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
DROPPED = frozenset({"metadata", "style", "title"})
_REFERENCE = re.compile(r"url\(#([^)]+)\)")


def inline_svg(svg: str, prefix: str, label: str) -> str:
    """Return a picture of matplotlib's as an element of a page.

    Styles become presentation attributes, ids get ``prefix`` so that no two pictures share one, and
    comments, metadata and style sheets go.

    Parameters
    ----------
    svg : a whole document. prefix : letters and digits. label : what the picture shows, in words.
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
    attributes |= dict(_declarations(element.get("style", "")))
    element.attrib.clear()
    for name, value in attributes.items():
        if name == f"{{{XLINK}}}href":
            element.set("href", f"#{prefix}{value[1:]}" if value.startswith("#") else value)
        else:
            made = f"{prefix}{value}" if name == "id" else _REFERENCE.sub(rf"url(#{prefix}\1)", value)
            element.set(name, made)


def _declarations(style: str) -> Iterator[tuple[str, str]]:
    """Yield the properties of a style attribute, each also an attribute of SVG of that name."""
    for part in style.split(";"):
        name, colon, value = part.partition(":")
        if colon:
            yield name.strip(), value.strip()
