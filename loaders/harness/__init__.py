"""Measure what vision models do not know: `evaluate` runs models on a benchmark, detector by detector.

>>> from loaders.harness import list_detectors
>>> list_detectors("mc*")  # mcp is an alias of msp
('mc_dropout', 'mcm', 'msp')

Names are imported when first used; those that need torch say so where it is missing.
"""

from __future__ import annotations

from wordnet_splits.base.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
