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

from wordnet_splits.wordnet.taxonomy.graph import UNREACHED, Graph, Ints, gather

SmallInts = npt.NDArray[np.signedinteger]
"""int8 where the taxonomy is shallow enough, else int16."""

RowIndices = npt.NDArray[np.int64]
"""Row numbers of U, of the type that numpy indexes with without conversion."""
Floats = npt.NDArray[np.float64]

ROWS = 2048
"""Number of rows in a block."""
TILE_BYTES = 1 << 19
"""Bytes of U for one tile, about a core's second-level cache."""


@dataclass(frozen=True, eq=False)
class AncestorTable:
    """The ancestors of a list of nodes (columns); column j has entries ``indptr[j]:indptr[j + 1]``.

    ``indptr`` (columns + 1,); ``nodes`` int32, every node at or above the column; ``edges`` int8 or int16,
    the fewest edges up to each.
    """

    indptr: npt.NDArray[np.int64]
    nodes: Ints
    edges: SmallInts

    @property
    def columns(self) -> int:
        """Number of nodes in the list."""
        return len(self.indptr) - 1

    def select(self, columns: slice) -> AncestorTable:
        """Return the ancestors of neighbouring columns."""
        indptr = self.indptr[columns.start : columns.stop + 1]
        inside = slice(indptr[0], indptr[-1])
        return AncestorTable(indptr - indptr[0], self.nodes[inside], self.edges[inside])


def ancestors_of(graph: Graph, nodes: Ints) -> AncestorTable:
    """Return the ancestors of each of ``nodes``, themselves included."""
    dtype, _ = distance_type(graph)
    n, most = len(graph), 4 * len(nodes) + 64
    column, node = np.arange(len(nodes), dtype=np.int64), nodes
    columns, ancestors = [column], [node]
    while len(node):
        counts = graph.parent_indptr[node + 1] - graph.parent_indptr[node]
        column, node = np.repeat(column, counts), gather(graph.parent_indptr, graph.parent_indices, node)
        if len(node) > most:  # many ways lead to the same ancestors
            pairs = np.unique(column * n + node)
            column, node = pairs // n, (pairs % n).astype(np.int32)
        columns.append(column)
        ancestors.append(node)
    edges = np.repeat(np.arange(len(ancestors)), [len(wave) for wave in ancestors]).astype(dtype)
    pairs = np.concatenate(columns) * n + np.concatenate(ancestors)
    order = np.argsort(pairs, kind="stable")  # stable: of equal pairs the shortest way is first
    pairs = pairs[order]
    shortest = np.diff(pairs, prepend=-1) > 0
    pairs = pairs[shortest]
    indptr = np.searchsorted(pairs, np.arange(len(nodes) + 1, dtype=np.int64) * n)
    return AncestorTable(indptr, (pairs % n).astype(np.int32), edges[order[shortest]])


