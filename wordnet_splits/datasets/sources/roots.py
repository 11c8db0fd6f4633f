"""The root of each source on this machine: a flag, an environment variable, or ``roots.toml``.

``roots.toml`` is in the user's config folder (platformdirs) and holds one line per source::

    imagenet1k = "/data/imagenet"
    dtd = "~/datasets/dtd"

Relative paths in it are relative to the file.
"""

from __future__ import annotations

import os
from collections.abc import Container, Mapping, Sequence
from pathlib import Path

import platformdirs

from wordnet_splits.base.errors import SourceError, SplitsError
from wordnet_splits.base.names import printable
from wordnet_splits.base.text_formats import read_toml
from wordnet_splits.base.untrusted import expand_home
from wordnet_splits.datasets.catalog.declarations import (
    LOCAL,
    Declaration,
    Sources,
    declared_name,
    register_declaration,
    unknown_source,
)
from wordnet_splits.datasets.sources import check_source, root_variable, source_class, source_names
from wordnet_splits.datasets.sources.by_name import VARIABLE_PREFIX

Roots = Mapping[str, Path | str]
"""The folder of each source, by the source's name."""


def roots_file() -> Path:
    """Return where ``roots.toml`` is looked for; it need not exist."""
    return platformdirs.user_config_path("wordnet-splits") / "roots.toml"


def checked_roots(roots: Roots | None) -> Roots:
    """Return the roots; SourceError if they are anything but a folder for each source."""
    if roots is None or isinstance(roots, Mapping):
        return roots or {}
    raise SourceError(f"must be {{SOURCE: FOLDER, ...}}, got {roots!r}", where="roots")


def resolve_root(name: str, roots: Roots | None = None, sources: Sources = LOCAL) -> Path | None:
    """Return the root of a source, or None where none is configured.

    Parameters
    ----------
    name : the source.
    roots : roots of the command line; they win over the environment, and that over ``roots.toml``.

    Raises
    ------
    UnknownNameError : no such source, or ``roots.toml`` names one.
    SourceError : ``roots.toml`` cannot be read or is malformed.

    Nothing is opened: ``open_source`` finds out whether the folder exists and is the dataset.
    """
    if roots and name in roots:
        root: Path | None = expand_home(roots[name], where="--root")
    elif value := os.environ.get(root_variable(name)):
        root = expand_home(value, where=root_variable(name))
    else:
        root = read_roots_file(sources=sources).get(name)
    check_source(name, root, sources)
    return root


def declare_roots(roots: Roots | None = None, sources: Sources = LOCAL) -> None:
    """Register the datasets that are declared under ``roots``, or a root in the environment or roots.toml.

    Raises
    ------
    UnknownNameError : a root, or a line of ``roots.toml``, is of an unknown source.
    SourceError, DataError : ``roots.toml`` or a ``dataset.toml`` is malformed.
    """
    for name, folder in checked_roots(roots).items():
        check_source(name, expand_home(folder, where="--root"), sources, where="--root")
    for key, value in os.environ.items():
        if key.startswith(VARIABLE_PREFIX) and value:
            root = expand_home(value, where=key)
            declared = declared_name(root)
            # a root of the command line may be of another version of the dataset than the variable's
            overridden = declared in (roots or {})
            if declared is not None and root_variable(declared) == key and not overridden:
                register_declaration(root, declared, sources)
    read_roots_file(overridden=roots or {}, sources=sources)


def all_roots(roots: Roots | None = None, sources: Sources = LOCAL) -> dict[str, Path]:
    """Return the root of every source that has one, in the order of ``source_names``.

    Raises
    ------
    UnknownNameError : a flag, a variable or a line of ``roots.toml`` names an unknown source.
    SourceError : ``roots.toml`` cannot be read or is malformed.
    """
    declare_roots(roots, sources)
    variables = {root_variable(name) for name in source_names(sources)}
    for key in sorted(key for key in os.environ if key.startswith(VARIABLE_PREFIX) and key not in variables):
        raise unknown_source(
            key[len(VARIABLE_PREFIX) :].lower(), source_names(sources), where=f"variable {key}"
        )
    return {
        name: root
        for name in source_names(sources)
        if (root := resolve_root(name, roots, sources)) is not None
    }


def read_roots_file(
    path: Path | None = None, *, overridden: Container[str] = (), sources: Sources = LOCAL
) -> dict[str, Path]:
    """Return the roots of ``roots.toml`` except for overridden sources, none if the file is absent."""
    path = path or roots_file()
    if not os.path.lexists(path):
        return {}
    table = read_toml(path, error=SourceError)
    return {
        name: _root(name, value, path, sources) for name, value in table.items() if name not in overridden
    }


def _root(name: str, value: object, path: Path, sources: Sources) -> Path:
    if name not in source_names(sources) and not isinstance(value, str):
        raise unknown_source(name, source_names(sources), where=str(path))
    if not isinstance(value, str) or not value:
        message = f"the root of {name} must be a path in quotes, not {printable(value)}"
        raise SourceError(message, where=str(path), hint='such as dtd = "/data/dtd"')
    root = path.parent / expand_home(value, where=str(path))
    check_source(name, root, sources, where=str(path))
    return root


def parse_roots(
    flags: Sequence[str], declarations: Mapping[str, Declaration] | None = None
) -> dict[str, Path]:
    """Return the folder of every source that has one: ``--root NAME=DIR``, environment, roots.toml.

    Parameters
    ----------
    declarations : the datasets that a benchmark carries, which may have a root, too.

    Raises SplitsError if a flag is not of that form, or of an unknown source.
    """
    folders: dict[str, Path] = {}
    for text in flags:
        name, equals, folder = text.partition("=")
        if not equals or not folder:
            hint = "as in --root cifar100=data/cifar"
            raise SplitsError(f"{text!r} is not NAME=DIR", where="--root", hint=hint)
        folders[name] = Path(folder)
    sources = Sources.of(declarations or {})
    declare_roots(folders, sources)
    names = source_names(sources)
    roots = {name: root for name in names if (root := resolve_root(name, folders, sources)) is not None}
    return {name: root for name, root in roots.items() if source_class(name, sources).rooted}
