"""The exact search for pairs of close hashes, by multi-index hashing.

The 128 bits are cut into threshold + 1 blocks. Two hashes within the threshold differ in at most threshold
blocks, so that they agree in at least one block. For each block both sides are sorted by its value, and only
hashes of equal values are compared. If many hashes share a value, they are cut again by the remaining bits. A
pair is reported for its first equal block only.

After Norouzi, Punjani and Fleet, Fast Exact Search in Hamming Space with Multi-Index Hashing, 2014.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from wordnet_splits.base.errors import SplitsError
from wordnet_splits.duplicates.perceptual_hash import BITS, Hashes

MAX_PAIRS = 200_000
DENSE_PAIRS = 1 << 26
"""Largest number of pairs that are compared one by one rather than cut again."""
FEW_PAIRS = 1 << 12
"""Largest number of pairs with equal value that are compared together with pairs of other values."""
BATCH_PAIRS = 1 << 20
TILE = 1 << 17
"""Pairs that are compared at once; their differences stay in a core's cache."""
CUTS = 2
"""Number of cuts that are always made; further ones only where they halve the pairs to compare."""
LONGEST_BLOCK = 16
SHORTEST_BLOCK = 8
"""Shortest block, in bits, that is worth a sort: fewer values separate too few hashes."""
ONE_WORD = 24
"""Largest threshold at which 64 bits rule out most pairs."""

Rows = NDArray[np.intp]
Words = NDArray[np.uint64]
Pairs = tuple[Rows, Rows, NDArray[np.uint8]]
"""Rows of the first side, rows of the second side, and distances in bits."""


def close_pairs(
    a: Hashes,
    b: Hashes,
    threshold: int,
    *,
    most: int = MAX_PAIRS,
    advance: Callable[[float], object] = lambda share: None,
) -> Iterator[Pairs]:
    """Yield all pairs of rows whose hashes are within ``threshold`` bits, each once, in any order.

    Parameters
    ----------
    a, b : (n, 16) and (m, 16) uint8, memory-mapped or not. The search takes about 40 bytes a row beyond them.
    threshold : greatest distance in bits, 0 to 128. Up to about 10, blocks are long enough to save work;
        beyond, every pair is compared.
    most : greatest number of pairs.
    advance : called with the share of the work just done; the shares add up to 1.
    """
    left, right = _Distinct(a), _Distinct(b)
    if left.pairs_equal_to(right) > most:
        raise too_many(most, 0)
    count = 0
    for rows_a, rows_b, distance in _search(left.words, right.words, tuple(range(BITS)), threshold, advance):
        sizes = left.counts[rows_a] * right.counts[rows_b]
        count += int(sizes.sum())
        if count > most:
            raise too_many(most, threshold)
        group, in_a, in_b = _expand(left.counts[rows_a], right.counts[rows_b])
        yield (
            left.order[left.starts[rows_a][group] + in_a],
            right.order[right.starts[rows_b][group] + in_b],
            distance[group],
        )


def too_many(most: int, threshold: int) -> SplitsError:
    """Return the error for more than ``most`` pairs."""
    if threshold == 0:
        hint = "remove all but one of the images that look the same, such as blank images"
        return SplitsError(f"more than {most:,} pairs have equal hashes", hint=hint)
    hint = f"give a smaller --threshold, such as {threshold // 2}"
    return SplitsError(f"more than {most:,} pairs are at most {threshold} bits apart", hint=hint)


