"""Distances and common ancestors of many pairs at once, on blocks of small integers.

The distance D(x, y), the fewest edges from x up to a common ancestor and down to y, satisfies

    U[v] = min(d(y, v), min over the parents p of v of U[p] + 1),        U[x] = D(x, y)

with d(y, v) infinite where v is not above y. So one walk over the ancestors of all x, parents first,
settles a whole block of y at once. Common ancestors follow the same walk, the best-ranked winning:

    R[v] = max(rank(v) if v is above y, max over the parents p of v of R[p])
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from wordnet_splits.taxonomy.graph import UNREACHED, Graph, Ints, gather

Small = npt.NDArray[np.signedinteger]
"""int8 where the taxonomy is shallow enough, else int16."""

Places = npt.NDArray[np.int64]
"""Rows of U; of the type that numpy indexes with, so that it need not convert."""
Floats = npt.NDArray[np.float64]

ROWS = 2048
"""Rows worked on together."""
TILE_BYTES = 1 << 19
"""Size of U for one tile, of the order of a core's second-level cache."""


@dataclass(frozen=True, eq=False)
class Above:
    """The ancestors of a list of nodes: for each column j of the list the nodes at or above it.

    ``indptr`` (columns + 1,); ``nodes`` int32 and ``edges`` int8/16, the fewest up to the node, by column.
    """

    indptr: npt.NDArray[np.int64]
    nodes: Ints
    edges: Small

    @property
    def columns(self) -> int:
        """How many nodes the list has."""
        return len(self.indptr) - 1

    def part(self, columns: slice) -> Above:
        """Return the ancestors of some neighbouring columns."""
        indptr = self.indptr[columns.start : columns.stop + 1]
        inside = slice(indptr[0], indptr[-1])
        return Above(indptr - indptr[0], self.nodes[inside], self.edges[inside])


def ancestors_of(graph: Graph, nodes: Ints) -> Above:
    """Return the ancestors of each of ``nodes``, themselves included."""
    dtype, _ = distance_type(graph)
    n = len(graph)
    wave = np.arange(len(nodes), dtype=np.int64) * n + nodes  # (column, node) as one number
    waves = []
    while len(wave):
        waves.append(wave)
        column, node = wave // n, (wave % n).astype(np.int32)
        counts = graph.parent_indptr[node + 1] - graph.parent_indptr[node]
        above = gather(graph.parent_indptr, graph.parent_indices, node)
        wave = np.unique(np.repeat(column, counts) * n + above)
    pairs = np.concatenate(waves) if waves else np.zeros(0, np.int64)
    edges = np.repeat(np.arange(len(waves)), [len(w) for w in waves]).astype(dtype)
    pairs, first = np.unique(pairs, return_index=True)  # the first time is the shortest way up
    indptr = np.searchsorted(pairs, np.arange(len(nodes) + 1, dtype=np.int64) * n)
    return Above(indptr, (pairs % n).astype(np.int32), edges[first])


def distance_type(graph: Graph) -> tuple[type[np.signedinteger], int]:
    """Return the integer type for distances and a number above all of them that survives the additions."""
    height = height_of(graph)
    far = 2 * height + 1
    return (np.int8, far) if far + height <= np.iinfo(np.int8).max else (np.int16, far)


def height_of(graph: Graph) -> int:
    """Return H, the edges of the longest chain from a node to a root (19 in WordNet 3.0)."""
    settled = (
        graph.max_depths if graph.unresolved is None else graph.max_depths[graph.max_depths != UNREACHED]
    )
    return int(settled.max(initial=0))


