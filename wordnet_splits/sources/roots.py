"""Where each source lies on this machine: a flag, an environment variable, or ``roots.toml``.

``roots.toml`` is in the user's config folder (platformdirs) and holds one line per source::

    imagenet1k = "/data/imagenet"
    dtd = "~/datasets/dtd"

Relative paths in it are relative to the file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import platformdirs

from wordnet_splits.base.errors import SourceError, SplitsError
from wordnet_splits.base.names import printable
from wordnet_splits.base.text_formats import read_toml
from wordnet_splits.base.untrusted import expand_home
from wordnet_splits.catalog.declarations import (
    Declaration,
    declared_name,
    register_declaration,
    unknown_source,
    using_sources,
)
from wordnet_splits.sources import VARIABLE_PREFIX, check_source, root_variable, source_class, source_names

Roots = Mapping[str, Path | str]
"""The folder of each source, by the source's name."""


def roots_file() -> Path:
    """Return where ``roots.toml`` is looked for; it need not exist."""
    return platformdirs.user_config_path("wordnet-splits") / "roots.toml"


def resolve_root(name: str, given: Roots | None = None) -> Path | None:
    """Return the root of a source, or None where none is configured.

    Parameters
    ----------
    name : the source.
    given : roots given on the command line; they win over the environment, and that over ``roots.toml``.

    Raises
    ------
    UnknownNameError : no such source, or ``roots.toml`` names one.
    SourceError : ``roots.toml`` cannot be read or is malformed.

    Nothing is opened: whether the folder exists and is the dataset, ``open_source`` finds out.
    """
    root = _given(name, given)
    check_source(name, root)
    return root


def _given(name: str, given: Roots | None) -> Path | None:
    if given and name in given:
        return expand_home(given[name], where="--root")
    if value := os.environ.get(root_variable(name)):
        return expand_home(value, where=root_variable(name))
    return read_roots_file().get(name)


def declare_roots(given: Roots | None = None) -> None:
    """Make known the datasets that are declared under a root: given, in the environment, in roots.toml.

    Raises
    ------
    UnknownNameError : a root given, or a line of ``roots.toml``, is of no source.
    SourceError, DataError : ``roots.toml`` or a ``dataset.toml`` is malformed.
    """
    for name, folder in (given or {}).items():
        check_source(name, expand_home(folder, where="--root"), where="--root")
    for key, value in os.environ.items():
        if key.startswith(VARIABLE_PREFIX) and value:
            root = expand_home(value, where=key)
            declared = declared_name(root)
            if declared is not None and root_variable(declared) == key:
                register_declaration(root, declared)
    read_roots_file()


def all_roots(given: Roots | None = None) -> dict[str, Path]:
    """Return the root of every source that has one, in the order of ``source_names``.

    Raises
    ------
    UnknownNameError : a flag, a variable or a line of ``roots.toml`` names no source.
    SourceError : ``roots.toml`` cannot be read or is malformed.
    """
    declare_roots(given)
    known = {root_variable(name) for name in source_names()}
    for key in sorted(key for key in os.environ if key.startswith(VARIABLE_PREFIX) and key not in known):
        raise unknown_source(key[len(VARIABLE_PREFIX) :].lower(), source_names(), where=f"variable {key}")
    roots = ((name, resolve_root(name, given)) for name in source_names())
    return {name: root for name, root in roots if root is not None}


def read_roots_file(path: Path | None = None) -> dict[str, Path]:
    """Return the roots of ``roots.toml``, none where there is no such file."""
    path = path or roots_file()
    if not os.path.lexists(path):
        return {}
    table = read_toml(path, error=SourceError)
    return {name: _root(name, value, path) for name, value in table.items()}


def _root(name: str, value: object, path: Path) -> Path:
    if name not in source_names() and not isinstance(value, str):
        raise unknown_source(name, source_names(), where=str(path))
    if not isinstance(value, str) or not value:
        raise SourceError(
            f"the root of {name} must be a path in quotes, not {printable(value)}",
            where=str(path),
            hint='such as dtd = "/data/dtd"',
        )
    root = path.parent / expand_home(value, where=str(path))
    check_source(name, root, where=str(path))
    return root


def parse_roots(given: Sequence[str], own: Mapping[str, Declaration] | None = None) -> dict[str, Path]:
    """Return the folder of every source that has one: ``--root NAME=DIR``, environment, roots.toml.

    Parameters
    ----------
    own : the datasets that the benchmark at work comes with: names that may have a root, too.

    Raises
    ------
    SplitsError : not of that form, or of an unknown source.
    """
    flags: dict[str, Path] = {}
    for text in given:
        name, equals, folder = text.partition("=")
        if not equals or not folder:
            raise SplitsError(
                f"{text!r} is not NAME=DIR", where="--root", hint="as in --root cifar100=data/cifar"
            )
        flags[name] = Path(folder)
    with using_sources(own or {}):
        declare_roots(flags)
        rooted = (n for n in source_names() if source_class(n).rooted)
        found = {n: resolve_root(n, flags) for n in rooted}
    return {n: root for n, root in found.items() if root is not None}
