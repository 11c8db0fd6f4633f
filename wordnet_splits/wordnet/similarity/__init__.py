"""Distances between synsets, of pairs and of whole class sets."""

from __future__ import annotations

from wordnet_splits.wordnet.similarity.pairs import compare_synsets as compare_synsets
from wordnet_splits.wordnet.similarity.pairs import similarity_matrix as similarity_matrix
