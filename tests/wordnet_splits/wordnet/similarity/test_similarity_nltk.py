"""path, lch and wup equal NLTK's to the last bit of float64: 50,000 hashed pairs and all awkward ones."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tests.wordnet_splits.frozen_answers import digest_of
from wordnet_splits.datasets.catalog import load_catalog
from wordnet_splits.wordnet.similarity import pairs as similarity
from wordnet_splits.wordnet.taxonomy import Taxonomy

Pair = tuple[str, str]
CHUNKS, PAIRS = 8, 6_500
MEASURES = {"path": "path_similarity", "lch": "lch_similarity", "wup": "wup_similarity"}


def hashed(name: str, count: int, below: int) -> list[int]:
    """Return ``count`` numbers below ``below`` that depend on ``name`` alone."""
    stream = hashlib.shake_128(name.encode()).digest(8 * count)
    return (np.frombuffer(stream, "<u8") % below).tolist()


FROZEN = {
    "hashed": "4cf3cba32e94611b8b2164a63a7691767ba2bc3cde5435838f285b043195661c",
    "awkward": "314ce79a57eea163aaf02cf71c9a5ed7593f4d113b30e0e4c0a458702099cf17",
}
"""Digests of what NLTK answers."""


def our_answers(taxonomy: Taxonomy, pairs: Iterable[Pair]) -> Iterator[tuple[float, float, float]]:
    """Yield path, wup and lch of each pair; lch is rounded, its logarithm being the system's."""
    for a, b in pairs:
        pair = similarity.compare_synsets(a, b, taxonomy)
        yield pair.path, pair.wup, round(pair.lch, 12)


def assert_equals_nltk(reader: Any, taxonomy: Taxonomy, pairs: Iterable[Pair]) -> None:
    for a, b in pairs:
        ours = similarity.compare_synsets(a, b, taxonomy)
        x, y = synset(reader, a), synset(reader, b)
        for measure, method in MEASURES.items():
            theirs = getattr(x, method)(y)
            assert getattr(ours, measure) == theirs, (measure, a, b, theirs)


def synset(reader: Any, wnid: str) -> Any:
    return reader.synset_from_pos_and_offset("n", int(wnid[1:]))


@pytest.fixture(scope="module")
def nltk_warm(nltk_wordnet: Any) -> Any:
    """NLTK with every noun read: one pass is quicker than a seek for each."""
    for _ in nltk_wordnet.all_synsets("n"):
        pass
    return nltk_wordnet


def hashed_pairs(chunk: int, wordnet: Taxonomy) -> list[Pair]:
    nodes = hashed(f"pairs/{chunk}", 2 * PAIRS, len(wordnet))
    return [(wordnet.wnid(x), wordnet.wnid(y)) for x, y in zip(nodes[::2], nodes[1::2], strict=True)]


@pytest.fixture(scope="module")
def awkward_pairs(wordnet: Taxonomy) -> list[Pair]:
    """Nouns with several hypernyms, instances, nouns with themselves, their ancestors and the root."""
    counts = np.diff(wordnet.graph.parent_indptr)
    several = [wordnet.wnid(i) for i in np.flatnonzero(counts > 1).tolist()]
    instances = [
        wordnet.wnid(i)
        for i in np.unique(np.repeat(np.arange(len(wordnet)), counts)[wordnet.graph.instance]).tolist()
    ]
    assert len(several) > 1_400
    assert len(instances) > 7_000
    some = [wordnet.wnid(i) for i in hashed("some", 300, len(wordnet))]
    pairs = list(zip(several, reversed(several), strict=True))
    pairs += [(x, parent) for x in several[::4] for parent in wordnet.parents(x)]
    pairs += [(ancestor, x) for x in several[::20] for ancestor in wordnet.ancestors(x)]
    pairs += [(a, b) for x in several[::8] for a in wordnet.parents(x) for b in wordnet.parents(x)]
    pairs += [
        (instances[i], instances[j]) for i, j in zip(range(0, 7000, 20), range(6999, 0, -20), strict=True)
    ]
    pairs += (
        [(x, x) for x in several + some]
        + [(wordnet.root, x) for x in some]
        + [(x, wordnet.root) for x in some]
    )
    pairs += [(wordnet.root, wordnet.root), *pairwise(some)]
    assert len(pairs) > 5_000
    return pairs


def test_pairs_of_nouns_are_as_similar_as_frozen(awkward_pairs: list[Pair], wordnet: Taxonomy) -> None:
    pairs = [pair for chunk in range(CHUNKS) for pair in hashed_pairs(chunk, wordnet)]
    assert len(pairs) >= 50_000
    assert digest_of(our_answers(wordnet, pairs)) == FROZEN["hashed"]
    assert digest_of(our_answers(wordnet, awkward_pairs)) == FROZEN["awkward"]


