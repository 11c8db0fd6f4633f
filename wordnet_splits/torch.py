"""``from wordnet_splits.torch import UnknownDetectionSet``: what our ``loaders`` package has, on request.

``loaders`` is a name that other projects use too. This module imports ours, the one installed beside
``wordnet_splits``, and says so where another one is in front on the path. It is also what pickles of our
datasets name, so that a process in which another ``loaders`` is in front says the same.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType
from typing import Any

from wordnet_splits.errors import SplitsError

EXPORTS = ("UnknownDetectionSet",)

OURS = Path(__file__).resolve().parent.parent / "loaders"


def __getattr__(name: str) -> Any:
    if name in EXPORTS:
        return _export(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def our_loaders() -> ModuleType:
    """Import our ``loaders``; SplitsError where another package of that name hides ours."""
    module = importlib.import_module("loaders")
    folders = [Path(path).resolve() for path in getattr(module, "__path__", [])]
    if OURS not in folders:
        other = folders[0] if folders else getattr(module, "__file__", None)
        raise SplitsError(
            f"another `loaders`, {other}, hides ours, {OURS}",
            where="wordnet_splits.torch",
            hint=f"put {OURS.parent} before {Path(str(other)).parent} on sys.path, or rename the other one",
        )
    return module


def _export(name: str) -> Any:
    return getattr(our_loaders(), name)


def revive(name: str, state: dict[str, Any]) -> Any:
    """Return the object of our class ``name`` that a pickle holds the ``state`` of."""
    cls = _export(name)
    made = cls.__new__(cls)
    made.__dict__.update(state)
    return made
