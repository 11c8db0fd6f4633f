"""The datasets this package reads, one small module per layout, found through one table."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from wordnet_splits.base.digests import digest_file, digest_pixels
from wordnet_splits.base.errors import SourceError
from wordnet_splits.catalog.declarations import declared_sources, register_declaration, unknown_source
from wordnet_splits.sources.base import SCAN_SCHEMA, Raw, Source, register, registered
from wordnet_splits.sources.info import SourceInfo, source_info
from wordnet_splits.sources.layouts.walk import check_root

__all__ = [
    "SCAN_SCHEMA",
    "Raw",
    "Source",
    "SourceInfo",
    "check_source",
    "digest_file",
    "digest_pixels",
    "open_source",
    "register",
    "root_variable",
    "source_class",
    "source_info",
    "source_names",
]

VARIABLE_PREFIX = "WORDNET_SPLITS_ROOT_"

# Source -> the module below this package that registers it; modules are imported when first asked for.
_MODULES = {
    "imagenet1k": "imagenet1k",
    "imagenet21k": "imagenet21k",
    "imagenet-r": "trees",
    "imagenet-a": "trees",
    "imagenet-o": "trees",
    "imagenet-c": "imagenet_c",
    "imagenet-v2": "trees",
    "tiny-imagenet": "tiny_imagenet",
    "cifar10": "cifar",
    "cifar100": "cifar",
    "svhn": "svhn",
    "mnist": "mnist",
    "fashion-mnist": "mnist",
    "omniglot": "omniglot",
    "svhn-full": "svhn_full",
    "dtd": "trees",
    "lsun": "lsun",
    "food101": "trees",
    "caltech256": "trees",
    "places365": "places365",
    "ninco": "trees",
    "ssb-hard": "ssb_hard",
    "inaturalist": "trees",
    "openimage-o": "trees",
    "openood-cifar10": "openood",
    "openood-cifar100": "openood",
    "openood-mnist": "openood",
    "openood-svhn": "openood",
    "openood-tin597": "openood",
    "sun397": "sun397",
    "digits": "digits",
    "gaussian": "noise",
    "uniform": "noise",
}


def source_names() -> tuple[str, ...]:
    """Return the names of all sources that can be opened: ours, then those that a user declares."""
    return (*_MODULES, *declared_sources())


def source_class(name: str) -> type[Source]:
    """Return the class that reads ``name``; an unknown name is refused with the nearest ones."""
    if name not in _MODULES:
        check_source(name)
        return _own_class(name)
    if registered(name) is None:
        importlib.import_module(f"{__name__}.{_MODULES[name]}")
    cls = registered(name)
    if cls is None:
        raise RuntimeError(f"module {_MODULES[name]} does not register source {name}")
    return cls


def _own_class(name: str) -> type[Source]:
    from wordnet_splits.sources.own import own_class

    return own_class(declared_sources()[name])


def check_source(name: str, root: Path | None = None, *, where: str | None = None) -> None:
    """Refuse a name that is no source's; a ``dataset.toml`` under ``root`` may declare it.

    Raises
    ------
    UnknownNameError : no such source.
    DataError : ``dataset.toml`` is malformed, or declares another dataset.
    """
    if name in _MODULES:
        return
    if root is not None:
        register_declaration(root, name)
    if name not in declared_sources():
        raise unknown_source(name, source_names(), where=where, root=root)


def root_variable(name: str) -> str:
    """Return the environment variable that holds a source's root: ``WORDNET_SPLITS_ROOT_TINY_IMAGENET``."""
    return VARIABLE_PREFIX + name.upper().replace("-", "_")


def open_source(name: str, root: Path | str | None = None, **params: Any) -> Source:
    """Open a dataset under a root, whatever of its known layouts it has.

    Parameters
    ----------
    name : a source's name, one of :func:`source_names`.
    root : the dataset's folder; None for embedded and generated sources.
    params : what a generated source needs (``shape``, ``seed``).

    Raises
    ------
    UnknownNameError : no such source.
    SourceError : the root is absent, empty, unreadable or of another dataset; says what was looked
        for, where, and how to get it.
    """
    check_source(name, None if root is None else Path(root))
    cls = source_class(name)
    if not cls.rooted:
        if root is not None:
            raise SourceError(f"source {name} is built in and takes no root", where=str(root))
        return cls.open(None, cls.detect(None) or "embedded", **params)
    if root is None:
        raise SourceError(
            f"no root given for source {name}",
            hint=f"--root {name}=DIR, or {root_variable(name)}; {source_info(name).how}",
        )
    folder = check_root(Path(root), name, hint=source_info(name).how)
    layout = cls.detect(folder)
    if layout is None or not cls.certain(folder):
        other = _looks_like(folder, besides=name)
        if other or layout is None:
            raise _not_this(cls, folder, other)
    return cls.open(folder, layout, **params)


def _looks_like(folder: Path, besides: str) -> str | None:
    for name in _MODULES:
        if name == besides or not source_class(name).rooted:
            continue
        try:
            if source_class(name).certain(folder):
                return name
        except SourceError:  # a folder another source cannot even walk is not that source
            continue
    return None


def _not_this(cls: type[Source], folder: Path, other: str | None) -> SourceError:
    seen = f"; it looks like {other}" if other else ""
    return SourceError(
        f"this is not {cls.name}: looked for {cls.looks_for}{seen}",
        where=str(folder),
        hint=source_info(cls.name).how,
    )
