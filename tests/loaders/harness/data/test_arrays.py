"""Array views behave as the concatenation of their parts, whatever the parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loaders.harness.data.arrays import Arrays, ArrayView
from tests.raising import raises
from wordnet_splits.base.errors import DataError, UnknownNameError

lengths = st.lists(st.integers(0, 7), min_size=1, max_size=5)


def cut(parts: list[int]) -> tuple[np.ndarray[Any, Any], ArrayView]:
    whole = np.arange(3 * sum(parts), dtype=np.float32).reshape(-1, 3)
    return whole, ArrayView(np.split(whole, np.cumsum(parts)[:-1]))


@given(lengths, st.integers(-40, 40), st.integers(-40, 40), st.sampled_from([1, 2, -1]))
def test_a_slice_is_the_slice_of_the_whole(parts: list[int], a: int, b: int, step: int) -> None:
    whole, view = cut(parts)
    assert view.shape == whole.shape
    assert len(view) == len(whole)
    np.testing.assert_array_equal(view[a:b:step], whole[a:b:step])
    np.testing.assert_array_equal(view.rows(a, b)[:], whole[a:b])
    np.testing.assert_array_equal(np.asarray(view), whole)
    np.testing.assert_array_equal(view[a:b, 1], whole[a:b, 1])


@given(lengths, st.integers(1, 9))
def test_chunks_join_to_the_whole_and_none_is_longer_than_asked(parts: list[int], rows: int) -> None:
    whole, view = cut(parts)
    chunks = list(view.chunks(rows))
    assert [len(c) for c in chunks[:-1]] == [rows] * (len(chunks) - 1)
    np.testing.assert_array_equal(np.concatenate([whole[:0], *chunks]), whole)
    groups = list(Arrays.of(x=view, y=np.arange(len(whole))).chunks(rows))
    assert [g.n for g in groups] == [len(c) for c in chunks]
    for group, chunk in zip(groups, chunks, strict=True):
        np.testing.assert_array_equal(group["x"][:], chunk)


@given(lengths.filter(lambda p: sum(p) > 0), st.data())
def test_rows_are_gathered_in_the_order_asked(parts: list[int], data: st.DataObject) -> None:
    whole, view = cut(parts)
    n = len(whole)
    index = np.array(data.draw(st.lists(st.integers(-n, n - 1), max_size=9)), dtype=np.int64)
    np.testing.assert_array_equal(view[index], whole[index])
    mask = np.zeros(n, dtype=bool)
    mask[index] = True
    np.testing.assert_array_equal(view[mask], whole[mask])
    np.testing.assert_array_equal(view[n - 1], whole[n - 1])
    assert view[-1, 2] == whole[-1, 2]


def test_columns_are_chosen_without_reading_and_compose() -> None:
    whole, view = cut([2, 0, 3])
    chosen = view.columns([2, 0])
    assert chosen.shape == (5, 2)
    np.testing.assert_array_equal(chosen[1:4], whole[1:4][:, [2, 0]])
    np.testing.assert_array_equal(chosen.columns([1])[:], whole[:, [0]])
    np.testing.assert_array_equal(chosen.rows(1, 3)[:], whole[1:3][:, [2, 0]])
    np.testing.assert_array_equal(ArrayView.concat([chosen, chosen])[5:], whole[:, [2, 0]])
    with pytest.raises(DataError):
        ArrayView.concat([chosen, view])
    with raises(DataError, naming="3"):
        view.columns([3])
    with raises(DataError, naming=("-1", "3")):
        view.columns([2, -1, 0])
    with pytest.raises(IndexError, match=f"row {-len(view) - 1} of an array"):
        view[[1, -len(view) - 1]]


def test_a_slice_inside_a_part_copies_nothing() -> None:
    _, view = cut([4, 4])
    assert view[1:3].base is not None
    assert np.shares_memory(view[1:3], view[0:4])


def test_arrays_name_what_is_missing_and_refuse_other_lengths() -> None:
    data = Arrays.of(features=np.zeros((4, 2)), logits=np.zeros((4, 3)))
    assert data.get("labels") is None
    assert sorted(data) == ["features", "logits"]
    with raises(UnknownNameError, near="logits"):
        data["logit"]
    with raises(DataError, naming=("features", "logits")):
        Arrays.of(features=np.zeros((4, 2)), logits=np.zeros((3, 3)))
    with pytest.raises(DataError):
        data["logits"][np.array([True, False])]
    with pytest.raises(DataError):
        ArrayView([np.zeros((1, 2)), np.zeros((1, 3))])


def test_groups_join_to_the_arrays_they_share() -> None:
    a = Arrays.of(logits=np.zeros((2, 3)), labels=np.arange(2))
    b = Arrays.of(logits=np.ones((1, 3)))
    joined = Arrays.concat([a, b])
    assert list(joined) == ["logits"]
    assert joined.n == 3
    assert joined["logits"][2, 0] == 1
