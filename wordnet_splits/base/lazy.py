"""Late imports: public names of a package, and packages that an extra installs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

import lazy_loader

from wordnet_splits.base.errors import SplitsError

EXTRAS = {"torch": "torch", "torchvision": "torch"}
"""Packages that our modules import at their top -> the extra that installs each."""


class MissingPackageError(SplitsError, ImportError):
    """A package of an extra that is not installed, or cannot be loaded."""

    kind = "missing-package"


def need(package: str, extra: str, *, where: str) -> ModuleType:
    """Import ``package``, which the extra ``extra`` of this project installs.

    Raises
    ------
    MissingPackageError : it is not installed (the hint installs it), or fails to load (too little memory, a
        library of another build).
    """
    try:
        return import_module(package)
    except (ImportError, OSError, MemoryError, RuntimeError) as error:
        absent = isinstance(error, ModuleNotFoundError) and error.name == package.partition(".")[0]
        if absent:
            hint = f"pip install '{extra_of_this_project(extra)}'"
            raise MissingPackageError(f"{package} is not installed", where=where, hint=hint) from None
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise MissingPackageError(
            f"{package} cannot be loaded: {reason}",
            where=where,
            hint="give it more memory, or install it anew",
        ) from error


def extra_of_this_project(extra: str) -> str:
    """Return what pip installs an extra from: the folder, file or repository of the installed package."""
    import json
    from importlib.metadata import PackageNotFoundError, distribution
    from pathlib import Path
    from urllib.parse import unquote, urlsplit

    try:
        record = json.loads(distribution("wordnet-splits").read_text("direct_url.json") or "{}")
    except PackageNotFoundError:  # a checkout on the path
        record = {}
    if not record:
        return f"wordnet-splits[{extra}]"
    if "dir_info" in record:
        folder = unquote(urlsplit(record["url"]).path)
        return f"{'.' if Path(folder) == Path.cwd() else folder}[{extra}]"
    system = f"{record['vcs_info']['vcs']}+" if "vcs_info" in record else ""
    return f"wordnet-splits[{extra}] @ {system}{record['url']}"


def attach_stub(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package that imports its names on first use.

    As `lazy_loader.attach_stub`: the names and their modules are in the stub, ``__init__.pyi``, next to
    ``file``. A name whose module needs a package of `EXTRAS` that is absent raises MissingPackageError.
    """
    find, list_names, names = lazy_loader.attach_stub(package, file)

    def find_or_explain(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            return find(name)
        except ModuleNotFoundError as error:
            if error.name in EXTRAS:
                need(error.name, EXTRAS[error.name], where=f"{package}.{name}")
            raise

    return find_or_explain, list_names, names


class _WithoutPandas:
    """An import hook that makes pandas appear not installed."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def skip_pandas() -> None:
    """Keep pyarrow from importing pandas for the first array of a process, which takes a quarter of a second.

    pyarrow looks for pandas once. ``to_pandas`` and ``import pandas`` work as ever afterwards.
    """
    import pyarrow as pa

    hook: Any = _WithoutPandas
    sys.meta_path.insert(0, hook)
    try:
        pa.array([])
    finally:
        sys.meta_path.remove(hook)
