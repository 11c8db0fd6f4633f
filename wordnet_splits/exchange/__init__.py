"""Benchmarks in the formats of other projects, both ways; one file a format, listed in `formats.registry`."""

from __future__ import annotations

from wordnet_splits.base.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
