"""Resize images into small benchmarks without the artefacts that gave earlier ones away.

Pixels: `apply` and `apply_many` take images through a `ResizeSpec`. Sets: `build`, `verify` and `audit` do
what the commands of ``fix-resize`` do; `open_output` reads what was built. See docs/fix-resize.md.

>>> from PIL import Image
>>> from fix_resize import apply, get_spec
>>> apply(get_spec("fix"), Image.new("RGB", (640, 480), "teal")).shape
(32, 32, 3)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from fix_resize.resize import apply, apply_many, backend_names
from fix_resize.spec import ResizeSpec, get_spec, spec_names

if TYPE_CHECKING:
    from fix_resize.auditing.named import audit_named as audit
    from fix_resize.pipeline.output import open_output
    from fix_resize.pipeline.targets import build_target as build
    from fix_resize.pipeline.verify import verify

__all__ = [
    "ResizeSpec",
    "apply",
    "apply_many",
    "audit",
    "backend_names",
    "build",
    "get_spec",
    "open_output",
    "spec_names",
    "verify",
]

_LATER: Final = {
    "audit": ("fix_resize.auditing.named", "audit_named"),
    "build": ("fix_resize.pipeline.targets", "build_target"),
    "open_output": ("fix_resize.pipeline.output", "open_output"),
    "verify": ("fix_resize.pipeline.verify", "verify"),
}
"""Imported when first used: who resizes one image needs no tables."""


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _LATER[name]
    return getattr(import_module(module), attribute)
