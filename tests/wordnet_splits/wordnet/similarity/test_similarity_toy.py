"""Every measure on nine nodes, expected values as formulas; and on random graphs against the definitions."""

from __future__ import annotations

import doctest
from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.raising import raises
from wordnet_splits.base.errors import TaxonomyError, UnknownNameError
from wordnet_splits.wordnet.similarity import pairs as similarity
from wordnet_splits.wordnet.taxonomy import Taxonomy

from ...toy import TOY, Definitions

H = 4  # root - animal - beast - hound - puppy


@pytest.mark.parametrize(
    ("x", "y", "distance"),
    [
        ("hound", "hound", 0),
        ("hound", "beast", 1),
        ("hound", "bird", 2 + 1),  # through animal
        ("puppy", "beast", 2),
        ("puppy", "animal", 1 + 1),  # through root: the chain of hypernyms has 3 edges
        ("puppy", "thing", 1 + 1),
        ("puppy", "robodog", 2 + 1),  # through beast
        ("robodog", "bird", 2 + 1),
    ],
)
def test_distance_path_and_lch(toy: Taxonomy, x: str, y: str, distance: int) -> None:
    pair = similarity.compare_synsets(x, y, toy)
    assert pair.distance == distance
    assert pair.path == 1 / (distance + 1)
    assert pair.lch == -log((distance + 1) / (2 * H))
    assert pair.lch_perl == -log((distance + 1) / (2 * (H + 1)))


@pytest.mark.parametrize(
    ("x", "y", "lcs", "wup_wn"),
    [
        ("hound", "hound", "hound", (2 * 4) / (0 + 0 + 2 * 4)),
        ("hound", "bird", "animal", (2 * 2) / (2 + 1 + 2 * 2)),
        ("hound", "thing", "root", (2 * 1) / (3 + 1 + 2 * 1)),
        ("puppy", "robodog", "beast", (2 * 3) / (2 + 1 + 2 * 3)),
        # D, not d: puppy is 3 hypernyms below animal, 2 edges from it through root
        ("puppy", "bird", "animal", (2 * 2) / (2 + 1 + 2 * 2)),
    ],
)
def test_wup_wn(toy: Taxonomy, x: str, y: str, lcs: str, wup_wn: float) -> None:
    pair = similarity.compare_synsets(x, y, toy)
    assert (pair.lcs, pair.wup_wn) == (lcs, wup_wn)
    assert similarity.compare_synsets(y, x, toy).wup_wn == wup_wn


def test_wup_perl_counts_its_extra_root(toy: Taxonomy) -> None:
    pair = similarity.compare_synsets("hound", "bird", toy)
    assert (pair.lcs_perl, pair.wup_perl) == ("animal", (2 * 3) / (2 + 1 + 2 * 3))
    # the minimum depth of robodog is 3, by either parent
    assert similarity.compare_synsets("robodog", "robodog", toy).wup_perl == (2 * 5) / (0 + 0 + 2 * 5)


def test_wup_of_nltk_leaves_a_synset_of_low_minimum_depth_for_a_deeper_one(toy: Taxonomy) -> None:
    # puppy lies directly below root, so its subsumer with itself is hound (minimum depth 3)
    pair = similarity.compare_synsets("puppy", "puppy", toy)
    assert (pair.lcs_nltk, pair.wup) == ("hound", (2 * 4) / (1 + 1 + 2 * 4))
    assert (pair.lcs, pair.wup_wn) == ("puppy", 1.0)


def test_wup_of_nltk_prefers_the_first_synset_and_so_is_not_symmetric() -> None:
    # y is a child of x and of z, both directly below root; k is the maximum depth of the one chosen
    taxonomy = Taxonomy.from_edges(
        {"m": ("root",), "x": ("m", "root"), "a": ("root",), "y": ("x", "a"), "z": ("y",)}
    )
    forth, back = (
        similarity.compare_synsets("x", "z", taxonomy),
        similarity.compare_synsets("z", "x", taxonomy),
    )
    assert (forth.lcs_nltk, forth.wup) == ("x", (2 * 3) / (0 + 2 + 2 * 3))
    assert (back.lcs_nltk, back.wup) == ("m", (2 * 2) / (3 + 1 + 2 * 2))
    assert forth.wup_wn == back.wup_wn == (2 * 3) / (0 + 2 + 2 * 3)


