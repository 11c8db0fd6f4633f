"""Names of things one can photograph that WordNet 3.0, of 2006, lacks: ramen, smartphone, skatepark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

from wordnet_splits.taxonomy import Taxonomy

SUPPLEMENT = files("wordnet_splits") / "data" / "supplement.tsv"
SUPPLEMENTED = "3.0"
"""The version of WordNet that the supplement adds to: sense numbers differ between versions."""


@cache
def supplement() -> Mapping[str, tuple[str, ...]]:
    """Return name -> the synsets (``noodle.n.01``) that it means or is a kind of, the likeliest first.

    Names are lower case, without accents, underscores between words.
    """
    lines = SUPPLEMENT.read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("#")][1:]
    return {name: tuple(synsets.split()) for synsets, names in rows for name in names.split()}


def added_to(taxonomy: Taxonomy) -> Mapping[str, Sequence[int]]:
    """Return name -> its synsets as nodes of a taxonomy; empty where that is not `SUPPLEMENTED`."""
    if taxonomy.version != SUPPLEMENTED:
        return {}
    return {name: [_node(synset, taxonomy) for synset in synsets] for name, synsets in supplement().items()}


def _node(synset: str, taxonomy: Taxonomy) -> int:
    lemma, _, number = synset.rsplit(".", 2)
    return taxonomy.index(taxonomy.lemma_index()[lemma][int(number) - 1])