class _Distinct:
    """The distinct hashes of a side in sorted order, and the rows of each hash."""

    def __init__(self, hashes: Hashes) -> None:
        words = np.ascontiguousarray(hashes).view(np.uint64)
        self.order: Rows = np.lexsort((words[:, 1], words[:, 0]))
        words = words[self.order]
        changes = np.flatnonzero((words[1:] != words[:-1]).any(axis=1)) + 1
        self.starts: Rows = np.concatenate([np.zeros(min(len(words), 1), np.intp), changes])
        self.counts: Rows = np.diff(self.starts, append=len(words))
        self.words: Words = words if len(self.starts) == len(words) else words[self.starts]

    def pairs_equal_to(self, other: _Distinct) -> int:
        """Return the number of pairs of equal hashes."""
        own, others = (side.words.view([("", np.uint64)] * 2)[:, 0] for side in (self, other))
        _, at, at_other = np.intersect1d(own, others, assume_unique=True, return_indices=True)
        return int(self.counts[at] @ other.counts[at_other])


def _search(
    a: Words,
    b: Words,
    bits: Sequence[int],
    threshold: int,
    advance: Callable[[float], object] = lambda share: None,
    *,
    depth: int = 0,
) -> Iterator[Pairs]:
    """Yield the close pairs of hashes that may differ in ``bits`` only, after ``depth`` cuts."""
    if len(a) * len(b) <= DENSE_PAIRS or len(bits) < SHORTEST_BLOCK * (threshold + 1):
        yield from _compare_all(a, b, bits, threshold, advance)
        return
    varying = _varying_bits(a, b)
    bits = [bit for bit in bits if bit in varying]
    blocks = [block[:LONGEST_BLOCK].tolist() for block in np.array_split(np.array(bits, int), threshold + 1)]
    sizes = [
        [np.bincount(_values(side, block), minlength=1 << len(block)) for side in (a, b)] for block in blocks
    ]
    work = sum(int(size_a @ size_b) for size_a, size_b in sizes)
    if not all(blocks) or (depth >= CUTS and 2 * work > len(a) * len(b)):
        yield from _compare_all(a, b, bits, threshold, advance)
        return
    earlier: list[Words] = []
    for block, (size_a, size_b) in zip(blocks, sizes, strict=True):
        order_a, order_b = (np.argsort(_values(side, block), kind="stable") for side in (a, b))
        ends_a, ends_b = np.cumsum(size_a), np.cumsum(size_b)
        shared = 0
        rest = tuple(bit for bit in bits if bit not in block)
        pairs = size_a * size_b
        few = np.flatnonzero((pairs > 0) & (pairs <= FEW_PAIRS))
        batches = np.split(few, np.flatnonzero(np.diff(np.cumsum(pairs[few]) // BATCH_PAIRS)) + 1)
        for values in batches if len(few) else ():
            group, in_a, in_b = _expand(size_a[values], size_b[values])
            at_a = order_a[(ends_a - size_a)[values][group] + in_a]
            at_b = order_b[(ends_b - size_b)[values][group] + in_b]
            yield from _close(a, b, at_a, at_b, threshold, earlier)
            advance(int(size_a[values].sum()) / len(a) / len(blocks))
            shared += int(size_a[values].sum())
        for value in np.flatnonzero(pairs > FEW_PAIRS).tolist():
            rows_a = order_a[ends_a[value] - size_a[value] : ends_a[value]]
            rows_b = order_b[ends_b[value] - size_b[value] : ends_b[value]]
            for in_a, in_b, distance in _search(a[rows_a], b[rows_b], rest, threshold, depth=depth + 1):
                at_a, at_b = rows_a[in_a], rows_b[in_b]
                first = _differ_in_each(a[at_a] ^ b[at_b], earlier)
                if first.any():
                    yield at_a[first], at_b[first], distance[first]
            advance(len(rows_a) / len(a) / len(blocks))
            shared += len(rows_a)
        advance((len(a) - shared) / len(a) / len(blocks))
        earlier.append(_mask(block))


def _expand(sizes_a: Rows, sizes_b: Rows) -> tuple[Rows, Rows, Rows]:
    """Return group, position on the first side and on the second of every pair of members of each group."""
    sizes = sizes_a * sizes_b
    group = np.repeat(np.arange(len(sizes)), sizes)
    place = np.arange(len(group)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    in_a, in_b = np.divmod(place, sizes_b[group])
    return group, in_a, in_b


def _close(
    a: Words, b: Words, rows_a: Rows, rows_b: Rows, threshold: int, earlier: Sequence[Words] = ()
) -> Iterator[Pairs]:
    """Yield the pairs that are close and do not agree in an ``earlier`` block."""
    differences = a[rows_a] ^ b[rows_b]
    distance = _count_bits(differences).sum(axis=1, dtype=np.uint8)
    close = np.flatnonzero(distance <= threshold)
    close = close[_differ_in_each(differences[close], earlier)]
    if len(close):
        yield rows_a[close], rows_b[close], distance[close]


def _varying_bits(a: Words, b: Words) -> set[int]:
    """Return the bits that differ between any hashes of both sides."""
    differing = np.bitwise_or.reduce(a ^ a[0], axis=0) | np.bitwise_or.reduce(b ^ a[0], axis=0)
    return set(np.flatnonzero(np.unpackbits(differing.view(np.uint8))).tolist())


def _differ_in_each(differences: Words, masks: Sequence[Words]) -> NDArray[np.bool_]:
    differing = np.ones(len(differences), bool)
    for mask in masks:
        differing &= ((differences & mask) != 0).any(axis=1)
    return differing


def _mask(bits: Sequence[int]) -> Words:
    """Return the words whose only set bits are ``bits``."""
    flags = np.zeros(BITS, np.uint8)
    flags[list(bits)] = 1
    return np.packbits(flags).view(np.uint64)


def _values(words: Words, bits: Sequence[int]) -> NDArray[np.uint16]:
    """Return the value of a block in each hash, at most 16 bits: NumPy sorts them fastest."""
    rows = words.view(np.uint8).reshape(-1, BITS // 8)
    values = np.zeros(len(rows), np.uint16)
    for bit in bits:
        values <<= 1
        values |= (rows[:, bit // 8] >> (7 - bit % 8)) & 1
    return values


def _compare_all(
    a: Words, b: Words, bits: Sequence[int], threshold: int, advance: Callable[[float], object]
) -> Iterator[Pairs]:
    """Yield the close pairs of every two hashes: first by the word that has more of ``bits``."""
    first = 0 if sum(bit < BITS // 2 for bit in bits) * 2 >= len(bits) else 1
    columns = max(min(len(b), TILE), 1)
    rows = max(TILE // columns, 1)
    (word_a, word_b), (other_a, other_b) = (
        [np.ascontiguousarray(words[:, word]) for words in (a, b)] for word in (first, 1 - first)
    )
    for top in range(0, len(a), rows):
        for left in range(0, len(b), columns):
            difference = word_a[top : top + rows, None] ^ word_b[None, left : left + columns]
            distance = _count_bits(difference)
            if threshold > ONE_WORD:
                distance += _count_bits(
                    other_a[top : top + rows, None] ^ other_b[None, left : left + columns]
                )
            flat = np.flatnonzero(distance <= threshold)
            if len(flat):
                in_a, in_b = np.divmod(flat, distance.shape[1])
                in_a, in_b = in_a + top, in_b + left
                yield from _close(a, b, in_a, in_b, threshold)
        advance(min(rows, len(a) - top) / len(a))


@cache
def _counts() -> NDArray[np.uint8]:
    return np.array([number.bit_count() for number in range(1 << 16)], np.uint8)


def _count_bits(words: Words) -> NDArray[np.uint8]:
    """Return the number of set bits of each word; before NumPy 2.0 by a table, which is slower."""
    if hasattr(np, "bitwise_count"):
        counts: NDArray[np.uint8] = np.bitwise_count(words)
        return counts
    quarters = _counts()[np.ascontiguousarray(words).view(np.uint16)]
    summed: NDArray[np.uint8] = quarters.reshape(*words.shape, 4).sum(axis=-1, dtype=np.uint8)
    return summed
