"""Parts and wholes: every meronym and holonym pointer of WordNet's nouns, as NLTK reads them."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from tests.raising import raises
from tests.wordnet_splits.frozen_answers import digest_of
from tests.wordnet_splits.wordnet.taxonomy.small_wndb import SMALL, write_small_wndb
from wordnet_splits.base.errors import TaxonomyError, UnknownNameError
from wordnet_splits.wordnet.taxonomy import Taxonomy
from wordnet_splits.wordnet.taxonomy.graph import KINDS

SYMBOL = {"member": "m", "part": "p", "substance": "s"}


def write_with_holonym(folder: Path, offset: str) -> Path:
    """Write a database of two synsets, one of which is a member of the synset at an offset."""
    line = SMALL["data.noun"].replace("+ 00000200 v 0101", f"#m {offset} n 0000")
    return write_small_wndb(folder, **{"data.noun": line})


FROZEN = "a8a6475dd54232e5e0b2be45a1fd1e549ca0caa4e162065cfd2637bf21e1a26b"
"""Digest of what NLTK answers."""


def test_every_pointer_is_as_frozen(wordnet: Taxonomy) -> None:
    related = (wordnet.wholes, wordnet.parts)
    answers = ((of(wnid), *(of(wnid, kind) for kind in KINDS)) for wnid in wordnet for of in related)
    assert digest_of(answers) == FROZEN


@pytest.mark.oracle
def test_every_pointer_of_every_synset_equals_nltk(nltk_wordnet: Any, wordnet: Taxonomy) -> None:
    edges = 0
    for noun in nltk_wordnet.all_synsets("n"):
        wnid = f"n{noun.offset():08d}"
        for mark, ours in (("#", wordnet.wholes), ("%", wordnet.parts)):
            theirs = {kind: noun._pointers.get(mark + SYMBOL[kind], ()) for kind in KINDS}
            whole = [f"n{pointer[1]:08d}" for found in theirs.values() for pointer in found]
            assert list(ours(wnid)) == sorted(whole)
            if not whole:
                continue
            edges += len(whole)
            for kind, found in theirs.items():
                assert list(ours(wnid, kind)) == sorted(f"n{pointer[1]:08d}" for pointer in found)
    assert edges == 2 * 22_187


@pytest.mark.oracle
def test_the_relations_have_nltks_names(nltk_wordnet: Any, wordnet: Taxonomy) -> None:
    tree, forest, wood = (wordnet.from_name(n) for n in ("tree.n.01", "forest.n.01", "heartwood.n.01"))
    noun = nltk_wordnet.synset("tree.n.01")
    assert wordnet.wholes(tree, "member") == (forest,)
    assert [s.name() for s in noun.member_holonyms()] == ["forest.n.01"]
    assert wordnet.parts(tree, "substance") == tuple(
        sorted(f"n{s.offset():08d}" for s in noun.substance_meronyms())
    )
    assert wood in wordnet.parts(tree, "substance")
    assert tree in wordnet.parts(forest)


def test_other_forms_of_a_taxonomy_keep_them(wordnet: Taxonomy, tmp_path: Any) -> None:
    tree = wordnet.from_name("tree.n.01")
    assert wordnet.tree().wholes(tree) == wordnet.wholes(tree)
    read = Taxonomy.from_wndb(write_with_holonym(tmp_path, "00000010"))
    assert read.parts("n00000010", "member") == ("n00000100",)
    assert pickle.loads(pickle.dumps(read)).parts("n00000010") == ("n00000100",)
    small = Taxonomy.from_edges({"wheel": ["thing"], "car": ["thing"]}, wholes={"wheel": ["car"]})
    assert (small.parts("car"), small.wholes("wheel"), small.wholes("car")) == (("wheel",), ("car",), ())


def test_wrong_names_are_refused(wordnet: Taxonomy) -> None:
    with raises(UnknownNameError, naming="piece"):
        wordnet.parts(wordnet.root, "piece")
    with raises(TaxonomyError, naming="n99999999"):
        wordnet.wholes("n99999999")


def test_a_holonym_that_is_not_there_is_refused(tmp_path: Any) -> None:
    with raises(TaxonomyError, where="data.noun", naming="99999999"):
        Taxonomy.from_wndb(write_with_holonym(tmp_path, "99999999"))
