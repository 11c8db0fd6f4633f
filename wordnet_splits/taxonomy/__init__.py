"""The WordNet noun graph as arrays."""

from __future__ import annotations

from wordnet_splits.taxonomy.taxonomy import Taxonomy as Taxonomy
from wordnet_splits.taxonomy.taxonomy import load as load
