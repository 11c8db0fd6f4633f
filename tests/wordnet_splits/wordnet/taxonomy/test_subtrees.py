"""Least common subsumers and subtrees, against networkx and NLTK."""

from __future__ import annotations

from typing import Any

import networkx
import numpy as np
import pytest

from tests.raising import raises
from tests.wordnet_splits.toy import TOY
from wordnet_splits.base.errors import DataError, TaxonomyError
from wordnet_splits.wordnet.taxonomy import load
from wordnet_splits.wordnet.taxonomy.subtrees import SHARE, least_common_subsumer, subtree_roots
from wordnet_splits.wordnet.taxonomy.synsets import Taxonomy


@pytest.fixture(scope="module")
def wordnet() -> tuple[Taxonomy, networkx.DiGraph, dict[str, int]]:
    """WordNet, its edges from parents to children, and the longest distance of each synset from the root."""
    taxonomy = load()
    graph = networkx.DiGraph((parent, wnid) for wnid in taxonomy for parent in taxonomy.parents(wnid))
    depths: dict[str, int] = {}
    for wnid in networkx.topological_sort(graph):
        depths[wnid] = max((depths[parent] + 1 for parent in graph.predecessors(wnid)), default=0)
    return taxonomy, graph, depths


def drawn_classes(taxonomy: Taxonomy, seed: int) -> dict[int, list[str]]:
    """Up to 60 classes below a synset, one in eight with two synsets."""
    random = np.random.default_rng(seed)
    while True:
        below = sorted(taxonomy.descendants(taxonomy.wnids[random.integers(len(taxonomy))]))
        if len(below) > 2:
            break
    taken = random.choice(below, min(len(below), random.integers(2, 61)), replace=False).tolist()
    return {n: [wnid, *random.choice(below, int(random.random() < 1 / 8))] for n, wnid in enumerate(taken)}


@pytest.mark.parametrize("seed", range(40))
def test_subsumers_and_roots_are_those_of_networkx(wordnet, seed: int) -> None:
    taxonomy, graph, depths = wordnet
    classes = drawn_classes(taxonomy, seed)
    above = [
        set.union(*(networkx.ancestors(graph, wnid) | {wnid} for wnid in wnids)) for wnids in classes.values()
    ]
    common = set.intersection(*above)
    top = least_common_subsumer(list(classes.values()), taxonomy)
    assert top == min(common, key=lambda wnid: (-depths[wnid], wnid))
    assert not networkx.descendants(graph, top) & common
    roots = subtree_roots(classes, taxonomy)
    holders = {root: [key for key in classes if roots[key] == root] for root in roots.values()}
    for key, root in roots.items():
        assert root in above[key]
        assert networkx.has_path(graph, top, root)
        alone = root in classes[key]  # a class whose chain ends here
        assert alone or len(holders[root]) <= max(1, int(SHARE * len(classes)))
    for cut in (1, 2, 3):
        for key, root in subtree_roots(classes, taxonomy, cut=cut).items():
            edges = networkx.shortest_path_length(graph, top, root)
            assert edges <= cut
            assert edges == cut or root in classes[key]


@pytest.mark.oracle
def test_pairs_have_the_subsumers_of_nltk(wordnet, nltk_wordnet: Any) -> None:
    taxonomy, _, _ = wordnet
    random = np.random.default_rng(0)
    for a, b in random.choice(taxonomy.wnids, (2000, 2)):
        one, two = (nltk_wordnet.synset_from_pos_and_offset("n", int(wnid[1:])) for wnid in (a, b))
        lowest = {f"n{synset.offset():08d}" for synset in one.lowest_common_hypernyms(two)}
        assert least_common_subsumer([[a], [b]], taxonomy) == min(lowest)


def test_a_toy_by_hand() -> None:
    taxonomy = Taxonomy.from_edges(TOY)
    classes = {name: [name] for name in ("puppy", "hound", "bird", "robodog")}
    assert least_common_subsumer(list(classes.values()), taxonomy) == "animal"
    beasts = {"puppy": "beast", "hound": "beast", "bird": "bird", "robodog": "beast"}
    assert subtree_roots(classes, taxonomy, cut=1) == beasts
    assert subtree_roots(classes, taxonomy, cut=2) == beasts | {
        "puppy": "hound",
        "hound": "hound",
        "robodog": "robodog",
    }
    assert subtree_roots(classes, taxonomy) == {name: name for name in classes}
    assert subtree_roots({"one": ["puppy"]}, taxonomy) == {"one": "puppy"}


@pytest.mark.parametrize(
    ("classes", "cut", "error"),
    [
        ({}, None, DataError),
        ({"a": ["n02084071"], "b": []}, None, DataError),
        ({"a": ["n02084071"]}, 0, DataError),
        ({"a": ["n02084071"], "b": ["n99999999"]}, None, TaxonomyError),
    ],
)
def test_classes_without_subtrees_are_refused(classes, cut, error) -> None:
    with raises(error):
        subtree_roots(classes, load(), cut=cut)
