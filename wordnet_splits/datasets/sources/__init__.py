"""The datasets this package reads: shipped ones and declared ones, by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from wordnet_splits.base.digests import digest_file, digest_pixels
from wordnet_splits.base.errors import SourceError
from wordnet_splits.datasets.catalog.declarations import LOCAL, Sources, register_declaration, unknown_source
from wordnet_splits.datasets.sources.info import (
    SOURCES,
    SourceInfo,
    is_registered,
    registered_sources,
    shipped_module,
    source_info,
)
from wordnet_splits.datasets.sources.layouts.layout import Raw
from wordnet_splits.datasets.sources.layouts.walk import check_root
from wordnet_splits.datasets.sources.source import SCAN_SCHEMA, Source, register_source

__all__ = [
    "SCAN_SCHEMA",
    "Raw",
    "Source",
    "SourceInfo",
    "check_source",
    "digest_file",
    "digest_pixels",
    "open_source",
    "recognise",
    "register_source",
    "root_variable",
    "source_class",
    "source_info",
    "source_names",
]

VARIABLE_PREFIX = "WORDNET_SPLITS_ROOT_"


def source_names(sources: Sources = LOCAL) -> tuple[str, ...]:
    """Return the names of all sources that can be opened: registered ones, then declared ones."""
    return (*registered_sources(), *sources.by_name)


def source_class(name: str, sources: Sources = LOCAL) -> type[Source]:
    """Return the class that reads ``name``; an unknown name is refused with the nearest ones."""
    if is_registered(name):
        return SOURCES.find(name, module=shipped_module(name))
    declaration = sources.find(name)
    if declaration is None:
        raise unknown_source(name, source_names(sources))
    from wordnet_splits.datasets.sources.declared import declared_class

    return declared_class(declaration)


def check_source(
    name: str, root: Path | None = None, sources: Sources = LOCAL, *, where: str | None = None
) -> None:
    """Refuse the name of an unknown source; a ``dataset.toml`` under ``root`` may declare it.

    Raises
    ------
    UnknownNameError : no such source.
    DataError : ``dataset.toml`` is malformed, or declares another dataset.
    """
    if is_registered(name):
        return
    if root is not None:
        register_declaration(root, name, sources)
    if sources.find(name) is None:
        raise unknown_source(name, source_names(sources), where=where, root=root)


def root_variable(name: str) -> str:
    """Return the environment variable that holds a source's root: ``WORDNET_SPLITS_ROOT_TINY_IMAGENET``."""
    return VARIABLE_PREFIX + name.upper().replace("-", "_")


def open_source(name: str, root: Path | str | None = None, sources: Sources = LOCAL, **params: Any) -> Source:
    """Open a dataset under a root, in any of its known layouts.

    Parameters
    ----------
    name : a source's name, one of :func:`source_names`.
    root : the dataset's folder; None for embedded and generated sources.
    sources : the datasets of a benchmark, which may declare this one.
    params : parameters of a generated source (``shape``, ``seed``).

    Raises
    ------
    UnknownNameError : no such source.
    SourceError : the root is absent, empty, unreadable or of another dataset.
    """
    check_source(name, None if root is None else Path(root), sources)
    cls = source_class(name, sources)
    if not cls.rooted:
        if root is not None:
            raise SourceError(f"source {name} is built in: remove its root", where=str(root))
        return cls.open(None, next(cls.layouts(Path())), **params)
    if root is None:
        hint = f"--root {name}=DIR, or {root_variable(name)}; {source_info(name, sources).how}"
        raise SourceError(f"no root given for source {name}", hint=hint)
    folder = check_root(Path(root), name, hint=source_info(name, sources).how)
    layout = next(cls.layouts(folder), None)
    if layout is None or not cls.is_unambiguous(folder):
        recognised = recognise(folder, other_than=name)
        if recognised or layout is None:
            looks_like = f"; it looks like {recognised}" if recognised else ""
            message = f"this is not {cls.name}: looked for {cls.expected_files}{looks_like}"
            raise SourceError(message, where=str(folder), hint=source_info(name, sources).how)
    return cls.open(folder, layout, **params)


def recognise(folder: Path, other_than: str = "") -> str | None:
    """Return a shipped source, whose layout a folder certainly has."""
    for name in registered_sources():
        if name == other_than or not source_class(name).rooted:
            continue
        try:
            if source_class(name).is_unambiguous(folder):
                return name
        except SourceError:  # a folder another source cannot even walk is not that source
            continue
    return None
