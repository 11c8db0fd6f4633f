"""Hierarchies as files: round trips, what is refused and at which line."""

from __future__ import annotations

import pickle
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from tests.raising import raises
from wordnet_splits.base.errors import TaxonomyError
from wordnet_splits.wordnet.taxonomy import Taxonomy, load

EXTENSION = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE LexicalResource SYSTEM "http://globalwordnet.github.io/schemas/WN-LMF-1.1.dtd">
<LexicalResource xmlns:dc="https://globalwordnet.github.io/schemas/dc/">
<LexiconExtension id="mine" label="Mine" language="en" email="a@b.c" license="none" version="1">
<Extends id="oewn" version="2024"/>
<LexicalEntry id="mine-puppy-n"><Lemma writtenForm="puppy" partOfSpeech="n"/>
<Sense id="mine-puppy" synset="mine-7-n"/></LexicalEntry>
<LexicalEntry id="mine-dog-n"><Lemma writtenForm="dog" partOfSpeech="n"/>
<Sense id="mine-dog" synset="mine-7-n"/></LexicalEntry>
<Synset id="mine-7-n" ili="" partOfSpeech="n"><Definition>a young	dog</Definition>
<SynsetRelation relType="hypernym" target="oewn-3-n"/></Synset>
<ExternalSynset id="oewn-6-n"><SynsetRelation relType="hypernym" target="oewn-2-n"/></ExternalSynset>
<ExternalSynset id="oewn-3-n"/><ExternalSynset id="oewn-2-n"/>
</LexiconExtension>
</LexicalResource>
"""


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


def test_an_extension_is_read_with_the_lexicon_that_it_extends(lexicon: str, tmp_path: Path) -> None:
    import wn

    (tmp_path / "mine.xml").write_text(EXTENSION)
    wn.add(tmp_path / "mine.xml", progress_handler=None)
    mine, alone = load("mine:1"), load(lexicon)
    assert (mine.title, alone.title) == ("mine 1", "oewn 2024")
    assert {*mine} - {*alone} == {"mine-7-n"}
    assert mine.parents("mine-7-n") == ("oewn-3-n",)
    assert mine.parents("oewn-6-n") == ("oewn-1-n", "oewn-2-n")
    assert alone.parents("oewn-6-n") == ("oewn-1-n",)
    assert mine.senses("dog") == ("oewn-3-n", "oewn-4-n", "mine-7-n")
    assert mine.gloss("mine-7-n") == "a young dog"
    alone.to_files(tmp_path / "tree.tsv", tmp_path / "nodes.tsv")
    assert Taxonomy.from_files(tmp_path / "tree.tsv", tmp_path / "nodes.tsv").digest == alone.digest


@pytest.mark.parametrize("given", ["oewn:1066", "oewn:*", "oewn:", ":2024"])
def test_a_lexicon_that_wn_lacks(given: str, lexicon: str) -> None:
    with raises(TaxonomyError, where=given):
        Taxonomy.from_lexicon(given)
