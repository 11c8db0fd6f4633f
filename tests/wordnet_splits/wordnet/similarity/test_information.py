"""Information content by a plain loop over descendants, and res, lin and jcn as NLTK has them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wordnet_splits.wordnet.similarity import compare, similarity_matrix
from wordnet_splits.wordnet.similarity.information import information_of, sums_below
from wordnet_splits.wordnet.taxonomy import Taxonomy

from .test_similarity_nltk import awkward_pairs as awkward_pairs
from .test_similarity_nltk import synset
from .test_similarity_toy import graphs

MEASURES = ("res", "lin", "jcn")


@settings(max_examples=100, deadline=None)
@given(graphs(), st.lists(st.integers(0, 9), min_size=9, max_size=9))
def test_a_sum_has_every_distinct_descendant_once(
    parents: dict[str, tuple[str, ...]], own: list[int]
) -> None:
    taxonomy = Taxonomy.from_edges(parents)
    counts = np.array(own[: len(taxonomy)], np.float64)
    expected = [sum(counts[taxonomy.index(d)] for d in taxonomy.descendants(x)) for x in taxonomy]
    assert sums_below(taxonomy.graph, counts).tolist() == expected


def test_sums_of_wordnet_and_of_its_tree(wordnet: Taxonomy) -> None:
    for taxonomy in (wordnet, wordnet.tree()):
        sums = sums_below(taxonomy.graph, np.ones(len(taxonomy)))
        nodes = np.flatnonzero(taxonomy.graph.max_depths < 20)[::211].tolist()
        assert [sums[n] for n in nodes] == [len(taxonomy.graph.descendants([n])) for n in nodes]
    content = information_of(wordnet)
    assert (content.source, content.total) == ("structure", 82_115)
    assert content.values[wordnet.index(wordnet.root)] == 0
    dog = len(wordnet.descendants("n02084071"))
    assert content.values[wordnet.index("n02084071")] == 1 - math.log(dog) / math.log(82_115)


@pytest.mark.oracle
def test_measures_of_wordnet_equal_nltks(
    awkward_pairs: list[tuple[str, str]], nltk_wordnet: Any, wordnet: Taxonomy
) -> None:
    """NLTK takes -ln(count / all): counts of e^-IC give our IC back but for rounding."""
    values = information_of(wordnet).values
    ic = {"n": {int(x[1:]): math.exp(-value) for x, value in zip(wordnet, values.tolist(), strict=True)}}
    ic["n"][0] = 1.0
    pairs = [(a, b) for a, b in awkward_pairs[::11] if {a, b} != {wordnet.root}]
    assert len(pairs) > 400
    for a, b in pairs:
        ours = compare(a, b, wordnet)
        for measure in MEASURES:
            theirs = getattr(synset(nltk_wordnet, a), f"{measure}_similarity")
            expected = theirs(synset(nltk_wordnet, b), ic)
            assert getattr(ours, measure) == pytest.approx(expected, rel=1e-9, abs=1e-12), (measure, a, b)


def test_matrices_equal_pairs(wordnet: Taxonomy, awkward_pairs: list[tuple[str, str]]) -> None:
    rows, columns = ([pair[i] for pair in awkward_pairs[::200]] for i in (0, 1))
    for measure in MEASURES:
        values = similarity_matrix(measure, rows, columns, wordnet)
        assert values.tolist() == [[getattr(compare(a, b, wordnet), measure) for b in columns] for a in rows]
