"""Information content by a plain loop over descendants, and res, lin and jcn as NLTK has them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wordnet_splits.base.errors import TaxonomyError
from wordnet_splits.wordnet.similarity import compare_synsets, similarity_matrix
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
    """NLTK takes -ln(count / all): counts of e^-IC give IC from the structure back, but for rounding."""
    counts = np.random.default_rng(40).poisson(0.4, len(wordnet)).astype(np.int64)
    counted = Taxonomy("3.0", wordnet.wnids, wordnet.graph, wordnet._words, counts=counts)
    values = [math.exp(-value) for value in information_of(wordnet).values.tolist()]
    sums = sums_below(wordnet.graph, counts.astype(np.float64)).tolist()
    pairs = [(a, b) for a, b in awkward_pairs[::11] if {a, b} != {wordnet.root}]
    assert len(pairs) > 400
    for taxonomy, frequencies, rel in ((wordnet, values, 1e-9), (counted, sums, 0)):
        ic = {"n": dict(zip((int(x[1:]) for x in wordnet), frequencies, strict=True)) | {0: max(frequencies)}}
        for a, b in pairs:
            ours, x, y = compare_synsets(a, b, taxonomy), synset(nltk_wordnet, a), synset(nltk_wordnet, b)
            for measure in MEASURES:
                theirs = getattr(x, f"{measure}_similarity")(y, ic)
                assert getattr(ours, measure) == pytest.approx(theirs, rel=rel, abs=rel / 1e3), (a, b)


def test_matrices_equal_pairs(wordnet: Taxonomy, awkward_pairs: list[tuple[str, str]]) -> None:
    rows, columns = ([pair[i] for pair in awkward_pairs[::200]] for i in (0, 1))
    for measure in MEASURES:
        values = similarity_matrix(measure, rows, columns, wordnet)
        assert values.tolist() == [
            [getattr(compare_synsets(a, b, wordnet), measure) for b in columns] for a in rows
        ]


def test_counts_of_a_file_are_summed_over_distinct_descendants(tmp_path: Path) -> None:
    """d is below a twice; e and f never occur: their information is NLTK's infinity, and they share it."""
    (tmp_path / "tree.tsv").write_text("child\tparent\na\tr\nb\ta\nc\ta\nd\tb\nd\tc\ne\tr\nf\te\n", "utf-8")
    rows = "".join(f"{node}\t{node}\t\t{n}\n" for node, n in zip("abdef", (1, 2, 4, 0, 0), strict=True))
    (tmp_path / "nodes.tsv").write_text(f"node\tnames\tgloss\tcount\n{rows}r\tr\t\t1\nc\tc\t\t0\n", "utf-8")
    taxonomy = Taxonomy.from_files(tmp_path / "tree.tsv", tmp_path / "nodes.tsv")
    content = information_of(taxonomy)
    assert (content.source, content.total) == ("counts", 8)
    expected = {"a": 7, "b": 6, "c": 4, "d": 4, "e": 0, "f": 0, "r": 8}
    assert content.values.tolist() == [-math.log(n / 8) if n else 1e300 for n in expected.values()]
    assert (compare_synsets("b", "c", taxonomy).res, compare_synsets("b", "c", taxonomy).lcs_information) == (
        -math.log(7 / 8),
        "a",
    )
    assert [getattr(compare_synsets("e", "f", taxonomy), m) for m in MEASURES] == [1e300, 1, 1e300]
    assert [getattr(compare_synsets("a", "f", taxonomy), m) for m in MEASURES] == [
        0,
        0,
        pytest.approx(1e-300),
    ]
    assert [getattr(compare_synsets("r", "r", taxonomy), m) for m in MEASURES] == [0, 0, 1e300]
    nothing = Taxonomy("x", taxonomy.wnids, taxonomy.graph, taxonomy._words, counts=np.zeros(7, np.int64))
    with pytest.raises(TaxonomyError):
        similarity_matrix("lin", ["a", "b"], taxonomy=nothing)
