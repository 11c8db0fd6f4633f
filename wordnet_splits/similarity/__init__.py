"""Distances between synsets, of pairs and of whole class sets."""

from __future__ import annotations

from wordnet_splits.similarity.similarity import compare, similarity_matrix

__all__ = ["compare", "similarity_matrix"]
