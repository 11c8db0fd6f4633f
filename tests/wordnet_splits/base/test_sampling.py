"""Draws: the contract's key, order, shares, and stability."""

from __future__ import annotations

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from tests.raising import raises
from wordnet_splits.base import digests
from wordnet_splits.base.errors import RecipeError
from wordnet_splits.benchmark.construct.population import FirstImages

IDS = st.lists(st.text(min_size=1, max_size=12), unique=True, max_size=40)


def test_key_is_the_contract():
    expected = hashlib.blake2b(b"unknown-cifar\x1f0\x1fcifar100\x1fapple\x1ftrain/apple/x", digest_size=16)
    assert digests.sampling_key("unknown-cifar", 0, "cifar100", "apple", "train/apple/x") == expected.digest()


def test_key_of_a_class_has_an_empty_image_id():
    assert digests.sampling_key("d", 1, "s", "c") == digests.sampling_key("d", 1, "s", "c", "")


@given(IDS, st.randoms())
def test_order_does_not_depend_on_the_order_given(ids, random):
    shuffled = list(ids)
    random.shuffle(shuffled)
    assert digests.order_images("d", 0, "s", "c", ids) == digests.order_images("d", 0, "s", "c", shuffled)


@given(IDS)
def test_order_is_by_key_then_id(ids):
    expected = sorted(ids, key=lambda i: (digests.sampling_key("d", 3, "s", "c", i), i))
    assert digests.order_images("d", 3, "s", "c", ids) == expected


@given(IDS, st.integers(0, 5), st.integers(1, 40))
def test_of_ids_that_stream_past_the_first_are_kept(ids, most, step):
    ids = sorted({*ids, *map(str, range(150))})
    first = FirstImages("d", 0, "s", "c", most)
    for n in range(0, len(ids), step):
        first.add(ids[n : n + step])
    assert first.ids() == digests.order_images("d", 0, "s", "c", ids)[:most]


@given(IDS, st.text(min_size=1, max_size=12))
def test_one_more_image_moves_no_other(ids, extra):
    with_extra = digests.order_images("d", 0, "s", "c", {*ids, extra})
    assert [i for i in with_extra if i != extra or extra in ids] == digests.order_images(
        "d", 0, "s", "c", ids
    )


@given(st.integers(0, 10_000), IDS.filter(bool))
def test_shares_add_up_and_differ_by_at_most_one(total, classes):
    shares = digests.share_total(total, "d", 0, "s", classes)
    assert sum(shares.values()) == total
    assert max(shares.values()) - min(shares.values()) <= 1


def test_the_rest_of_a_total_goes_to_the_smallest_class_keys():
    classes = [f"c{n}" for n in range(158)]
    shares = digests.share_total(2000, "unknown-cifar", 0, "imagenet1k", classes)
    more = {c for c, n in shares.items() if n == 13}
    assert len(more) == 104  # PAPERS: 12 a class and a 13th for 104
    assert more == set(digests.order_classes("unknown-cifar", 0, "imagenet1k", classes)[:104])


def test_too_many_classes_asked_for():
    with raises(RecipeError, where="s", naming=("3", "2")):
        digests.draw_classes("d", 0, "s", ["a", "b"], 3)
