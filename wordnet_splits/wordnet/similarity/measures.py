"""The similarity measures: their formulas, and their values over lists of synsets, tile by tile."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from wordnet_splits.base.errors import TaxonomyError
from wordnet_splits.wordnet.similarity import allpairs
from wordnet_splits.wordnet.similarity.allpairs import AncestorTable, Block, RowIndices, Tile
from wordnet_splits.wordnet.similarity.information import INFINITE, information_of
from wordnet_splits.wordnet.taxonomy import Taxonomy
from wordnet_splits.wordnet.taxonomy.graph import Ints

Array = npt.NDArray[Any]


def path(distance: int) -> float:
    """Return 1 / (D + 1), in (0, 1]."""
    return 1.0 / (distance + 1)


def lch(distance: int, height: int) -> float:
    """Return -ln((D + 1) / 2H), at most ln 2H."""
    return -math.log((distance + 1) / (2.0 * height))


def wup(detour: int, depth: int) -> float:
    """Return 2k / (detour + 2k), in (0, 1]; the detour is D(x, s) + D(y, s)."""
    return (2.0 * depth) / (detour + 2 * depth)


def res(x: Any, y: Any, s: Any, equal: Any) -> Any:
    """Return IC(s)."""
    return s


def lin(x: Any, y: Any, s: Any, equal: Any) -> Any:
    """Return 2 IC(s) / (IC(x) + IC(y)), in [0, 1]; 0 if neither has information (NLTK divides by 0)."""
    total = x + y
    return 2.0 * s / np.where(total == 0, 1.0, total)


def jcn(x: Any, y: Any, s: Any, equal: Any) -> Any:
    """Return 1 / (IC(x) + IC(y) - 2 IC(s)): infinite for equal nodes, else 0 if one has no information."""
    gap = x + y - 2.0 * s
    value = np.where(gap == 0, INFINITE, 1.0 / np.where(gap == 0, 1.0, gap))
    return np.where(equal, INFINITE, np.where((x == 0) | (y == 0), 0.0, value))


class Terms(Protocol):
    """Terms of the measures: numbers for one pair, arrays for a tile of pairs."""

    @property
    def distance(self) -> Any:
        """D."""

    def over_distance(self, name: str) -> Any:
        """Return the formula of that name in ``OF_DISTANCE``."""

    def of_information(self, name: str) -> Any:
        """Return the formula of that name in ``OF_INFORMATION``."""

    def wup(self, reading: str) -> Any:
        """Return Wu-Palmer in one of the ``READINGS``."""


OF_DISTANCE: dict[str, Callable[[int, int], float]] = {
    "path": lambda distance, height: path(distance),
    "lch": lch,
    "lch_perl": lambda distance, height: lch(distance, height + 1),
    "lch_unit": lambda distance, height: lch(distance, height) / lch(0, height),
}
"""Functions of D and the height H of the taxonomy."""

OF_INFORMATION: dict[str, Callable[[Any, Any, Any, Any], Any]] = {"res": res, "lin": lin, "jcn": jcn}
"""Functions of the information of x, y and s, the common ancestor that has most, and of whether x is y."""


FORMULAS: dict[str, Callable[[Terms], Any]] = {
    "distance": lambda t: t.distance,
    "path": lambda t: t.over_distance("path"),
    "lch": lambda t: t.over_distance("lch"),
    "lch_perl": lambda t: t.over_distance("lch_perl"),
    "wup": lambda t: t.wup("nltk"),
    "wup_wn": lambda t: t.wup("wn"),
    "wup_perl": lambda t: t.wup("perl"),
    "mean": lambda t: (t.over_distance("path") + t.wup("wn") + t.over_distance("lch_unit")) / 3,
    "mean_nltk": lambda t: (t.over_distance("path") + t.wup("nltk") + t.over_distance("lch_unit")) / 3,
    "mean2": lambda t: (t.over_distance("path") + t.wup("wn")) / 2,
    "res": lambda t: t.of_information("res"),
    "lin": lambda t: t.of_information("lin"),
    "jcn": lambda t: t.of_information("jcn"),
}

MEASURES: tuple[str, ...] = tuple(FORMULAS)
"""Names of the measures."""

OF_HEIGHT = ("lch", "lch_perl", "mean", "mean_nltk")
"""Measures that depend on the height of the hierarchy."""

BEYOND_ONE = ("distance", "lch", "lch_perl", "res", "jcn")
"""Measures whose values are not limited to 0..1."""


@dataclass(frozen=True)
class Reading:
    """One reading of Wu-Palmer, or the subsumer of the measures of information.

    Parameters
    ----------
    subsumer_depth : the value that selects the subsumer: ``max_depths``, ``min_depths`` or ``information``.
    depth : the depth of the subsumer in the formula.
    offset : number added to that depth to give k.
    by_name : ties go to the first of NLTK's names instead of the smaller wnid.
    prefers_x : x wins every tie.
    """

    subsumer_depth: str
    depth: str
    offset: int
    by_name: bool = False
    prefers_x: bool = False


READINGS = {
    "wn": Reading("max_depths", "max_depths", 1),
    "nltk": Reading("min_depths", "max_depths", 1, by_name=True, prefers_x=True),
    "perl": Reading("min_depths", "min_depths", 2),
    "information": Reading("information", "max_depths", 1),
}


def subsumer_scores(taxonomy: Taxonomy, reading: str) -> Array:
    """Return the value of every node of which the subsumer of a reading has the greatest."""
    name = READINGS[reading].subsumer_depth
    scores: Array = (
        information_of(taxonomy).values if name == "information" else getattr(taxonomy.graph, name)
    )
    return scores


class Tables:
    """The formulas as tables over the integers that occur in a taxonomy of height ``top``."""

    def __init__(self, top: int) -> None:
        self.over_distance = {
            name: np.array([formula(distance, top) for distance in range(2 * top + 1)])
            for name, formula in OF_DISTANCE.items()
        }
        self.wup = np.array(
            [[wup(detour, max(k, 1)) for detour in range(4 * top + 1)] for k in range(top + 3)]
        )


tables = lru_cache(maxsize=8)(Tables)


class RowBlock:
    """A block of rows with the tables and subsumer orders that its tiles share."""

    def __init__(self, taxonomy: Taxonomy, block: Block) -> None:
        self.taxonomy = taxonomy
        self.tables = tables(height(taxonomy))
        self.block = block
        self._orders: dict[str, RowIndices] = {}

    def best_last(self, reading: str) -> RowIndices:
        """Return the rows of U from the worst subsumer of that reading to the best."""
        if reading not in self._orders:
            variant, nodes = READINGS[reading], self.block.nodes
            tie = _name_ranks(self.taxonomy, nodes) if variant.by_name else nodes
            scores = subsumer_scores(self.taxonomy, reading)[nodes]
            self._orders[reading] = np.lexsort((-tie, scores))
        return self._orders[reading]


def _name_ranks(taxonomy: Taxonomy, nodes: Ints) -> Ints:
    """Return the rank of each node by NLTK's name."""
    names = [taxonomy.nltk_name(taxonomy.wnid(node)) for node in nodes.tolist()]
    ranks = np.empty(len(names), np.int32)
    ranks[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names), dtype=np.int32)
    return ranks