class Block:
    """The walk for one list of row nodes: everything at or above them, parents first.

    Parameters
    ----------
    graph : the taxonomy.
    rows : (r,) nodes.
    own : the ancestors of the rows.
    """

    def __init__(self, graph: Graph, rows: Ints, own: Above) -> None:
        self.graph = graph
        self.own = own
        self.dtype, self.far = distance_type(graph)
        self.nodes = _closure(graph, rows)
        self.place = np.full(len(graph), -1, np.int32)  # node -> its row in U
        self.place[self.nodes] = np.arange(len(self.nodes), dtype=np.int32)
        self.rows = self.place[rows]
        self.steps = list(self._steps())

    def _steps(self) -> Iterator[tuple[int, int, Ints]]:
        """Yield runs [lo, hi) of U with the row of one parent of each; a parent is settled before its run."""
        depths = self.graph.max_depths[self.nodes].astype(np.int64)
        first = self.graph.parent_indptr[self.nodes]
        counts = self.graph.parent_indptr[self.nodes + 1] - first
        starts = np.flatnonzero(np.diff(depths, prepend=-1))
        for lo, hi in itertools.pairwise([*starts.tolist(), len(depths)]):
            for slot in range(int(counts[lo])):  # nodes of a depth are sorted by their number of parents
                end = lo + int(np.searchsorted(-counts[lo:hi], -slot, side="left"))
                yield lo, end, self.place[self.graph.parent_indices[first[lo:end] + slot]]

    def tile_width(self) -> int:
        """Return how many columns to take at once."""
        return max(32, TILE_BYTES // max(1, len(self.nodes)) // 32 * 32)

    def tiles(self, above: Above) -> Iterator[Tile]:
        """Yield the columns of ``above`` in tiles, from left to right."""
        width = self.tile_width()
        for start in range(0, above.columns, width):
            yield Tile(self, above, slice(start, min(start + width, above.columns)))

    def walk(self, block: npt.NDArray[np.signedinteger], step: int, best: np.ufunc) -> None:
        """Settle ``block`` (nodes, columns) in place: v = best(v, parent + step), parents first."""
        scratch = np.empty(
            (max((hi - lo for lo, hi, _ in self.steps), default=0), block.shape[1]), block.dtype
        )
        for lo, hi, parents in self.steps:
            theirs = scratch[: hi - lo]
            np.take(block, parents, axis=0, out=theirs, mode="clip")  # "raise" would buffer the output
            if step:
                theirs += block.dtype.type(step)
            best(block[lo:hi], theirs, out=block[lo:hi])

    @cached_property
    def distances_up(self) -> Small:
        """(nodes, rows): D between every node of the walk and every row."""
        return Tile(self, self.own, slice(0, self.own.columns)).all_distances

    @cached_property
    def rows_at(self) -> tuple[Ints, Ints]:
        """Rows of the result by row of U, in CSR form."""
        indptr = np.zeros(len(self.nodes) + 1, np.int32)
        np.cumsum(np.bincount(self.rows, minlength=len(self.nodes)), out=indptr[1:])
        return indptr, np.argsort(self.rows, kind="stable").astype(np.int32)


class Tile:
    """The pairs of the rows of a block with some columns."""

    def __init__(self, block: Block, above: Above, columns: slice) -> None:
        self.block = block
        self.columns = columns
        above = above.part(columns)
        counts = np.diff(above.indptr)
        place = block.place[above.nodes]
        shared = place >= 0  # only what is also above a row can be a common ancestor
        self._places = place[shared]
        self._columns = np.repeat(np.arange(len(counts), dtype=np.int32), counts)[shared]
        self._edges = above.edges[shared]
        self.shape = (len(block.nodes), len(counts))

    @cached_property
    def all_distances(self) -> Small:
        """(nodes, columns): D between every node of the walk and every column."""
        distances = np.full(self.shape, self.block.far, self.block.dtype)
        distances[self._places, self._columns] = self._edges
        self.block.walk(distances, 1, np.minimum)
        return distances

    @property
    def distance(self) -> Small:
        """(rows, columns): D; ``block.far`` and more where there is no common ancestor."""
        return np.take(self.all_distances, self.block.rows, axis=0)

    def subsumers(self, best_last: Places) -> Places:
        """Return (rows, columns) rows of U: the common ancestor that comes last in ``best_last``.

        ``best_last`` holds every row of U once, from the worst subsumer to the best. Where there is no
        common ancestor the result is meaningless.
        """
        dtype = np.int16 if len(best_last) <= np.iinfo(np.int16).max else np.int32
        rank = np.empty(len(best_last), dtype)
        rank[best_last] = np.arange(len(best_last), dtype=dtype)
        ranks = np.full(self.shape, -1, dtype)
        ranks[self._places, self._columns] = rank[self._places]
        self.block.walk(ranks, 0, np.maximum)
        return np.take(best_last, np.take(ranks, self.block.rows, axis=0), mode="clip")

    def prefer_rows(self, subsumers: Places, score: npt.NDArray[np.uint8]) -> None:
        """Put the row itself in place of an equally scored subsumer, where it is above the column."""
        indptr, rows = self.block.rows_at
        counts = indptr[self._places + 1] - indptr[self._places]
        row, column = gather(indptr, rows, self._places), np.repeat(self._columns, counts)
        itself = np.repeat(self._places, counts)
        equal = score[itself] == score[subsumers[row, column]]
        subsumers[row[equal], column[equal]] = itself[equal]

    def look_up(self, subsumers: Places, depths: npt.NDArray[np.int64], table: Floats) -> Floats:
        """Return ``table[depths[s], D(x, s) + D(y, s)]`` for the given s of each pair.

        Parameters
        ----------
        subsumers : (rows, columns) rows of U.
        depths : (nodes,) by row of U.
        table : (depths, detours) float64.
        """
        dtype = np.int16 if table.size <= np.iinfo(np.int16).max else np.int32
        start = (depths * table.shape[1]).astype(dtype)[:, None]  # where a row of the table starts
        to_columns, to_rows = self.all_distances, self.block.distances_up
        at = subsumers * to_columns.shape[1]
        at += np.arange(to_columns.shape[1])
        entries = np.take(start + to_columns, at, mode="clip")
        np.multiply(subsumers, to_rows.shape[1], out=at)
        at += np.arange(to_rows.shape[1])[:, None]
        entries += np.take(to_rows, at, mode="clip")
        values: Floats = np.take(table, entries, mode="clip")
        return values


def _closure(graph: Graph, nodes: Ints) -> Ints:
    """Return everything at or above ``nodes``, by depth, in a depth the nodes of most parents first."""
    inside = np.zeros(len(graph), np.bool_)
    wave = np.unique(nodes)
    while len(wave):
        inside[wave] = True
        above = gather(graph.parent_indptr, graph.parent_indices, wave)
        wave = np.unique(above[~inside[above]])
    found = np.flatnonzero(inside).astype(np.int32)
    counts = graph.parent_indptr[found + 1] - graph.parent_indptr[found]
    return found[np.lexsort((-counts, graph.max_depths[found]))]
