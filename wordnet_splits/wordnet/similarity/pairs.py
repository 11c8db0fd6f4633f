"""Similarity of nodes: path, Leacock-Chodorow, three readings of Wu-Palmer, their means, and information.

With d(x, a) the fewest edges from x up to its ancestor a and D(x, y) the least d(x, a) + d(y, a) over
common ancestors a:

==========  ==========================================================================================
distance    D
path        1 / (D + 1)
lch         -ln((D + 1) / 2H), H the height of the hierarchy in edges (WordNet 3.0: 19); ``lch_perl`` in nodes
wup_wn      2k / (D(x, s) + D(y, s) + 2k); s the common ancestor of greatest maximum depth, k that depth + 1
wup         the same with NLTK's s: of greatest minimum depth, x itself or else the first by name;
            k its maximum depth + 1. Not symmetric, and below 1 for some x = y
wup_perl    the same with s of greatest minimum depth, k that depth + 2 (WordNet::Similarity's extra root)
mean        (path + wup_wn + lch / its maximum) / 3;  ``mean_nltk`` with wup
mean2       (path + wup_wn) / 2
res         IC(s) (`wordnet_splits.wordnet.similarity.information`); s the common ancestor of greatest IC
lin         2 IC(s) / (IC(x) + IC(y)) with the same s
jcn         1 / (IC(x) + IC(y) - 2 IC(s)) with the same s, a similarity as in NLTK: 1e300 for x = y or a
            difference of 0, else 0 where x or y has no information (the root)
==========  ==========================================================================================

All three readings of Wu-Palmer measure the way from x to s by D, not by d(x, s): ``wn`` takes its
``shortest_path``, NLTK its ``shortest_path_distance`` and WordNet::Similarity its ``getShortestPath``,
and each may leave the chain from x up to s for a shorter one through a higher ancestor.
Ties between subsumers go to the smaller wnid (``wn`` leaves them to the hash seed).

References: Leacock and Chodorow (1998); Wu and Palmer (1994), eq. 2; Pedersen, Patwardhan and
Michelizzi (2004); Resnik (1995); Lin (1998); Jiang and Conrath (1997), whose distance jcn inverts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from wordnet_splits.base.errors import unknown
from wordnet_splits.base.tabular import Tabular
from wordnet_splits.wordnet.similarity import allpairs, measures
from wordnet_splits.wordnet.similarity.information import information_of
from wordnet_splits.wordnet.similarity.measures import (
    FORMULAS,
    MEASURES,
    READINGS,
    Array,
    height,
    no_common_ancestor,
    row_blocks,
    subsumer_scores,
)
from wordnet_splits.wordnet.taxonomy import Taxonomy, load

__all__ = [
    "MEASURES",
    "Similarity",
    "compare_synsets",
    "path_between",
    "similarity_blocks",
    "similarity_matrices",
    "similarity_matrix",
]


@dataclass(frozen=True)
class Similarity(Tabular):
    """Every measure of a pair of synsets, and the common ancestors that the measures use."""

    a: str
    b: str
    distance: int
    path: float
    wup: float
    wup_wn: float
    wup_perl: float
    lch: float
    lch_perl: float
    mean: float
    mean_nltk: float
    mean2: float
    res: float
    lin: float
    jcn: float
    lcs: str
    lcs_nltk: str
    lcs_perl: str
    lcs_information: str

    def rows(self) -> Sequence[dict[str, Any]]:
        """Return one row: the pair, every measure and the common ancestors."""
        return [dict(vars(self))]


LCS = {"lcs": "wn", "lcs_nltk": "nltk", "lcs_perl": "perl", "lcs_information": "information"}
"""Field of a `Similarity` -> the reading whose common ancestor it has."""


class _Pair:
    """The terms of a pair, from the ancestors of both."""

    def __init__(self, taxonomy: Taxonomy, a: str, b: str) -> None:
        self.taxonomy = taxonomy
        a, b = taxonomy.find(a), taxonomy.find(b)
        self.x, self.y = taxonomy.index(a), taxonomy.index(b)
        self.above_x, self.above_y = taxonomy.ancestor_nodes(a), taxonomy.ancestor_nodes(b)
        self.common = self.above_x.keys() & self.above_y.keys()
        if not self.common:
            raise no_common_ancestor(taxonomy, a, b)
        self.height = height(taxonomy)
        self._subsumers: dict[str, int] = {}
        self._wups: dict[str, float] = {}

    @cached_property
    def distance(self) -> int:
        return _distance(self.above_x, self.above_y)

    def over_distance(self, name: str) -> float:
        return measures.OF_DISTANCE[name](self.distance, self.height)

    def of_information(self, name: str) -> float:
        values = information_of(self.taxonomy).values
        x, y, s = (values[node] for node in (self.x, self.y, self.subsumer("information")))
        return float(measures.OF_INFORMATION[name](x, y, s, self.x == self.y))

    def subsumer(self, reading: str) -> int:
        if reading not in self._subsumers:
            self._subsumers[reading] = self._find_subsumer(reading)
        return self._subsumers[reading]

    def _find_subsumer(self, reading: str) -> int:
        variant, taxonomy = READINGS[reading], self.taxonomy
        nodes = list(self.common)
        scores = subsumer_scores(taxonomy, reading)[nodes].tolist()
        greatest = max(scores)
        candidates = [node for node, score in zip(nodes, scores, strict=True) if score == greatest]
        if variant.prefers_x and self.x in candidates:
            return self.x
        if variant.by_name:
            return min(candidates, key=lambda node: taxonomy.nltk_name(taxonomy.wnid(node)))
        return min(candidates)

    def wup(self, reading: str) -> float:
        if reading not in self._wups:
            self._wups[reading] = self._find_wup(reading)
        return self._wups[reading]

    def _find_wup(self, reading: str) -> float:
        variant, s = READINGS[reading], self.subsumer(reading)
        above_s = self.taxonomy.graph.ancestors(s)
        depth = int(getattr(self.taxonomy.graph, variant.depth)[s]) + variant.offset
        return measures.wup(_distance(self.above_x, above_s) + _distance(self.above_y, above_s), depth)


def _distance(above_x: Mapping[int, int], above_y: Mapping[int, int]) -> int:
    return min(edges + above_y[node] for node, edges in above_x.items() if node in above_y)


def compare_synsets(a: str, b: str, taxonomy: Taxonomy | str | None = None) -> Similarity:
    """Return every measure of two synsets (wnids, names or nouns), in this order for the asymmetric one.

    Raises
    ------
    TaxonomyError : a wnid does not exist, or the two have no common ancestor.

    Examples
    --------
    >>> dog_and_cat = compare_synsets("n02084071", "n02121620")
    >>> dog_and_cat.distance, dog_and_cat.path, dog_and_cat.lcs
    (4, 0.2, 'n02075296')
    >>> compare_synsets("dog", "cat.n.01") == dog_and_cat
    True
    """
    taxonomy = load(taxonomy)
    pair = _Pair(taxonomy, a, b)
    values: dict[str, Any] = {name: formula(pair) for name, formula in FORMULAS.items()}
    for field, reading in LCS.items():
        values[field] = taxonomy.wnid(pair.subsumer(reading))
    return Similarity(taxonomy.find(a), taxonomy.find(b), **values)


def path_between(
    a: str, b: str, taxonomy: Taxonomy | str | None = None
) -> tuple[tuple[str, ...], str, tuple[str, ...]]:
    """Return a shortest chain from ``a`` up to the LCS of wup_wn, the LCS, and one from ``b``.

    Both chains include the LCS.
    """
    taxonomy = load(taxonomy)
    a, b = taxonomy.find(a), taxonomy.find(b)
    lcs = taxonomy.wnid(_Pair(taxonomy, a, b).subsumer("wn"))
    return taxonomy.path_up(a, lcs), lcs, taxonomy.path_up(b, lcs)


def similarity_matrix(
    measure: str,
    a: Sequence[str],
    b: Sequence[str] | None = None,
    taxonomy: Taxonomy | str | None = None,
    dtype: npt.DTypeLike | None = None,
) -> Array:
    """Return ``measure`` of every synset of ``a`` with every one of ``b``: (len(a), len(b)).

    Without ``b`` the columns are ``a`` again. Unless ``dtype`` is given, ``distance`` is int8 (int16 in a
    taxonomy more than 42 deep) and other measures are float64; `compare_synsets` returns the same bits.

    Raises
    ------
    UnknownNameError : a measure does not exist.
    TaxonomyError : a wnid does not exist, or two synsets have no common ancestor.
    """
    return similarity_matrices((measure,), a, b, taxonomy, dtype)[measure]


def similarity_matrices(
    measures: Sequence[str],
    a: Sequence[str],
    b: Sequence[str] | None = None,
    taxonomy: Taxonomy | str | None = None,
    dtype: npt.DTypeLike | None = None,
) -> dict[str, Array]:
    """Return the similarity matrix of each measure; they share distances and subsumers.

    The name ``lcs``, which is not a measure, gives the LCS of wup_wn as nodes of the taxonomy, int32.
    """
    taxonomy = load(taxonomy)
    shape = len(a), len(a if b is None else b)
    result = {measure: np.empty(shape, _dtype(dtype, measure, taxonomy)) for measure in measures}
    for rows, tiles in row_blocks(a, b, taxonomy, allpairs.ROWS):
        for terms in tiles:
            for measure, values in result.items():
                values[rows, terms.tile.columns] = terms.lcs if measure == "lcs" else FORMULAS[measure](terms)
    return result


def similarity_blocks(
    measure: str,
    a: Sequence[str],
    b: Sequence[str] | None = None,
    taxonomy: Taxonomy | str | None = None,
    block: int = 1024,
    dtype: npt.DTypeLike | None = None,
) -> Iterator[tuple[slice, Array]]:
    """Yield the similarity matrix in blocks: a slice of rows and its (rows, len(b)) values.

    Only one block is in memory at a time, whatever the length of ``a``.
    """
    taxonomy = load(taxonomy)
    columns, kind = len(a if b is None else b), _dtype(dtype, measure, taxonomy)
    for rows, tiles in row_blocks(a, b, taxonomy, block):
        values = np.empty((rows.stop - rows.start, columns), kind)
        for terms in tiles:
            values[:, terms.tile.columns] = FORMULAS[measure](terms)
        yield rows, values


def _dtype(dtype: npt.DTypeLike | None, measure: str, taxonomy: Taxonomy) -> npt.DTypeLike:
    if measure == "lcs":
        return np.int32
    if measure not in FORMULAS:
        raise unknown("measure", measure, MEASURES)
    if dtype is not None:
        return dtype
    return allpairs.distance_type(taxonomy.graph)[0] if measure == "distance" else np.float64
