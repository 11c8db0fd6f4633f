"""``from wordnet_splits.torch import UnknownDetectionSet``: names of our ``loaders`` package, on request.

Other projects have packages called ``loaders``, too. This module imports ours, the one installed beside
``wordnet_splits``: as ``loaders``, or under another name if a foreign package comes first on the path; that
package is not imported. Pickles of our datasets refer to this module, so that all processes find the class.
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
"""Name of our ``loaders`` if a foreign package comes first; its modules use relative imports."""


def __getattr__(name: str) -> Any:
    if name in EXPORTS:
        return _export(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def our_loaders() -> ModuleType:
    """Import our ``loaders``, even if a foreign package of that name comes first on the path."""
    if BEHIND in sys.modules:
        return sys.modules[BEHIND]
    first = find_spec("loaders")
    folders = [] if first is None else first.submodule_search_locations or []
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
    """Return the object of our class ``name`` with the ``state`` of a pickle."""
    cls = _export(name)
    instance = cls.__new__(cls)
    instance.__dict__.update(state)
    return instance
