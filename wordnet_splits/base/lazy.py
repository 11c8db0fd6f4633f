"""What is imported when first used: the names of a package's face, and packages that an extra installs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

from wordnet_splits.base.errors import SplitsError

EXTRAS = {"torch": "torch", "torchvision": "torch"}
"""Package -> the extra that installs it, of those that modules of ours import at their top."""


class MissingPackageError(SplitsError, ImportError):
    """A package that an extra brings is not installed, or is and cannot be loaded."""

    kind = "missing-package"


def need(package: str, extra: str, *, where: str) -> ModuleType:
    """Import ``package``, which the extra ``extra`` of this project installs.

    Raises
    ------
    MissingPackageError : it is not installed, with the commands that install it; or it is installed and
        fails to load (too little memory, a library of another build), with the reason.
    """
    try:
        return import_module(package)
    except (ImportError, OSError, MemoryError, RuntimeError) as error:
        absent = isinstance(error, ModuleNotFoundError) and error.name == package.partition(".")[0]
        if absent:
            hint = f"pip install 'wordnet-splits[{extra}]', or in a clone pip install '.[{extra}]'"
            raise MissingPackageError(f"{package} is not installed", where=where, hint=hint) from None
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise MissingPackageError(
            f"{package} cannot be loaded: {reason}",
            where=where,
            hint="give it more memory, or install it anew",
        ) from error


def names_of(package: str, homes: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package that imports its names when they are first used.

    Parameters
    ----------
    homes : module of the package -> the names that it holds.
    """
    home_of = {name: home for home, names in homes.items() for name in names}

    def find(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            return getattr(import_module(f"{package}.{home_of[name]}"), name)
        except ModuleNotFoundError as error:
            if error.name in EXTRAS:
                need(error.name, EXTRAS[error.name], where=f"{package}.{name}")
            raise

    return find
