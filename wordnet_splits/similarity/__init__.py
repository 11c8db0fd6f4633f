"""Distances between synsets, of pairs and of whole class sets."""

from __future__ import annotations

from wordnet_splits.similarity.similarity import compare as compare
from wordnet_splits.similarity.similarity import similarity_matrix as similarity_matrix
