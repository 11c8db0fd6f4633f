"""The scores of several results as one table, and metrics of any scores on any subset of their images."""

from __future__ import annotations

from wordnet_splits.base.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
