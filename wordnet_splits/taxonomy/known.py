"""The taxonomies known by name, one object each in a process: embedded, its tree, NLTK's, a folder's."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from wordnet_splits.taxonomy import shipped
from wordnet_splits.taxonomy import tree as projection
from wordnet_splits.taxonomy.taxonomy import Taxonomy


@cache
def embedded() -> Taxonomy:
    """Return WordNet 3.0 as shipped in the package."""
    nouns = shipped.load()
    return Taxonomy(
        nouns.version,
        nouns.offsets,
        nouns.graph,
        nouns.lexicon,
        shipped.ShippedTexts(),
        parts=nouns.parts,
        reference="embedded",
    )


@cache
def imagenet_tree() -> Taxonomy:
    """Return the embedded WordNet as the tree of ImageNet's former is-a file."""
    tree = embedded().tree(projection.imagenet_choices())
    tree._reference = "imagenet-tree"
    return tree


BY_REFERENCE: dict[str, Callable[[], Taxonomy]] = {"embedded": embedded, "imagenet-tree": imagenet_tree}


def load(spec: str | None = None) -> Taxonomy:
    """Return the embedded taxonomy (None), that of NLTK's corpus (``nltk``), or that of a directory."""
    if spec is None:
        return Taxonomy.embedded()
    return Taxonomy.from_nltk() if spec == "nltk" else Taxonomy.from_wndb(spec)
