"""path, lch and wup equal NLTK's to the last bit of float64: 50,000 hashed pairs and all awkward ones."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from wordnet_splits.catalog import load_catalog
from wordnet_splits.similarity import similarity
from wordnet_splits.taxonomy import Taxonomy

CHUNKS, PAIRS = 8, 6_500
MEASURES = {"path": "path_similarity", "lch": "lch_similarity", "wup": "wup_similarity"}


def hashed(name: str, count: int, below: int) -> list[int]:
    """Return ``count`` numbers below ``below`` that depend on ``name`` alone."""
    stream = hashlib.shake_128(name.encode()).digest(8 * count)
    return (np.frombuffer(stream, "<u8") % below).tolist()


def assert_equals_nltk(reader: Any, taxonomy: Taxonomy, pairs: Iterable[tuple[str, str]]) -> int:
    checked = 0
    for a, b in pairs:
        ours = similarity.compare(a, b, taxonomy)
        x, y = synset(reader, a), synset(reader, b)
        for measure, method in MEASURES.items():
            theirs = getattr(x, method)(y)
            assert getattr(ours, measure) == theirs, (measure, a, b, theirs)
        checked += 1
    return checked


def synset(reader: Any, wnid: str) -> Any:
    return reader.synset_from_pos_and_offset("n", int(wnid[1:]))


@pytest.fixture(scope="session")
def nltk_warm(nltk_wordnet: Any) -> Any:
    """NLTK with every noun read: one pass is quicker than a seek for each."""
    for _ in nltk_wordnet.all_synsets("n"):
        pass
    return nltk_wordnet


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_hashed_pairs_of_nouns(chunk: int, nltk_warm: Any, wordnet: Taxonomy) -> None:
    nodes = hashed(f"pairs/{chunk}", 2 * PAIRS, len(wordnet))
    pairs = [(wordnet.wnid(x), wordnet.wnid(y)) for x, y in zip(nodes[::2], nodes[1::2], strict=True)]
    assert assert_equals_nltk(nltk_warm, wordnet, pairs) == PAIRS
    assert CHUNKS * PAIRS >= 50_000


def test_awkward_pairs(nltk_warm: Any, wordnet: Taxonomy) -> None:
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
    assert assert_equals_nltk(nltk_warm, wordnet, pairs) > 5_000


def test_every_noun_with_itself(nltk_wordnet: Any, wordnet: Taxonomy) -> None:
    """NLTK gives 1,843 nouns less than 1 with themselves: those with a shortcut past a deeper ancestor."""
    low = wordnet.graph.min_depths.tolist()
    shortcut = {x for i, x in enumerate(wordnet) if max(low[a] for a in wordnet.ancestor_nodes(x)) > low[i]}
    assert len(shortcut) == 1_843
    for x in shortcut:
        noun = synset(nltk_wordnet, x)
        assert noun.wup_similarity(noun) == similarity.compare(x, x, wordnet).wup < 1
    for x in (wordnet.wnid(i) for i in hashed("themselves", 3_000, len(wordnet))):
        assert (similarity.compare(x, x, wordnet).wup < 1) == (x in shortcut)


def test_matrices_equal_nltk_on_imagenet_classes(nltk_wordnet: Any, wordnet: Taxonomy) -> None:
    classes = [entry.wnids[0] for entry in load_catalog("imagenet1k").classes]
    rows, columns = classes[::20], classes[7::20]
    values = similarity.similarity_matrices(tuple(MEASURES), rows, columns, wordnet)
    for i, a in enumerate(rows):
        for j, b in enumerate(columns):
            for measure, method in MEASURES.items():
                assert values[measure][i, j] == getattr(synset(nltk_wordnet, a), method)(
                    synset(nltk_wordnet, b)
                )


def test_known_peculiarities_of_nltk(wordnet: Taxonomy) -> None:
    wnid = wordnet.from_name
    forth = similarity.compare(wnid("jackson.n.03"), wnid("performer.n.01"), wordnet).wup
    back = similarity.compare(wnid("performer.n.01"), wnid("jackson.n.03"), wordnet).wup
    assert (round(forth, 3), round(back, 3)) == (0.571, 0.857)
    assert similarity.compare(wnid("tench.n.01"), wnid("chihuahua.n.03"), wordnet).wup == 0.5625


def test_bounds_and_worked_examples(wordnet: Taxonomy) -> None:
    dog, cat = wordnet.from_name("dog.n.01"), wordnet.from_name("cat.n.01")
    pair = similarity.compare(dog, cat, wordnet)
    assert pair.wup_perl == 26 / 30
    assert wordnet.name(pair.lcs) == "carnivore.n.01"
    same = similarity.compare(dog, dog, wordnet)
    assert same.lch == -np.log(1 / 38)
    assert same.lch_perl == -np.log(1 / 40)


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
