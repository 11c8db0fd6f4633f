"""SVG for the inside of a page whose security policy forbids inline styles."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree

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
