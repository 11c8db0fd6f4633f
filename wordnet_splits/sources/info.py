"""What is known of a dataset besides its pixels: where it is published, how to get it, how to cite it."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from wordnet_splits.catalog.declarations import Declaration, declared_sources, unknown_source


@dataclass(frozen=True)
class Download:
    """One file the publisher offers: its name, and a checksum where one is known for certain.

    Parameters
    ----------
    unpacked_md5 : of what a compressed file unpacks to: copies are often packed anew.
    url : where anybody may fetch it; None where the publisher wants to be asked, or where it is not known.
    unpack : whether it is an archive that is read only once it is unpacked.
    wanted : whether it is fetched unless others are named.
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
    """A copy on the Hugging Face Hub whose layout is read here: its dataset repository and its files."""

    repo: str
    files: str


@dataclass(frozen=True)
class SourceInfo:
    """A dataset's publication, licence and expected tree, from ``data/sources.toml``."""

    name: str
    title: str
    url: str
    licence: str
    size: str
    how: str
    tree: str
    bibtex: str
    files: tuple[Download, ...] = field(default=())
    hub: HubCopy | None = None


def source_info(name: str) -> SourceInfo:
    """Return what is known of a source; an unknown name is refused with the nearest ones."""
    table = _table()
    if name in table:
        return table[name]
    own = declared_sources().get(name)
    if own is None:
        raise unknown_source(name, (*table, *declared_sources()))
    return _own_info(own)


def _own_info(own: Declaration) -> SourceInfo:
    return SourceInfo(
        name=own.name,
        title=own.title or f"own dataset, layout {own.layout}",
        url=own.url,
        licence=own.licence,
        size="",
        how=f"it is declared in {own.file}",
        tree="",
        bibtex=own.bibtex,
    )


@cache
def _table() -> dict[str, SourceInfo]:
    text = resources.files("wordnet_splits").joinpath("data/sources.toml").read_text("utf-8")
    return {name: _info(name, entry) for name, entry in tomllib.loads(text).items()}


def _info(name: str, entry: dict[str, Any]) -> SourceInfo:
    files = tuple(Download(**item) for item in entry.pop("files", ()))
    hub = HubCopy(**entry.pop("hub")) if "hub" in entry else None
    texts = {key: value.strip() for key, value in entry.items()}
    return SourceInfo(name=name, files=files, hub=hub, **texts)