def distance_type(graph: Graph) -> tuple[type[np.signedinteger], int]:
    """Return the integer type of distances, and a larger number than any distance that does not overflow."""
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
    """The walk over everything at or above a list of row nodes, parents first.

    Parameters
    ----------
    graph : the taxonomy.
    rows : (r,) nodes.
    ancestors : the ancestors of the rows.
    """

    def __init__(self, graph: Graph, rows: Ints, ancestors: AncestorTable) -> None:
        self.graph = graph
        self.ancestors = ancestors
        self.dtype, self.far = distance_type(graph)
        self.nodes = _closure(graph, rows)
        self.row_of_node = np.full(len(graph), -1, np.int32)  # in U; -1 where the walk does not pass
        self.row_of_node[self.nodes] = np.arange(len(self.nodes), dtype=np.int32)
        self.rows = self.row_of_node[rows]
        self.steps = list(self._steps())

    def _steps(self) -> Iterator[tuple[int, int, Ints]]:
        """Yield runs [lo, hi) of U with a parent's row for each node; a parent is final before its run."""
        depths = self.graph.max_depths[self.nodes].astype(np.int64)
        offsets = self.graph.parent_indptr[self.nodes]
        counts = self.graph.parent_indptr[self.nodes + 1] - offsets
        starts = np.flatnonzero(np.diff(depths, prepend=-1))
        for lo, hi in itertools.pairwise([*starts.tolist(), len(depths)]):
            for slot in range(int(counts[lo])):  # nodes of a depth are sorted by their number of parents
                end = lo + int(np.searchsorted(-counts[lo:hi], -slot, side="left"))
                yield lo, end, self.row_of_node[self.graph.parent_indices[offsets[lo:end] + slot]]

    def tile_width(self) -> int:
        """Return the number of columns of a tile."""
        return max(32, TILE_BYTES // max(1, len(self.nodes)) // 32 * 32)

    def tiles(self, columns: AncestorTable) -> Iterator[Tile]:
        """Yield the columns in tiles, from left to right."""
        width = self.tile_width()
        for start in range(0, columns.columns, width):
            yield Tile(self, columns, slice(start, min(start + width, columns.columns)))

    def walk(self, block: npt.NDArray[np.signedinteger], step: int, best: np.ufunc) -> None:
        """Update ``block`` (nodes, columns) in place: v = best(v, parent + step), parents first."""
        scratch = np.empty(
            (max((hi - lo for lo, hi, _ in self.steps), default=0), block.shape[1]), block.dtype
        )
        for lo, hi, parents in self.steps:
            from_parents = scratch[: hi - lo]
            np.take(block, parents, axis=0, out=from_parents, mode="clip")  # "raise" would buffer the output
            if step:
                from_parents += block.dtype.type(step)
            best(block[lo:hi], from_parents, out=block[lo:hi])

    @cached_property
    def distances_up(self) -> SmallInts:
        """(nodes, rows): D between every node of the walk and every row."""
        return Tile(self, self.ancestors, slice(0, self.ancestors.columns)).all_distances

    @cached_property
    def rows_at(self) -> tuple[Ints, Ints]:
        """Rows of the result by row of U, in CSR form."""
        indptr = np.zeros(len(self.nodes) + 1, np.int32)
        np.cumsum(np.bincount(self.rows, minlength=len(self.nodes)), out=indptr[1:])
        return indptr, np.argsort(self.rows, kind="stable").astype(np.int32)


class Tile:
    """The pairs of the rows of a block with some columns."""

    def __init__(self, block: Block, ancestors: AncestorTable, columns: slice) -> None:
        self.block = block
        self.columns = columns
        ancestors = ancestors.select(columns)
        counts = np.diff(ancestors.indptr)
        rows = block.row_of_node[ancestors.nodes]
        shared = rows >= 0  # only an ancestor of a row, too, can be a common ancestor
        self._rows = rows[shared]
        self._columns = np.repeat(np.arange(len(counts), dtype=np.int32), counts)[shared]
        self._edges = ancestors.edges[shared]
        self.shape = (len(block.nodes), len(counts))

    @cached_property
    def all_distances(self) -> SmallInts:
        """(nodes, columns): D between every node of the walk and every column."""
        distances = np.full(self.shape, self.block.far, self.block.dtype)
        distances[self._rows, self._columns] = self._edges
        self.block.walk(distances, 1, np.minimum)
        return distances

    @property
    def distance(self) -> SmallInts:
        """(rows, columns): D; at least ``block.far`` for nodes without a common ancestor."""
        return np.take(self.all_distances, self.block.rows, axis=0)

    def subsumers(self, best_last: RowIndices) -> RowIndices:
        """Return (rows, columns) rows of U: the common ancestor that comes last in ``best_last``.

        ``best_last`` holds every row of U once, from the worst subsumer to the best. The result is
        meaningless for nodes without a common ancestor.
        """
        dtype = np.int16 if len(best_last) <= np.iinfo(np.int16).max else np.int32
        rank = np.empty(len(best_last), dtype)
        rank[best_last] = np.arange(len(best_last), dtype=dtype)
        ranks = np.full(self.shape, -1, dtype)
        ranks[self._rows, self._columns] = rank[self._rows]
        self.block.walk(ranks, 0, np.maximum)
        return np.take(best_last, np.take(ranks, self.block.rows, axis=0), mode="clip")

    def prefer_rows(self, subsumers: RowIndices, score: npt.NDArray[np.uint8]) -> None:
        """Replace a subsumer by the row itself where that scores equally and is above the column."""
        indptr, rows = self.block.rows_at
        counts = indptr[self._rows + 1] - indptr[self._rows]
        row, column = gather(indptr, rows, self._rows), np.repeat(self._columns, counts)
        itself = np.repeat(self._rows, counts)
        equal = score[itself] == score[subsumers[row, column]]
        subsumers[row[equal], column[equal]] = itself[equal]

    def look_up(self, subsumers: RowIndices, depths: npt.NDArray[np.int64], table: Floats) -> Floats:
        """Return ``table[depths[s], D(x, s) + D(y, s)]`` for the subsumer s of each pair.

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
    """Return every node at or above ``nodes`` by depth, within a depth the nodes of most parents first."""
    inside = np.zeros(len(graph), np.bool_)
    wave = np.unique(nodes)
    while len(wave):
        inside[wave] = True
        above = gather(graph.parent_indptr, graph.parent_indices, wave)
        wave = np.unique(above[~inside[above]])
    closure = np.flatnonzero(inside).astype(np.int32)
    counts = graph.parent_indptr[closure + 1] - graph.parent_indptr[closure]
    return closure[np.lexsort((-counts, graph.max_depths[closure]))]
