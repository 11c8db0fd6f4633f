"""wup_wn, path and lch equal those of the `wn` library, run over our graph through stand-in synsets."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import pytest

from tests.imported import Imported
from wordnet_splits.wordnet.similarity import pairs as similarity
from wordnet_splits.wordnet.taxonomy import Taxonomy

from .test_similarity_nltk import hashed

wn_similarity = Imported("wn.similarity")
wn_taxonomy = Imported("wn.taxonomy")


class Synset:
    """As much of ``wn.Synset`` as its taxonomy functions ask for."""

    pos = "n"

    def __init__(self, taxonomy: Taxonomy, wnid: str) -> None:
        self.taxonomy = taxonomy
        self.id = wnid

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Synset) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)

    @cached_property
    def parents(self) -> list[Synset]:
        return [Synset(self.taxonomy, parent) for parent in self.taxonomy.parents(self.id)]

    def relation_paths(self, *relations: str) -> Iterator[list[Synset]]:
        for parent in self.parents:
            above = list(parent.relation_paths())
            yield from ([parent, *rest] for rest in above) if above else [[parent]]

    def hypernym_paths(self, simulate_root: bool = False) -> list[list[Synset]]:
        return wn_taxonomy.hypernym_paths(self, simulate_root)

    def max_depth(self, simulate_root: bool = False) -> int:
        return wn_taxonomy.max_depth(self, simulate_root)

    def shortest_path(self, other: Synset, simulate_root: bool = False) -> list[Synset]:
        return wn_taxonomy.shortest_path(self, other, simulate_root)

    def lowest_common_hypernyms(self, other: Synset, simulate_root: bool = False) -> list[Synset]:
        return wn_taxonomy.lowest_common_hypernyms(self, other, simulate_root)


def pairs(taxonomy: Taxonomy) -> Iterator[tuple[str, str]]:
    nodes = [taxonomy.wnid(i) for i in hashed("wn", 800, len(taxonomy))]
    yield from zip(nodes[::2], nodes[1::2], strict=True)
    several = [w for w in nodes if len(taxonomy.parents(w)) > 1]
    yield from ((a, b) for a in several for b in several)
    # between these two the way to the subsumer leaves the chain of hypernyms
    yield taxonomy.from_name("tench.n.01"), taxonomy.from_name("chihuahua.n.03")


def test_measures_equal_those_of_wn(wordnet: Taxonomy) -> None:
    shortcuts = 0
    for a, b in pairs(wordnet):
        x, y = Synset(wordnet, a), Synset(wordnet, b)
        ours = similarity.compare_synsets(a, b, wordnet)
        assert ours.path == wn_similarity.path(x, y)
        assert ours.lch == pytest.approx(wn_similarity.lch(x, y, 19), rel=1e-15)
        subsumers = [s.id for s in x.lowest_common_hypernyms(y)]
        assert ours.lcs == min(subsumers)
        if len(subsumers) == 1:  # among several its choice depends on the hash seed
            assert ours.wup_wn == wn_similarity.wup(x, y)
            up = wordnet.ancestors(a)[ours.lcs] + wordnet.ancestors(b)[ours.lcs]
            k = wordnet.max_depth(ours.lcs) + 1
            shortcuts += ours.wup_wn != 2 * k / (up + 2 * k)
    assert shortcuts > 0  # so D is what wn measures by


def test_a_tie_goes_to_the_smaller_wnid() -> None:
    tied = Taxonomy.from_edges({"b": ("root",), "a": ("root",), "x": ("b", "a"), "y": ("b", "a")})
    assert similarity.compare_synsets("x", "y", tied).lcs == "a"
    assert {s.id for s in Synset(tied, "x").lowest_common_hypernyms(Synset(tied, "y"))} == {"a", "b"}


def test_the_stand_in_walks_like_ours(wordnet: Taxonomy) -> None:
    dog: Any = Synset(wordnet, "n02084071")
    assert dog.max_depth() == wordnet.max_depth(dog.id) == 13
    assert len(dog.shortest_path(Synset(wordnet, "n02121620"))) == 4
