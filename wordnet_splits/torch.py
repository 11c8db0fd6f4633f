"""``from wordnet_splits.torch import UnknownDetectionSet``: what our ``loaders`` package has, on request.

``loaders`` is a name that other projects use too. This module imports ours, the one installed beside
``wordnet_splits``: as ``loaders``, or under a name of its own where another is in front on the path, which
is not imported. It is also what pickles of our datasets name, so that every process finds the same class.
"""

from __future__ import annotations

import importlib
import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

EXPORTS = ("UnknownDetectionSet",)

OURS = Path(__file__).resolve().parent.parent / "loaders"
BEHIND = "wordnet_splits._loaders"
"""What our ``loaders`` is called where another one is in front: it imports its own modules relatively."""


def __getattr__(name: str) -> Any:
    if name in EXPORTS:
        return _export(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def our_loaders() -> ModuleType:
    """Import our ``loaders``, whichever package of that name is in front."""
    if BEHIND in sys.modules:
        return sys.modules[BEHIND]
    found = find_spec("loaders")
    folders = [] if found is None else found.submodule_search_locations or []
    if OURS in [Path(folder).resolve() for folder in folders]:
        return importlib.import_module("loaders")
    spec = spec_from_file_location(BEHIND, OURS / "__init__.py", submodule_search_locations=[str(OURS)])
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[BEHIND] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def unknown_eval() -> None:
    """Run ``unknown-eval``."""
    importlib.import_module(f"{our_loaders().__name__}.harness.cli").program()


def _export(name: str) -> Any:
    return getattr(our_loaders(), name)


def revive(name: str, state: dict[str, Any]) -> Any:
    """Return the object of our class ``name`` that a pickle holds the ``state`` of."""
    cls = _export(name)
    made = cls.__new__(cls)
    made.__dict__.update(state)
    return made
