"""Metadata of datasets: publication, licence, downloads and citation."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Final

from wordnet_splits.base.registry import Registry
from wordnet_splits.datasets.catalog import catalog_names
from wordnet_splits.datasets.catalog.declarations import LOCAL, Declaration, Sources, unknown_source

if TYPE_CHECKING:
    from wordnet_splits.datasets.sources.source import Source


@dataclass(frozen=True)
class Download:
    """One file of the publisher: its name, and a checksum where one is known for certain.

    Parameters
    ----------
    unpacked_md5 : MD5 of the unpacked file: copies are often packed again.
    url : its open address; None if absent or unknown.
    unpack : whether it is an archive that must be unpacked to be read.
    wanted : whether it is fetched by default.
    """

    file: str
    md5: str | None = None
    sha256: str | None = None
    unpacked_md5: str | None = None
    url: str | None = None
    unpack: bool = False
    wanted: bool = True


@dataclass(frozen=True)
class HubCopy:
    """A copy on the Hugging Face Hub in a known layout: its dataset repository and its files."""

    repo: str
    files: str


@dataclass(frozen=True)
class SourceInfo:
    """A dataset's publication, licence and expected tree, from ``data/sources.toml``.

    ``module`` is the module that reads it, if that imports no layouts of files.
    """

    name: str
    title: str = ""
    url: str = ""
    licence: str = ""
    size: str = ""
    how: str = ""
    tree: str = ""
    bibtex: str = ""
    module: str = ""
    files: tuple[Download, ...] = field(default=())
    hub: HubCopy | None = None


SOURCES: Final[Registry[type[Source]]] = Registry("source", str(__package__), "wordnet_splits.sources")
"""Classes of sources by name."""


def is_registered(name: str) -> bool:
    """Return whether a source is shipped, or of another package."""
    return name in _table() or name in _not_in_table()


def registered_sources() -> tuple[str, ...]:
    """Return the names of these sources, in the order of ``data/sources.toml``."""
    return (*_table(), *_not_in_table())


def _not_in_table() -> list[str]:
    """Return the sources that ``data/sources.toml`` lacks: with a shipped catalog, and of other packages."""
    names = {*catalog_names(), *SOURCES.added} - set(_table())
    return sorted(name for name in names if name in SOURCES)


def shipped_module(name: str) -> str:
    """Return the module that reads a source of ``data/sources.toml``, "" if that does not name it."""
    return _table()[name].module if name in _table() else ""


def source_info(name: str, sources: Sources = LOCAL) -> SourceInfo:
    """Return the metadata of a source; an unknown name is refused with the nearest ones."""
    if name in _table():
        return _table()[name]
    if name in _not_in_table():
        return SOURCES[name].info or SourceInfo(name)
    declaration = sources.find(name)
    if declaration is None:
        raise unknown_source(name, (*registered_sources(), *sources.by_name))
    return _declared_info(declaration)


def _declared_info(declaration: Declaration) -> SourceInfo:
    title = declaration.title or f"own dataset, layout {declaration.layout}"
    return SourceInfo(
        name=declaration.name,
        title=title,
        url=declaration.url or declaration.about.url or "",
        licence=declaration.licence or declaration.about.licence or "",
        how=f"it is declared in {declaration.file}",
        bibtex=declaration.bibtex or declaration.about.bibtex(f"{declaration.name}-dataset", title),
    )


@cache
def _table() -> dict[str, SourceInfo]:
    text = resources.files("wordnet_splits").joinpath("data/sources.toml").read_text("utf-8")
    return {
        name: SourceInfo(
            name=name,
            files=tuple(Download(**item) for item in entry.pop("files", ())),
            hub=HubCopy(**entry.pop("hub")) if "hub" in entry else None,
            **{key: value.strip() for key, value in entry.items()},
        )
        for name, entry in tomllib.loads(text).items()
    }
