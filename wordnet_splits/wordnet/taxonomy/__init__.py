"""The WordNet noun graph as arrays."""

from __future__ import annotations

from wordnet_splits.wordnet.taxonomy.synsets import Taxonomy as Taxonomy
from wordnet_splits.wordnet.taxonomy.synsets import load as load
