"""Hierarchies as files: round trips, what is refused and at which line."""

from __future__ import annotations

import pickle
from dataclasses import fields
from pathlib import Path

import numpy as np

from wordnet_splits.wordnet.taxonomy import Taxonomy


def test_wordnet_as_files_is_the_same_taxonomy(wordnet: Taxonomy, tmp_path: Path) -> None:
    wordnet.to_files(tmp_path / "tree.tsv", tmp_path / "nodes.tsv")
    there = Taxonomy.from_files(tmp_path / "tree.tsv", tmp_path / "nodes.tsv", name="nouns", version="3.0")
    assert there.title == "nouns 3.0"
    assert (there.wnids, there.lacks) == (wordnet.wnids, ())
    assert not there.is_wordnet
    for mine, other in (
        (wordnet.graph, there.graph),
        (wordnet._words, there._words),
        (wordnet._parts, there._parts),
    ):
        for field in fields(mine):
            assert np.array_equal(getattr(mine, field.name), getattr(other, field.name)), field.name
    assert np.array_equal(wordnet.graph.max_depths, there.graph.max_depths)
    assert all(wordnet.gloss(wnid) == there.gloss(wnid) for wnid in wordnet.wnids[::7])
    assert there.digest == wordnet.digest
    copy = pickle.loads(pickle.dumps(there))
    assert (repr(copy), copy.tables()) == (repr(there), there.tables())
