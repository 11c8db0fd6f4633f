"""Similarity of predictions against NLTK-free single pairs, and the graph against networkx."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loaders.harness.comparison.semantics import (
    ClassName,
    Predicted,
    graphml,
    means_by,
    prediction_graph,
    predictions_by_class,
    pruned,
    similarities,
)
from tests.imported import Imported
from tests.raising import raises
from wordnet_splits.base.errors import DataError
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.wordnet.similarity import compare_synsets
from wordnet_splits.wordnet.taxonomy import load

networkx = Imported("networkx")

DOG = ClassName("a", "dog", "dog", ("n02084071",))
CAT = ClassName("a", "cat", "cat", ("n02121620",))
TENCH = ClassName("b", "n01440764", "tench", ("n01440764",))
BOTH = ClassName("b", "pets", "pets & <more>", ("n02084071", "n02121620"))
NONE = ClassName("b", "noise", "noise", ())


def test_similarity_is_that_of_the_best_pair_of_synsets() -> None:
    found = similarities([(TENCH, DOG), (BOTH, CAT), (NONE, DOG)], load())
    assert found[TENCH, DOG] == compare_synsets("n01440764", "n02084071").mean2
    assert found[BOTH, CAT] == 1
    assert found[NONE, DOG] is None


def test_means_are_over_images() -> None:
    found = [
        Predicted(TENCH, "far", DOG, 3, 0.2),
        Predicted(TENCH, "far", CAT, 1, 0.6),
        Predicted(BOTH, "near", CAT, 2, 1.0),
        Predicted(NONE, "far", CAT, 9, None),
    ]
    assert [(m.of, m.images, m.similarity) for m in means_by(found, predicted=False)] == [
        (BOTH, 2, 1.0),
        (TENCH, 4, pytest.approx((3 * 0.2 + 0.6) / 4)),
    ]
    assert [(m.of, m.images) for m in means_by(found, predicted=True)] == [(CAT, 3), (DOG, 3)]


def test_pruning_drops_what_the_paper_drops() -> None:
    fountain, other = ClassName("a", "f", "fountain", ()), ClassName("b", "F", "fountain", ())
    kept = Predicted(TENCH, "far", DOG, 5, 0.2)
    dropped = [
        Predicted(DOG, "id", DOG, 50, 1.0),  # itself
        Predicted(CAT, "id", DOG, 50, 0.8),  # ID to ID
        Predicted(other, "far", fountain, 50, None),  # equal names
        Predicted(ClassName("a", "x", "x", ()), "near", DOG, 50, None),  # from the ID source
        Predicted(TENCH, "far", CAT, 4, 0.2),  # few images
    ]
    edges = pruned(prediction_graph([kept, *dropped]), {DOG, CAT, fountain})
    assert [(e.true, e.predicted, e.images) for e in edges] == [(TENCH, DOG, 5)]


def test_images_of_several_roles_are_one_edge() -> None:
    both = [Predicted(TENCH, "far", DOG, 2, 0.2), Predicted(TENCH, "near", DOG, 3, 0.2)]
    (edge,) = prediction_graph(both)
    assert edge.images == 5


NAMES = st.text(max_size=12)
MADE = st.lists(
    st.builds(Predicted, st.builds(ClassName, NAMES, NAMES, NAMES, st.just(())), st.just("far"), st.just(DOG),
              st.integers(1, 99), st.none() | st.floats(0, 1)),
    max_size=6,
)  # fmt: skip


@given(MADE)
def test_networkx_reads_the_graph(found: list[Predicted]) -> None:
    edges = prediction_graph(found)
    graph: Any = networkx.parse_graphml(graphml(edges).decode(), force_multigraph=True)
    assert graph.number_of_edges() == len(edges)
    assert sum(d["images"] for _, _, d in graph.edges(data=True)) == sum(e.images for e in edges)
    assert {d.get("name", "") for _, d in graph.nodes(data=True)} >= ({"dog"} if edges else set())


def test_names_and_similarities_survive() -> None:
    graph = networkx.parse_graphml(graphml(prediction_graph([Predicted(BOTH, "far", CAT, 7, 0.25)])).decode())
    assert graph.nodes["b/pets"]["name"] == "pets & <more>"
    assert graph.nodes["b/pets"]["wnids"] == "n02084071 n02121620"
    assert graph.edges["b/pets", "a/cat"] == {"images": 7, "similarity": 0.25}


def test_predictions_of_another_benchmark_are_refused() -> None:
    columns = {"source": ["cifar100"], "class_id": ["apple"], "role": ["far"], "prediction": [0]}
    with raises(DataError, naming=("cifar100", "apple", "prediction", "digits")):
        predictions_by_class(pa.table(columns), load_manifest("digits"))
    columns = {"source": ["digits"] * 3, "class_id": ["6", "6", "0"], "role": ["near", "near", "id"]}
    found = predictions_by_class(pa.table({**columns, "prediction": [1, 1, -1]}), load_manifest("digits"))
    assert [(one.true.name, one.predicted.name, one.images) for one in found] == [("six", "one", 2)]
