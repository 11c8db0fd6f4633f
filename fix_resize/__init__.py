"""Resize images into small benchmarks without the artefacts that gave earlier ones away.

`apply` and `apply_many` resize images as a `ResizeSpec` describes. `build`, `verify` and `audit` work on sets
as the commands of ``fix-resize`` do; `open_output` reads a built set. See docs/fix-resize.md.

>>> from PIL import Image
>>> from fix_resize import apply, get_spec
>>> apply(get_spec("fix"), Image.new("RGB", (640, 480), "teal")).shape
(32, 32, 3)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fix_resize.resize import apply, apply_many, backend_names
from fix_resize.spec import ResizeSpec, get_spec, spec_names
from wordnet_splits.base.lazy import names_of

if TYPE_CHECKING:
    from fix_resize.auditing.audit import audit
    from fix_resize.pipeline.output import open_output
    from fix_resize.pipeline.targets import build
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

__getattr__ = names_of(  # resizing one image requires no tables
    __name__,
    {
        "auditing.audit": ("audit",),
        "pipeline.output": ("open_output",),
        "pipeline.targets": ("build",),
        "pipeline.verify": ("verify",),
    },
)
