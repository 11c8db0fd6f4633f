"""Benchmarks in the formats of other projects: export and import, a file for each format in `formats`."""

from __future__ import annotations

from wordnet_splits.base.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