def test_means(toy: Taxonomy) -> None:
    pair = similarity.compare_synsets("puppy", "puppy", toy)
    assert pair.mean == pair.mean2 == 1
    assert pair.mean_nltk == (1 + (2 * 4) / (1 + 1 + 2 * 4) + 1) / 3
    other = similarity.compare_synsets("hound", "bird", toy)
    assert other.mean == pytest.approx((1 / 4 + 4 / 7 + -log(4 / 8) / log(8)) / 3, rel=1e-15)
    assert other.mean2 == (1 / 4 + 4 / 7) / 2


def test_path_between_runs_through_the_subsumer(toy: Taxonomy) -> None:
    assert similarity.path_between("puppy", "robodog", toy) == (
        ("puppy", "hound", "beast"),
        "beast",
        ("robodog", "beast"),
    )


# ---------------------------------------------------------------------- random graphs


@st.composite
def graphs(draw: st.DrawFn) -> dict[str, tuple[str, ...]]:
    """Graphs of up to nine nodes under one root, with shortcuts; names in no order of depth."""
    names = draw(st.permutations("abcdefghi"))[: draw(st.integers(2, 9))]
    return {
        name: tuple(draw(st.sets(st.sampled_from(names[:at]), min_size=1, max_size=3)))
        for at, name in enumerate(names)
        if at
    }


@settings(max_examples=150, deadline=None)
@given(graphs())
def test_every_measure_follows_its_definition(parents: dict[str, tuple[str, ...]]) -> None:
    taxonomy, truth = Taxonomy.from_edges(parents), Definitions(parents)
    nodes = tuple(taxonomy)
    assert [taxonomy.min_depth(x) for x in nodes] == [truth.min_depth(x) for x in nodes]
    assert [taxonomy.max_depth(x) for x in nodes] == [truth.max_depth(x) for x in nodes]
    assert [taxonomy.ancestors(x) for x in nodes] == [truth.up(x) for x in nodes]
    values = similarity.similarity_matrices(similarity.MEASURES, nodes, taxonomy=taxonomy)
    lcs = similarity.similarity_matrix("lcs", nodes, taxonomy=taxonomy)
    for i, x in enumerate(nodes):
        for j, y in enumerate(nodes):
            expected = _expected(truth, x, y)
            assert {name: float(values[name][i, j]) for name in expected} == expected
            pair = similarity.compare_synsets(x, y, taxonomy)
            assert {name: float(getattr(pair, name)) for name in expected} == expected
            assert pair.lcs == taxonomy.wnid(int(lcs[i, j]))
            content = {a: information(truth, a, len(nodes)) for a in truth.common(x, y)}
            assert pair.lcs_information == min(content, key=lambda a: (-content[a], a))


def information(truth: Definitions, x: str, n: int) -> float:
    """IC from the structure, by counting: 1 - ln(hypo + 1) / ln N."""
    return 1.0 - log(sum(x in truth.up(y) for y in truth.chains)) / log(n)


def _expected(truth: Definitions, x: str, y: str) -> dict[str, float]:
    distance, common, h = truth.distance(x, y), truth.common(x, y), truth.height
    assert distance is not None

    def wup(s: str, k: int) -> float:
        return 2.0 * k / (truth.distance(x, s) + truth.distance(y, s) + 2 * k)

    def deepest(depth: dict[str, int]) -> list[str]:
        return [a for a in common if depth[a] == max(depth.values())]

    by_max = deepest({a: truth.max_depth(a) for a in common})
    by_min = deepest({a: truth.min_depth(a) for a in common})
    s = x if x in by_min else by_min[0]  # names sort as ids here
    path, lch = 1.0 / (distance + 1), -log((distance + 1) / (2.0 * h))
    wup_wn, wup_nltk = wup(by_max[0], truth.max_depth(by_max[0]) + 1), wup(s, truth.max_depth(s) + 1)
    unit = lch / -log(1 / (2.0 * h))
    n = len(truth.chains)
    ic_x, ic_y = information(truth, x, n), information(truth, y, n)
    ic = max(information(truth, a, n) for a in common)
    gap = ic_x + ic_y - 2.0 * ic
    jcn = 1.0 / gap if ic_x and ic_y and gap else 0.0  # only a root has no information here
    return {
        "res": ic,
        "lin": 2.0 * ic / (ic_x + ic_y) if ic_x + ic_y else 0.0,
        "jcn": 1e300 if x == y else jcn,
        "distance": distance,
        "path": path,
        "lch": lch,
        "lch_perl": -log((distance + 1) / (2.0 * (h + 1))),
        "wup_wn": wup_wn,
        "wup": wup_nltk,
        "wup_perl": wup(by_min[0], truth.min_depth(by_min[0]) + 2),
        "mean": (path + wup_wn + unit) / 3,
        "mean_nltk": (path + wup_nltk + unit) / 3,
        "mean2": (path + wup_wn) / 2,
    }


