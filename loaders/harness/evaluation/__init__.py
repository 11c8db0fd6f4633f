"""Any models and detectors on any benchmark, on custom sets or on arrays."""

from __future__ import annotations

from wordnet_splits.base.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
