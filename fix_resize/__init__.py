"""Resize images into small benchmarks without the artefacts that gave earlier ones away.

`apply` and `apply_many` resize images as a `ResizeSpec` describes. `build`, `verify` and `audit` work on sets
as the commands of ``fix-resize`` do; `open_output` reads a built set. See docs/fix-resize.md.

>>> from PIL import Image
>>> from fix_resize import apply, get_spec
>>> apply(get_spec("fix"), Image.new("RGB", (640, 480), "teal")).shape
(32, 32, 3)
"""

from __future__ import annotations

from wordnet_splits.base.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