class TileTerms:
    """The terms of a tile of pairs."""

    def __init__(self, rows: RowBlock, tile: Tile, columns: Ints) -> None:
        self.rows = rows
        self.tile = tile
        self.columns = columns  # nodes
        self.tables = rows.tables
        self._subsumers: dict[str, RowIndices] = {}
        self._wups: dict[str, Array] = {}

    @cached_property
    def distance(self) -> Array:
        """(rows, columns): D."""
        return self.tile.distance

    def over_distance(self, name: str) -> Array:
        """Return the formula of that name over the distances."""
        return np.take(self.tables.over_distance[name], self.distance)

    @property
    def lcs(self) -> Ints:
        """(rows, columns): nodes of the LCS of wup_wn."""
        return self.rows.block.nodes[self.subsumers("wn")]

    def subsumers(self, reading: str) -> RowIndices:
        """Return (rows, columns) rows of U: the subsumer of that reading for each pair."""
        if reading not in self._subsumers:
            variant, block, taxonomy = READINGS[reading], self.rows.block, self.rows.taxonomy
            subsumers = self.tile.subsumers(self.rows.best_last(reading))
            if variant.prefers_x:
                self.tile.prefer_rows(subsumers, subsumer_scores(taxonomy, reading)[block.nodes])
            self._subsumers[reading] = subsumers
        return self._subsumers[reading]

    def of_information(self, name: str) -> Array:
        """Return the formula of that name over information contents."""
        values = information_of(self.rows.taxonomy).values
        x, y = self.rows.block.nodes[self.rows.block.rows][:, None], self.columns
        shared = values[self.rows.block.nodes[self.subsumers("information")]]
        array: Array = OF_INFORMATION[name](values[x], values[y], shared, x == y)
        return array

    def wup(self, reading: str) -> Array:
        """Return Wu-Palmer in that reading."""
        if reading not in self._wups:
            variant, nodes = READINGS[reading], self.rows.block.nodes
            depths = getattr(self.rows.taxonomy.graph, variant.depth)[nodes].astype(np.int64) + variant.offset
            self._wups[reading] = self.tile.look_up(self.subsumers(reading), depths, self.tables.wup)
        return self._wups[reading]


