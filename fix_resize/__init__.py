"""Resize images into small benchmarks without the artefacts that gave earlier ones away.

>>> from fix_resize import apply, get_spec
>>> pixels = apply(get_spec("fix"), image)  # doctest: +SKIP
"""

from __future__ import annotations

from fix_resize.resize import apply, apply_many, backend_names
from fix_resize.spec import ResizeSpec, get_spec, spec_names

__all__ = ["ResizeSpec", "apply", "apply_many", "backend_names", "get_spec", "spec_names"]
