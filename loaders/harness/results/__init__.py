"""Results as data: metadata, one wide score table, the rows computed from it, their tables and check."""

from __future__ import annotations

from wordnet_splits.base.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
