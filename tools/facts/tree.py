"""Regenerate which hypernym a synset keeps in ImageNet's tree, from the order of its former is-a file.

``python -m tools.facts.tree FACTS`` rewrites ``wordnet_splits/data/wordnet/imagenet_tree.tsv``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tools.facts.published import Published
from wordnet_splits.wordnet.taxonomy import Taxonomy
from wordnet_splits.wordnet.taxonomy.graph import TREE_CHOICES

ABOUT = (
    "Which hypernym ImageNet's former is-a file (wordnet.is_a.txt, 75,850 edges) lists last, and so keeps",
    "in a tree of one parent per synset, for each synset that has several hypernyms in WordNet 3.0 (that",
    "file has no instance edges). On this tree stand the `robustness` library (ImageNetHierarchy), with it",
    "the protocols of Palechor et al. (2023), and ImageNet-21K-P.",
    "Read in two copies of that file, equal to the last byte:",
    "MadryLab/BREEDS-Benchmarks:imagenet_class_hierarchy/wordnet/class_hierarchy.txt"
    "@f83be509107e89f41dde0e4e8e7f8be051fbb891",
    "cvjena/semantic-embeddings:ILSVRC/wordnet.parent-child.txt@0d4177422bafbba685fb6a0f976675864f31e09f",
)


def lines(facts: Path) -> list[str]:
    """Return the lines of the table."""
    taxonomy = Taxonomy.embedded()

    def word(wnid: str) -> str:
        return taxonomy.lemmas(wnid)[0]

    kept = {
        r["child"]: r["last_parent"]
        for r in Published(facts / "field/wordnet_is_a/last_parent.tsv").records()
    }
    rows = [f"{child}\t{parent}\t{word(child)}\t{word(parent)}" for child, parent in sorted(kept.items())]
    return [*(f"# {line}" for line in ABOUT), "child\tparent\tchild_name\tparent_name", *rows]


if __name__ == "__main__":
    Path(str(TREE_CHOICES)).write_text("\n".join(lines(Path(sys.argv[1]))) + "\n", encoding="utf-8")
