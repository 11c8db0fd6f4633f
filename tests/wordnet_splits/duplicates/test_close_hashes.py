"""The search for close hashes finds exactly the pairs that comparing every two finds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from wordnet_splits.base.errors import SplitsError
from wordnet_splits.duplicates import close_hashes as ch


def every_pair(a: np.ndarray, b: np.ndarray, threshold: int) -> set[tuple[int, int, int]]:
    """The close pairs, by bits that are unpacked and subtracted."""
    bits_a, bits_b = (np.unpackbits(hashes, axis=1).astype(int) for hashes in (a, b))
    distance = bits_a @ (1 - bits_b).T + (1 - bits_a) @ bits_b.T
    return {(i, j, int(distance[i, j])) for i, j in np.argwhere(distance <= threshold).tolist()}


def found(a: np.ndarray, b: np.ndarray, threshold: int, **options: int) -> set[tuple[int, int, int]]:
    pairs = [
        pair
        for columns in ch.close_pairs(a, b, threshold, **options)
        for pair in zip(*(column.tolist() for column in columns), strict=True)
    ]
    assert len(pairs) == len(set(pairs)), "a pair was reported twice"
    return set(pairs)


@st.composite
def sides(draw):
    """Two sides of hashes: independent ones, clusters about some centres, and copies of one hash."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    centres = rng.integers(0, 256, (draw(st.integers(1, 6)), 16), dtype=np.uint8)

    def side() -> np.ndarray:
        count = draw(st.integers(0, 60))
        clustered = np.unpackbits(centres[rng.integers(0, len(centres), count)], axis=1)
        clustered ^= rng.random(clustered.shape) < draw(st.sampled_from([0.0, 0.03, 0.1]))
        alone = rng.integers(0, 256, (draw(st.integers(0, 20)), 16), dtype=np.uint8)
        equal = np.repeat(centres[:1], draw(st.sampled_from([0, 1, 30])), axis=0)
        return np.concatenate([np.packbits(clustered, axis=1), alone, equal])

    return side(), side()


@pytest.mark.parametrize("few", [0, 10, ch.FEW_PAIRS])
@pytest.mark.parametrize("dense", [16, ch.DENSE_PAIRS])
@settings(max_examples=40, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(sides=sides(), threshold=st.sampled_from([0, 1, 3, 8, 13, 24, 30, 128]))
def test_the_pairs_are_those_of_all_comparisons(dense, few, sides, threshold):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ch, "DENSE_PAIRS", dense)
        patch.setattr(ch, "FEW_PAIRS", few)
        patch.setattr(ch, "BATCH_PAIRS", 50)
        a, b = sides
        assert found(a, b, threshold) == every_pair(a, b, threshold)


def test_a_block_that_all_hashes_share_is_cut_again(monkeypatch):
    rng = np.random.default_rng(1)
    a, b = (rng.integers(0, 256, (400, 16), dtype=np.uint8) for _ in range(2))
    a[:, :4] = b[:, :4] = 7  # the first two blocks are equal everywhere
    b[:5] = a[:5]
    b[0, 15] ^= 1
    monkeypatch.setattr(ch, "DENSE_PAIRS", 1000)
    monkeypatch.setattr(ch, "FEW_PAIRS", 0)
    compared = []
    compare_all = ch._compare_all
    monkeypatch.setattr(
        ch, "_compare_all", lambda a, b, *rest: compared.append(len(a) * len(b)) or compare_all(a, b, *rest)
    )
    assert found(a, b, 8) == every_pair(a, b, 8)
    assert max(compared) <= 1000
    assert sum(compared) < a.shape[0] * b.shape[0] / 2


def test_tiles_cover_both_sides(monkeypatch):
    rng = np.random.default_rng(2)
    a, b = (rng.integers(0, 256, (n, 16), dtype=np.uint8) for n in (65, 33))
    b[32] = a[64]
    for tile in (7, 64, 100):
        monkeypatch.setattr(ch, "TILE", tile)
        for threshold in (20, 60):
            assert found(a, b, threshold) == every_pair(a, b, threshold)


def test_numpy_before_2_counts_bits_alike(monkeypatch):
    words = np.random.default_rng(3).integers(0, 2**63, (50, 2)).astype(np.uint64)
    counts = ch._count_bits(words)
    monkeypatch.delattr(np, "bitwise_count", raising=False)
    np.testing.assert_array_equal(ch._count_bits(words), counts)
    assert counts.tolist() == [[int(word).bit_count() for word in row] for row in words]


def test_too_many_pairs_are_refused_before_they_are_written_out():
    flat = np.zeros((3_000_000, 16), np.uint8)  # nine million million pairs
    for threshold in (8, 0):  # no smaller threshold parts equal hashes
        with pytest.raises(SplitsError) as caught:
            found(flat, flat, threshold, most=1000)
        assert caught.value.hint == ch.too_many(1000, 0).hint
    near = np.stack([flat[0], flat[0]])
    near[1, 0] = 1
    with pytest.raises(SplitsError) as caught:
        found(near, near, 8, most=3)
    assert caught.value.hint == ch.too_many(3, 8).hint
    assert ch.too_many(3, 8).hint != ch.too_many(3, 0).hint
    assert len(found(flat[:10], flat[:100], 8, most=1000)) == 1000


@pytest.mark.parametrize("dense", [16, ch.DENSE_PAIRS])
def test_the_shares_of_the_work_add_up_to_1(monkeypatch, dense):
    monkeypatch.setattr(ch, "DENSE_PAIRS", dense)
    a, b = (np.random.default_rng(n).integers(0, 256, (n, 16), dtype=np.uint8) for n in (70, 30))
    shares: list[float] = []
    list(ch.close_pairs(a, b, 8, advance=shares.append))
    assert sum(shares) == pytest.approx(1)
