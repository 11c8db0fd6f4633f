"""Posteriors, stopping rules and errors on toy trees, against values written as formulas."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.raising import raises
from wordnet_splits.base.errors import DataError, UnknownNameError
from wordnet_splits.hierarchy import (
    ClassHierarchy,
    Conformal,
    Information,
    Threshold,
    balanced_means,
    compare_answers,
    parse_rule,
)
from wordnet_splits.wordnet.taxonomy import Taxonomy

# root - animal - dog - (pug, beagle); animal - cat - tabby; root - tool - hammer; wolf and saw are unknown
PARENTS = {
    "animal": ["root"],
    "tool": ["root"],
    "dog": ["animal"],
    "cat": ["animal"],
    "pug": ["dog"],
    "beagle": ["dog"],
    "wolf": ["animal"],
    "tabby": ["cat"],
    "hammer": ["tool"],
    "saw": ["tool"],
    "poodle": ["dog"],
}
TOY = Taxonomy.from_edges(PARENTS)
CLASSES = [("pug",), ("beagle",), ("tabby",), ("hammer",)]
TREE = ClassHierarchy.of(CLASSES, TOY)
P = np.array([[0.5, 0.3, 0.15, 0.05], [0.05, 0.05, 0.6, 0.3], [0.25, 0.25, 0.25, 0.25]])


def names(answers: np.ndarray) -> list[str]:
    return [TREE.wnids[node] for node in answers]


def posterior(name: str) -> np.ndarray:
    return TREE.posteriors(P)[:, TREE.node_of[name]]


def test_posteriors_are_sums_over_the_classes_below() -> None:
    assert TREE.wnids[TREE.root] == "root"
    assert set(TREE.wnids) == {"root", "animal", "tool", "dog", "cat", *(wnid for (wnid,) in CLASSES)}
    assert posterior("dog") == pytest.approx([0.5 + 0.3, 0.05 + 0.05, 0.25 + 0.25])
    assert posterior("animal") == pytest.approx([0.5 + 0.3 + 0.15, 0.05 + 0.05 + 0.6, 0.75])
    assert (posterior("root") == 1).all()
    assert (posterior("cat") == posterior("tabby")).all()
    assert TREE.information[TREE.node_of["dog"]] == np.log2(4 / 2)
    assert TREE.information[TREE.node_of["animal"]] == np.log2(4 / 3)
    assert TREE.information[TREE.node_of["hammer"]] == np.log2(4 / 1)


def test_a_class_counts_once_on_a_graph_of_several_parents() -> None:
    graph = Taxonomy.from_edges(
        {"pet": ["animal"], "canine": ["animal"], "dog": ["pet", "canine"], "cat": ["pet"]}
    )
    hierarchy = ClassHierarchy.of([("dog",), ("cat",)], graph)
    posteriors = dict(zip(hierarchy.wnids, hierarchy.posteriors([[0.7, 0.3]])[0], strict=True))
    assert posteriors == pytest.approx({"animal": 1, "pet": 1, "canine": 0.7, "dog": 0.7, "cat": 0.3})


def test_threshold_answers_at_the_most_specific_node_that_reaches_it() -> None:
    assert names(Threshold(0.75).answers(TREE, P)) == ["dog", "root", "animal"]
    assert names(Threshold(0.5).answers(TREE, P)) == ["pug", "tabby", "dog"]
    assert names(Threshold(0.0).answers(TREE, P)) == ["pug", "tabby", "beagle"]  # the most probable class
    assert names(Threshold(0.5).answers(TREE, P, unknown=[True, True, False])) == ["dog", "cat", "dog"]


def test_information_is_expected_bits() -> None:
    # pug .5 x 2 bits = 1; dog .8 x 1 bit; animal .95 x log2(4/3) = .39
    assert names(Information(0).answers(TREE, P[:1])) == ["pug"]
    # with weight w: pug .5 (2 + w), dog .8 (1 + w), equal at w = 2/3; animal .95 (.415 + w)
    assert names(Information(0.66).answers(TREE, P[:1])) == ["pug"]
    assert names(Information(0.67).answers(TREE, P[:1])) == ["dog"]
    assert names(Information(1000).answers(TREE, P[:1])) == ["root"]


def test_conformal_answers_with_the_lcs_of_its_set() -> None:
    calibration = np.arange(1, 20) / 20  # the k-th smallest of 19 is k / 20, k = floor(20 error)
    assert names(Conformal(0.2).answers(TREE, P[:1], calibration=calibration)) == ["dog"]  # p >= .2
    assert names(Conformal(0.3).answers(TREE, P[:1], calibration=calibration)) == ["dog"]  # p >= .3
    assert names(Conformal(0.15).answers(TREE, P[:1], calibration=calibration)) == ["animal"]
    assert names(Conformal(0.05).answers(TREE, P[:1], calibration=calibration)) == ["root"]
    # an empty set is that of the predicted class
    assert names(Conformal(0.9).answers(TREE, P[:1], calibration=calibration)) == ["pug"]
    with raises(DataError, where="conformal[error=0.01]"):
        Conformal(0.01).answers(TREE, P, calibration=calibration)


def test_truth_is_the_deepest_ancestor_shared_with_the_classes() -> None:
    truths = {name: TREE.wnids[TREE.truth([name])] for name in ("pug", "poodle", "wolf", "saw", "root")}
    assert truths == {"pug": "pug", "poodle": "dog", "wolf": "animal", "saw": "tool", "root": "root"}
    assert TREE.truth([]) == TREE.root
    assert TREE.wnids[TREE.truth(["saw", "poodle"])] == "dog"  # the deeper of both


def test_errors_go_through_the_lcs() -> None:
    cases = {  # truth, answer: edges from the truth, from the answer, depth of the LCS
        ("pug", "pug"): (0, 0, 3),
        ("pug", "animal"): (2, 0, 1),
        ("dog", "pug"): (0, 1, 2),
        ("dog", "tabby"): (1, 2, 1),
        ("tool", "root"): (1, 0, 0),
    }
    truth, answers = ([TREE.node_of[name] for name in column] for column in zip(*cases, strict=True))
    errors = compare_answers(TREE, truth, answers)
    assert list(zip(errors.under, errors.over, errors.shared_depth, strict=True)) == list(cases.values())
    assert errors.correct.tolist() == [True, True, False, False, True]
    assert errors.exact.tolist() == [True, False, False, False, False]
    bits = [np.log2(4), np.log2(4 / 3), np.log2(4), np.log2(4), 0]
    assert errors.specificity == pytest.approx(np.array(bits) / np.log2(4))
    assert errors.at_depth(2) == pytest.approx([1, 0, 1, 0, np.nan], nan_ok=True)


def test_balanced_means_weigh_true_nodes_the_same() -> None:
    values = np.array([[1.0], [3.0], [4.0], [np.nan]])
    assert balanced_means(values, [5, 5, 2, 2]) == pytest.approx((1 + 3) / 2 / 2 + 4 / 2)
    weights = [[1, 3, 0, 1], [0, 2, 2, 0]]
    assert balanced_means(values, [5, 5, 2, 2], weights)[:, 0] == pytest.approx(
        [(1 + 3 * 3) / 4, (3 + 4) / 2]
    )


def test_rules_are_read_as_written() -> None:
    for rule in (Threshold(0.8), Information(2), Conformal(0.25)):
        assert parse_rule(rule.label) == rule
    assert parse_rule(" threshold ") == Threshold()
    with raises(UnknownNameError, near="threshold"):
        parse_rule("treshold")
    with raises(UnknownNameError, where="threshold", near="posterior"):
        parse_rule("threshold[posteriors=1]")
    for text in ("threshold[]", "conformal[error=nan]", "information[weight=-1]"):
        with pytest.raises(DataError):
            parse_rule(text)
    for text in ("threshold[posterior=2]", "threshold[posterior=a]", "information[weight=inf]"):
        with raises(DataError, where=text):
            parse_rule(text)


def test_what_is_no_hierarchy_or_no_distribution_is_refused() -> None:
    with pytest.raises(DataError):
        ClassHierarchy.of([("pug",), ()], TOY)
    with pytest.raises(DataError):
        ClassHierarchy.of([("pug",)], TOY)
    with raises(DataError, where="toy"):
        ClassHierarchy.of([("a",), ("b",)], Taxonomy.from_edges({"a": ["x"], "b": ["y"]}))
    for wrong in ([[0.5, 0.5]], [[0.5, 0.5, 0.5, 0.5]], [[-1, 1, 0.5, 0.5]], [[np.nan, 1, 0, 0]]):
        with raises(DataError, naming="probabilities"):
            TREE.posteriors(wrong)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"calibration": [0.9, np.nan]}, ()),
        ({"calibration": [0.9, 9.0]}, ()),
        ({"unknown": [True, False]}, "2"),
    ],
)
def test_what_does_not_fit_the_images_is_refused(options, named: object) -> None:
    with raises(DataError, where="threshold[posterior=0.9]", naming=named):
        Threshold().answers(TREE, [[0.25, 0.25, 0.25, 0.25]], **options)


@pytest.mark.parametrize(("truth", "answers"), [([0, 1], [0]), ([-1], [0]), ([0], [99]), ([[0]], [[0]])])
def test_numbers_of_no_node_have_no_errors(truth, answers) -> None:
    with pytest.raises(DataError):
        compare_answers(TREE, truth, answers)


def test_negative_strata_count_like_others() -> None:
    assert balanced_means(np.array([[1.0], [3.0], [5.0]]), [-1, -1, 0]) == pytest.approx((2 + 5) / 2)


@st.composite
def hierarchies(draw: st.DrawFn) -> tuple[ClassHierarchy, np.ndarray]:
    """A random graph in which every node has one or two parents, some of its nodes as classes, and images."""
    size = draw(st.integers(3, 14))
    parents = {
        f"n{node:02}": sorted(
            {f"n{draw(st.integers(0, node - 1)):02}" for _ in range(draw(st.integers(1, 2)))}
        )
        for node in range(1, size)
    }
    count = draw(st.integers(2, size - 1))
    members = draw(st.permutations(sorted(parents)))[:count]
    weights = draw(
        st.lists(st.lists(st.integers(0, 9), min_size=count, max_size=count), min_size=1, max_size=4)
    )
    p = np.array(weights, float) + 1e-3
    return ClassHierarchy.of([(m,) for m in members], Taxonomy.from_edges(parents)), p / p.sum(
        axis=1, keepdims=True
    )


@settings(max_examples=60, deadline=None)
@given(hierarchies(), st.floats(0, 1), st.floats(0, 1), st.booleans())
def test_invariants(drawn: tuple[ClassHierarchy, np.ndarray], a: float, b: float, unknown: bool) -> None:
    hierarchy, p = drawn
    posteriors = hierarchy.posteriors(p)
    assert (posteriors[:, hierarchy.root] == 1).all()
    for child, wnid in enumerate(hierarchy.wnids):
        for parent in hierarchy.taxonomy.parents(wnid):
            assert (posteriors[:, hierarchy.node_of[parent]] >= posteriors[:, child] - 1e-12).all()
    low, high = sorted((a, b))
    calibration = np.linspace(0, 1, 99)
    outside = np.full(len(p), unknown)
    for loose, strict in (
        (Threshold(low), Threshold(high)),
        (Information(low * 9), Information(high * 9)),
        (Conformal(max(high, 0.02) * 0.99), Conformal(max(low, 0.02) * 0.99)),
    ):
        nodes = [
            rule.answers(hierarchy, p, calibration=calibration, unknown=outside) for rule in (loose, strict)
        ]
        bits = [hierarchy.information[answer] for answer in nodes]
        assert (bits[0] >= bits[1] - 1e-9).all(), loose.label  # a stricter rule is never more specific
        if unknown:
            assert hierarchy.inner[nodes[0]].all()
    answer = Threshold(high).answers(hierarchy, p)
    assert (posteriors[np.arange(len(p)), answer] >= high).all()
    truth = np.full(len(p), hierarchy.truth(hierarchy.classes[0]))
    errors = compare_answers(hierarchy, truth, answer)
    assert ((errors.distance == 0) == (truth == answer)).all()
    above = hierarchy.taxonomy.ancestors(hierarchy.classes[0][0])
    assert errors.correct.tolist() == [hierarchy.wnids[node] in above for node in answer]
