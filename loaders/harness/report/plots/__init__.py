"""Plots of results: a registry of kinds, each a function from results to the numbers of a plot."""

from __future__ import annotations

from wordnet_splits.base.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