# ---------------------------------------------------------------------- shapes, types, bad input


def test_rows_columns_repeats_and_blocks_agree(toy: Taxonomy) -> None:
    a, b = ["puppy", "bird", "puppy", "root", "robodog"], ["thing", "puppy", "thing"]
    for measure in similarity.MEASURES:
        whole = similarity.similarity_matrix(measure, a, b, toy)
        assert whole.shape == (5, 3)
        assert whole.tolist() == [
            [getattr(similarity.compare_synsets(x, y, toy), measure) for y in b] for x in a
        ]
        parts = list(similarity.similarity_blocks(measure, a, b, toy, block=2))
        assert [(rows.start, rows.stop) for rows, _ in parts] == [(0, 2), (2, 4), (4, 5)]
        np.testing.assert_array_equal(np.concatenate([values for _, values in parts]), whole)


def test_types(toy: Taxonomy) -> None:
    assert similarity.similarity_matrix("distance", ["bird"], taxonomy=toy).dtype == np.int8
    assert similarity.similarity_matrix("path", ["bird"], taxonomy=toy).dtype == np.float64
    assert similarity.similarity_matrix("path", ["bird"], taxonomy=toy, dtype=np.float32).dtype == np.float32
    assert similarity.similarity_matrix("wup", [], ["bird"], toy).shape == (0, 1)
    assert similarity.similarity_matrix("wup", ["bird"], [], toy).shape == (1, 0)


def test_distances_of_a_deep_taxonomy_do_not_overflow() -> None:
    n = 150
    chain = {f"a{i:03d}": (f"a{i - 1:03d}",) for i in range(1, n)}
    chain |= {f"b{i:03d}": (f"b{i - 1:03d}" if i > 1 else "a000",) for i in range(1, n)}
    distances = similarity.similarity_matrix(
        "distance", [f"a{n - 1}"], [f"b{n - 1}", "a000"], Taxonomy.from_edges(chain)
    )
    assert distances.tolist() == [[2 * (n - 1), n - 1]]


def test_unknown_measure_offers_the_nearest(toy: Taxonomy) -> None:
    with raises(UnknownNameError, naming="wup_nm", near="wup_wn"):
        similarity.similarity_matrix("wup_nm", ["bird"], taxonomy=toy)
    with pytest.raises(UnknownNameError):
        next(similarity.similarity_blocks("nearness", ["bird"], taxonomy=toy))


def test_synsets_under_different_roots_are_refused() -> None:
    split = Taxonomy.from_edges({"a": ("left",), "b": ("right",)})
    with raises(TaxonomyError, naming="2"):
        similarity.compare_synsets("a", "b", split)
    orphan = Taxonomy.from_edges({"a": ("left", "middle"), "left": (), "middle": ()}).tree({"a": "left"})
    with pytest.raises(TaxonomyError):
        similarity.compare_synsets("a", "middle", orphan)
    for measure in similarity.MEASURES:
        with pytest.raises(TaxonomyError):
            similarity.similarity_matrix(measure, ["left", "a"], ["a", "b"], split)


@pytest.mark.parametrize("height", [41, 42, 43, 62, 63, 130])
def test_no_depth_makes_strangers_look_related(height: int) -> None:
    two = {f"{side}{i:03d}": (f"{side}{i - 1:03d}",) for side in "ab" for i in range(1, height + 1)}
    with pytest.raises(TaxonomyError):
        similarity.similarity_matrix(
            "distance", [f"a{height:03d}"], [f"b{height:03d}"], Taxonomy.from_edges(two)
        )


def test_the_toy_has_nine_nodes(toy: Taxonomy) -> None:
    assert len(toy) == 9
    assert toy.root == "root"
    assert set(TOY) < set(toy)


def test_the_examples_of_the_docstrings_hold() -> None:
    assert doctest.testmod(similarity).attempted > 0
    assert doctest.testmod(similarity).failed == 0


def test_many_ways_to_one_ancestor_are_not_walked_one_by_one() -> None:
    """Forty levels of two synsets, both below both of the level above: 2^40 ways up."""
    parents = {f"{side}{n:02d}": [f"a{n - 1:02d}", f"b{n - 1:02d}"] for n in range(1, 40) for side in "ab"}
    parents |= {"a00": ["root"], "b00": ["root"]}
    ladder = Taxonomy.from_edges(parents)
    assert similarity.similarity_matrix("distance", ["a39", "b39"], ["root", "a39"], ladder).tolist() == [
        [40, 0],
        [40, 2],
    ]
