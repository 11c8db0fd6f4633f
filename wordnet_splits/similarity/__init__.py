"""Distances between synsets, of pairs and of whole class sets."""

from __future__ import annotations

from wordnet_splits.similarity.similarity import compare, matrix

__all__ = ["compare", "matrix"]
