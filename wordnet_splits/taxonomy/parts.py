"""Parts and wholes: WordNet's holonym pointers (member, part, substance), beside the hierarchy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from wordnet_splits.base.errors import unknown
from wordnet_splits.taxonomy.graph import Bytes, Ints

KINDS = ("member", "part", "substance")
SYMBOLS = {"#m": 0, "#p": 1, "#s": 2}
"""Holonym pointers of ``data.noun`` as indices of `KINDS`; meronym pointers (``%``) are the same edges."""

Edge = tuple[int, int, int]
"""Node of the part, node of the whole, index of the kind in `KINDS`."""


@dataclass(frozen=True, eq=False)
class PartGraph:
    """Edges from parts to wholes, sorted by part, then by whole.

    Parameters
    ----------
    parts, wholes : (edges,) int32, the two ends of each edge.
    kinds : (edges,) uint8, indices of `KINDS`.
    """

    parts: Ints
    wholes: Ints
    kinds: Bytes

    @classmethod
    def from_edges(cls, edges: Sequence[Edge]) -> PartGraph:
        """Return the graph of edges in any order."""
        table = np.array(sorted(edges), np.int32).reshape(-1, 3)
        return cls(table[:, 0].copy(), table[:, 1].copy(), table[:, 2].astype(np.uint8))

    @classmethod
    def from_names(cls, wholes: Mapping[str, Sequence[str]], node_of: Mapping[str, int]) -> PartGraph:
        """Return the graph of part -> wholes, all of kind ``part``."""
        kind = KINDS.index("part")
        return cls.from_edges([(node_of[p], node_of[w], kind) for p, row in wholes.items() for w in row])

    def wholes_of(self, node: int, kind: str | None = None) -> list[int]:
        """Return the direct wholes of ``node``, ascending; of one of `KINDS`, or of any."""
        return _select(self._wholes.get(node, ()), kind)

    def parts_of(self, node: int, kind: str | None = None) -> list[int]:
        """Return the direct parts of ``node``, ascending; of one of `KINDS`, or of any."""
        return _select(self._parts.get(node, ()), kind)

    @cached_property
    def _wholes(self) -> dict[int, list[tuple[int, int]]]:
        wholes: dict[int, list[tuple[int, int]]] = {}
        for part, whole, kind in self._edges():
            wholes.setdefault(part, []).append((whole, kind))
        return wholes

    @cached_property
    def _parts(self) -> dict[int, list[tuple[int, int]]]:
        parts: dict[int, list[tuple[int, int]]] = {}
        for part, whole, kind in self._edges():  # sorted by part, which stay ascending
            parts.setdefault(whole, []).append((part, kind))
        return parts

    def _edges(self) -> Iterator[Edge]:
        return zip(self.parts.tolist(), self.wholes.tolist(), self.kinds.tolist(), strict=True)

    def __getstate__(self) -> dict[str, object]:  # without derived tables
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def _select(ends: Iterable[tuple[int, int]], kind: str | None) -> list[int]:
    if kind is None:
        return [node for node, _ in ends]
    if kind not in KINDS:
        raise unknown("kind of part", kind, KINDS)
    return [node for node, index in ends if KINDS[index] == kind]


NO_PARTS = PartGraph.from_edges([])