def row_blocks(
    a: Sequence[str], b: Sequence[str] | None, taxonomy: Taxonomy, size: int
) -> Iterator[tuple[slice, Iterator[TileTerms]]]:
    """Yield all pairs in blocks of ``size`` rows, each with its tiles from left to right."""
    rows = _nodes_of(taxonomy, a)
    columns = rows if b is None else _nodes_of(taxonomy, b)
    row_ancestors = allpairs.ancestors_of(taxonomy.graph, rows)
    column_ancestors = row_ancestors if b is None else allpairs.ancestors_of(taxonomy.graph, columns)
    for start in range(0, len(rows), size):
        part = slice(start, min(start + size, len(rows)))
        block = Block(taxonomy.graph, rows[part], row_ancestors.select(part))
        yield part, _tiles(RowBlock(taxonomy, block), column_ancestors, rows[part], columns)


def _tiles(block: RowBlock, ancestors: AncestorTable, rows: Ints, columns: Ints) -> Iterator[TileTerms]:
    for tile in block.block.tiles(ancestors):
        terms = TileTerms(block, tile, columns[tile.columns])
        if len(block.taxonomy.graph.roots) > 1:
            _check_connected(terms, block.taxonomy, rows, terms.columns)
        yield terms


def _check_connected(terms: TileTerms, taxonomy: Taxonomy, rows: Ints, columns: Ints) -> None:
    row, column = np.nonzero(terms.distance >= terms.tile.block.far)
    if len(row):
        raise no_common_ancestor(
            taxonomy, taxonomy.wnid(int(rows[row[0]])), taxonomy.wnid(int(columns[column[0]]))
        )


def _nodes_of(taxonomy: Taxonomy, synsets: Sequence[str]) -> Ints:
    """Return the nodes of wnids, names or nouns, whose depth in the taxonomy is known."""
    wnids = [taxonomy.find(synset) for synset in synsets]
    nodes = taxonomy.indices(wnids)
    if taxonomy.graph.unresolved is not None:
        for wnid in wnids:
            taxonomy.max_depth(wnid)  # raises for a synset whose parent is not decided
    return nodes


def height(taxonomy: Taxonomy) -> int:
    """Return H of a taxonomy that has edges."""
    height = allpairs.height_of(taxonomy.graph)
    if height == 0:
        raise TaxonomyError("a taxonomy without edges has no similarities", where=repr(taxonomy))
    return height


def constants(measure: str, taxonomy: Taxonomy) -> str:
    """Return the constants of a hierarchy that a measure uses, in words; ``""`` for none."""
    if measure in OF_INFORMATION:
        return information_of(taxonomy).words
    return f"height {height(taxonomy)}" if measure in OF_HEIGHT else ""


def constants_of(measures: Iterable[str], taxonomy: Taxonomy) -> str:
    """Return measures with their `constants`: ``mean, lch: height 19``; ``""`` if none has any."""
    by_words: dict[str, list[str]] = {}
    for measure in dict.fromkeys(measures):
        by_words.setdefault(constants(measure, taxonomy), []).append(measure)
    return "; ".join(f"{', '.join(names)}: {words}" for words, names in by_words.items() if words)


def no_common_ancestor(taxonomy: Taxonomy, a: str, b: str) -> TaxonomyError:
    """Return the error for two synsets under different roots."""
    projected = taxonomy.graph.unresolved is not None
    return TaxonomyError(
        f"{a} ({taxonomy.name(a)}) and {b} ({taxonomy.name(b)}) have no common ancestor",
        hint="instance hypernyms are not in the tree; use the full hierarchy"
        if projected
        else f"this taxonomy has {len(taxonomy.graph.roots)} roots; compare synsets below the same one",
    )