@pytest.mark.oracle
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_hashed_pairs_of_nouns(chunk: int, nltk_warm: Any, wordnet: Taxonomy) -> None:
    assert_equals_nltk(nltk_warm, wordnet, hashed_pairs(chunk, wordnet))


@pytest.mark.oracle
def test_awkward_pairs(nltk_warm: Any, wordnet: Taxonomy, awkward_pairs: list[Pair]) -> None:
    assert_equals_nltk(nltk_warm, wordnet, awkward_pairs)


@pytest.mark.oracle
def test_every_noun_with_itself(nltk_wordnet: Any, wordnet: Taxonomy) -> None:
    """NLTK gives 1,843 nouns less than 1 with themselves: those with a shortcut past a deeper ancestor."""
    low = wordnet.graph.min_depths.tolist()
    shortcut = {x for i, x in enumerate(wordnet) if max(low[a] for a in wordnet.ancestor_nodes(x)) > low[i]}
    assert len(shortcut) == 1_843
    for x in shortcut:
        noun = synset(nltk_wordnet, x)
        assert noun.wup_similarity(noun) == similarity.compare_synsets(x, x, wordnet).wup < 1
    for x in (wordnet.wnid(i) for i in hashed("themselves", 3_000, len(wordnet))):
        assert (similarity.compare_synsets(x, x, wordnet).wup < 1) == (x in shortcut)


@pytest.mark.parametrize("measure", MEASURES)
def test_matrices_equal_pairs_on_imagenet_classes(measure: str, wordnet: Taxonomy) -> None:
    classes = [entry.wnids[0] for entry in load_catalog("imagenet1k").classes]
    rows, columns = classes[::60], classes[7::60]
    values = similarity.similarity_matrices(tuple(MEASURES), rows, columns, wordnet)[measure]
    pairs = [[getattr(similarity.compare_synsets(a, b, wordnet), measure) for b in columns] for a in rows]
    np.testing.assert_array_equal(values, pairs)


@pytest.mark.oracle
@pytest.mark.parametrize("measure", MEASURES)
def test_matrices_equal_nltk_on_imagenet_classes(measure: str, nltk_wordnet: Any, wordnet: Taxonomy) -> None:
    classes = [entry.wnids[0] for entry in load_catalog("imagenet1k").classes]
    rows, columns = classes[::60], classes[7::60]
    values = similarity.similarity_matrices(tuple(MEASURES), rows, columns, wordnet)[measure]
    for i, a in enumerate(rows):
        for j, b in enumerate(columns):
            theirs = getattr(synset(nltk_wordnet, a), MEASURES[measure])(synset(nltk_wordnet, b))
            assert values[i, j] == theirs


def test_known_peculiarities_of_nltk(wordnet: Taxonomy) -> None:
    wnid = wordnet.from_name
    forth = similarity.compare_synsets(wnid("jackson.n.03"), wnid("performer.n.01"), wordnet).wup
    back = similarity.compare_synsets(wnid("performer.n.01"), wnid("jackson.n.03"), wordnet).wup
    assert (round(forth, 3), round(back, 3)) == (0.571, 0.857)
    assert similarity.compare_synsets(wnid("tench.n.01"), wnid("chihuahua.n.03"), wordnet).wup == 0.5625


def test_bounds_and_worked_examples(wordnet: Taxonomy) -> None:
    dog, cat = wordnet.from_name("dog.n.01"), wordnet.from_name("cat.n.01")
    pair = similarity.compare_synsets(dog, cat, wordnet)
    assert pair.wup_perl == 26 / 30
    assert wordnet.name(pair.lcs) == "carnivore.n.01"
    same = similarity.compare_synsets(dog, dog, wordnet)
    assert same.lch == -np.log(1 / 38)
    assert same.lch_perl == -np.log(1 / 40)


@pytest.mark.oracle
def test_distances_between_imagenet_classes_leave_the_chain_to_the_subsumer(wordnet: Taxonomy) -> None:
    """In 31,906 of 1,000,000 ordered pairs NLTK's wup by D(x, s) differs from one by d(x, s)."""
    classes = [entry.wnids[0] for entry in load_catalog("imagenet1k").classes]
    above = [wordnet.ancestor_nodes(x) for x in classes]
    nodes = wordnet.indices(classes)
    ours = similarity.similarity_matrix("wup", classes, taxonomy=wordnet)
    names = {n: wordnet.name(wordnet.wnid(n)) for up in above for n in up}
    low, high = wordnet.graph.min_depths.tolist(), wordnet.graph.max_depths.tolist()
    differ = 0
    for i, up_x in enumerate(above):
        for j, up_y in enumerate(above):
            common = up_x.keys() & up_y.keys()
            deepest = max(low[a] for a in common)
            candidates = [a for a in common if low[a] == deepest]
            s = nodes[i] if nodes[i] in candidates else min(candidates, key=names.__getitem__)
            k = high[s] + 1
            differ += 2.0 * k / (up_x[s] + up_y[s] + 2 * k) != ours[i, j]
    assert differ == 31_906
